"""Every schema that upstream has published compiles as it is, for either role."""

from __future__ import annotations

import ast
import base64
import dataclasses
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.config.keys import role_defaults
from acpgen.diagnostics import Diagnostic, Severity
from acpgen.emit.classes import Classes
from acpgen.ir.model import (
    Alias,
    AnyJson,
    Candidate,
    Field,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Options,
    Role,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.schema.bundled import list_releases
from acpgen.schema.document import read_document
from acpgen.schema.walk import walk
from tests import published as published_schemas
from tests.published import FILES, ORIGINS, available, published, shared
from tests.support import import_folder, model_of, package_files, protocol_of, write_package
from tests.test_dataclasses import Samples

NEWEST = {
    f"v{protocol}/2026-11-02/schema.unstable.json" for protocol in (1, 2)
}  # all that the stable ones have, and more
PROVING = NEWEST | {
    "v1/0.4.9/schema.json",  # the oldest
    "v1/0.6.3/schema.json",  # with anonymous objects, and error codes without titles
    "v1/0.13.6/schema.unstable.json",  # from npm, with forms of unions that were given up
    "v2/0.14.0/schema.unstable.json",  # with batches
}
"""Together they take all branches of compiling that any takes."""


def of_schemas(kept: set[str]) -> pytest.MarkDecorator:
    """The published schemas as parameters; in quick runs, the newest alone."""

    def marks(name: str) -> list[pytest.MarkDecorator]:
        return [pytest.mark.deep] * (name not in kept) + [pytest.mark.full] * ("2026-11-02" not in name)

    return pytest.mark.parametrize("name", [pytest.param(name, id=name, marks=marks(name)) for name in FILES])


EVERY = of_schemas(PROVING)


@cache
def compiled(path: Path) -> tuple[Model, tuple[Diagnostic, ...]]:
    return model_of(sources(path))


def sources(path: Path) -> SchemaChoice:
    return SchemaChoice(protocol=protocol_of(path), schema=path)


def schema(name: str) -> Path:
    return published(name)


def test_no_bundled_release_is_left_out() -> None:
    assert {f"v{each.protocol}/{each.name}/schema.json" for each in list_releases()} <= set(FILES)


@pytest.mark.parametrize("name", ORIGINS)
def test_what_npm_has_is_what_is_recorded(name: str) -> None:
    assert published(name).read_bytes() == shared(f"acp-schemas/{name}").read_bytes()


def test_a_download_with_another_content_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "sdk.tgz"
    archive.write_bytes(b"no SDK")
    with pytest.raises(AssertionError, match="is not what is pinned"):
        published_schemas.check(archive, ORIGINS[FILES[-1]].integrity)
    published_schemas.check(archive, "sha512-" + base64.b64encode(hashlib.sha512(b"no SDK").digest()).decode())


@pytest.mark.parametrize("ci", ["", "true"])
def test_without_a_registry_a_schema_is_skipped_and_ci_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(published_schemas, "RECORDED", tmp_path)
    monkeypatch.setattr(published_schemas, "_archive", lambda package: "a registry")
    on_npm, nowhere = FILES[-1], "v1/0.4.9/schema.json"
    with pytest.raises(pytest.fail.Exception if ci else pytest.skip.Exception, match="a registry"):
        published(on_npm)
    with pytest.raises(pytest.skip.Exception, match="which no registry has"):
        published(nowhere)
    assert available() == []


@EVERY
def test_no_warnings_but_for_batches(name: str) -> None:
    """A bump with something new in it says so here first."""
    _, diagnostics = compiled(schema(name))
    found = [each for each in diagnostics if each.severity is not Severity.NOTE]
    is_draft_with_batches = name.startswith(("v2/0.14", "v2/2.0"))
    expected = ["batches"] * is_draft_with_batches
    assert [each.code for each in found] == expected
    notes = {"batches", "ambiguous-union", "superseded"}
    if name not in NEWEST:
        notes.add("no-gate")  # a value came before its capability
    assert {each.code for each in diagnostics} <= notes


@EVERY
def test_builds_and_imports(name: str, tmp_path: Path) -> None:
    path = schema(name)
    with imported(package_files(sources(path)), tmp_path / f"both_{identifier(name)}") as package:
        assert protocol_of(path) == package.PROTOCOL_VERSION
        assert {"Agent", "Client", "RemoteAgent", "RemoteClient"} <= set(package.__all__)
        assert len(set(package.__all__)) == len(package.__all__)
        assert all(hasattr(package, each) for each in package.__all__)
        assert_every_class_round_trips(package, compiled(path)[0])


@of_schemas(NEWEST)  # what a role takes of a model is the same, whatever the schema
@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.value)
def test_builds_and_imports_for_one_role(name: str, role: Role, tmp_path: Path) -> None:
    """With the default options: a package for clients is open."""
    path = schema(name)
    record = role.record
    names = {record.base, *(side.stub for side in record.called)}
    others = {each.record.base for each in Role if each is not role}
    files = package_files(sources(path), (role,), Options.for_roles((role,), open=role_defaults((role,))["open"]))
    with imported(files, tmp_path / f"{role.value}_{identifier(name)}") as package:
        assert names <= set(package.__all__)
        assert others.isdisjoint(package.__all__)
        handled = {method.wire for method in compiled(path)[0].methods if {*record.sides} & {*method.handlers}}
        assert getattr(package, record.base).METHODS.keys() == handled


