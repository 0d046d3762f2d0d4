"""Extension fragments: the file format, its checks, and the marks of a draft."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.schema.data import data_folder
from acpgen.schema.document import Document, join, read_document
from acpgen.schema.gates import Gate, gate_pointer, gated_twice, read_gates
from acpgen.schema.walk import schema_map
from acpgen.text import did_you_mean

_START = "<fill in: "


def mark(wanted: str) -> str:
    """The mark for a missing part, for example `<fill in: agent or client>`."""
    return f"{_START}{wanted}>"


def read_mark(value: Any) -> str | None:
    """The missing part that the mark `value` names; None for any other value."""
    if isinstance(value, str) and value.startswith(_START) and value.endswith(">"):
        return value[len(_START) : -1]
    return None


def find_marks(node: Any, pointer: str = "") -> Iterator[tuple[str, str]]:
    """The pointers of all marks in a JSON value, including marks as names, with the missing parts."""
    if (wanted := read_mark(node)) is not None:
        yield pointer, wanted
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in items:
        if (wanted := read_mark(key)) is not None:
            yield join(pointer, key), wanted
        yield from find_marks(child, join(pointer, key))


if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

_MESSAGE_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A replacement: a definition of the shape `expect` becomes `result`."""

    expect: Any
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The changes of a fragment to one definition that exists, or, if `optional`, may exist."""

    properties: Mapping[str, Any]
    required: tuple[str, ...]
    members: tuple[Any, ...]
    replacement: Replacement | None
    optional: bool

    @property
    def added(self) -> tuple[Any, ...]:
        """The schemas in the change."""
        replaced = () if self.replacement is None else (self.replacement.result,)
        return (*self.properties.values(), *self.members, *replaced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A well-formed extension."""

    id: str
    revision: str
    title: str
    description: str | None
    rfd: str | None
    status: str
    protocols: tuple[int, ...]
    requires: tuple[str, ...]
    document: Document
    definitions: Mapping[str, Any]
    changes: Mapping[str, Change]
    gates: Mapping[str, Gate]

    @property
    def origin(self) -> str:
        """The fragment in docstrings and messages."""
        return self.document.origin

    @property
    def spec(self) -> str:
        """The name of this fragment and revision on the command line."""
        return f"{self.id}@{self.revision}"


def load_fragment(source: Path | Document, *, label: str | None = None) -> Fragment:
    """Load the fragment of a file or document; raises `InputError` with all problems.

    `label` names the file in diagnostics; by default it is the path.
    """
    if isinstance(source, Path):
        name = label or source.as_posix()
        source = read_document(source, label=name, origin=name)
    problems = list(_unfilled(source)) or list(dict.fromkeys(_problems(source))) or list(_contradictions(source))
    if problems:
        raise InputError(problems)
    return _read(source)


def load_fragments(files: Sequence[tuple[Path, str]]) -> tuple[Fragment, ...]:
    """Load the fragments of files with their labels; raises `InputError` with all problems of all files."""
    fragments: list[Fragment] = []
    report = Report()
    for path, label in files:
        with report.collecting():
            fragments.append(load_fragment(path, label=label))
    report.raise_errors()
    return tuple(fragments)


def _read(document: Document) -> Fragment:
    root = document.root
    return Fragment(
        id=root["id"],
        revision=root["revision"],
        title=root["title"],
        description=root.get("description"),
        rfd=root.get("rfd"),
        status=root["status"],
        protocols=tuple(int(protocol) for protocol in root["protocols"]),
        requires=tuple(root.get("requires", ())),
        document=replace(document, origin=f"{root['id']}, {root['revision']}"),
        definitions=root.get("$defs", {}),
        changes={name: _read_change(change) for name, change in root.get("changes", {}).items()},
        gates=read_gates(root.get("gates", {}), pointers=True),
    )


def _read_change(change: Mapping[str, Any]) -> Change:
    replacement = change.get("replace")
    return Change(
        properties=change.get("properties", {}),
        required=tuple(change.get("required", ())),
        members=tuple(change.get("members", ())),
        replacement=replacement and Replacement(expect=replacement["expect"], result=replacement["with"]),
        optional=change.get("optional", False),
    )


def _unfilled(document: Document) -> Iterator[Diagnostic]:
    """An error for each mark that is left in a draft."""
    for at, wanted in find_marks(document.root):
        yield Diagnostic(
            code="fragment-draft",
            severity=Severity.ERROR,
            message=f"this is a draft; fill in {wanted[:_MESSAGE_LENGTH]}",
            location=document.location(at),
            pointer=at,
            hint="replace `<fill in: …>` with the missing part",
        )


@cache
def fragment_schema() -> Any:
    """The JSON Schema of the fragment format."""
    return json.loads((data_folder() / "schema" / "fragment.schema.json").read_text(encoding="utf-8"))


def _problems(document: Document) -> Iterator[Diagnostic]:
    """The problems that the JSON Schema of the fragment format finds; some may be found more than once."""
    # imported late: the import takes as long as a small build
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    for error in Draft202012Validator(fragment_schema()).iter_errors(document.root):
        yield from _diagnostics(document, error)


def _diagnostics(document: Document, error: ValidationError) -> Iterator[Diagnostic]:
    at = join("", *error.absolute_path)
    described = error.schema.get("description")
    match error.validator:
        case "required":
            for name in error.validator_value:
                if name not in error.instance:
                    hint = error.schema.get("properties", {}).get(name, {}).get("description")
                    yield _problem(document, at, f"`{name}` is missing", hint=hint)
        case "additionalProperties":
            known = list(schema_map(error.schema, "properties"))
            for name in error.instance:
                if name not in known:
                    yield _unknown_name(document, join(at, name), name, known)
        case "type":
            expected = " or ".join(
                [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
            )
            yield _problem(document, at, f"expected {expected}, found {_short(error.instance)}", hint=described)
        case "pattern" | "const" | "enum":
            yield _problem(document, at, f"{_short(error.instance)} is not allowed here", hint=described)
        case _:
            yield _problem(document, at, error.message[:_MESSAGE_LENGTH], hint=described)


def _unknown_name(document: Document, at: str, name: str, known: list[str]) -> Diagnostic:
    hint = did_you_mean(name, known) or f"there are: {', '.join(known)}"
    return _problem(document, at, f"unknown property {_short(name)}", hint=hint)


def _contradictions(document: Document) -> Iterator[Diagnostic]:
    """The checks that a JSON Schema cannot express."""
    root = document.root
    for index, required in enumerate(root.get("requires", ())):
        if required.partition("@")[0] == root["id"]:
            yield _problem(document, join("/requires", index), "the fragment requires itself")
    for name, change in root.get("changes", {}).items():
        if list(change) == ["optional"]:
            yield _problem(document, join("/changes", name), "the change changes nothing")
    for gate_root, method in gated_twice(root.get("gates", {})):
        yield _problem(document, gate_pointer(gate_root, method), f"{_short(method)} has a gate at another definition")


def _problem(document: Document, at: str, message: str, *, hint: str | None = None) -> Diagnostic:
    return Diagnostic(
        code="fragment-format",
        severity=Severity.ERROR,
        message=message,
        location=document.location(at),
        pointer=at,
        hint=hint,
    )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"
