"""The checks find what is wrong: each of these faults, planted into a good package, is noticed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any

import pytest

from tests.fidelity.checking import Check
from tests.fidelity.subjects import SUBJECTS
from tests.support import Packages

Plant = Callable[[ModuleType, pytest.MonkeyPatch], None]
SUBJECT = SUBJECTS["v1-2026-11-02"]


def instead(name: str, make: Callable[[Any], Any]) -> Plant:
    """Replaces a function that decodes by what `make` makes of it, wherever the package uses it."""

    def plant(acp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        homes = [sys.modules[each.__module__] for each in (acp.DecodeError, acp.Drop)]  # strict, and lenient
        right = next(vars(home)[name] for home in homes if name in vars(home))
        wrong = make(right)
        for module in (*homes, acp.codec):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, wrong)
        for kind in [kind for kind, read in acp.codec.DECODERS.items() if read is right]:
            monkeypatch.setitem(acp.codec.DECODERS, kind, wrong)

    return plant


def _spoiled(items: list[Any], misfit: Exception, raw: Any, read: Any) -> list[Any]:
    raise misfit


FAULTS: dict[str, Plant] = {
    "true is an integer": instead("integer", lambda read: lambda raw: 1 if raw is True else read(raw)),
    "a fraction is cut off": instead("integer", lambda read: lambda raw: int(raw) if type(raw) is float else read(raw)),
    "bounds are forgotten": instead("bounded", lambda read: lambda raw, low, high: read(raw, None, None)),
    "a maximum is one too high": instead(
        "bounded", lambda read: lambda raw, low, high: read(raw, low, high and high + 1)
    ),
    "an unknown constant is taken": instead("choice", lambda read: lambda raw, known: raw),
    "null becomes absent": instead(
        "nullable_at", lambda read: lambda raw, key, inner: "" if raw[key] is None else read(raw, key, inner)
    ),
    "nobody hears of drops": instead("drop", lambda drop: lambda container, key, error: None),
    "a bad item spoils the list": instead("with_rest", lambda read: _spoiled),
    "the first item goes lost": instead("array_at", lambda read: lambda raw, key, inner: read(raw, key, inner)[1:]),
    "maps lose odd names": instead("lenient_object", lambda read: lambda raw, key: _without_odd_names(read(raw, key))),
    "what is lenient is strict": instead(
        "lenient", lambda read: lambda raw, key, inner: None if raw[key] is None else inner(raw[key])
    ),
}


def _without_odd_names(value: Any) -> Any:
    return {key: item for key, item in value.items() if key} if isinstance(value, dict) else value


@pytest.mark.full
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, packages: Packages, monkeypatch: pytest.MonkeyPatch) -> None:
    acp = SUBJECT.package(packages)
    FAULTS[fault](acp, monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        run(acp)


def run(acp: ModuleType) -> None:
    """A few values of every definition, and their mutants."""
    for name in SUBJECT.types:
        check = Check(subject=SUBJECT, acp=acp, name=name, tally=Counter())
        for seed in range(3):
            value = SUBJECT.maker.value(name, Random(f"{name} {seed}"))
            check.round_trip(value)
            for mutant in SUBJECT.mutator.mutants(value, Random(seed), 20):
                check.verdict(mutant)


def test_nothing_is_found_where_nothing_was_planted(packages: Packages) -> None:
    run(SUBJECT.package(packages))
