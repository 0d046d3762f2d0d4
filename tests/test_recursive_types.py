"""Types that contain themselves in arrays or maps: values, errors, type hints, and the commands that follow types."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest

from tests.command_line import run_acpgen
from tests.golden_cases import CASES
from tests.needs import need
from tests.support import DEEP, Packages, schema_of

SCHEMA = json.loads((CASES / "recursive_types" / "input" / "schema.json").read_text(encoding="utf-8"))
VALUE = {
    "value": {"a": [1, 2.5, "x", None, True, {"b": []}]},
    "many": [1, [2]],
    "object": {"k": {}},
    "tree": [{"name": "x", "more": [{"name": "y"}]}, [[]]],
    "scalars": ["a", ["b"]],
    "nested": [None, [[]]],
}
every_python = pytest.mark.every_python


@pytest.fixture(scope="module", params=[True, False], ids=["written", "reflected"])
def acp(request: pytest.FixtureRequest, packages: Packages) -> ModuleType:
    return packages.of(SCHEMA, is_used=request.param)


def nested(value: Any, depth: int) -> Any:
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


@every_python
def test_values_go_in_and_come_out(acp: ModuleType) -> None:
    decoded = acp.codec.decode(acp.PingRequest, VALUE)
    assert acp.codec.encode(decoded) == VALUE
    assert decoded.tree[0].more == [acp.Leaf(name="y")]
    assert decoded == acp.PingRequest(**{**VALUE, "tree": decoded.tree})


@every_python
@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({"value": {"a": [1, {"b": {1}}]}}, "$.value.a[1].b: expected a string"),
        ({"value": 1, "tree": [[{"name": 1}]]}, "$.tree[0][0].name: expected a string, found 1"),
        ({"value": 1, "scalars": ["a", [3]]}, "$.scalars[1][0]: expected a string, found 3"),
        ({"value": 1, "nested": [None, [1]]}, "$.nested[1][0]: expected an array, found 1"),
        ({"value": 1, "object": {"a": [b"x"]}}, "$.object.a[0]: expected a string"),
    ],
)
def test_an_error_has_the_place(acp: ModuleType, wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(acp.DecodeError) as caught:
        acp.codec.decode(acp.PingRequest, wrong)
    assert place in str(caught.value)


@every_python
@pytest.mark.parametrize("name", ["JSONValue", "JSONObject", "JSONArray", "Tree", "Scalars", "Nested"])
def test_each_is_a_type_for_decode(acp: ModuleType, name: str) -> None:
    empty: Any = {} if name == "JSONObject" else []
    assert acp.codec.decode(getattr(acp.types, name), empty) == empty


@every_python
def test_hints_can_be_evaluated(acp: ModuleType) -> None:
    hints = get_type_hints(acp.PingRequest)
    assert "str | float | bool | None" in str(hints["value"])
    assert "Leaf" in str(hints["tree"])


@every_python
def test_as_deep_as_messages_may_be(acp: ModuleType) -> None:
    deep = nested("x", 195)
    assert acp.codec.encode(acp.codec.decode(acp.PingRequest, {"value": deep})) == {"value": deep}
    with pytest.raises(acp.DecodeError) as caught:
        acp.codec.decode(acp.PingRequest, {"value": nested({1}, 190)})
    assert len(str(caught.value)) < 50_000


@every_python
def test_deeper_than_python_reads(acp: ModuleType) -> None:
    with pytest.raises(acp.DecodeError):
        acp.codec.decode(acp.PingRequest, {"value": nested("x", 5_000)})


def test_the_mistake_of_a_user_is_explained(acp: ModuleType) -> None:
    sent = acp.PingRequest(value=1, tree=[{"name": 3}], scalars=[[4]])
    assert sent.tree == [{"name": 3}]  # constructors check nothing
    with pytest.raises(TypeError, match="not a class of this package: set"):
        acp.codec.by_class({1})


def test_pydantic(acp: ModuleType) -> None:
    need("pydantic")
    import pydantic

    model = pydantic.create_model("Model", ping=(acp.PingRequest, ...))
    found = model.model_validate({"ping": VALUE})
    assert found.model_dump(mode="json") == {"ping": VALUE}
    assert model.model_json_schema()["$defs"]["PingRequest"]["required"] == ["value"]
    with pytest.raises(pydantic.ValidationError):
        model.model_validate({"ping": {"value": 1, "scalars": [3]}})


def test_models_of_pydantic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("pydantic")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    out = "models_of_recursive_types"
    words = ("--schema", "schema.json", "--out", out)
    assert run_acpgen("build", "--flavour", "pydantic", *words, cwd=tmp_path).code == 0
    monkeypatch.syspath_prepend(tmp_path)
    models: Any = __import__(out)
    found = models.PingRequest.model_validate(VALUE)
    assert json.loads(found.model_dump_json()) == VALUE
    assert "$ref" in json.dumps(models.PingRequest.model_json_schema()["$defs"]["JSONValue"])


@pytest.mark.full
def test_type_checkers(tmp_path: Path) -> None:
    need("mypy")
    import subprocess

    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    words = ("--schema", "schema.json", "--out")
    assert run_acpgen("build", *words, "acp", "--role", "both", cwd=tmp_path).code == 0
    for flavour in ("pydantic", "typeddict"):
        assert run_acpgen("build", "--flavour", flavour, *words, f"{flavour}_models", cwd=tmp_path).code == 0
    (tmp_path / "use.py").write_text(USE)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict", "pythonVersion": "3.10"}')
    files = ("acp", "pydantic_models", "typeddict_models", "use.py")
    for command in (("mypy", "--strict", *files), ("pyright",)) if DEEP else (("mypy", "--strict", *files),):
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout


USE = """
from acp.types import JSONValue, Leaf, PingRequest, Tree