def identifier(name: str) -> str:
    return re.sub("[^a-z0-9]", "_", name)


@contextmanager
def imported(files: Mapping[str, str], folder: Path) -> Iterator[Any]:
    """The imported package, which is forgotten afterwards: there are many, and they are large."""
    write_package(files, folder)
    try:
        yield import_folder(folder)
    finally:
        for module in [each for each in sys.modules if each.partition(".")[0] == folder.name]:
            del sys.modules[module]


def assert_every_class_round_trips(package: Any, model: Model) -> None:
    samples = Samples(model, full=True)
    for definition in model.definitions:
        if isinstance(definition, Struct):
            kind = getattr(package, definition.name)
            value = package.decode(kind, samples.named(definition.name))
            assert package.decode(kind, package.encode(value)) == value
            assert dataclasses.replace(value) == value


@EVERY
def test_no_name_ends_in_a_digit_of_our_own(name: str) -> None:
    """Numbers in names are what positions leave behind."""
    path = schema(name)
    model, _ = compiled(path)
    given = read_document(path, label=name, origin="").root["$defs"].keys()
    numbered = [each for each in model.by_name if re.search(r"\d$", each)]
    assert [each for each in numbered if each not in given] == []
    handlers = [method.name for method in model.methods]
    assert [each for each in handlers if re.search(r"\d$", each)] == []


@EVERY
def test_what_has_a_type_is_not_any(name: str) -> None:
    """`Any` stands where the schema says nothing of the type, and nowhere else."""
    path = schema(name)
    model, _ = compiled(path)
    root = read_document(path, label=name, origin="").root
    nodes = dict(walk(root))
    for definition in model.definitions:
        for pointer, expression in expressions(definition):
            if is_any(expression):
                assert says_nothing(nodes[pointer]), pointer


@EVERY
def test_any_is_printed_for_any_json_alone(name: str) -> None:
    """Through to the annotations: attributes of type `Any` are those of the model."""
    path = schema(name)
    model, _ = compiled(path)
    tree = ast.parse(package_files(sources(path))["types.py"])
    printed = {
        (node.name, item.target.id)
        for node in tree.body
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and mentions_any(item.annotation)
    }
    modelled = {
        (definition.name, field.name)
        for definition in model.definitions
        if isinstance(definition, Struct)
        for field in definition.fields
        if not field.inherited and holds_any(field.type)
    }
    shared = Classes(model).shared
    inherited = {field.name for field in shared.fields} if shared is not None else set[str]()
    modelled = {(kind, field) for kind, field in modelled if field not in inherited}
    printed = {(kind, field) for kind, field in printed if field not in inherited}
    extras = {(each.name, "extra") for each in model.definitions if isinstance(each, Struct) and each.keeps_extra}
    assert printed - extras == modelled


