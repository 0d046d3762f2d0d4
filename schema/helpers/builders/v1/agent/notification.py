"""The params of `session/update`."""

from __future__ import annotations

from typing import TypeAlias

from ..types import SessionNotification, SessionUpdate

__all__ = ["session_update"]

UpdateParams: TypeAlias = SessionNotification


def session_update(session_id: str, update: SessionUpdate) -> UpdateParams:
    """The params of `session/update`, for an update of any kind."""
    return SessionNotification(session_id=session_id, update=update)
