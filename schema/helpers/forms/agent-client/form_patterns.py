"""Regular expressions of forms, matched in bounded time.

A form is text of the peer. The `re` of Python may take years for a short pattern and a short text, and holds up all
else meanwhile. So this follows all positions that are reached at once, and counts its steps. It takes the common part
of the syntax of ECMA-262: characters, classes, groups, alternatives, counts, `^` and `$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

__all__: list[str] = []

_MAX_PATTERN: Final = 500
_MAX_DEPTH: Final = 20
_MAX_STEPS: Final = 50_000

_SYMBOL: Final = re.compile(
    r"\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[dDwWsSnrtfv]|[^0-9A-Za-z])"  # an escape
    r"|\[\^?(?:\\.|[^\\\]])+\]"  # a class
    r"|\(\?:|\{[0-9]+(?:,[0-9]*)?\}|[^\\\[]",
    re.DOTALL,
)
_SPECIAL: Final = re.compile(r"\\.|[\[&|~]", re.DOTALL)
"""What an escaped character is in a class, and what is special there in Python alone."""
_COUNTS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}


class _Run:
    """The text that is matched, and the steps that are left."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = _MAX_STEPS

    def at(self, starts: set[int]) -> set[int]:
        """The positions, which cost a step each."""
        self._steps -= len(starts) + 1
        if self._steps < 0:
            raise ValueError("matching its pattern takes too long")
        return starts


_Step: TypeAlias = Callable[[_Run, set[int]], set[int]]
"""From the positions before a part of a pattern to those after it."""


def matches(pattern: str, text: str) -> bool:
    """True if the pattern matches somewhere in the text. Raises `ValueError` for one that this does not take."""
    try:
        step = _Parser(pattern).step
    except (IndexError, re.error):
        raise ValueError(f"the pattern {pattern!r:.80} cannot be checked") from None
    return bool(step(_Run(text), {*range(len(text) + 1)}))


class _Parser:
    """Reads a pattern; `step` is what it does. Raises `IndexError` and `re.error` for what is no pattern."""

    def __init__(self, pattern: str) -> None:
        self._symbols = _SYMBOL.findall(pattern)[::-1]  # the next one is the last of the list
        if len(pattern) > _MAX_PATTERN or "".join(reversed(self._symbols)) != pattern:
            raise re.error("it is too long, or has an escape or a class that is not known")
        self.step = self._alternatives(0)
        if self._symbols:
            raise re.error("a group was not opened")

    def _next(self) -> str:
        return self._symbols[-1] if self._symbols else ""

    def _alternatives(self, depth: int) -> _Step:
        if depth > _MAX_DEPTH:
            raise re.error("groups are nested too deep")
        found = [self._sequence(depth)]
        while self._next() == "|":
            self._symbols.pop()
            found.append(self._sequence(depth))
        return lambda run, starts: {at for each in found for at in each(run, run.at(starts))}

    def _sequence(self, depth: int) -> _Step:
        found: list[_Step] = []
        while self._next() not in {"", "|", ")"}:
            found.append(self._counted(self._atom(self._symbols.pop(), depth)))

        def step(run: _Run, starts: set[int]) -> set[int]:
            for each in found:
                starts = each(run, starts)
            return starts

        return step

    def _counted(self, step: _Step) -> _Step:
        symbol = self._next()
        if symbol in _COUNTS:
            least, most = _COUNTS[symbol]
        elif len(symbol) > 1 and symbol[0] == "{":
            low, comma, high = symbol[1:-1].partition(",")
            least, most = int(low), int(high) if high else None if comma else int(low)
        else:
            return step
        self._symbols.pop()
        if self._next() == "?":  # as few as possible: that decides where a match ends, not whether there is one
            self._symbols.pop()
        if most is not None and most < least:
            raise re.error("a count is less than nothing")
        return _repeated(step, least, most)

    def _atom(self, symbol: str, depth: int) -> _Step:
        if symbol in {"(", "(?:"}:
            inner = self._alternatives(depth + 1)
            self._symbols.pop()  # what ends the group
            return inner
        if symbol == "^":
            return lambda run, starts: {0} & run.at(starts)
        if symbol == "$":
            return lambda run, starts: {len(run.text)} & run.at(starts)
        if symbol == ".":
            return _one(lambda each: each not in "\n\r\u2028\u2029")
        if symbol[0] == "[":
            members = _SPECIAL.sub(lambda found: rf"\{found[0]}"[-2:], symbol[1:-1])
            if "--" in members:
                raise re.error("Python may take this for a difference of sets")
            return _one(re.compile(f"[{members}]", re.ASCII).match)
        if symbol[0] == "\\":
            return _one(re.compile(symbol, re.ASCII).match)
        if symbol in _COUNTS or len(symbol) > 1:
            raise re.error("there is nothing to repeat")
        return _one(lambda each: each == symbol)


def _one(test: Callable[[str], object]) -> _Step:
    def step(run: _Run, starts: set[int]) -> set[int]:
        return {at + 1 for at in run.at(starts) if at < len(run.text) and test(run.text[at])}

    return step


def _repeated(step: _Step, least: int, most: int | None) -> _Step:
    def repeated(run: _Run, starts: set[int]) -> set[int]:
        for _ in range(least):
            before, starts = starts, step(run, run.at(starts))
            if starts in (before, set()):
                break
        found, new, count = {*starts}, starts, least
        while new and (most is None or count < most):
            new = step(run, run.at(new)) - found
            found |= new
            count += 1
        return found

    return repeated
