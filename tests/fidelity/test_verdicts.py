"""Mutated values: generated code accepts and refuses what an independent validator does, with listed exceptions."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acpgen.config import SchemaChoice
from tests.fidelity.checking import Check
from tests.fidelity.disagreements import DISAGREEMENTS, Disagreement
from tests.fidelity.running import MUTANTS, SPOILED, bounded, values
from tests.fidelity.schemas import Schema
from tests.fidelity.subjects import EVERY, Subject, chosen_types, relaxed
from tests.support import Packages

pytestmark = pytest.mark.full


@EVERY
def test_mutants_get_the_verdict_of_the_validator(subject: Subject, packages: Packages, tally: Counter[str]) -> None:
    acp = subject.package(packages)
    for name in chosen_types(subject):
        check = Check(subject=subject, acp=acp, name=name, tally=tally)
        bounded(SPOILED)(given(values(subject, name), st.integers(0, 2**32))(spoiling(check)))()


def spoiling(check: Check) -> Callable[[Any, int], None]:
    """The property of a value that all its mutants get the right verdict; the number decides which these are."""

    def spoil(value: Any, seed: int) -> None:
        check.tally["values spoiled"] += 1
        for mutant in check.subject.mutator.mutants(value, Random(seed), MUTANTS):
            try:
                check.verdict(mutant)
            except AssertionError as error:
                raise AssertionError(f"{json.dumps(mutant)} as {check.name}: {error}") from error

    return spoil


@pytest.mark.parametrize("known", DISAGREEMENTS, ids=lambda known: known.name)
def test_each_accepted_disagreement_is_still_one(known: Disagreement, packages: Packages) -> None:
    """A disagreement that is fixed has to be removed from the table."""
    exact, ours = Schema(known.schema), Schema(relaxed(known.schema, [known]))
    assert not exact.is_valid("Thing", known.value)
    assert ours.is_valid("Thing", known.value)
    acp = packages.of(known.schema)
    value = acp.decode(acp.Thing, known.value)
    assert not exact.is_valid("Thing", acp.encode(value)) or not known.of_output


def test_a_variant_with_its_tag_goes_before_one_that_forgives_nothing(packages: Packages) -> None:
    """The validator would accept either; the keyword of the first decides."""
    acp = packages(SchemaChoice())
    drops: list[object] = []
    raw = {"type": "terminal", "id": "a", "name": "n", "_meta": 1}
    decoded = acp.decode(acp.AuthMethod, raw, on_drop=drops.append)
    assert decoded == acp.AuthMethodTerminal(id="a", name="n")
    assert len(drops) == 1
