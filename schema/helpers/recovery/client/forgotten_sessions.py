"""Whether an error says that the agent does not know a session: agents say so with several codes and texts."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from ..errors import RequestError

__all__: list[str] = []

_NOT_FOUND: Final = -32002
_SAYS: Final = ("not found", "no session", "unknown session", "does not exist", "no such session")
_MOST: Final = 2_000
"""The characters of a text that are read."""


def is_unknown_session(error: RequestError, session_id: str) -> bool:
    """True if the error of a prompt says that its session is not known.

    By the code for what is not found, unless that is about something else; or by a text that names the session: some
    agents answer so with the codes for invalid params and internal errors.
    """
    said = " ".join(_texts(error))
    text = said.lower()
    names_it = session_id in said
    if error.code == _NOT_FOUND:
        return names_it or "session" in text or not error.data
    return names_it and "session" in text and any(each in text for each in _SAYS)


def _texts(error: RequestError) -> list[str]:
    """The message, and the texts that the data have at the top."""
    data: Any = error.data
    values: list[Any] = [data]
    if is_dataclass(data):  # protocol 2 says what it has
        values = [getattr(data, each.name) for each in fields(data)]
    elif isinstance(data, dict):
        values = [*cast("dict[str, Any]", data).values()][:20]
    return [each[:_MOST] for each in (error.message, *values) if isinstance(each, str)]
