"""How much is run, and how hypothesis runs it: the same values each time, and nothing kept."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.fidelity.subjects import Subject
from tests.support import DEEP

EXAMPLES = 25 if DEEP else 3
"""Values a definition for the round trip."""
SPOILED = 12 if DEEP else 2
"""Values a definition that are spoiled."""
MUTANTS = 40 if DEEP else 10
"""Mutants of each of these."""


def bounded(examples: int) -> Callable[[Any], Any]:
    """Run a property for `examples` values, which are the same in each run."""
    return settings(
        max_examples=examples, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )


def values(subject: Subject, name: str) -> st.SearchStrategy[Any]:
    """Valid values of a definition."""
    randoms: st.SearchStrategy[Random] = st.randoms(use_true_random=False)
    return randoms.map(lambda random: subject.maker.value(name, random))
