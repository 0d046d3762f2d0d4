"""The types of flavours accept and refuse what an independent validator does, with listed exceptions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.flavours import Flavour
from tests.fidelity.disagreements import DISAGREEMENTS, without
from tests.fidelity.schemas import Schema, mapped, same
from tests.fidelity.subjects import DRAFT, NEWEST, OPENED, SUBJECTS, Subject, chosen_types
from tests.models_support import Adapter, models_of
from tests.support import DEEP, Packages, deep_except, schema_of

pytestmark = pytest.mark.full

VALUES = 25 if DEEP else 4
"""Valid values a type."""
MUTANTS = 40 if DEEP else 10
"""Mutants of each of these."""
ALL = frozenset(Flavour)
TYPES_ALONE = frozenset({Flavour.TYPEDDICT})


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A difference between `flavours` and JSON Schema.

    `relax` changes a node of the schema into what the flavour makes of it, or `convert` a value into an equal one with
    the other verdict. `value` shows the difference, as the definition `Thing` of `schema`.
    """

    name: str
    flavours: frozenset[Flavour]
    schema: dict[str, Any]
    value: Any
    is_valid: bool = False
    relax: Callable[[dict[str, Any]], dict[str, Any]] = dict
    convert: Callable[[Any], Any] | None = None


def whole(value: Any) -> Any:
    """The value with integers for whole numbers, which are the same to JSON Schema."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case list():
            return list(map(whole, value))
        case dict():
            return {key: whole(item) for key, item in value.items()}
    return value


TAGGED = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
RULES = (
    *(
        Rule(name=each.name, flavours=ALL, schema=each.schema, value=each.value, relax=each.relax)
        for each in DISAGREEMENTS
        if not each.of_output
    ),
    Rule(
        name="1.0 is no integer",
        flavours=ALL,
        schema=schema_of(Thing={"type": "integer"}),
        value=1.0,
        is_valid=True,
        convert=whole,
    ),
    Rule(
        name="limits of numbers, texts and arrays are no part of a type",
        flavours=TYPES_ALONE,
        schema=schema_of(Thing={"type": "integer", "minimum": 1}),
        value=0,
        relax=without("minimum", "maximum", "minLength", "minItems"),
    ),
    Rule(
        name="what is excluded is no part of a type: a wrong value with a known tag is one with an unknown tag",
        flavours=TYPES_ALONE,
        schema=schema_of(Thing={**TAGGED, "not": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]}}),
        value={"kind": "a"},
        relax=without("not"),
    ),
)


def rules_of(flavour: Flavour) -> list[Rule]:
    return [rule for rule in RULES if flavour in rule.flavours]


@cache
def expected(subject: Subject, flavour: Flavour) -> Schema:
    root = subject.root
    for rule in rules_of(flavour):
        root = mapped(root, rule.relax)
    return Schema(root)


def converted(value: Any, flavour: Flavour) -> Any:
    for rule in rules_of(flavour):
        value = rule.convert(value) if rule.convert else value
    return value


MODULES = {f"{label}-{flavour.value}": (each, flavour) for label, each in SUBJECTS.items() for flavour in Flavour}
EACH_FLAVOUR = {f"{label}-{flavour.value}" for label in (OPENED, NEWEST, DRAFT) for flavour in Flavour}
"""All combinations of keywords; each type is printed by itself, so that an older release adds none."""


@pytest.mark.parametrize("case", deep_except(EACH_FLAVOUR, MODULES))
def test_verdicts_are_those_of_the_validator(case: tuple[Subject, Flavour], tally: Counter[str]) -> None:
    subject, flavour = case
    schema = expected(subject, flavour)
    module = models_of(subject.sources, flavour, subject.options)
    for name in chosen_types(subject):
        adapter = Adapter(module, subject.types[name])
        for value in values_and_mutants(subject, name, flavour):
            is_valid = schema.is_valid(name, value)
            assert adapter.accepts(value) == is_valid, f"{name}: {json.dumps(value)}"
            tally[f"verdicts of {flavour.value}: {'valid' if is_valid else 'invalid'}"] += 1
            if is_valid:
                # pydantic itself drops the keys of a dictionary that its type does not name
                keeps_all = subject.options.keep_unknown and flavour is Flavour.PYDANTIC
                check_round_trip(adapter, value, keeps_all=keeps_all)


def values_and_mutants(subject: Subject, name: str, flavour: Flavour) -> Iterable[Any]:
    random = Random(name)  # the same each time
    for _ in range(VALUES):
        value = subject.maker.value(name, random)
        yield converted(value, flavour)
        for mutant in subject.mutator.mutants(value, random, MUTANTS):
            yield converted(mutant, flavour)


def check_round_trip(adapter: Adapter, value: Any, *, keeps_all: bool) -> None:
    """What is written is read as the same again, and has what was read, null included."""
    read = adapter.read(value)
    written = adapter.written(read)
    assert adapter.read(written) == read
    if keeps_all:
        assert has(written, value), f"{written} from {value}"


def has(whole_value: Any, part: Any) -> bool:
    """Whether the first has all of the second: it may have defaults, too."""
    match part:
        case dict():
            return isinstance(whole_value, dict) and all(
                key in whole_value and has(whole_value[key], item) for key, item in part.items()
            )
        case list():
            return len(whole_value) == len(part) and all(map(has, whole_value, part))
        case int() | float() if not isinstance(part, bool):
            return bool(float(whole_value) == float(part))  # a number of any kind may be read as a float
    return same(whole_value, part)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_is_still_needed(rule: Rule, packages: Packages) -> None:
    """A difference that is gone has to be removed from the table."""
    assert Schema(rule.schema).is_valid("Thing", rule.value) == rule.is_valid
    for flavour in rule.flavours:
        module = models_of(SchemaChoice(schema=packages.write(rule.schema)), flavour)
        assert Adapter(module, "Thing").accepts(rule.value) != rule.is_valid
