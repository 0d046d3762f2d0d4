"""Texts and names of a schema that look like code: they become strings, docstrings and names, or are refused."""

from __future__ import annotations

import ast
import builtins
import json
import keyword
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, get_args

import black
import pytest

from acpgen.config import BuildOptions, SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.runtime import dotted
from acpgen.pipeline import build
from acpgen.roles import RoleChoice
from acpgen.runtime_modules import place
from tests.command_line import run_acpgen
from tests.golden_cases import is_copy
from tests.support import (
    REPOSITORY,
    deep_except,
    every_part,
    import_folder,
    model_of,
    package_files,
    schema_of,
    write_package,
)

pytestmark = pytest.mark.full

Node = dict[str, Any]
Importer = Callable[[Mapping[str, str]], ModuleType]

EFFECT = "ACPGEN_HOSTILE_TEXT_WAS_RUN"
CALL = f"__import__('os').environ.setdefault('{EFFECT}', '1')"

TEXTS = (
    'say "hi"',
    'a """ b',
    "it's '''x'''",
    "ends with a backslash \\",
    "\\\\n\\ \\u0041 \\N{BULLET} \\x41",
    "two\nlines",
    "carriage\rreturn\r\nand both",
    "separators \u2028 \u2029 \x85 \x0b \x0c \x1c end",
    "nul \x00 and \x1b[31m escape \x7f",
    "{{ 7 * 7 }} {% raw %} {# comment #}",
    "{x!r} %s {0} ${HOME} $(id) `id`",
    "# noqa # type: ignore # fmt: off # fmt: skip",
    "# type: (int) -> str",
    f'"""\n{CALL}\n"""',
    f"'); {CALL}; ('",
    f'"] | {CALL} | Literal["',
    f"\\\n{CALL}",
    f"\\'''\n{CALL}\n'''",
    "x" * 300,
    "😀 é \U0001f600\U0001f1e6",
    "nbsp\xa0zero\u200bwidth\ufeffmark \u202e\u2066 bidi \u200f",
    '"""',
    '\\"""',
    "\\",
    "  \tleading and trailing\t  ",
    "- a list\n- of items\n\n* and more",
    "\uffff \ue000 \U0010ffff",
    "ﬁ ligature Å Å",
    "builtins. Bounds UNSET Struct array located choice Candidate",
    ">>> doctest()\n1",
)
HARMLESS = tuple(f"a text of number {number}" for number in range(len(TEXTS)))
STRING: Node = {"type": "string"}


def obj(properties: Node, required: list[str] | None = None, **more: Any) -> Node:
    return {"type": "object", "properties": properties, "required": required or [], **more}


def tagged(value: str, tag: str = "type") -> Node:
    return obj({tag: {"const": value}}, [tag])


def each(make: Callable[[str], Node], *, name: str = "T") -> Callable[[tuple[str, ...]], Node]:
    """A definition for each text."""
    return lambda texts: {f"{name}{letters(number)}": make(text) for number, text in enumerate(texts)}


def letters(number: int) -> str:
    """A word that names a number and stays one word: digits would be words of their own."""
    return "x" + "".join(chr(ord("a") + int(digit)) for digit in str(number))


def enums(texts: tuple[str, ...]) -> Node:
    listed = {"enum": list(texts)}
    described = {"anyOf": [{"const": text, "title": text, "description": text} for text in texts]}
    properties = {
        "inline": listed,
        "items": {"type": "array", "items": listed},
        "map": {"additionalProperties": listed, "type": "object"},
    }
    return {"Enum": listed, "Described": described, "Holder": obj(properties)}


def methods(texts: tuple[str, ...]) -> Node:
    return {
        f"M{letters(number)}{part}": obj(
            {}, description=text, **{"x-method": f"m{letters(number)}/{text}", "x-side": "agent"}
        )
        for number, text in enumerate(texts)
        for part in ("Request", "Response")
    }


def errors(texts: tuple[str, ...]) -> Node:
    codes = [
        {"const": number + 1, "title": f"E {letters(number)} {text}", "description": text}
        for number, text in enumerate(texts)
    ]
    return {
        "Code": {"anyOf": [*codes, {"type": "integer"}]},
        "Trouble": obj({"code": {"$ref": "#/$defs/Code"}, "message": STRING, "data": True}, ["code", "message"]),
        "Reply": obj({"error": {"$ref": "#/$defs/Trouble"}}, **{"x-docs-ignore": True}),
    }


