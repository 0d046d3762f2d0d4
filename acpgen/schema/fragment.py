"""Extension fragments: the file format, its checks, and the marks of a draft."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acpgen.diagnostics import Report
from acpgen.schema.data import read_data
from acpgen.schema.document import Document, join, read_document
from acpgen.schema.gates import Gates, gate_pointer, gated_twice, read_gates
from acpgen.schema.walk import schema_map
from acpgen.text import EXCERPT, cut, did_you_mean

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]

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


_FORMAT = "fragment-format"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A replacement: a definition of the shape `expect` becomes `result`."""

    expect: Any
    result: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionChange:
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
    rfd: str | None
    status: str
    protocols: tuple[int, ...]
    requires: tuple[str, ...]
    document: Document
    definitions: Mapping[str, Any]
    changes: Mapping[str, DefinitionChange]
    gates: Gates
    values: Gates

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
    report = source.report()
    for check in (_check_marks, _check_format, _check_consistency):
        check(source.root, report)
        report.raise_errors()
    return _read(source)


def _read(document: Document) -> Fragment:
    root = document.root
    return Fragment(
        id=root["id"],
        revision=root["revision"],
        title=root["title"],
        rfd=root.get("rfd"),
        status=root["status"],
        protocols=tuple(int(protocol) for protocol in root["protocols"]),
        requires=tuple(root.get("requires", ())),
        document=replace(document, origin=f"{root['id']}, {root['revision']}"),
        definitions=root.get("$defs", {}),
        changes={name: _read_change(change) for name, change in root.get("changes", {}).items()},
        gates=read_gates(root.get("gates", {}), section="gates"),
        values=read_gates(root.get("values", {}), section="values"),
    )


def _read_change(change: Mapping[str, Any]) -> DefinitionChange:
    replacement = change.get("replace")
    return DefinitionChange(
        properties=change.get("properties", {}),
        required=tuple(change.get("required", ())),
        members=tuple(change.get("members", ())),
        replacement=replacement and Replacement(expect=replacement["expect"], result=replacement["with"]),
        optional=change.get("optional", False),
    )


def _check_marks(root: dict[str, Any], report: Report) -> None:
    """Report the marks that are left in a draft."""
    for at, wanted in find_marks(root):
        message = f"this is a draft; fill in {wanted[:EXCERPT]}"
        report.error("fragment-draft", message, at=at, hint="replace `<fill in: …>` with the missing part")


@cache
def fragment_schema() -> Any:
    """The JSON Schema of the fragment format."""
    return read_data("fragment.schema.json")


def _check_format(root: dict[str, Any], report: Report) -> None:
    """Report the problems that the JSON Schema of the fragment format finds."""
    if not root.keys() & {"fragment", "id"}:  # another file: nothing of it is shown
        hint = fragment_schema()["properties"]["fragment"]["description"]
        report.error(_FORMAT, "this is no extension: `fragment` and `id` are missing", at="", hint=hint)
        return
    # imported late: the import takes as long as a small build
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    for error in Draft202012Validator(fragment_schema()).iter_errors(root):
        _report_problem(error, report)


def _report_problem(error: ValidationError, report: Report) -> None:
    at = join("", *error.absolute_path)
    described = error.schema.get("description")
    match error.validator:
        case "required":
            for name in error.validator_value:
                if name not in error.instance:
                    hint = error.schema.get("properties", {}).get(name, {}).get("description")
                    report.error(_FORMAT, f"`{name}` is missing", at=at, hint=hint)
        case "additionalProperties":
            known = list(schema_map(error.schema, "properties"))
            for name in [name for name in error.instance if name not in known]:
                hint = did_you_mean(name, known) or f"there are: {', '.join(known)}"
                report.error(_FORMAT, f"unknown property {_short(name)}", at=join(at, name), hint=hint)
        case "type":
            expected = " or ".join(
                [error.validator_value] if isinstance(error.validator_value, str) else error.validator_value
            )
            report.error(_FORMAT, f"expected {expected}, found {_short(error.instance)}", at=at, hint=described)
        case "pattern" | "const" | "enum":
            report.error(_FORMAT, f"{_short(error.instance)} is not allowed here", at=at, hint=described)
        case _:
            report.error(_FORMAT, error.message[:EXCERPT], at=at, hint=described)


def _check_consistency(root: dict[str, Any], report: Report) -> None:
    """Report the problems that a JSON Schema cannot find."""
    for index, required in enumerate(root.get("requires", ())):
        if required.partition("@")[0] == root["id"]:
            report.error(_FORMAT, "the fragment requires itself", at=join("/requires", index))
    for name, change in root.get("changes", {}).items():
        if list(change) == ["optional"]:
            report.error(_FORMAT, "the change changes nothing", at=join("/changes", name))
    for section in ("gates", "values"):
        for gate_root, gated in gated_twice(root.get(section, {})):
            message = f"{_short(gated)} has a gate at another definition"
            report.error(_FORMAT, message, at=gate_pointer(gate_root, gated, section=section))


def _short(value: Any) -> str:
    return cut(json.dumps(value, ensure_ascii=False), 60)
