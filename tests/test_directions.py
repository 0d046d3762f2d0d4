"""A package has at hand what its roles receive and send; `decode` and `encode` know all other types, too."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.classes import Classes
from acpgen.ir.model import Role
from tests.support import Packages, codec_functions, codec_modules, model_of, package_files, schema_of, write_package

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "t"}]}
UPDATE = {
    "sessionId": "s",
    "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "t"}, "messageId": "m"},
}


@pytest.fixture(params=[Role.AGENT, Role.CLIENT])
def one_sided(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages(SchemaChoice(), roles=(request.param,))


def test_each_function_is_in_one_of_the_modules(one_sided: ModuleType, packages: Packages) -> None:
    near, far = codec_modules(one_sided)
    names = {name for name in vars(near) if name.startswith(("decode_", "encode_"))}
    more = {name for name in vars(far) if name.startswith(("decode_", "encode_")) and name not in names}
    assert names | more == codec_functions(packages(SchemaChoice())).keys()
    assert min(len(names), len(more)) > 50
    assert all(vars(far)[name] is vars(near)[name] for name in names & vars(far).keys()), "only imported"


@pytest.mark.parametrize(("kind", "raw"), [("PromptRequest", PROMPT), ("SessionNotification", UPDATE)])
def test_both_directions_of_every_type(one_sided: ModuleType, kind: str, raw: Any) -> None:
    value = one_sided.decode(getattr(one_sided, kind), raw)
    assert type(value) is getattr(one_sided, kind)
    assert one_sided.encode(value) == raw
    with pytest.raises(one_sided.DecodeError) as caught:
        one_sided.decode(getattr(one_sided, kind), {**raw, "sessionId": 1})
    assert (caught.value.path, caught.value.raw["sessionId"]) == (("sessionId",), 1)


SCRIPT = """
import asyncio, sys
import {name} as acp
from {name} import advertise

class Echo(acp.Agent):
    async def initialize(self, params):
        return advertise(self, acp.InitializeResponse(protocol_version=1))

    async def session_prompt(self, params):
        update = acp.SessionUpdateAgentMessageChunk(content=params.prompt[0])
        await self.client.session_update(acp.SessionNotification(session_id="s", update=update))
        return acp.PromptResponse(stop_reason="end_turn")

class Peer:
    sent = []

    async def notify(self, method, params):
        self.sent.append(params["update"]["content"])

async def main():
    echo = Echo(acp.RemoteClient(Peer()))
    await acp.dispatch_request(echo, "initialize", {{"protocolVersion": 1}})
    return await acp.dispatch_request(echo, "session/prompt", {prompt!r})

assert asyncio.run(main()) == {{"stopReason": "end_turn"}}
assert Peer.sent == [{{"type": "text", "text": "t"}}]
print(sorted(name for name in sys.modules if "direction" in name))
acp.decode(acp.SessionNotification, {update!r})
print(sorted(name for name in sys.modules if "direction" in name))
"""


def test_an_agent_does_without_the_other_direction(tmp_path: Path) -> None:
    write_package(package_files(SchemaChoice(), roles=(Role.AGENT,)), tmp_path / "lean")
    script = SCRIPT.format(name="lean", prompt=PROMPT, update=UPDATE)
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["[]", "['lean._other_direction']"], run.stderr


def test_a_subclass_is_encoded_as_its_nearest_base_in_whichever_module_that_is(one_sided: ModuleType) -> None:
    class Noted(one_sided.SessionUpdateAgentMessageChunk):  # type: ignore[misc, name-defined]
        pass

    value = Noted(content=one_sided.ContentBlockText(text="t"), message_id="m")
    assert one_sided.encode(value)["sessionUpdate"] == "agent_message_chunk"


def test_a_package_that_needs_all_has_one_module(packages: Packages) -> None:
    thing = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = {**thing, "x-method": "thing/do", "x-side": "both"}
    made = packages.of(schema_of(DoRequest=request, DoResponse=request))
    assert len(codec_modules(made)) == 1
    assert made.encode(made.decode(made.DoRequest, {"a": "x"})) == {"a": "x"}


def test_results_of_stubs_are_decoded(one_sided: ModuleType) -> None:
    class Peer:
        async def request(self, method: str, params: Any) -> Any:
            return {"content": "text"} if method == "fs/read_text_file" else {"stopReason": "end_turn"}

    if hasattr(one_sided, "RemoteClient"):
        read = one_sided.RemoteClient(Peer()).fs_read_text_file
        found = asyncio.run(read(one_sided.ReadTextFileRequest(session_id="s", path="/p")))
        assert found == one_sided.ReadTextFileResponse(content="text")
    else:
        prompt = one_sided.RemoteAgent(Peer()).session_prompt
        found = asyncio.run(prompt(one_sided.PromptRequest(session_id="s", prompt=[])))
        assert found == one_sided.PromptResponse(stop_reason="end_turn")


# --- The property that most classes share ---------------------------------------------------------------------------


def _things(number: int, **notes: Any) -> dict[str, Any]:
    note = {"type": ["string", "null"], "description": "Any remark."}
    own = {f"Own{index}": {"type": "object", "properties": {"note": each}} for index, each in notes.items()}
    things = {f"Thing{index}": {"type": "object", "properties": {"note": note}} for index in range(number)}
    return schema_of(**things, **own)


@pytest.mark.parametrize(("number", "base"), [(9, None), (10, "WithNote")])
def test_a_base_is_for_many_classes_only(number: int, base: str | None, packages: Packages) -> None:
    model, _ = model_of(SchemaChoice(schema=packages.write(_things(number))))
    classes = Classes(model)
    assert (classes.shared and classes.shared.name) == base
    assert {classes.base(model.struct(f"Thing{index}")) for index in range(number)} == {base}


def test_a_class_that_says_something_else_declares_the_property_itself(packages: Packages) -> None:
    notes = {
        "text": {"type": ["string", "null"], "description": "Something else."},
        "type": {"type": ["integer", "null"]},
        "silent": {"type": ["string", "null"]},
    }
    model, _ = model_of(SchemaChoice(schema=packages.write(_things(10, **notes))))
    classes = Classes(model)
    assert {name: classes.base(model.struct(f"Own{name}")) for name in notes} == {
        "text": None,
        "type": None,
        "silent": "WithNote",
    }
    assert [field.name for field in classes.own_fields(model.struct("Owntext"))] == ["note"]
    assert not classes.own_fields(model.struct("Ownsilent"))


def test_a_base_never_takes_the_name_of_a_definition(packages: Packages) -> None:
    schema = _things(12)
    schema["$defs"]["WithNote"] = {"type": "string"}
    model, _ = model_of(SchemaChoice(schema=packages.write(schema)))
    shared = Classes(model).shared
    assert shared is not None
    assert shared.name == "WithNoteBase"