def defaults(text: str) -> Node:
    return obj(
        {
            "a": {**STRING, "default": text},
            "l": {"type": "array", "items": STRING, "default": [text]},
            "m": {"type": "object", "additionalProperties": STRING, "default": {text: text}},
            "any": {"default": {text: [text]}},
        }
    )


TEXT_POSITIONS: Mapping[str, Callable[[tuple[str, ...]], Node]] = {
    "description": each(lambda text: obj({"a": {**STRING, "description": text}}, description=text)),
    "description of an alias": each(lambda text: {**STRING, "description": text}),
    "title": each(lambda text: obj({"a": {**STRING, "title": text}}, title=text)),
    "enum": enums,
    "const": each(lambda text: obj({"c": {"const": text}, "o": {"anyOf": [{"const": text}, STRING]}}, ["c"])),
    "default": each(defaults),
    "pattern": each(lambda text: obj({"a": {**STRING, "pattern": text, "format": text, "contentEncoding": text}})),
    "not": each(lambda text: obj({"a": STRING}, **{"not": obj({"a": {"const": text}}, ["a"])})),
    "required": each(lambda text: obj({"a": STRING, "b": STRING}, ["a"], **{"not": {"required": [text]}})),
    "unknown side": each(lambda text: obj({}, **{"x-method": "m", "x-side": text}), name="Notification"),
}
"""Where a text stands that names nothing: whatever it is, the code around it is the same."""

NAME_POSITIONS: Mapping[str, Callable[[tuple[str, ...]], Node]] = {
    "property": each(lambda text: obj({f"p{text}": STRING, f"q{text}": obj({"a": STRING})}, [f"p{text}"])),
    "definition": lambda texts: {f"D{letters(number)} {text}": obj({"a": STRING}) for number, text in enumerate(texts)},
    "tag": each(
        lambda text: {
            "oneOf": [tagged(f"t{text}"), tagged("b"), {**obj({"type": STRING}, ["type"]), "not": tagged(f"t{text}")}]
        }
    ),
    "property of the tag": each(lambda text: {"oneOf": [tagged("a", f"t{text}"), tagged("b", f"t{text}")]}),
    "title of a member": each(lambda text: {"anyOf": [obj({"a": STRING}, ["a"], title=f"m{text}"), STRING]}),
    "method": methods,
    "error": errors,
}
"""Where a name is made of a text."""

ALONE = {"description", "default", "not", "required"}
"""The longest strings and the shortest, and what `hostile/test_texts.py`, with a text in all positions, leaves out."""
NAMED = {"definition", "tag", "title of a member", "error"}
"""Each is named by a function of its own; those of properties and methods have tests below, by what they do."""


_BUILT: dict[str, dict[str, str]] = {}


def package_of(definitions: Node, folder: Path) -> dict[str, str]:
    """The finished files of the package for both roles, each package built once."""
    text = json.dumps(schema_of(**definitions))
    if text not in _BUILT:
        folder.mkdir(exist_ok=True)
        (folder / "schema.json").write_text(text, encoding="utf-8")
        sources = SchemaChoice(schema=folder / "schema.json")
        roles = RoleChoice.BOTH.roles
        parts = tuple(sorted(every_part(roles, [1])))
        built = build(BuildOptions(sources=(sources,), roles=roles, out=folder / "out", parts=parts))
        assert built.plan is not None
        _BUILT[text] = {path: text for path, text in built.plan.files.items() if path != "acpgen.lock"}
    return _BUILT[text]


@pytest.fixture
def imported(tmp_path: Path) -> Importer:
    """Imports a package from its files, and fails where that ran any text."""

    def load(files: Mapping[str, str]) -> ModuleType:
        folder = tmp_path / f"hostile_{tmp_path.name}"
        write_package(files, folder)
        package = import_folder(folder)
        assert EFFECT not in os.environ
        return package

    return load


@pytest.mark.parametrize("definitions", deep_except(ALONE, TEXT_POSITIONS))
def test_hostile_texts_change_nothing_but_strings(
    definitions: Callable[[tuple[str, ...]], Node], tmp_path: Path, imported: Importer
) -> None:
    schema = tmp_path / "harmless.json"
    schema.write_text(json.dumps(schema_of(**definitions(HARMLESS))), encoding="utf-8")
    harmless = package_files(SchemaChoice(schema=schema))
    hostile = package_of(definitions(TEXTS), tmp_path / "build")
    assert hostile.keys() == harmless.keys()
    for path, text in hostile.items():
        if path.endswith(".py"):
            assert _skeleton(text) == _skeleton(harmless[path]), path
    _check_modules(hostile)
    imported(hostile)


