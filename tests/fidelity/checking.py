"""Compare what a package does with one value with what has to come of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from acpgen.ir import names
from tests.fidelity.expecting import Expected, MisfitError, Path
from tests.fidelity.schemas import same
from tests.fidelity.subjects import Subject
from tests.support import codec_functions

MOST_TEXT = 5000
"""How long a message may be that gives the reasons of every member of nested unions."""


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """What decoding made of a value."""

    value: Any
    json: Any
    drops: list[Path]


@dataclass(frozen=True, kw_only=True)
class Check:
    """Checks values of one definition."""

    subject: Subject
    acp: ModuleType
    name: str
    tally: Counter[str]

    @property
    def type(self) -> Any:
        """The type of the definition."""
        return getattr(self.acp, self.subject.types[self.name])

    def round_trip(self, raw: Any) -> None:
        """A valid value comes back, with the defaults of what was absent and without what nobody declares."""
        self.tally["values"] += 1
        decoded = self._decoded(raw)
        assert decoded is not None, "a valid value is refused"
        expected = self.subject.expecting.of(self.name, raw)
        assert decoded.drops == [], "something of a valid value was dropped"
        assert not expected.forgiven
        self._comes_back(decoded, expected)

    def verdict(self, raw: Any) -> None:
        """Whether `raw` is taken is as the validator says, but for what the schema forgives."""
        self.tally["mutants"] += 1
        is_valid, decoded, expected = (
            self.subject.read.is_valid(self.name, raw),
            self._decoded(raw),
            self._expected(raw),
        )
        self.tally[_verdict(decoded, expected, is_valid=is_valid)] += 1
        self.tally["accepted disagreements"] += is_valid != self.subject.exact.is_valid(self.name, raw)
        if is_valid:
            assert decoded is not None, "a valid value is refused"
            assert expected is not None
            assert not expected.forgiven or expected.passed_over, "a valid value needs no leniency"
        else:
            assert expected is None or expected.forgiven, "an invalid value needs leniency"
            assert (decoded is None) is (expected is None), f"the verdict is wrong: {expected}"
        if decoded is not None and expected is not None:
            assert sorted(decoded.drops, key=repr) == sorted(expected.drops, key=repr)
            self._comes_back(decoded, expected)

    def _decoded(self, raw: Any) -> Decoded | None:
        drops: list[Path] = []
        try:
            value = self.acp.decode(self.type, raw, on_drop=lambda drop: drops.append(drop.path))
        except self.acp.DecodeError as error:
            message = str(error)
        else:
            return Decoded(value=value, json=self.acp.encode(value), drops=drops)
        assert len(message) < MOST_TEXT, message
        return None

    def _expected(self, raw: Any) -> Expected | None:
        try:
            return self.subject.expecting.of(self.name, raw)
        except MisfitError:
            return None

    def _comes_back(self, decoded: Decoded, expected: Expected) -> None:
        filled = self._expected(decoded.json)  # what is left out may be as by default
        is_same = same(decoded.json, expected.value) or (filled is not None and same(filled.value, expected.value))
        assert is_same, f"{decoded.json} is not {expected.value}"
        schema = self.subject.written if expected.forgiven else self.subject.read
        assert schema.is_valid(self.name, decoded.json), "what is encoded is not valid"
        is_object = isinstance(decoded.value, self.acp.codec.Struct)
        for kind in (self.type, type(decoded.value)) if is_object else (self.type,):
            again = self.acp.decode(kind, decoded.json)
            assert again == decoded.value or self._is_without_null(again, decoded), f"{decoded.json} is another value"
        self._pair_agrees(decoded)

    def _is_without_null(self, again: Any, decoded: Decoded) -> bool:
        """Whether a value differs only where null was, which says no more than leaving it out."""
        return not self.subject.options.keep_unknown and same(self.acp.encode(again), decoded.json)

    def _pair_agrees(self, decoded: Decoded) -> None:
        """The functions of the type itself, where it has any, do the same as `decode` and `encode`."""
        known = names.snake(self.subject.types[self.name])
        functions = codec_functions(self.acp)
        decode, encode = functions.get(f"decode_{known}"), functions.get(f"encode_{known}")
        assert decode is None or decode(decoded.json) == self.acp.decode(self.type, decoded.json)
        assert encode is None or same(encode(decoded.value), decoded.json)


def _verdict(decoded: Decoded | None, expected: Expected | None, *, is_valid: bool) -> str:
    if decoded is None:
        return "mutants refused"
    return "mutants valid" if is_valid else "mutants forgiven"
