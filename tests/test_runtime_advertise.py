"""What an author says in one place: `advertise`, its keywords, `ADVERTISES`; and no warning about what is meant so."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import Role
from acpgen.schema.bundled import load_release, newest_release
from tests.command_line import run_acpgen
from tests.documents import blocks
from tests.runtime_support import V1, V2, acp_log, agent_of, client_of, raw_peer, run, texts
from tests.support import REPOSITORY, Packages, package_folder

EVERY_PYTHON = pytest.mark.every_python
ALL = {
    1: {
        "fs": {"readTextFile": True, "writeTextFile": True},
        "terminal": True,
        "auth": {"terminal": True},
        "session": {"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}},
        "elicitation": {"form": {}, "url": {}},
    },
    2: {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}},
}


async def handler(self: Any, params: Any) -> Any:
    raise NotImplementedError


def told_by(acp: ModuleType, kind: Any, message: Any = None, **decided: Any) -> Any:
    """What an agent advertises in `initialize`, as JSON."""
    message = message or acp.InitializeResponse(protocol_version=1)
    return acp.encode(acp.advertise(kind, message, **decided))["agentCapabilities"]


# --- Keywords -------------------------------------------------------------------------------------------------------


@EVERY_PYTHON
@pytest.mark.parametrize("name", ["load_session", "session_load"])
def test_what_the_configuration_decides_wins(packages: Packages, name: str) -> None:
    acp = packages(V1)
    kind = agent_of(acp, session_load=handler, session_list=handler)
    assert told_by(acp, kind)["loadSession"] is True
    told = told_by(acp, kind, **{name: False})
    assert not told.get("loadSession")
    assert told["sessionCapabilities"] == {"list": {}}
    able = acp.AgentCapabilities(load_session=True)
    told = told_by(acp, kind, acp.InitializeResponse(protocol_version=1, agent_capabilities=able), **{name: False})
    assert not told.get("loadSession"), "also over what the message has"


@EVERY_PYTHON
def test_a_keyword_opens_closes_or_has_the_value(packages: Packages) -> None:
    acp = packages(V1)
    kind = agent_of(acp, session_list=handler, session_delete=handler)
    assert told_by(acp, kind, session_delete=False)["sessionCapabilities"] == {"list": {}}
    assert told_by(acp, kind, session_capabilities=None).get("sessionCapabilities", {}) == {}
    assert told_by(acp, acp.Agent, **{"prompt_capabilities.image": True})["promptCapabilities"]["image"] is True
    told = told_by(acp, acp.Agent, prompt_capabilities=acp.PromptCapabilities(audio=True))
    assert told["promptCapabilities"] == {"audio": True}, "what is false is left out: some editors take it for a yes"
    meta = acp.SessionListCapabilities(meta={"pages": 5})
    told = told_by(acp, kind, **{"session_capabilities.list": meta})
    assert told["sessionCapabilities"] == {"list": {"_meta": {"pages": 5}}, "delete": {}}


@EVERY_PYTHON
@pytest.mark.parametrize(
    ("decided", "error"),
    [
        ({"lod_session": True}, "'lod_session', which is no capability: expected loadSession"),
        ({"image": True}, "'image', which is no capability: expected promptCapabilities.image"),
        ({"session_new": False}, "'session_new', which is no capability"),
    ],
)
def test_a_name_that_no_capability_has(packages: Packages, decided: dict[str, Any], error: str) -> None:
    acp = packages(V1)
    with pytest.raises(ValueError, match=error):
        acp.advertise(acp.Agent, acp.InitializeResponse(protocol_version=1), **decided)


@EVERY_PYTHON
def test_a_value_that_does_not_fit(packages: Packages) -> None:
    acp = packages(V1)
    with pytest.raises(TypeError, match=r"agentCapabilities\.loadSession: expected true or false, found 3"):
        acp.advertise(acp.Agent, acp.InitializeResponse(protocol_version=1), load_session=3)


@EVERY_PYTHON
def test_one_of_several_forms_has_to_be_named(packages: Packages) -> None:
    acp = packages(V1)
    kind, hello = client_of(acp, elicitation_create=handler), acp.InitializeRequest(protocol_version=1)
    with pytest.raises(ValueError, match=r"say which of its ways, elicitation\.form or elicitation\.url"):
        acp.advertise(kind, hello, elicitation_create=True)
    told = acp.advertise(kind, hello, **{"elicitation.form": True})
    assert acp.encode(told)["clientCapabilities"]["elicitation"] == {"form": {}}


# --- ADVERTISES -----------------------------------------------------------------------------------------------------


@EVERY_PYTHON
@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_a_class_says_in_one_place_what_it_can_do(packages: Packages, sources: SchemaChoice) -> None:
    """That of all bases counts, each without repeating those of others."""
    acp = packages(sources)
    hello: dict[str, Any] = {"protocolVersion": sources.protocol}
    if sources is V2:
        hello["info"] = {"name": "c", "version": "1"}

    class Logins(acp.Client):  # type: ignore[name-defined,misc]
        ADVERTISES = ("auth.terminal",)

    class Forms(acp.Client):  # type: ignore[name-defined,misc]
        ADVERTISES = ("elicitation.form",)

        async def elicitation_create(self, params: Any) -> Any:
            raise NotImplementedError

    class Editor(Forms, Logins):
        ADVERTISES = ("elicitation.url",)

    told = acp.encode(acp.advertise(Editor, acp.decode(acp.InitializeRequest, hello)))
    able = told["clientCapabilities" if sources is V1 else "capabilities"]
    assert able["elicitation"] == {"form": {}, "url": {}}
    assert able["auth"] == {"terminal": True if sources is V1 else {}}
    less = acp.encode(acp.advertise(Editor, acp.decode(acp.InitializeRequest, hello), **{"elicitation.url": False}))
    assert less["clientCapabilities" if sources is V1 else "capabilities"]["elicitation"] == {"form": {}}


@EVERY_PYTHON
def test_an_agent_that_takes_images(packages: Packages) -> None:
    acp = packages(V1)
    kind = type("Seeing", (acp.Agent,), {"ADVERTISES": ("promptCapabilities.image",)})
    assert told_by(acp, kind)["promptCapabilities"]["image"] is True


@EVERY_PYTHON
@pytest.mark.parametrize(
    ("names", "error", "text"),
    [
        (("promptCapabilities.images",), ValueError, "ADVERTISES of Odd has .*: expected promptCapabilities.image"),
        (("promptCapabilities",), ValueError, "which is no capability: expected promptCapabilities.image"),
        ("loadSession", TypeError, r"ADVERTISES of Odd is a str: write a tuple, as in \('loadSession',\)"),
    ],
)
def test_what_is_no_capability_raises(packages: Packages, names: Any, error: type[Exception], text: str) -> None:
    acp = packages(V1)
    with pytest.raises(error, match=text):
        told_by(acp, type("Odd", (acp.Agent,), {"ADVERTISES": names}))


@EVERY_PYTHON
@pytest.mark.parametrize("has_it", [True, False])
def test_helpers_advertise_what_the_schema_has(packages: Packages, *, has_it: bool) -> None:
    """The transcript of a session has compactions: agents may send them, where they are known."""
    release = newest_release(1)
    assert release is not None
    root = deepcopy(load_release(release).root)
    if not has_it:
        del root["$defs"]["ClientSessionCapabilities"]["properties"]["compaction"]
    acp = packages(SchemaChoice(schema=packages.write(root)), roles=(Role.CLIENT,), parts=("sessions",))
    helpers = import_module(f"{acp.__name__}.helpers")
    told = acp.encode(acp.advertise(helpers.SessionClient, acp.InitializeRequest(protocol_version=1)))
    assert told["clientCapabilities"].get("session") == ({"compaction": {}} if has_it else None)


# --- Warnings -------------------------------------------------------------------------------------------------------


async def initialized(acp: ModuleType, kind: type[Any]) -> None:
    async with raw_peer(acp, kind) as peer:
        assert "result" in await peer.ask(1, "initialize", {"protocolVersion": 1})


def warnings_of(acp: ModuleType, answer: Any, **methods: Any) -> str:
    """What is logged when an agent with these methods answers `initialize`."""

    async def initialize(self: Any, params: Any) -> Any:
        return answer(self)

    with acp_log() as records:
        run(initialized(acp, agent_of(acp, initialize=initialize, **methods)))
    return texts(records)


@EVERY_PYTHON
def test_what_is_left_out_by_decision_is_no_warning(packages: Packages) -> None:
    acp = packages(V1)
    response = acp.InitializeResponse(protocol_version=1)
    methods = {"session_load": handler, "session_list": handler, "logout": handler}
    assert warnings_of(acp, lambda self: acp.advertise(self, response, load_session=False, auth=None), **methods) == ""
    able = {"sessionCapabilities": {"list": None}}  # null is a decision, too
    said = acp.decode(acp.InitializeResponse, {"protocolVersion": 1, "agentCapabilities": able})
    assert warnings_of(acp, lambda self: acp.advertise(self, said), session_list=handler) == ""
    text = warnings_of(acp, lambda self: response, **methods)
    assert "not advertised: logout, session/load, session/list; use advertise(), with logout=False for" in text


@EVERY_PYTHON
def test_a_decision_of_an_earlier_message_does_not_stay(packages: Packages) -> None:
    acp = packages(V1)
    response, decided = acp.InitializeResponse(protocol_version=1), iter([{"load_session": False}, {}])

    def answer(self: Any) -> Any:
        acp.advertise(self, response, **next(decided))
        return response

    kind = agent_of(acp, session_load=handler, initialize=lambda self, params: asyncio.sleep(0, answer(self)))
    for expected in (False, True):
        with acp_log() as records:
            run(initialized(acp, kind))
        assert ("not advertised: session/load" in texts(records)) is expected


TERMINAL = {"id": "t", "name": "T", "type": "terminal", "args": ["login"]}
OTHER = {"id": "o", "name": "O"}


@EVERY_PYTHON
@pytest.mark.parametrize(("methods", "needs"), [([TERMINAL], False), ([OTHER], True), ([TERMINAL, OTHER], True)])
def test_logins_in_a_terminal_need_no_authenticate(packages: Packages, methods: list[Any], *, needs: bool) -> None:
    """Clients must not use them with `authenticate`: there is nothing to override, and nothing to call."""
    acp = packages(V1)
    answer = acp.decode(acp.InitializeResponse, {"protocolVersion": 1, "authMethods": methods})
    text = warnings_of(acp, lambda self: answer)
    assert ("advertised, but not overridden in TestAgent: authenticate" in text) is needs

    async def main() -> bool:
        async with raw_peer(acp, acp.Client) as peer:
            waiter = asyncio.create_task(peer.stub.initialize(acp.InitializeRequest(protocol_version=1)))
            await peer.answer((await peer.receive())["id"], result={"protocolVersion": 1, "authMethods": methods})
            await waiter
            return bool(peer.stub.supports("authenticate"))

    assert run(main()) is needs


# --- The agents of new projects and of the docs ---------------------------------------------------------------------


def answer_of(command: list[str], cwd: Path, path: str, *, able: dict[str, Any], protocol: int) -> tuple[Any, str]:
    """The result of `initialize` of a program, and what it logs."""
    say = (
        {"capabilities": able, "info": {"name": "e", "version": "1"}} if protocol == 2 else {"clientCapabilities": able}
    )
    params = {"protocolVersion": protocol, **say}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    ran = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment,
        input=f"{hello}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(ran.stdout)["result"], ran.stderr


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_agent_of_a_new_project_starts_without_warnings(tmp_path: Path, protocol: int) -> None:
    ran = run_acpgen("init", tmp_path / "my-agent", "--role=agent", f"--protocol={protocol}", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    for able in ({}, ALL[protocol]):
        result, log = answer_of(["-m", "my_agent"], tmp_path / "my-agent", "src", able=able, protocol=protocol)
        assert result["protocolVersion"] == protocol
        assert log == ""


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_client_of_a_new_project_starts_without_warnings(tmp_path: Path, protocol: int) -> None:
    ran = run_acpgen("init", tmp_path / "my-client", "--role=client", f"--protocol={protocol}", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    code = "\n".join(
        [
            "import asyncio, sys",
            "from my_client.acp import spawn_agent",
            "from my_client.client import ChatClient",
            "class Client(ChatClient):",
            "    def __init__(self, agent):",
            "        super().__init__(agent, screen=None, command=())",
            "async def main():",
            f"    hello, command = {{{protocol}: ChatClient.hello()}}, [sys.executable, 'tests/fake_agent.py']",
            f"    async with spawn_agent({{{protocol}: Client}}, command, params=hello):",
            "        pass",
            "asyncio.run(main())",
        ]
    )
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONDONTWRITEBYTECODE": "1"}
    talk = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path / "my-client",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (talk.returncode, talk.stderr) == (0, "")


@pytest.mark.parametrize("name", ["cancelling.py", "authentication.py", "protocol_2.py", "storing.py"])
def test_agents_of_the_docs_start_without_warnings(tmp_path: Path, name: str) -> None:
    page = (REPOSITORY / "docs" / "agent.md").read_text(encoding="utf-8")
    files = {block.name: block.text for block in blocks(page) if block.language == "python"}
    for each in ("common.py", name):
        (tmp_path / each).write_text(files[each], encoding="utf-8")
    protocol, package = (2, "demo_v2") if "demo_v2" in files[name] else (1, "demo")
    sources, parts = {1: V1, 2: V2}[protocol], ("store", "turns")
    (tmp_path / package).symlink_to(package_folder(sources, roles=(Role.AGENT,), parts=parts))
    for able in ({}, ALL[protocol]):
        result, log = answer_of([name], tmp_path, str(tmp_path), able=able, protocol=protocol)
        assert result["protocolVersion"] == protocol
        assert log == ""
