"""Classes of a package in models of pydantic: what is on the wire goes in and comes out, and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import json
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

from acpgen.ir.model import Options
from acpgen.roles import RoleChoice
from tests.runtime_support import V1, V2
from tests.support import Packages, require

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "x", "annotations": None}]}
PLAN = {"sessionUpdate": "plan", "entries": []}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    require(find_spec("pydantic"), "pydantic")
    return packages(V1 if request.param == 1 else V2, roles=RoleChoice.BOTH.roles)


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    require(find_spec("pydantic"), "pydantic")
    return packages(V1, roles=RoleChoice.BOTH.roles)


def model(**hints: Any) -> Any:
    from pydantic import create_model

    return create_model("M", **{name: (hint, ...) for name, hint in hints.items()})


def problems(validate: Any, value: Any) -> list[tuple[Any, str]]:
    """Place and message of each error."""
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as error:
        validate(value)
    return [(each["loc"], each["msg"]) for each in error.value.errors()]


def test_the_wire_form_goes_in_and_out(one: ModuleType) -> None:
    kind = model(prompt=one.PromptRequest, all=list[one.PromptRequest], named=dict[str, one.PromptRequest | None])
    raw = {"prompt": PROMPT, "all": [PROMPT], "named": {"a": PROMPT, "b": None}}
    found = kind.model_validate(raw)
    assert found.prompt == one.PromptRequest(session_id="s", prompt=[one.ContentBlockText(text="x", annotations=None)])
    assert found.model_dump() == found.model_dump(mode="json") == found.model_dump(exclude_none=False) == raw
    assert json.loads(found.model_dump_json()) == raw
    assert kind.model_validate_json(json.dumps(raw)) == found


def test_instances_pass_as_they_are(one: ModuleType) -> None:
    prompt = one.PromptRequest(session_id="s", prompt=[])
    kind = model(prompt=one.PromptRequest, update=Annotated[one.SessionUpdate, one.WireForm])
    update = one.SessionUpdatePlan(entries=[])
    found = kind(prompt=prompt, update=update)
    assert found.prompt is prompt
    assert found.update is update
    assert json.loads(found.model_copy(deep=True).model_dump_json())["update"] == PLAN


def test_an_error_has_its_place_once(one: ModuleType) -> None:
    kind = model(p=one.PromptRequest, u=Annotated[one.SessionUpdate, one.WireForm] | None)
    wrong = {"p": {"sessionId": 7, "prompt": []}, "u": {"sessionUpdate": "plan"}}
    assert problems(kind.model_validate, wrong) == [
        (("p", "sessionId"), "Input should be a string, not 7"),
        (("u", "entries"), "Input should be a value, not nothing: the property is missing"),
    ]
    inner = {"p": {"sessionId": "s", "prompt": [{"type": "text"}]}, "u": None}
    assert [place for place, _ in problems(kind.model_validate, inner)] == [("p", "prompt", 0, "text")]
    assert [place for place, _ in problems(kind.model_validate, {"p": {"session_id": "s", "prompt": []}, "u": None})]


def test_a_bad_value_is_not_written(one: ModuleType) -> None:
    """A wrong attribute is an error, not a text."""
    from pydantic_core import PydanticSerializationError

    kind = model(prompt=one.PromptRequest)
    found = kind(prompt=one.PromptRequest(session_id="s", prompt=[object()]))
    with pytest.raises((PydanticSerializationError, TypeError, KeyError)):
        found.model_dump_json()


def test_what_was_dropped_is_reported(one: ModuleType) -> None:
    dropped = list[Any]()
    raw = {**PROMPT, "_meta": 7}
    model(p=one.PromptRequest).model_validate({"p": raw}, context={"on_drop": dropped.append})
    assert [each.path for each in dropped] == [("_meta",)]


def test_a_subclass_of_the_users(one: ModuleType) -> None:
    kind = type("Mine", (one.PromptRequest,), {"__doc__": "Of the user."})
    found = model(p=kind).model_validate({"p": PROMPT})
    assert type(found.p) is one.PromptRequest
    assert model(p=kind)(p=(mine := kind(session_id="s", prompt=[]))).p is mine


def test_a_mark_in_the_wrong_place(one: ModuleType) -> None:
    from typing import Optional

    for wrong in (Annotated[Optional[one.SessionUpdate], one.WireForm], Annotated[int, one.WireForm]):  # noqa: UP045
        with pytest.raises(TypeError, match="WireForm"):
            model(u=wrong)


def test_every_class_has_a_json_schema_of_its_properties(acp: ModuleType) -> None:
    """The names on the wire and what is required agree with the protocol's schema."""
    from pydantic import TypeAdapter

    from acpgen.schema.bundled import find_release, load_release

    version = acp.PROTOCOL_VERSION
    defined: Any = load_release(find_release(version)).root["$defs"]
    types = importlib.import_module(f"{acp.__name__}.types")
    compared = 0
    for name, kind in vars(types).items():
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)) or name in {"Struct", "WithMeta"}:
            continue
        schema = TypeAdapter(kind).json_schema()
        found = schema.get("properties", {}) if "$ref" not in schema else schema["$defs"][name]["properties"]
        expected = defined.get(name, {})
        if "properties" in expected and not {"allOf", "anyOf", "oneOf"} & expected.keys():
            compared += 1
            constants = {key for key, each in found.items() if "const" in each}  # tags that the class has taken in
            assert found.keys() - constants == expected["properties"].keys() - constants, name
            assert {*schema.get("required", [])} - constants == {*expected.get("required", [])} - constants, name
    assert compared > 60


