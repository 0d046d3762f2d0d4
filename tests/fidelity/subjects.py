"""What is tested: packages, each with the schema that it was made of, read apart from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Options
from acpgen.schema.bundled import list_releases
from acpgen.schema.compose import compose
from acpgen.schema.document import join
from acpgen.schema.walk import definition_pointer
from acpgen.sources.inputs import load
from tests.fidelity.disagreements import DISAGREEMENTS, Disagreement
from tests.fidelity.expecting import OMITS_ANY_NULL, OMITS_NULL, Expecting
from tests.fidelity.making import Maker
from tests.fidelity.mutating import Mutator
from tests.fidelity.schemas import Layers, Schema, mapped, properties_of, required_of
from tests.published import available
from tests.support import DEEP, Packages, deep_except, fitting_fragments, model_of, protocol_of

OPTIONS = {"": Options(), "-kept-opened": Options(keep_unknown=True, open=True)}
"""The options of acpgen that change what values mean, by what is added to labels."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A way to build a package."""

    label: str
    sources: SchemaChoice
    options: Options = field(default_factory=Options)

    def __str__(self) -> str:
        return self.label

    @cached_property
    def root(self) -> dict[str, Any]:
        """The composed schema, with the additional variants of open unions, and marks where null is left out."""
        root = composed_root(self.sources, keeps_nulls=self.options.keep_unknown)
        return {**root, "$defs": opened(root["$defs"])} if self.options.open else root

    @cached_property
    def exact(self) -> Schema:
        """The schema as it is."""
        return Schema(self.root)

    @cached_property
    def read(self) -> Schema:
        """The schema as acpgen means to read it."""
        return Schema(relaxed(self.root, [each for each in DISAGREEMENTS if not each.of_output]))

    @cached_property
    def written(self) -> Schema:
        """The schema that encoded values satisfy even if something was forgiven."""
        return Schema(relaxed(self.root, DISAGREEMENTS))

    @cached_property
    def maker(self) -> Maker:
        """Makes valid values."""
        return Maker(self.exact)

    @cached_property
    def mutator(self) -> Mutator:
        """Spoils them."""
        return Mutator(self.exact)

    @cached_property
    def expecting(self) -> Expecting:
        """Knows what should come out."""
        return Expecting(schema=self.read, keeps_unknown=self.options.keep_unknown)

    def package(self, packages: Packages) -> ModuleType:
        """The package, built once a session."""
        return packages(self.sources, options=None if self.options == Options() else self.options)

    @cached_property
    def types(self) -> dict[str, str]:
        """The names of types by those of their definitions; JSON-RPC's envelopes and payloads of members have none."""
        model, _ = model_of(self.sources)
        at = {definition.pointer: definition.name for definition in model.definitions}
        return {name: at[pointer] for name in self.exact.definitions if (pointer := definition_pointer(name)) in at}


def composed_root(sources: SchemaChoice, *, keeps_nulls: bool = True) -> dict[str, Any]:
    """The schema that `sources` compose to. Unless nulls are kept, the properties where they say nothing are marked."""
    inputs = load(sources)
    facts = inputs.schema.facts
    release = inputs.release.name if inputs.release else None
    composed = compose(inputs.base, inputs.fragments, protocol=inputs.protocol, release=release, facts=facts)
    root = _without_null_data(composed.root)
    if keeps_nulls or facts.nulls is None:
        return root
    kept = facts.nulls
    definitions = {
        name: _marked(
            node, definition_pointer(name), lambda part, at: part in kept or composed.is_added(at), f"{name}/"
        )
        for name, node in root["$defs"].items()
        if name not in kept
    }
    return {**root, "$defs": {**root["$defs"], **definitions}}


def _without_null_data(root: dict[str, Any]) -> dict[str, Any]:
    """The schema with a mark at the data of an error."""
    error = root["$defs"].get("Error")
    if error is None or "data" not in error.get("properties", {}):
        return root
    data = {**error["properties"]["data"], OMITS_ANY_NULL: True}
    return {**root, "$defs": {**root["$defs"], "Error": {**error, "properties": {**error["properties"], "data": data}}}}


def _marked(node: Any, pointer: str, is_kept: Callable[[str, str], bool], start: str) -> Any:
    """A schema with a mark at each property that is left out where it is null, if it is optional."""
    if not isinstance(node, dict):
        return node
    found = dict(node)
    for key in ("allOf", "anyOf", "oneOf"):
        if key in node:
            members = enumerate(node[key])
            found[key] = [_marked(each, join(pointer, key, at), is_kept, start) for at, each in members]
    if "properties" in node:
        found["properties"] = dict(node["properties"])
        for wire, each in node["properties"].items():
            if isinstance(each, dict) and not is_kept(start + wire, join(pointer, "properties", wire)):
                found["properties"][wire] = {**each, OMITS_NULL: True}
    return found


def relaxed(root: dict[str, Any], disagreements: Iterable[Disagreement]) -> dict[str, Any]:
    """The schema `root` as the other side of `disagreements` reads it."""
    for each in disagreements:
        root = mapped(root, each.relax)
    return root