@pytest.mark.parametrize("definitions", deep_except(NAMED, NAME_POSITIONS))
def test_hostile_names_become_names(
    definitions: Callable[[tuple[str, ...]], Node], tmp_path: Path, imported: Importer
) -> None:
    files = package_of(definitions(TEXTS), tmp_path / "build")
    _check_modules(files)
    imported(files)


def _skeleton(text: str) -> str:
    """The syntax tree of a module, whatever is in its strings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


MODULES = {
    *(dotted(place(path.stem)) for path in (REPOSITORY / "templates" / "runtime").glob("*/**/*.py")),
    *("_details", "agent", "client", "codec", "errors", "methods", "types", "versions", None),
}
LIBRARY = {
    *("__future__", "asyncio", "builtins", "collections.abc", "contextlib", "contextvars", "dataclasses", "logging"),
    *("functools", "itertools", "json", "math", "re", "sys", "time", "typing"),
}
STATEMENTS = (
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AnnAssign,
    ast.ClassDef,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
)


def _check_modules(files: Mapping[str, str]) -> None:
    for path, text in files.items():
        if not path.endswith(".py") or is_copy(path):
            continue
        tree = ast.parse(text)
        strays = [
            ast.unparse(node)[:80]
            for node in tree.body
            if not isinstance(node, STATEMENTS) and not _is_text(node) and not _is_for_checkers(node)
        ]
        assert strays == [], path
        assert _imports(tree) <= MODULES | LIBRARY, path
        assert _unused_imports(path, tree) == [], path
        assert _formatted(text) == text, path


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_for_checkers(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not node.orelse


def _imports(tree: ast.Module) -> set[str | None]:
    found: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return found


def _unused_imports(path: str, tree: ast.Module) -> list[str]:
    if path in ("__init__.py", "methods.py"):  # they import what others use, or what only strings name
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    imported = {alias.asname or alias.name for node in nodes for alias in node.names if node is not nodes[0]}
    return sorted(imported - {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})


@cache
def _formatted(text: str) -> str:
    return black.format_str(text, mode=black.Mode(target_versions={black.TargetVersion.PY310}, line_length=120))


# --- The texts come back as they went in -----------------------------------------------------------------------------


def test_constants_and_defaults_are_equal_to_the_text(tmp_path: Path, imported: Importer) -> None:
    definitions = enums(TEXTS) | each(defaults, name="Default")(TEXTS)
    package = imported(package_of(definitions, tmp_path / "build"))
    assert get_args(package.Enum) == TEXTS
    for number, text in enumerate(TEXTS):
        assert package.decode(package.Enum, text) == text
        made = getattr(package, f"Default{letters(number)}")()
        assert (made.a, made.l, made.m, made.any) == (text, [text], {text: text}, {text: [text]})


def test_names_on_the_wire_are_equal_to_the_text(tmp_path: Path, imported: Importer) -> None:
    definitions = NAME_POSITIONS["property"](TEXTS) | methods(TEXTS)
    package = imported(package_of(definitions, tmp_path / "build"))
    for number, text in enumerate(TEXTS):
        kind = getattr(package, f"T{letters(number)}")
        raw = {f"p{text}": "x", f"q{text}": {"a": "y"}}
        assert package.encode(package.decode(kind, raw)) == raw
    assert set(package.AGENT_METHODS) == {f"m{letters(number)}/{text}" for number, text in enumerate(TEXTS)}


def test_tags_are_equal_to_the_text(tmp_path: Path, imported: Importer) -> None:
    package = imported(package_of(NAME_POSITIONS["tag"](TEXTS), tmp_path / "build"))
    for number, text in enumerate(TEXTS):
        union = getattr(package, f"T{letters(number)}")
        made = package.decode(union, {"type": f"t{text}"})
        assert made.type == f"t{text}"
        assert not made.__class__.__name__.endswith("Other")
        other = package.decode(union, {"type": f"t{text} ", "more": text})
        assert other.__class__.__name__.endswith("Other")
        assert package.encode(other) == {"type": f"t{text} ", "more": text}


def test_what_a_docstring_says_is_the_text(tmp_path: Path, imported: Importer) -> None:
    package = imported(package_of(TEXT_POSITIONS["description"](TEXTS), tmp_path / "build"))
    for number, text in enumerate(TEXTS):
        doc = getattr(package, f"T{letters(number)}").__doc__
        assert _words(doc) == _words(text)


def _words(text: str) -> str:
    """`text` without white space, and in one form of Unicode, as docstrings are wrapped and normalised."""
    import unicodedata

    return "".join(char for char in unicodedata.normalize("NFC", text) if not char.isspace())


T = TypeVar("T")


def named_or_refused(make: Callable[[], T]) -> T | None:
    """What `make` makes; None where it refuses a name, and says where that stands."""
    try:
        return make()
    except InputError as error:
        refusal = error
    assert {found.code for found in refusal.diagnostics} <= {"name-clash", "bad-name"}
    assert all(found.location for found in refusal.diagnostics)
    return None


# --- Bare names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda text: {"Thing": obj({text: STRING})},
    lambda text: {text: obj({"a": STRING})},
    lambda text: {"ANotification": obj({}, **{"x-method": text, "x-side": "agent"})},
    lambda text: {"Thing": {"oneOf": [tagged(text), tagged("b")]}},
    lambda text: {"Thing": {"oneOf": [tagged("a", text), tagged("b", text)]}},
], ids=["property", "definition", "method", "tag", "property of the tag"])  # fmt: skip
def test_a_bare_hostile_name_is_a_name_or_refused(make: Callable[[str], Node], tmp_path: Path) -> None:
    verdicts = set()
    for text in (*TEXTS, "", "_", "$/", "名前"):
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(schema_of(**make(text))), encoding="utf-8")
        model = named_or_refused(lambda path=path: model_of(SchemaChoice(schema=path))[0])  # type: ignore[misc]
        verdicts.add("refused" if model is None else "named")
        if model is None:
            continue
        names = [definition.name for definition in model.definitions] + [method.name for method in model.methods]
        names += [field.name for each in model.definitions for field in getattr(each, "fields", ())]
        assert all(name.isascii() and name.isidentifier() and not keyword.iskeyword(name) for name in names), names
    assert verdicts == {"named", "refused"}


PROPERTIES = (
    *keyword.kwlist,
    *("match", "case", "type"),
    *("list", "dict", "str", "int", "float", "bool", "object", "property", "super", "print", "Exception", "id"),
    *("__init__", "__slots__", "__class__", "__dict__", "__eq__", "__dataclass_fields__", "mro", "copy", "fields"),
    *("self", "cls", "raw", "data", "key", "value", "extra", "UNSET", "decode", "encode", "types", "codec", "builtins"),
    *(
        "Agent",
        "RequestError",
        "annotations",
        "dataclass",
        "Any",
        "Literal",
        "located",
        "error",
        "made",
        "new",
        "bounds",
    ),
    *("field", "meta", "struct", "struct_type", "convert", "defstruct", "unset", "unset_type", "annotated", "own"),
    *("ﬁle", "naïve", "Ａbc", "ſet", "ª1", "x\u0301y"),
)


HIDING = frozenset({"list", "dict", "str", "int", "float", "bool", "type", "builtins", "self", "data", "key", "UNSET"})
"""Names that the code around a property might need for itself."""


def test_names_of_properties(tmp_path: Path, imported: Importer) -> None:
    """Each property in a class of its own, some among neighbours whose annotations and defaults use builtins."""
    others: Node = {
        "zList": {"type": "array", "items": STRING, "default": ["x"]},
        "zMap": {"type": "object", "additionalProperties": {"type": "integer"}},
        "zNumber": {"type": "number", "default": 1.5},
        "zFlag": {"type": ["boolean", "null"]},
    }
    definitions = {
        f"T{letters(number)}": obj({name: {"type": "integer"}, **(others if name in HIDING else {})}, [name])
        for number, name in enumerate(PROPERTIES)
    }
    files = package_of(definitions, tmp_path / "build")
    _check_modules(files)
    package = imported(files)
    for number, name in enumerate(PROPERTIES):
        raw: Node = {name: number}
        if name in HIDING:
            raw |= {"zList": ["a"], "zMap": {"b": 1}, "zNumber": 2.5, "zFlag": None}
        made = package.decode(getattr(package, f"T{letters(number)}"), raw)
        assert package.encode(made) == raw
        assert made == package.decode(made.__class__, raw)
        assert str(number) in repr(made)
        with pytest.raises(package.DecodeError) as caught:
            package.decode(made.__class__, {**raw, name: "no"})
        assert caught.value.path == (name,)


@pytest.mark.parametrize(
    "names",
    [
        ("list", "str", "type", "dict", "object", "int", "print", "id"),
        ("Model", "ModelInfo"),
        ("X_", "ABC_def", "snake_case_name", "Trailing__"),
        ("Field", "Enum", "List", "Dict", "Optional", "BaseModel", "RootModel", "TypedDict", "Date", "Decimal", "Path"),
        ("T", "Types", "Codec", "Wire", "Base", "Decoders", "Encoders", "Object", "Reader", "Remote", "Candidate"),
        (
            "String",
            "Integer",
            "Number",
            "Boolean",
            "Array",
            "Null",
            "Nullable",
            "Choice",
            "Constant",
            "Lenient",
            "Mapped",
        ),
        ("Init", "Slots", "Self", "Cls", "Key", "Raw", "Data", "Value", "Extra", "Unset", "Error"),
        ("ﬁle", "naïve", "ＡＢＣ", "x-y", "a.b/c~d"),
        ("class", "def", "match", "none", "true", "lambda"),
    ],
    ids=lambda names: names[0],
)
def test_names_of_definitions(names: tuple[str, ...], tmp_path: Path, imported: Importer) -> None:
    definitions: Node = {}
    for name in names:
        escaped = name.replace("~", "~0").replace("/", "~1")
        definitions[name] = obj({"size": {"type": "integer"}, "next": {"$ref": f"#/$defs/{escaped}"}}, ["size"])
    files = named_or_refused(lambda: package_of(definitions, tmp_path / "build"))
    if files is None:
        return
    _check_modules(files)
    package = imported(files)
    exported = ((name, getattr(package.types, name, None)) for name in package.__all__)
    made = [name for name, kind in exported if is_dataclass(kind) and kind is not package.Struct]
    assert len(made) == len(names)
    for name in made:
        raw = {"size": 1, "next": {"size": 2}}
        assert package.encode(package.decode(getattr(package, name), raw)) == raw


@pytest.mark.parametrize(
    "name", ["Exception", "Agent", "RequestError", "UNSET", "Struct", "None", "ValueError", "DecodeError", "Any"]
)
def test_names_that_are_taken_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        package_of({name: obj({"a": STRING})}, tmp_path)
    assert [found.code for found in caught.value.diagnostics] == ["name-clash"]


@pytest.mark.parametrize(
    "pair",
    [("sessionId", "session_id"), ("a-b", "a_b"), ("class", "class_"), ("ﬁx", "x"), ("URL", "url"), ("é1", "ê1")],
)
def test_properties_that_clash_after_conversion_are_refused(pair: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        package_of({"Thing": obj(dict.fromkeys(pair, STRING))}, tmp_path)
    (found,) = caught.value.diagnostics
    assert found.code == "name-clash"
    assert repr(pair[0]) in found.message
    assert repr(pair[1]) in found.message


@pytest.mark.parametrize(
    "titles",
    [
        ("404 not found",),
        ("Request",),
        ("Decode",),
        ("Value", "Type", "Key"),
        ("Same", "same"),
        ("é",),
        ("Internal error", "Method not found"),
        ("Agent", "Peer", "None"),
    ],
)
def test_titles_of_error_codes(titles: tuple[str, ...], tmp_path: Path, imported: Importer) -> None:
    codes = [{"const": number + 1, "title": title} for number, title in enumerate(titles)]
    definitions = errors(()) | {"Code": {"anyOf": [*codes, {"type": "integer"}]}}
    files = named_or_refused(lambda: package_of(definitions, tmp_path / "build"))
    if files is not None:
        _check_errors(imported(files))


@pytest.mark.parametrize("code", [-32601, -32602, -32603, -32700, -32600])
def test_the_codes_of_json_rpc_may_have_other_titles(code: int, tmp_path: Path, imported: Importer) -> None:
    definitions = errors(()) | {
        "Code": {"anyOf": [{"const": code, "title": "Quite something else"}, {"type": "integer"}]}
    }
    definitions |= {f"Do{part}": obj({}, **{"x-method": "do", "x-side": "agent"}) for part in ("Request", "Response")}
    package = imported(package_of(definitions, tmp_path / "build"))
    _check_errors(package)
    assert package.RequestError.from_json({"code": code, "message": "m"}).code == code


def _check_errors(package: ModuleType) -> None:
    """All error classes are classes of their own, and a malformed error of the peer has one."""
    module = sys.modules[f"{package.__name__}.errors"]
    classes = list(module.ERROR_CLASSES.values())
    assert len(set(classes)) == len(classes)
    assert all(issubclass(each, package.RequestError) for each in classes)
    assert package.RequestError.from_json("nonsense").code == -32603
    assert not {each.__name__ for each in classes} & {*dir(builtins), "DecodeError", "RequestError"}


# --- Fragments -------------------------------------------------------------------------------------------------------

FRAGMENT: Node = {"fragment": 1, "id": "wave", "revision": "1", "title": "Waving", "status": "vendor", "protocols": [1]}


def test_texts_of_a_fragment_reach_no_code(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(schema_of(Thing=obj({"a": STRING}))))
    trees = []
    for text in ("A harmless text.", "".join(TEXTS)):
        fragment = FRAGMENT | {
            "title": text,
            "description": text,
            "$defs": {"Wave": obj({"a": STRING}, description="x")},
        }
        (tmp_path / "wave.json").write_text(json.dumps(fragment))
        ran = run_acpgen("build", "--schema", "schema.json", "--extension", "wave.json", "--out", "out", cwd=tmp_path)
        assert ran.code == 0, ran.stderr
        trees.append({path.name: path.read_text() for path in (tmp_path / "out").glob("*.py")})
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("key", "legal"), [("id", {"x" * 300}), ("revision", {"x" * 300}), ("rfd", set())])
def test_what_names_a_fragment_is_never_hostile(key: str, legal: set[str], tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(schema_of(Thing=obj({"a": STRING}))))
    for text in TEXTS:
        (tmp_path / "wave.json").write_text(json.dumps(FRAGMENT | {key: text}))
        ran = run_acpgen("methods", "--schema", "schema.json", "--extension", "./wave.json", cwd=tmp_path)
        assert ran.code == (0 if text in legal else 2), text
        assert not any(char in ran.stderr for char in "\x00\x1b\x7f\u202e")


# --- Sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "definitions",
    [
        {"Only": STRING},
        {"Only": {"enum": ["a", "b"]}},
        {"Only": {"type": "array", "items": STRING}},
        {"Only": obj({})},
        {"Only": obj({"a": STRING}, ["a"])},
        {"Only": {"anyOf": [STRING, {"type": "integer"}]}},
        {"Only": {"oneOf": [tagged("a"), tagged("b")]}},
        {"Only": True},
        {"OnlyNotification": obj({}, **{"x-method": "m", "x-side": "agent"})},
    ],
    ids=lambda definitions: json.dumps(definitions)[:60],
)
def test_a_schema_of_any_single_kind_makes_a_package(definitions: Node, tmp_path: Path, imported: Importer) -> None:
    files = package_of(definitions, tmp_path / "build")
    _check_modules(files)
    assert hasattr(imported(files), next(iter(definitions)))


def ref(name: str) -> Node:
    return {"$ref": f"#/$defs/{name}"}


def _branches(number: int) -> Node:
    return {"oneOf": [tagged(f"v{value}", f"t{number}") for value in range(10)]}


LARGE: Mapping[str, Node] = {
    "a chain of aliases": {
        **{f"A{letters(n)}": ref(f"A{letters(n + 1)}") for n in range(3000)},
        f"A{letters(3000)}": STRING,
    },
    "a chain of bases": {
        **{f"A{letters(n)}": {**obj({}), "allOf": [ref(f"A{letters(n + 1)}")]} for n in range(1500)},
        f"A{letters(1500)}": obj({"a": STRING}),
    },
    "two ways at each step": {
        **{f"A{letters(n)}": {"allOf": [ref(f"A{letters(n + 1)}")] * 2} for n in range(30)},
        f"A{letters(30)}": obj({"a": STRING}),
    },
    "unions multiplied": {"Bomb": obj({"a": STRING}, allOf=[_branches(number) for number in range(8)])},
    "many members": {
        "Many": {"anyOf": [obj({f"p{n}": STRING}, [f"p{n}"], title=f"m{letters(n)}") for n in range(300)]}
    },
}


# the other shapes, larger and with their limits, are in hostile/test_sizes.py
@pytest.mark.parametrize("definitions", deep_except({"two ways at each step"}, LARGE))
def test_a_small_schema_never_exhausts_the_compiler(definitions: Node, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(schema_of(**definitions)))
    ran = subprocess.run(
        [sys.executable, "-m", "acpgen", "methods", "--schema", "schema.json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode in (0, 2), ran.stderr[-500:]
    assert "Traceback" not in ran.stderr
