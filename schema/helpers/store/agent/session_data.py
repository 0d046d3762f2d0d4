"""The data of a session: one object of the agent's, and its text in the store."""

from __future__ import annotations

import json
from typing import Any, Final

from .merged_data import merged, put_into

__all__: list[str] = []

_UNREAD: Final = object()


class SessionData:
    """JSON that may be changed in place: what it has become is seen when its text is asked for."""

    def __init__(self, text: str) -> None:
        self.valid_text = text
        """The text when it was last known, and JSON."""
        self._value: Any = _UNREAD
        self._known = self._opened = text  # what the store has; and what is here, before anybody has changed it
        self._unmerged: str | None = None  # what another writer has saved, while the object was no JSON

    @property
    def is_open(self) -> bool:
        """True if it was read or set, so that somebody may change it."""
        return self._value is not _UNREAD

    @property
    def value(self) -> Any:
        """The object, the same each time. Setting what is no JSON raises `TypeError` or `ValueError`."""
        if self._value is _UNREAD:
            self._value = _read(self.valid_text)
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        self.valid_text, self._value = _written(value), value

    def text(self) -> str:
        """The text of the object as it is now. Raises `TypeError` and `ValueError` if it is no JSON any more."""
        if self._value is not _UNREAD and (self._value is not None or self.valid_text):
            self.valid_text = _written(self._value, before=self.valid_text)
        if self._unmerged is not None:
            theirs, self._unmerged = self._unmerged, None
            self.take(theirs)
        return self.valid_text

    def is_opened(self) -> None:
        """What is here now was filled in when the session was opened: it is nobody's change."""
        self._opened = self.valid_text

    def is_saved(self, text: str) -> None:
        """The store has a text of this object."""
        if self._unmerged is None:
            self._known = self._opened = text

    def take(self, text: str) -> bool:
        """Merge what another writer has saved into the object, in place; returns true if that has changed it.

        While the object is no JSON, nothing can be merged: until it is again, the text is that of the other writer.
        """
        try:
            mine = _read(self.text())
        except Exception:  # as in a save
            self._unmerged = self.valid_text = text
            return False
        before, (theirs, opened, known) = self.valid_text, map(_read, (text, self._opened, self._known))
        self._opened = _text(merged(opened, theirs, opened=opened, known=known))
        found = merged(mine, theirs, opened=opened, known=known)
        self._known, self.valid_text = text, _text(found)
        if self._value is not _UNREAD:
            self._value = put_into(self._value, found)
        return self.valid_text != before


def _read(text: str) -> Any:
    return json.loads(text) if text else None


def _text(value: Any) -> str:
    return "" if value is None else json.dumps(value)


def _written(value: Any, *, before: str = "") -> str:
    """The text of a value; one with the text `before` was checked."""
    text, failure = "", ""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        failure = str(error)
    if failure or text != before:
        _check(value)
    if failure:
        raise ValueError(f"session.data is no JSON: {failure}")
    return text


def _check(value: Any) -> None:
    """Raise `TypeError` for what JSON has not, and for what would be something else when it is read again."""
    seen = set[int]()  # what occurs twice is checked once, so what contains itself has an end
    rest: list[tuple[Any, str]] = [(value, "session.data")]
    while rest:
        each, place = rest.pop()
        inner: Any = each
        if id(each) in seen:
            continue
        seen.add(id(inner))
        if isinstance(each, dict):
            for key in inner:
                if not isinstance(key, str):
                    kind = type(key).__name__
                    raise TypeError(f"{place} has a key that is no str: {key!r:.80}, of the type {kind}")
            rest += [(found, f"{place}[{key!r:.80}]") for key, found in inner.items()]
        elif isinstance(each, (list, tuple)):
            rest += [(found, f"{place}[{at}]") for at, found in enumerate(inner)]
        elif each is not None and not isinstance(each, (str, int, float)):
            raise TypeError(f"{place} is of the type {type(each).__name__}, which JSON does not have")