def opened(definitions: dict[str, Any]) -> dict[str, Any]:
    """The definitions with a last member for tags of the future in each union that has a tag and no such member.

    Enumerations take any value of their type.
    """
    schema = Schema({"$defs": definitions})
    return {name: mapped(node, lambda each: _opened(each, schema)) for name, node in definitions.items()}


def _opened(node: dict[str, Any], schema: Schema) -> dict[str, Any]:
    values = node.get("enum", ())
    for key in ("oneOf", "anyOf"):
        members = node.get(key, ())
        if members and all(isinstance(member, dict) and "const" in member for member in members):
            values = [member["const"] for member in members]
    if values and (len(values) > 1 or "enum" not in node):
        kind = "string" if isinstance(values[0], str) else "integer"
        return {"anyOf": [node, {"type": kind}]}
    for key in ("oneOf", "anyOf"):
        known = tags(schema, node.get(key, ()))
        if known:
            wire = known[0][0]
            taken = [{"properties": {wire: {"const": tag}}, "required": [wire]} for _, tag in known]
            other = {"type": "object", "properties": {wire: {"type": "string"}}, "required": [wire]}
            member = {**other, "not": {"anyOf": taken}, "additionalProperties": True}
            return {**node, key: [*node[key], member]}
    return node


def tags(schema: Schema, members: Iterable[Any]) -> list[tuple[str, str]]:
    """The tags of the members of a union, none where one of the members takes any tag already."""
    found: list[tuple[str, str]] = []
    for member in members:
        common = [constants(layers) for layers in schema.choices(member)]
        found += [each for each in common[0] if all(each in others for others in common)]
    wires = [wire for wire, _ in found]
    if not wires:
        return []
    most = max(dict.fromkeys(wires), key=wires.count)
    takes_any = any(is_free_string(layers, most) for member in members for layers in schema.choices(member))
    return [] if takes_any else [each for each in found if each[0] == most]


def constants(layers: Layers) -> list[tuple[str, str]]:
    """The strings that required properties must be."""
    return [
        (wire, node["const"])
        for wire, nodes in properties_of(layers).items()
        for node in nodes
        if wire in required_of(layers) and isinstance(node, dict) and isinstance(node.get("const"), str)
    ]


def is_free_string(layers: Layers, wire: str) -> bool:
    """Whether the property `wire` has to be there and may be any string."""
    said = properties_of(layers).get(wire, [])
    return (
        wire in required_of(layers)
        and bool(said)
        and all(isinstance(node, dict) and node.get("type") == "string" and "const" not in node for node in said)
    )


def bundled_subjects() -> Iterator[Subject]:
    """Every bundled schema as it is, with options, with all extensions that fit, and with each of them."""
    for release in list_releases():
        known = {"protocol": release.protocol, "release": release.name}
        label = f"v{release.protocol}-{release.name}"
        for suffix, options in OPTIONS.items():
            yield Subject(label=label + suffix, sources=SchemaChoice(**known), options=options)
        fitting = fitting_fragments(release)
        yield Subject(label=f"{label}+all", sources=SchemaChoice(**known, extensions=fitting))
        for spec in fitting:
            yield Subject(label=f"{label}+{spec}", sources=SchemaChoice(**known, extensions=(spec,)))


def published_subjects() -> Iterator[Subject]:
    """Every published schema that is at hand, with every option."""
    for path in available():
        label = "/".join(path.parts[-3:]).removesuffix(".json")
        sources = SchemaChoice(protocol=protocol_of(path), schema=path)
        for suffix, options in OPTIONS.items():
            yield Subject(label=label + suffix, sources=sources, options=options)


SUBJECTS = {
    each.label: each for each in sorted([*bundled_subjects(), *(published_subjects() if DEEP else ())], key=str)
}
OLDEST, OPENED, NEWEST = "v1-0.10.8", "v1-2026-11-02-kept-opened", "v2-2026-11-02+all"
DRAFT = f"{OLDEST}+auth-methods@2026-01-14"
PROVING = {OLDEST, OPENED, NEWEST, DRAFT}
"""Their schemas have all combinations of keywords that bundled schemas have; the draft has a `const` with a default."""
EVERY = pytest.mark.parametrize("subject", deep_except(PROVING, SUBJECTS))


def chosen_types(subject: Subject) -> list[str]:
    """The definitions of `subject` to test: of those that mean the same in several subjects, the first alone."""
    return list(subject.types) if DEEP else _distinct_types()[subject.label]


@cache
def _distinct_types() -> dict[str, list[str]]:
    seen: set[tuple[str, bool]] = set()
    found: dict[str, list[str]] = {label: [] for label in PROVING}
    for subject in sorted((SUBJECTS[label] for label in PROVING), key=lambda subject: len(subject.label)):
        for name in subject.types:
            key = (subject.exact.reachable(name), subject.options.keep_unknown)
            if key not in seen:
                found[subject.label].append(name)
            seen.add(key)
    return found
