"""The entries that the TypeScript of an RFD makes: declarations, converted with the idioms of the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from acpgen.rfd.base import Base, capability_owners
from acpgen.rfd.blocks import Block, lines_are
from acpgen.rfd.entries import Entry, change_of, present_properties, report_left_over
from acpgen.rfd.source import Findings
from acpgen.rfd.syntax import Declaration, Member, OneOf, Record, Reference, TypeNode
from acpgen.rfd.types import Conversion, convert, convert_member, is_required
from acpgen.rfd.typescript import parse_typescript
from acpgen.schema.walk import schema_list, schema_map

_PASSES = 5
"""Defaults of a capability hold those of the capabilities in it: so deep do they nest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declared:
    """A declaration, with the block that it stands in."""

    block: Block
    declaration: Declaration


def read_declarations(block: Block, findings: Findings) -> list[Declared]:
    """The declarations in a block; what the parser does not understand is reported."""
    declarations, problems = parse_typescript(block.text)
    for problem in problems:
        message = f"not understood: {problem.message}"
        if problem.skipped is not None:
            start, end = problem.skipped
            message += f"; {lines_are(block.line(start), block.line(max(end - 1, start)))} not read"
        findings.warn("rfd-typescript", message, block.location(problem.start))
    if not declarations and not problems:
        findings.note("rfd-value", "no declarations in this block", block.location(0))
    return [Declared(block=block, declaration=declaration) for declaration in declarations]


def convert_declarations(
    declared: Iterable[Declared], schemas: Mapping[str, Any], *, base: Base, findings: Findings
) -> list[Entry]:
    """The entries of declarations; `schemas` are the definitions that the text gives as JSON Schema."""
    declared = list(declared)
    known = base.definitions.keys() | schemas.keys() | {each.declaration.name for each in declared}
    capabilities = _capabilities(declared, capability_owners(base.definitions))
    definitions: dict[str, Any] = {**base.definitions, **schemas}
    entries: list[Entry] = []
    for turn in range(_PASSES):
        before, entries = entries, []
        silent = Findings()
        for each in declared:
            context = Conversion(
                block=each.block,
                start=each.declaration.start,
                findings=silent,
                known=known,
                definitions=definitions,
                is_capability=each.declaration.name in capabilities,
            )
            entries.append(_entry(each, context, base=base))
        definitions |= {each.name: each.node for each in entries if not each.is_change and each.name not in schemas}
        if turn == _PASSES - 1 or [each.node for each in entries] == [each.node for each in before]:
            findings.found += silent.found
            break
    return entries


def _capabilities(declared: list[Declared], owners: frozenset[str]) -> frozenset[str]:
    """The types that say what a peer can do: those that the schema has as such, and all that these refer to."""
    found, size = set(owners), -1
    while size != len(found):
        size = len(found)
        for each in declared:
            if each.declaration.name in found:
                found.update(_references(each.declaration.type))
    return frozenset(found)


def _references(type_: TypeNode) -> Iterator[str]:
    """The names of types that an object has as properties, null apart."""
    for member in type_.members if isinstance(type_, Record) else ():
        for inner in member.type.members if isinstance(member.type, OneOf) else (member.type,):
            if isinstance(inner, Reference):
                yield inner.name


def _entry(each: Declared, context: Conversion, *, base: Base) -> Entry:
    declaration, block = each.declaration, each.block
    node = _change(each, context, base)
    return Entry(
        name=declaration.name,
        node=convert(declaration, context) if node is None else node,
        is_change=node is not None,
        location=block.location(declaration.start),
        lines=(block.line(declaration.start), _end_line(each)),
    )


def _change(each: Declared, context: Conversion, base: Base) -> dict[str, Any] | None:
    """What a declaration adds to the definition of its name; None where it is a definition of its own.

    It is a change where it goes on elsewhere (`...`), where a patch adds only some of its lines, and where it repeats
    all that the definition has.
    """
    type_, name = each.declaration.type, each.declaration.name
    match type_:
        case Record(members=members, is_elided=is_elided):
            present = present_properties(name, base)
            is_patch = not _is_added(each.block, each.declaration.start)
            repeats = bool(present) and present < {member.name for member in members}
            if not (is_elided or is_patch or repeats):
                return None
            added = [member for member in members if _is_new(member, each.block, present, is_patch=is_patch)]
            if is_patch:
                _report_patch(each, members, added, context.findings)
            if each.declaration.bases or type_.values is not None:
                message = f"{name} is changed here, which is not read: other types that it has, or names of any kind"
                context.findings.warn("rfd-type", message, each.block.location(each.declaration.start))
            properties = {member.name: convert_member(member, context) for member in added}
            return change_of(properties, [member.name for member in added if is_required(member)])
        case OneOf(is_elided=is_elided):
            return _union_change(convert(each.declaration, context), base.definitions.get(name), is_elided=is_elided)
    return None


def _report_patch(each: Declared, members: tuple[Member, ...], added: list[Member], findings: Findings) -> None:
    """Report what the patch adds between members: inside of one that is there already, for instance."""
    block, end = each.block, _end_line(each)
    starts = [*(block.line(member.start) for member in members), end + 1]
    covered = {
        line
        for member, start, following in zip(members, starts, starts[1:], strict=False)
        for line in range(start, following)
        if member in added
    }
    report_left_over(block, range(block.line(each.declaration.start), end + 1), covered, findings)


def _end_line(each: Declared) -> int:
    """The line of the source in which a declaration ends."""
    return each.block.line(max(each.declaration.end - 1, each.declaration.start))


def _is_new(member: Member, block: Block, present: set[str], *, is_patch: bool) -> bool:
    return member.name not in present and (not is_patch or _is_added(block, member.start))


def _is_added(block: Block, start: int) -> bool:
    return block.added is None or block.line(start) in block.added


def _union_change(node: Any, present: Any, *, is_elided: bool) -> dict[str, Any] | None:
    """The members that a union of constants has and the present one has not."""
    consts = _consts(present)
    members = schema_list(node, "anyOf")
    if not is_elided and not (consts and consts < _consts(node)):
        return None
    return {"members": [member for member in members if _constant(member) not in consts]}


def _consts(node: Any) -> set[str]:
    members = [*schema_list(node, "anyOf"), *schema_list(node, "oneOf")]
    values = [value for value in schema_list(node, "enum") if isinstance(value, str)]
    return {found for member in members if (found := _constant(member)) is not None} | set(values)


def _constant(member: Any) -> str | None:
    value = schema_map({"member": member}, "member").get("const")
    return value if isinstance(value, str) else None