def count(value: JSONValue) -> int:
    if isinstance(value, dict):
        return sum(count(each) for each in value.values())
    return sum(map(count, value)) if isinstance(value, list) else 1


def names(tree: Tree) -> list[str]:
    return [tree.name] if isinstance(tree, Leaf) else [name for each in tree for name in names(each)]


request = PingRequest(value={"a": [1, "x", None]}, tree=[Leaf(name="x"), [Leaf(name="y")]], nested=[None, []])
assert names([[Leaf(name="z")]]) and count(request.value)
"""


# --- Commands ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "new.json").write_text(json.dumps(SCHEMA))
    texts = {"type": "array", "items": {"type": "string"}}
    numbers = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}
    old = {**SCHEMA["$defs"], "JSONValue": numbers, "Tree": texts}
    (tmp_path / "old.json").write_text(json.dumps({**SCHEMA, "$defs": old}))
    return tmp_path


@pytest.mark.parametrize("sides", ["new.json new.json", "old.json new.json", "new.json old.json"])
def test_compared(folder: Path, sides: str) -> None:
    ran = run_acpgen("diff", *sides.split(), "--all", cwd=folder)
    assert ran.code == 0, ran.stderr
    is_same = len(set(sides.split())) == 1
    assert ("no differences" in ran.stdout) is is_same
    assert is_same or "JSONValue: is a" in ran.stdout


@pytest.mark.parametrize("command", ["show JSONValue", "show Tree", "show ping", "methods", "docs --out site"])
def test_shown(folder: Path, command: str) -> None:
    ran = run_acpgen(*command.split(), "--schema", "new.json", cwd=folder)
    assert ran.code == 0, ran.stderr
    if command == "show Tree":
        assert 'Tree: TypeAlias = Leaf | list["Tree"]' in ran.stdout


def test_traces(folder: Path) -> None:
    asked = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "ping",
        "params": {"value": nested("x", 190), "scalars": [["a", [3]]]},
    }
    (folder / "messages.jsonl").write_text(json.dumps(asked))
    ran = run_acpgen("trace", "messages.jsonl", "--schema", "new.json", cwd=folder)
    assert ran.code == 1
    codes = [line.rpartition(" ")[2] for line in ran.stderr.splitlines() if ": error: " in line]
    assert codes == ["[unanswered]", "[wrong-value]"]
    assert "expected a value of Scalars" in ran.stderr


# --- What is refused --------------------------------------------------------------------------------------------------


def test_two_members_for_one_value_are_refused(tmp_path: Path) -> None:
    one = {"type": "array", "items": {"$ref": "#/$defs/A"}}
    other = {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/B"}}
    schema = schema_of(A={"anyOf": [{"type": "string"}, one, {"$ref": "#/$defs/B"}]}, B=other | {"items": one})
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    ran = run_acpgen("build", "--schema", "schema.json", "--out", "acp", cwd=tmp_path)
    assert ran.code == 2
    assert "A: a value may fit both an array of A and B, which contain A again [ambiguous-recursion]" in ran.stderr
