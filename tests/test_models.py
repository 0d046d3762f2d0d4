"""`acpgen build --flavour`: the module is written by the command line, imported, and used as its user would."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.emit.flavours.models import render_models
from acpgen.flavours import Flavour
from acpgen.ir.model import Options
from acpgen.schema.bundled import find_release, list_releases
from tests.command_line import build_package, run_acpgen
from tests.models_support import TEXT, Adapter, imported, of
from tests.needs import need
from tests.published import FILES, published
from tests.support import (
    DEEP,
    REPOSITORY,
    Packages,
    deep_except,
    fitting_fragments,
    model_of,
    protocol_of,
    schema_of,
)

FLAVOURS = pytest.mark.parametrize("flavour", Flavour, ids=lambda flavour: flavour.value)


@pytest.fixture(autouse=True)
def _pydantic() -> None:
    """It also reads the typed dicts here, which nothing else does at run time."""
    need("pydantic")


def write(out: Path, flavour: Flavour, *arguments: str | Path) -> Path:
    return build_package(out, "--flavour", flavour.value, *arguments) / "__init__.py"


def made(folder: Path, flavour: Flavour, *arguments: str | Path) -> ModuleType:
    return imported(write(folder / flavour.value, flavour, *arguments).read_text(encoding="utf-8"))


def problems(adapter: Adapter, value: Any) -> list[tuple[tuple[str | int, ...], str]]:
    """The place and the kind of each error."""
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        adapter.read(value)
    return [(each["loc"], each["type"]) for each in caught.value.errors()]


# --- The command ----------------------------------------------------------------------------------------------------


def test_models_read_and_write_the_wire(tmp_path: Path) -> None:
    from pydantic import MISSING

    acp = made(tmp_path, Flavour.PYDANTIC)
    chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hi", "annotations": None}}
    raw = {"sessionId": "s", "update": chunk}
    found = acp.SessionNotification.model_validate(raw)
    assert type(found.update) is acp.SessionUpdateAgentMessageChunk
    assert type(found.update.content) is acp.ContentBlockText
    assert found.update.content.annotations is None
    assert found.update.content.meta is MISSING
    assert found.model_dump() == json.loads(found.model_dump_json()) == raw
    assert found == acp.SessionNotification(
        sessionId="s",
        update=acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text="Hi", annotations=None)),
    )
    assert acp.SessionNotification.model_validate_json(json.dumps(raw)) == found


def test_an_error_is_that_of_the_member_with_the_tag(tmp_path: Path) -> None:
    notification = Adapter(made(tmp_path, Flavour.PYDANTIC), "SessionNotification")
    bad = {"sessionId": "s", "update": {"sessionUpdate": "plan"}}
    assert problems(notification, bad) == [(("update", "plan", "entries"), "missing")]
    assert problems(notification, {**bad, "update": {"sessionUpdate": "new"}}) == [(("update",), "union_tag_invalid")]
    snake_case = {"session_id": "s", "update": {"sessionUpdate": "plan", "entries": []}}
    assert problems(notification, snake_case) == [(("sessionId",), "missing")]


def test_a_bad_known_member_is_no_unknown_one(tmp_path: Path) -> None:
    acp = made(tmp_path, Flavour.PYDANTIC, "--open")
    notification = Adapter(acp, "SessionNotification")
    new = {"sessionId": "s", "update": {"sessionUpdate": "new", "more": [1, None]}}
    found = notification.read(new)
    assert type(found.update) is acp.SessionUpdateOther
    assert notification.written(found) == new
    bad = {"sessionId": "s", "update": {"sessionUpdate": "plan"}}
    assert problems(notification, bad) == [(("update", "plan", "entries"), "missing")]
    assert problems(Adapter(acp, "SessionUpdateOther"), bad["update"]) == [((), "value_error")]
    assert problems(notification, {"sessionId": "s", "update": {}}) == [(("update", "*", "sessionUpdate"), "missing")]


def test_typed_dicts_have_the_keys_of_the_wire(tmp_path: Path) -> None:
    acp = made(tmp_path, Flavour.TYPEDDICT)
    assert acp.PromptRequest.__annotations__.keys() == {"sessionId", "prompt", "_meta"}
    assert Adapter(acp, "PromptRequest").accepts({"sessionId": "s", "prompt": [], "_meta": None})
    assert not Adapter(acp, "PromptRequest").accepts({"sessionId": "s", "prompt": [{"type": "text"}]})
    value: dict[str, Any] = acp.PromptRequest(sessionId="s", prompt=[])
    assert value == {"sessionId": "s", "prompt": []}


@FLAVOURS
def test_the_names_are_those_of_the_package(tmp_path: Path, flavour: Flavour) -> None:
    acp = made(tmp_path, flavour, "--protocol", "2", "--extension", "auth-state")
    model, _ = model_of(SchemaChoice(protocol=2, extensions=("auth-state",)))
    assert {definition.name for definition in model.definitions} <= vars(acp).keys()
    assert "auth-state" in str(acp.__doc__)
    assert "From auth-state, 2026-11-02." in str(acp.AuthStatusRequest.__doc__)


@pytest.mark.parametrize(
    ("flavour", "name"),
    [
        *((Flavour.PYDANTIC, name) for name in ("BaseModel", "Field", "MISSING", "TypeAliasType")),
        *((Flavour.TYPEDDICT, name) for name in ("TypedDict", "NotRequired")),
    ],
)
def test_a_definition_with_a_name_of_the_library_is_refused(
    packages: Packages, tmp_path: Path, flavour: Flavour, name: str
) -> None:
    schema = packages.write(schema_of(**{name: {"type": "object", "properties": {"a": TEXT}}}))
    ran = run_acpgen("build", "--flavour", flavour.value, "--schema", schema, "--out", "models", cwd=tmp_path)
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])
    assert f"{name} has a name that modules for {flavour.value} use themselves [name-clash]" in ran.stderr


# --- A configured output --------------------------------------------------------------------------------------------

CONFIG = """
[tool.acpgen.outputs.agent]
out = "acp"
[tool.acpgen.outputs.models]
out = "acp_models"
flavour = "pydantic"
renames = { Ask = "PromptRequest" }
"""


def test_models_are_an_output_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(CONFIG, encoding="utf-8")
    assert run_acpgen("build", "models", cwd=tmp_path).code == 0
    module = tmp_path / "acp_models" / "__init__.py"
    lock = json.loads((tmp_path / "acp_models" / "acpgen.lock").read_text(encoding="utf-8"))
    assert lock["options"]["flavour"] == "pydantic"
    assert lock["files"].keys() == {"__init__.py", "py.typed"}
    assert run_acpgen("build", "models", "--dry-run", cwd=tmp_path).stdout == ""
    assert run_acpgen("check", "models", cwd=tmp_path).stdout == "acp_models: up to date\n"
    module.write_text(module.read_text(encoding="utf-8") + "x = 1\n", encoding="utf-8")
    ran = run_acpgen("check", "models", cwd=tmp_path)
    assert (ran.code, ran.stdout.splitlines()[:2]) == (1, ["acp_models: 1 edited", "  edited  __init__.py"])
    assert "no differences" in run_acpgen("diff", "acp_models", "v1/2026-11-02", cwd=tmp_path).stdout
    assert run_acpgen("build", "models", "--full", cwd=tmp_path).code == 0
    acp = imported(module.read_text(encoding="utf-8"))
    assert acp.Ask is acp.PromptRequest


def test_models_are_for_one_protocol(tmp_path: Path) -> None:
    arguments = ("--flavour", "typeddict", "--protocol", "1", "--protocol", "2", "--out", "acp_models")
    ran = run_acpgen("build", *arguments, cwd=tmp_path)
    assert (ran.code, list(tmp_path.iterdir())) == (2, [])
    assert "--flavour typeddict (command line) is for one protocol [usage]" in ran.stderr


# --- The table of docs/models.md ------------------------------------------------------------------------------------

OBJECT = {
    "type": "object",
    "properties": {
        "must": {"type": ["string", "null"]},
        "may": TEXT,
        "null": {"type": ["string", "null"]},
        "default": {"type": "array", "items": TEXT, "default": ["x"]},
        "short": {"type": "string", "minLength": 2},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "many": {"type": "array", "items": TEXT, "minItems": 2},
    },
    "required": ["must"],
}


def both(packages: Packages, **definitions: Any) -> tuple[Adapter, Adapter]:
    """The type `Thing` of models and of typed dicts."""
    models, dicts = (Adapter(of(packages, flavour, None, **definitions), "Thing") for flavour in Flavour)
    return models, dicts


def test_absent_is_not_null(packages: Packages) -> None:
    for adapter in both(packages, Thing=OBJECT):
        assert not adapter.accepts({})
        assert not adapter.accepts({"must": "a", "may": None})
        for raw in ({"must": None}, {"must": "a", "null": None}, {"must": "a", "null": "b", "may": "c"}):
            written = adapter.written(adapter.read(raw))
            assert {key: item for key, item in written.items() if key != "default"} == raw


def test_defaults_are_filled_in_by_models(packages: Packages) -> None:
    models, dicts = both(packages, Thing=OBJECT)
    first, second = models.read({"must": None}), models.read({"must": None})
    assert first.default == second.default == ["x"]
    assert first.default is not second.default
    assert "default" not in dicts.read({"must": None})


def test_defaults_that_are_objects_have_their_tag(packages: Packages) -> None:
    member = {
        kind: {"type": "object", "properties": {"kind": {"const": kind}, "n": {"type": "integer", "default": 1}}}
        for kind in "ab"
    }
    either = {"oneOf": [{"title": kind, **node, "required": ["kind"]} for kind, node in member.items()]}
    holder = {"type": "object", "properties": {"either": {"$ref": "#/$defs/Either", "default": {"kind": "b", "n": 2}}}}
    models, _ = both(packages, Either=either, Thing=holder)
    assert models.written(models.read({})) == {"either": {"kind": "b", "n": 2}}


@pytest.mark.parametrize("bad", [{"short": "a"}, {"port": 0}, {"port": 65536}, {"many": ["a"]}])
def test_limits_are_checked_by_models(packages: Packages, bad: Any) -> None:
    models, dicts = both(packages, Thing=OBJECT)
    assert not models.accepts({"must": None, **bad})
    assert dicts.accepts({"must": None, **bad})


@pytest.mark.parametrize("wrong", ["1", True, 1.5, 1.0, None])
def test_nothing_is_converted(packages: Packages, wrong: Any) -> None:
    for adapter in both(packages, Thing={"type": "object", "properties": {"n": {"type": "integer"}}}):
        assert adapter.accepts({"n": 1})
        assert not adapter.accepts({"n": wrong})


@FLAVOURS
def test_enumerations_are_closed_or_open(packages: Packages, flavour: Flavour) -> None:
    closed = {"enum": ["a", "b"]}
    free = {"anyOf": [{"const": "a", "type": "string"}, {"type": "string", "title": "other"}]}
    acp = of(packages, flavour, Thing={"type": "object", "properties": {"closed": closed, "free": free}})
    thing = Adapter(acp, "Thing")
    assert thing.accepts({"closed": "a", "free": "new"})
    assert not thing.accepts({"closed": "new"})
    assert not thing.accepts({"free": 1})
    opened = of(packages, flavour, Options(open=True), Thing={"type": "object", "properties": {"closed": closed}})
    assert Adapter(opened, "Thing").accepts({"closed": "new"})


def test_unknown_properties(packages: Packages) -> None:
    raw = {"must": None, "new": [1]}
    models, _ = both(packages, Thing=OBJECT)
    assert "new" not in models.written(models.read(raw))
    keeping = Adapter(of(packages, Flavour.PYDANTIC, Options(keep_unknown=True), Thing=OBJECT), "Thing")
    assert keeping.read(raw).model_extra == {"new": [1]}
    assert keeping.written(keeping.read(raw)) == {**raw, "default": ["x"]}


def test_a_tag_may_be_left_out_by_constructors_alone(tmp_path: Path) -> None:
    acp = made(tmp_path, Flavour.PYDANTIC)
    assert acp.ContentBlockText(text="Hi").model_dump() == {"type": "text", "text": "Hi"}
    assert not Adapter(acp, "ContentBlock").accepts({"text": "Hi"})


def test_members_with_and_without_a_tag(tmp_path: Path) -> None:
    """A known tag is tried first; then the members without one, as in the package."""
    acp = made(tmp_path, Flavour.PYDANTIC)
    server = Adapter(acp, "McpServer")
    named = {"name": "n", "url": "u", "headers": []}
    assert type(server.read({"type": "http", **named})) is acp.McpServerHttp
    assert type(server.read({"name": "n", "command": "c", "args": [], "env": []})) is acp.McpServerStdio
    assert not server.accepts(named)


def test_a_member_without_a_tag_is_written_also_where_nothing_was_read(tmp_path: Path) -> None:
    """The classes are built when they are first used, and an instance that was not validated has used none."""
    acp = made(tmp_path, Flavour.PYDANTIC)
    variable = acp.EnvVariable.model_construct(name="A", value="b")
    server = acp.McpServerStdio.model_construct(name="n", command="c", args=[], env=[variable])
    request = acp.NewSessionRequest.model_construct(cwd="/", mcp_servers=[server])
    raw = {"name": "n", "command": "c", "args": [], "env": [{"name": "A", "value": "b"}]}
    assert request.model_dump()["mcpServers"] == json.loads(request.model_dump_json())["mcpServers"] == [raw]


# --- All schemas ----------------------------------------------------------------------------------------------------


OLDEST = {"v1/0.4.9/schema.json", "v2/0.14.0/schema.json"}
"""What only the first releases of a protocol have; `fidelity/test_models.py` has the newest, with values."""


@pytest.mark.full
@FLAVOURS
@pytest.mark.parametrize("name", deep_except(OLDEST, {name: name for name in FILES}))
def test_published_schemas(name: str, flavour: Flavour) -> None:
    path = published(name)
    for options in (Options(), Options(open=True, keep_unknown=True)):
        model, _ = model_of(SchemaChoice(schema=path, protocol=protocol_of(path)), options)
        acp = imported(render_models(model, flavour))
        for definition in model.definitions:
            Adapter(acp, definition.name)


@pytest.mark.full
@pytest.mark.parametrize("checker", [pytest.param("mypy", marks=pytest.mark.deep), "pyright"])
def test_bundled_schemas_are_typed(tmp_path: Path, checker: str) -> None:
    """Also where keys are no identifiers. CI checks the newest releases, and each flavour with other options."""
    need(checker)
    schemas = [SchemaChoice(schema=REPOSITORY / "tests/golden/structs/input/schema.json")]
    for release in list_releases() if DEEP else map(find_release, (1, 2)):
        known = SchemaChoice(protocol=release.protocol, release=release.name, extensions=fitting_fragments(release))
        schemas.append(known)
    for at, sources in enumerate(schemas):
        for options in (Options(), Options(open=True, keep_unknown=True)):
            for flavour in Flavour if DEEP else [[*Flavour][(at + options.open) % len(Flavour)]]:
                text = render_models(model_of(sources, options)[0], flavour)
                name = f"{flavour.value}_{at}_{'open' if options.open else 'closed'}.py"
                (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    files = sorted(path.name for path in tmp_path.glob("*.py"))
    options = ["--strict"] if checker == "mypy" else ["--pythonpath", sys.executable]
    command = [sys.executable, "-m", checker, *options, *files]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
