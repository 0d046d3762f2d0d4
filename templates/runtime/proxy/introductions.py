"""How a side of a proxy has introduced itself, in the request that negotiates the version or in its result."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from ..capabilities import Provisional, introduced, introduction_text, names_in
from ..records import ProtocolInfo
from .passing import Said, dumps_number


class Introductions:
    """How one side introduces itself in a `part` of the request that negotiates the version, in any of the `protocols`.

    That of a request counts while it is handled, and after it if it is the first that succeeds; of results, the latest.
    """

    def __init__(self, protocols: Iterable[ProtocolInfo], part: Literal["params", "result"]) -> None:
        self._names = dict[str, set[str]]()
        for each in protocols:
            if each.negotiation is not None:
                self._names.setdefault(each.negotiation.method, set()).update(names_in(each, part))
        self._part = part
        self._said = Provisional[Said]()

    @property
    def latest(self) -> Mapping[str, Any] | None:
        """The properties by which the side has introduced itself, as JSON; None before."""
        said = self._said.latest
        return None if said is None else introduced(said.text)

    def _read(self, method: str, raw: Any) -> Said | None:
        names = self._names.get(method)
        return Said(introduction_text(raw, names, dumps_number)) if names else None

    def begin(self, method: str, params: Any) -> Said | None:
        """Keep what a request says while it is handled; returns it for `end`, None if it says nothing."""
        said = self._read(method, params) if self._part == "params" else None
        if said is not None:
            self._said.begin(said)
        return said

    def end(self, said: Said | None, *, keep: bool) -> None:
        """Keep what a request has said that has succeeded, unless an earlier one has; forget that of others."""
        if said is not None:
            self._said.end(said, keep=keep)

    @contextmanager
    def handling(self, method: str, params: Any) -> Generator[None, None, None]:
        """Keep what a request says while the block runs, and after it if it raises nothing."""
        said, is_done = self.begin(method, params), False
        try:
            yield
            is_done = True
        finally:
            self.end(said, keep=is_done)

    def result(self, method: str, raw: Any) -> None:
        """Keep what a result says."""
        said = self._read(method, raw) if self._part == "result" else None
        if said is not None:
            self._said.replace(said)
