"""Check that a schema uses the dialect that acpgen understands (JSON Schema 2020-12 as ACP uses it)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from acpgen.diagnostics import Report
from acpgen.schema.document import join
from acpgen.schema.keywords import ANNOTATIONS, KEYWORDS, WITHOUT_EFFECT, is_schema_map
from acpgen.schema.walk import DEFINITION_PREFIX, children, definition_pointer, referenced_definition, schema_map, walk
from acpgen.text import MOST_HINTS, did_you_mean

MAX_LEVELS = 100
"""The most references, unions and arrays, each inside the one before, that enter no property."""
InExtension = Callable[[str], bool]
"""True if the value at a pointer comes from an extension, whose author can correct it."""


def check_dialect(root: dict[str, Any], report: Report, in_extension: InExtension = lambda _: False) -> None:
    """Report everything in the schema that acpgen would misread: bad keywords, references, cycles.

    Later stages rely on it: without errors, every keyword has a legal value, every `$ref` leads to a definition of
    this document, and there are no cycles.
    """
    definitions = schema_map(root, "$defs")
    if not definitions or not is_schema_map(definitions):
        message = "`$defs` is no object with definitions" if "$defs" in root else "the schema has no `$defs`"
        report.error("no-definitions", message, at="", hint="is this an ACP schema?")
        return
    for pointer, node in walk(root):
        if isinstance(node, dict):
            _check_keywords(node, pointer, report, in_extension)
            _check_reference(node, pointer, definitions, report)
        elif not isinstance(node, bool):
            report.error("bad-schema", "a schema is an object, true or false", at=pointer)
    if not report.errors:
        _check_cycles(definitions, report)


def _check_keywords(node: dict[str, Any], pointer: str, report: Report, in_extension: InExtension) -> None:
    for keyword, value in node.items():
        at = join(pointer, keyword)
        if keyword in KEYWORDS:
            is_legal, legal = KEYWORDS[keyword]
            if not is_legal(value):
                report.error("bad-schema", f"`{keyword}` takes {legal}", at=at)
        elif keyword in WITHOUT_EFFECT:
            report.warning("unsupported-keyword", f"`{keyword}` has no effect on the generated code", at=at)
        elif keyword not in ANNOTATIONS:
            _report_unknown(keyword, at, report, is_error=in_extension(at))


def _report_unknown(keyword: str, at: str, report: Report, *, is_error: bool) -> None:
    near = did_you_mean(keyword, KEYWORDS) if len(report.found) < MOST_HINTS else None
    code = "unknown-x-keyword" if keyword.startswith("x-") else "unknown-keyword"
    if is_error:
        report.error(code, f"acpgen does not know `{keyword}`", at=at, hint=near or "correct or remove it")
    else:
        newer = "look for a newer acpgen: the keyword may change what values mean"
        message = f"acpgen does not know `{keyword}` and ignores it"
        report.warning(code, message, at=at, hint=near or newer)


def _check_reference(node: dict[str, Any], pointer: str, definitions: Mapping[str, Any], report: Report) -> None:
    target = node.get("$ref")
    if not isinstance(target, str):
        return
    name = referenced_definition(node)
    if name is None:
        near = _misspelt(target, definitions) if len(report.found) < MOST_HINTS else None
        fetch = f"acpgen fetches nothing: copy the definition to `$defs` and refer to {DEFINITION_PREFIX}NAME"
        report.error(
            "remote-ref",
            f"`$ref` {target!r} leaves the definitions of this document",
            at=join(pointer, "$ref"),
            hint=near or fetch,
        )
    elif name not in definitions:
        report.error(
            "ref-not-found",
            f"`$ref` to {name!r}, which is not defined",
            at=join(pointer, "$ref"),
            hint=did_you_mean(name, definitions) if len(report.found) < MOST_HINTS else None,
        )


def _misspelt(target: str, definitions: Mapping[str, Any]) -> str | None:
    """The hint for a reference in the wrong form: `#/definitions/NAME`, or a name alone."""
    file, _, inside = target.partition("#")
    if file and (inside or {"/", ":", "."} & set(file)):
        return None
    return did_you_mean((inside or file).rpartition("/")[2], definitions, prefix=DEFINITION_PREFIX)


def _check_cycles(definitions: Mapping[str, Any], report: Report) -> None:
    """Refuse definitions that contain themselves other than in a property, an array or a map, and long chains."""
    _walk_chains({name: _structural(node, in_containers=False) for name, node in definitions.items()}, report)
    if not report.errors:
        edges = {name: _structural(node, in_containers=True) for name, node in definitions.items()}
        _walk_chains(edges, report, may_repeat=True)


def _walk_chains(edges: Mapping[str, Mapping[str, int]], report: Report, *, may_repeat: bool = False) -> None:
    levels: dict[str, int] = {}  # of the longest chain that starts with a definition
    for start in edges:
        # a loop, not recursion: a chain may be longer than Python's stack
        path = {start: iter(edges[start])} if start not in levels else {}
        while path:
            name, rest = next(reversed(path.items()))
            target = next(rest, None)
            if target is None:
                del path[name]
                inside = [(levels.get(each, 0), level) for each, level in edges[name].items()]
                levels[name] = max(map(sum, inside), default=1)
                if levels[name] >= MAX_LEVELS > max(inside)[0]:
                    _report_chain(name, report)
            elif target in path and may_repeat:
                continue
            elif target in path:
                names = list(path)
                report.error(
                    "ref-cycle",
                    f"the definition contains itself: {' → '.join([*names[names.index(target) :], target])}",
                    at=definition_pointer(target),
                    hint="let one of them refer to the other in a property, or in the items of an array or a map",
                )
            elif target not in levels:
                path[target] = iter(edges[target])


def _report_chain(name: str, report: Report) -> None:
    report.error(
        "too-deep",
        f"a chain of {MAX_LEVELS} or more references, unions and arrays starts here",
        at=definition_pointer(name),
        hint="let one of them refer to the next in a property, or remove unions of a single member",
    )


def _structural(node: Any, *, in_containers: bool) -> dict[str, int]:
    """The definitions that the shape of `node` depends on before any object is entered, each with its level.

    `in_containers` includes those of the items of arrays and maps.
    """
    found: dict[str, int] = {}
    entered = ("/properties", "/$defs", "/not", *(() if in_containers else _CONTAINERS))
    for name, level in _references_inside(node, 0, entered):
        found[name] = max(level, found.get(name, 1))
    return found


_CONTAINERS = ("/items", "/additionalProperties", "/unevaluatedProperties")


def _references_inside(node: Any, level: int, entered: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    if (name := referenced_definition(node)) is not None:
        yield name, level
    for pointer, child in children(node, ""):
        if not pointer.startswith(entered):
            yield from _references_inside(child, level + 1, entered)
