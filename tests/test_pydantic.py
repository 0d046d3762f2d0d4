"""Classes of a package in models of pydantic: what is on the wire goes in and comes out, and nothing else."""

from __future__ import annotations

import compileall
import copy
import dataclasses
import importlib
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import pytest

from acpgen.ir.model import Options
from acpgen.roles import RoleChoice
from tests.needs import need
from tests.runtime_support import V1, V2
from tests.support import Packages, import_folder, schema_of

PROMPT = {"sessionId": "s", "prompt": [{"type": "text", "text": "x", "annotations": {"audience": []}}]}
PLAN = {"sessionUpdate": "plan", "entries": []}


@pytest.fixture(params=[1, 2])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    need("pydantic")
    return packages(V1 if request.param == 1 else V2, roles=RoleChoice.BOTH.roles)


@pytest.fixture
def one(packages: Packages) -> ModuleType:
    need("pydantic")
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
    assert found.prompt == one.PromptRequest(
        session_id="s", prompt=[one.ContentBlockText(text="x", annotations=one.Annotations(audience=[]))]
    )
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


def test_an_error_shows_what_is_at_its_place(one: ModuleType) -> None:
    """As errors of pydantic do: of a property that is missing, the object that lacks it."""
    from pydantic import ValidationError

    kind = model(p=one.PromptRequest, u=Annotated[one.SessionUpdate, one.WireForm])
    with pytest.raises(ValidationError) as error:
        kind.model_validate(
            {
                "p": {"sessionId": "s", "prompt": [{"type": "text", "text": 5}]},
                "u": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text"}},
            }
        )
    assert [(each["loc"], each["input"]) for each in error.value.errors()] == [
        (("p", "prompt", 0, "text"), 5),
        (("u", "content", "text"), {"type": "text"}),
    ]


@pytest.mark.parametrize("context", [object(), "text", ["on_drop"], {"on_drop": None}, {}])
def test_a_context_for_others(one: ModuleType, context: Any) -> None:
    found = model(p=one.PromptRequest).model_validate({"p": {**PROMPT, "_meta": 7}}, context=context)
    assert found.p.meta is one.UNSET


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


def of_schema(node: Any, root: Any) -> Any:
    """The definition that a reference leads to, or `node` itself."""
    while "$ref" in node:
        node = {**root["$defs"][node["$ref"].rpartition("/")[2]], **{k: v for k, v in node.items() if k != "$ref"}}
    return node


def test_the_json_schema_has_descriptions_and_limits(acp: ModuleType) -> None:
    """Of each property that the protocol's schema describes, and of each number and text that it bounds."""
    from pydantic import TypeAdapter

    from acpgen.schema.bundled import find_release, load_release

    root: Any = load_release(find_release(acp.PROTOCOL_VERSION)).root
    limits = {"minimum", "maximum", "minLength", "minItems", "format"}
    described = bounded = 0
    for name, expected in root["$defs"].items():
        kind = getattr(acp, name, None)
        if not isinstance(kind, type) or not dataclasses.is_dataclass(kind) or "properties" not in expected:
            continue
        schema: Any = TypeAdapter(kind).json_schema()
        found = of_schema(schema, schema)
        assert same_words(expected.get("description", "")) in same_words(found.get("description", "")), name
        for key, each in expected["properties"].items():
            if key not in found["properties"]:
                continue  # it is of another member of a union
            shown = of_schema(found["properties"][key], schema)
            if "description" in each:
                described += 1
                assert same_words(each["description"]) in same_words(shown["description"]), (name, key)
            whole = of_schema(each, root)
            known = {word: bound for word, bound in whole.items() if word in limits and "type" in whole}
            bounded += bool(known)
            assert known.items() <= shown.items(), (name, key)
    assert described > 150
    assert bounded >= 8


def same_words(text: str) -> str:
    return " ".join(text.split())