def test_a_class_that_keeps_unknown_properties(packages: Packages) -> None:
    require(find_spec("pydantic"), "pydantic")
    acp = packages(V1, roles=RoleChoice.BOTH.roles, options=Options(keep_unknown=True))
    raw = {**PROMPT, "new": [1.0]}
    kind = model(p=acp.PromptRequest)
    assert kind.model_validate({"p": raw}).model_dump() == {"p": raw}
    assert "extra" not in kind.model_json_schema()["$defs"]["PromptRequest"]["properties"]


def test_two_versions_in_one_package(packages: Packages) -> None:
    require(find_spec("pydantic"), "pydantic")
    acp = packages(V1, V2, roles=RoleChoice.BOTH.roles)
    v1, v2 = (importlib.import_module(f"{acp.__name__}.{name}") for name in ("v1", "v2"))
    kind = model(one=v1.PromptResponse, two=v2.PromptResponse)
    raw = {"one": {"stopReason": "end_turn"}, "two": {"messageId": "m"}}
    assert kind.model_validate(raw).model_dump() == raw


def test_pydantic_is_imported_only_when_it_asks(one: ModuleType) -> None:
    home = Path(str(one.__file__)).parent
    code = f"import sys, {home.name}.codec; print([n for n in sys.modules if 'pydantic' in n])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=home.parent, capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("library", ["orjson", "msgspec", "pydantic", "json"])
def test_no_library_writes_the_text_unset(one: ModuleType, library: str) -> None:
    """Also inside an `Any` field, or as a value of its own: an error, or what is on the wire."""
    require(find_spec(library), library)
    value = one.PromptRequest(session_id="s", prompt=[])

    def written() -> str:
        if library == "pydantic":
            return str(model(a=Any)(a=value).model_dump_json())
        module = importlib.import_module(library if library != "msgspec" else "msgspec.json")
        encode = module.encode if library == "msgspec" else module.dumps
        text = encode(value)
        return text.decode() if isinstance(text, bytes) else str(text)

    with pytest.raises(Exception, match=r"(?i)serializ|unsupported|not support|unknown type"):
        written()


def test_unset_stays_one_object(one: ModuleType) -> None:
    for level in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one.UNSET, level)) is one.UNSET
    assert copy.copy(one.UNSET) is copy.deepcopy([one.UNSET])[0] is one.UNSET