def mentions_any(annotation: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


def holds_any(expression: TypeExpr) -> bool:
    return any(isinstance(each, AnyJson) for each in parts(expression))


def expressions(definition: Any) -> Iterator[tuple[str, TypeExpr]]:
    """The types in a definition with the pointers of what they stand for."""
    match definition:
        case Struct(fields=fields):
            yield from ((field.pointer, field.type) for field in fields)
        case Alias(type=expression, pointer=pointer):
            yield pointer, expression


def is_any(expression: TypeExpr) -> bool:
    return isinstance(expression, AnyJson) or (isinstance(expression, Nullable) and is_any(expression.inner))


def parts(expression: TypeExpr) -> Iterator[TypeExpr]:
    yield expression
    match expression:
        case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
            yield from parts(inner)


def says_nothing(node: Any) -> bool:
    prose = {"title", "description", "x-side", "x-method", "x-docs-ignore"}
    return not isinstance(node, dict) or not {
        key for key in node if key not in prose and not key.startswith("x-deserialize-")
    }


@EVERY
def test_every_union_has_its_members(name: str) -> None:
    """As many as the schema lists, each of them another type."""
    path = schema(name)
    model, _ = compiled(path)
    nodes = dict(walk(read_document(path, label=name, origin="").root))
    for definition in model.definitions:
        if isinstance(definition, (TaggedUnion, UntaggedUnion)) and definition.pointer.count("/") == 2:
            node = nodes[definition.pointer]
            listed = node.get("oneOf") or node["anyOf"]
            found: list[Any] = (
                [*definition.variants, *definition.fallbacks]
                if isinstance(definition, TaggedUnion)
                else [*definition.members]
            )
            assert len(found) == len(listed), definition.name
            types = [each.type if isinstance(each, Candidate) else each.target for each in found]
            assert len({repr(each) for each in types}) == len(types), definition.name


def fields_of(model: Model) -> Iterator[Field]:
    for definition in model.definitions:
        if isinstance(definition, Struct):
            yield from definition.fields


def own(node: Any) -> dict[str, Any]:
    return node.get("properties", {}) if isinstance(node, dict) else {}


@EVERY
def test_no_field_is_lost(name: str) -> None:
    """Every property below a definition that is not an envelope is somebody's attribute, in its narrowest form."""
    path = schema(name)
    model, _ = compiled(path)
    root = read_document(path, label=name, origin="").root
    pointers = {field.pointer for field in fields_of(model)}
    used = {definition.pointer for definition in model.definitions}
    for definition, node in root["$defs"].items():
        if node.get("x-docs-ignore") and f"/$defs/{definition}" not in used:
            continue
        for pointer, child in walk(node, f"/$defs/{definition}"):
            if isinstance(child, dict) and "properties" in child and "/not" not in pointer:
                narrowed = {wire for key in ("oneOf", "anyOf") for each in child.get(key, []) for wire in own(each)}
                wanted = {f"{pointer}/properties/{wire}" for wire in own(child).keys() - narrowed}
                assert wanted <= pointers, wanted - pointers


@pytest.mark.full
def test_the_command_line_builds_what_it_is_given(tmp_path: Path) -> None:
    """One schema by the way that users go; the rest goes the same way."""
    path = schema("v2/2.0.0-alpha.3/schema.unstable.json")
    command = [sys.executable, "-m", "acpgen", "build", "--protocol", "2", "--schema", str(path), "--role", "both"]
    done = subprocess.run([*command, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {"types.py", "codec.py", "agent.py", "client.py"} <= {each.name for each in (tmp_path / "out").iterdir()}