def test_names_that_do_not_follow_from_the_attribute(packages: Packages) -> None:
    """A schema may mix its styles, also between two classes."""
    need("pydantic")
    from pydantic import TypeAdapter

    one = {"type": "object", "properties": {"snake_case": {"type": "string"}, "twoWords": {"type": "integer"}}}
    two = {"type": "object", "properties": {"two_words": {"type": "integer", "minimum": 3}, "class": {"type": "null"}}}
    acp = packages.of(schema_of(One=one, Two=two))
    assert [*TypeAdapter(acp.One).json_schema()["properties"]] == ["snake_case", "twoWords"]
    properties = TypeAdapter(acp.Two).json_schema()["properties"]
    assert [*properties] == ["two_words", "class"]
    assert properties["two_words"]["minimum"] == 3


def test_a_package_without_source_text_has_no_descriptions_of_properties(one: ModuleType, tmp_path: Path) -> None:
    from pydantic import TypeAdapter

    folder = shutil.copytree(Path(str(one.__file__)).parent, tmp_path / "without_source")
    assert "description" in TypeAdapter(one.SessionInfo).json_schema()["properties"]["cwd"]
    compileall.compile_dir(folder, quiet=1, legacy=True)
    for path in folder.rglob("*.py"):
        path.unlink()
    schema = TypeAdapter(import_folder(folder).SessionInfo).json_schema()
    assert schema["description"]
    assert "description" not in schema["properties"]["cwd"]


def test_values_in_fields_of_any_type(one: ModuleType) -> None:
    """pydantic has no schema for them, and asks the instances."""
    import pydantic_core

    @dataclasses.dataclass
    class Mine:
        value: Any

    prompt = one.PromptRequest(session_id="s", prompt=[])
    raw = {"sessionId": "s", "prompt": []}
    found = model(a=Any, b=list[Any], c=dict[str, Any])(a=prompt, b=[prompt], c={"x": Mine(prompt)})
    assert found.model_dump() == {"a": raw, "b": [raw], "c": {"x": {"value": raw}}}
    assert json.loads(found.model_dump_json()) == found.model_dump()
    assert json.loads(pydantic_core.to_json(Mine(one.PromptResponse(stop_reason="refusal")))) == {
        "value": {"stopReason": "refusal"}
    }


def test_a_class_of_the_users_with_more_fields(one: ModuleType) -> None:
    """It is read and written as the class of the package that it comes from."""

    class More(one.SessionInfo):  # type: ignore[misc, name-defined]
        secret: str = "s"

    kind: Any = More
    found = model(p=kind)(p=kind(session_id="s", cwd="/", secret="x"))
    assert found.model_dump() == {"p": {"sessionId": "s", "cwd": "/"}}
    assert "secret" not in found.model_json_schema()["$defs"]["More"]["properties"]


def test_a_class_that_keeps_unknown_properties(packages: Packages) -> None:
    need("pydantic")
    acp = packages(V1, roles=RoleChoice.BOTH.roles, options=Options(keep_unknown=True))
    raw = {**PROMPT, "new": [1.0]}
    kind = model(p=acp.PromptRequest)
    assert kind.model_validate({"p": raw}).model_dump() == {"p": raw}
    assert "extra" not in kind.model_json_schema()["$defs"]["PromptRequest"]["properties"]


def test_two_versions_in_one_package(packages: Packages) -> None:
    need("pydantic")
    acp = packages(V1, V2, roles=RoleChoice.BOTH.roles)
    v1, v2 = (importlib.import_module(f"{acp.__name__}.{name}") for name in ("v1", "v2"))
    kind = model(one=v1.PromptResponse, two=v2.PromptResponse)
    raw = {"one": {"stopReason": "end_turn"}, "two": {"messageId": "m"}}
    assert kind.model_validate(raw).model_dump() == raw


def test_pydantic_is_imported_only_when_it_asks(one: ModuleType) -> None:
    home = Path(str(one.__file__)).parent
    asked = f"hasattr({home.name}.Implementation(name='n', version='1'), '__pydantic_serializer__')"
    code = f"import sys, {home.name}; print({asked}, [n for n in sys.modules if n.startswith('pydantic')])"
    ran = subprocess.run([sys.executable, "-c", code], cwd=home.parent, capture_output=True, text=True, check=True)
    assert ran.stdout == "False []\n"


def test_unset_stays_one_object(one: ModuleType) -> None:
    for level in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(one.UNSET, level)) is one.UNSET
    assert copy.copy(one.UNSET) is copy.deepcopy([one.UNSET])[0] is one.UNSET
