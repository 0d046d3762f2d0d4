"""What is made from annotations, for the unused direction, does as the functions of a codec that has them.

A package for one role is compared with that for both, of the same schema: values, errors with their texts and reasons,
drops and encodings. With `ACPGEN_DEEP=1` all published schemas and many more values are run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any

import pytest

from acpgen.roles import Role
from tests import test_codec, test_leniency, test_recursive_types
from tests.fidelity import test_found
from tests.fidelity.making import Maker
from tests.fidelity.mutating import Mutator
from tests.fidelity.schemas import Schema
from tests.fidelity.subjects import NEWEST, OPENED, SUBJECTS, Subject, chosen_types
from tests.support import DEEP, Packages, codec_functions, deep_except

pytestmark = pytest.mark.full

VALUES = 20 if DEEP else 3
MUTANTS = 12 if DEEP else 6
SCHEMAS = {
    "leniency": test_leniency.SCHEMA,
    "codec": test_codec.SCHEMA,
    "recursive types": test_recursive_types.SCHEMA,
    "any or known": test_found.ANY_OR_KNOWN,
    "other members": test_found.OTHERS,
}
"""Schemas with idioms that no published one has."""


ROLES = {
    f"{label}-{role.value}": (each, role) for label, each in SUBJECTS.items() for role in (Role.AGENT, Role.CLIENT)
}
EACH_ROLE = {f"{OPENED}-agent", f"{NEWEST}-client"}
"""Both roles, both protocols, and both ways to treat what is unknown."""


@pytest.mark.parametrize("case", deep_except(EACH_ROLE, ROLES))
def test_the_unused_direction_of_a_role(case: tuple[Subject, Role], packages: Packages, tally: Counter[str]) -> None:
    subject, role = case
    both = subject.package(packages)
    one = packages(subject.sources, roles=(role,), options=subject.options)
    assert len(codec_functions(both)) - len(codec_functions(one)) > 50
    pair = Pair(one, both, Random(f"{subject}{role}"), tally)
    for name in chosen_types(subject):
        pair.compare(subject.types[name], name, subject.maker, subject.mutator)


@pytest.mark.parametrize("name", SCHEMAS)
def test_types_of_no_method(name: str, packages: Packages, tally: Counter[str]) -> None:
    schema = Schema(dict(SCHEMAS[name]))
    unused, used = packages.of(SCHEMAS[name], is_used=False), packages.of(SCHEMAS[name])
    assert not codec_functions(unused).keys() - {"decode_bare", "encode_bare"}
    pair, maker, mutator = Pair(unused, used, Random(name), tally), Maker(schema), Mutator(schema)
    for definition in schema.definitions:
        if hasattr(unused.types, definition):  # what nothing but one member of a union uses has the member's name
            pair.compare(definition, definition, maker, mutator)


@dataclass(frozen=True)
class Pair:
    """Two packages of one schema: what is made from annotations in the first is written out in the other."""

    reflecting: ModuleType
    written: ModuleType
    random: Random
    tally: Counter[str]

    def compare(self, kind: str, definition: str, maker: Maker, mutator: Mutator) -> None:
        """Compare what both make of values of a type, and of what is left of these when they are spoiled."""
        for _ in range(VALUES):
            value = maker.value(definition, self.random)
            for raw in (value, *mutator.mutants(value, self.random, MUTANTS)):
                self.tally["values read by both engines"] += 1
                found, wanted = outcome(self.reflecting, kind, raw), outcome(self.written, kind, raw)
                assert found == wanted, f"{kind} of {json.dumps(raw)}"


def outcome(acp: ModuleType, kind: str, raw: Any) -> Mapping[str, Any]:
    """What a package makes of a value."""
    drops: list[Any] = []
    try:
        value = acp.decode(getattr(acp.types, kind), raw, on_drop=drops.append)
    except acp.DecodeError as error:
        return {"error": described(error), "text": str(error)}
    said = [(drop.path, described(drop.error)) for drop in drops]
    return {"value": repr(value), "drops": said, "encoded": json.dumps(acp.encode(value))}


def described(error: Any) -> tuple[Any, ...]:
    """All that an error says."""
    return (error.path, error.expected, error.found, error.member, *map(described, error.reasons))
