"""Helpers of the tests of comparisons: models and packages of two schemas, and messages between them."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from acpgen.config import SchemaChoice
from acpgen.diff.compare import compare
from acpgen.diff.findings import Comparison, DiffFinding, WireVerdict
from acpgen.ir.methods import messages_of
from acpgen.ir.model import Model, Ref
from acpgen.roles import Side
from acpgen.text import digest
from tests.fidelity.schemas import same
from tests.fidelity.subjects import Subject
from tests.support import Packages, model_of


@cache
def _model(sources: SchemaChoice) -> Model:
    return model_of(sources)[0]


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two packages and the comparison of their models."""

    old: Subject
    new: Subject

    @property
    def models(self) -> tuple[Model, Model]:
        """Both models."""
        return _model(self.old.sources), _model(self.new.sources)

    def comparison(self) -> Comparison:
        """The comparison from old to new."""
        return compare(*self.models)

    def reversed(self) -> Pair:
        """The same with old and new exchanged."""
        return Pair(old=self.new, new=self.old)


def pair_of(old: SchemaChoice, new: SchemaChoice) -> Pair:
    """A pair of packages."""
    return Pair(old=Subject(label="old", sources=old), new=Subject(label="new", sources=new))


class Written:
    """Schema files, one for each text, so that packages of equal schemas are built once."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def __call__(self, schema: Mapping[str, Any], protocol: int = 1) -> SchemaChoice:
        """The sources of a schema given as data."""
        text = json.dumps(schema)
        path = self._home / f"{digest(text.encode())[:16]}.json"  # the name is part of the package, and so of the cache
        path.write_text(text, encoding="utf-8")
        return SchemaChoice(protocol=protocol, schema=path)


def holds(after: Any, before: Any) -> bool:
    """Whether a value is complete at any depth; additions of a reader are allowed."""
    if isinstance(before, dict) and isinstance(after, dict):
        return all(key in after and holds(after[key], item) for key, item in before.items())
    if isinstance(before, list) and isinstance(after, list):
        return len(before) == len(after) and all(map(holds, after, before))
    return same(after, before)


def fate(
    sender: ModuleType,
    reader: ModuleType,
    names: tuple[str, str],
    raw: Any,
    *,
    said: Callable[[Any], Any] = lambda sent: sent,
) -> WireVerdict:
    """The fate of a message that `sender` encodes and `reader` decodes; `names` are its types in these packages.

    What is `said` by the message has to be in what the reader encodes again.
    """
    sent = sender.encode(value_of(sender, names[0], raw))
    try:
        read = value_of(reader, names[1], sent)
    except reader.DecodeError:
        return WireVerdict.BREAKS
    return WireVerdict.OK if holds(reader.encode(read), said(sent)) else WireVerdict.LOSES


def without_defaults(value: Any, *, is_capability: bool = False) -> Any:
    """What a message of a release says: packages leave out nulls, and what capabilities are by default."""
    if isinstance(value, list):
        return [without_defaults(each) for each in value]
    if not isinstance(value, dict):
        return value
    inner = {
        key: without_defaults(each, is_capability=is_capability or "apabilities" in key) for key, each in value.items()
    }
    defaults = (None, False, {}) if is_capability else (None,)
    return {key: each for key, each in inner.items() if not any(each is one or (one == {} == each) for one in defaults)}


def value_of(package: ModuleType, name: str, raw: Any) -> Any:
    """`raw` decoded as the definition `name`, of any kind."""
    return package.decode(getattr(package, name), raw)


def observed(
    pair: Pair,
    names: tuple[str, str],
    packages: Packages,
    *,
    count: int = 60,
    seed: int = 1,
    said: Callable[[Any], Any] = lambda sent: sent,
) -> WireVerdict:
    """The worst fate of `count` messages that the old schema admits, read by the new package."""
    random = Random(seed)
    sender, reader = pair.old.package(packages), pair.new.package(packages)
    found = []
    for _ in range(count):
        raw = pair.old.maker.value(names[0], random)
        found.append(fate(sender, reader, names, raw, said=said))
    return WireVerdict.worst(found)


def verdicts(finding: DiffFinding) -> dict[str, tuple[str, str]]:
    """The wire verdicts by sender: old to new, and new to old."""
    return {side.value: (each.old_to_new.value, each.new_to_old.value) for side, each in finding.wire.items()}


def mirrored(findings: tuple[DiffFinding, ...], *, back: bool = False) -> Counter[Any]:
    """The rules and verdicts, comparable to those of the exchanged comparison with `back`."""
    return Counter(
        (
            each.rule.reverse if back else each.rule.id,
            tuple(
                (side, *((one.new_to_old, one.old_to_new) if back else (one.old_to_new, one.new_to_old)))
                for side, one in each.wire.items()
            ),
        )
        for each in findings
    )


def shared_messages(pair: Pair) -> Iterator[tuple[tuple[str, Side], tuple[str, str]]]:
    """The messages that both releases know, by method and sender, with the names of their types."""
    old, new = pair.models
    known = {message: expression for method in new.methods for message, expression in messages_of(method)}
    for method in old.methods:
        for message, expression in messages_of(method):
            other = known.get(message)
            if isinstance(expression, Ref) and isinstance(other, Ref):
                yield (message.method, message.side), (expression.name, other.name)


def expected(findings: tuple[DiffFinding, ...], method: str, sender: Side, *, back: bool) -> WireVerdict:
    """The worst verdict of the findings on messages of `method` from `sender`."""
    return WireVerdict.worst(
        finding.wire[sender].new_to_old if back else finding.wire[sender].old_to_new
        for finding in findings
        if method in finding.methods and sender in finding.wire
    )


def still_calls(old: Any, new: Any) -> bool:
    """Whether every call of the old constructor works with the new one: no argument is gone or newly required."""
    before, after = (inspect.signature(kind).parameters for kind in (old, new))
    needed = {name for name, each in after.items() if each.default is each.empty}
    needed_before = {name for name, each in before.items() if each.default is each.empty}
    return before.keys() <= after.keys() and needed <= needed_before
