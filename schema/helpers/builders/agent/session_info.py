"""Updates of what describes a session."""

from __future__ import annotations

from typing import Any

from .._base import UNSET, UnsetType
from ..types import SessionUpdateSessionInfoUpdate
from .notification import UpdateParams, session_update

__all__ = ["title"]


def title(session_id: str, title: str | None, *, meta: dict[str, Any] | UnsetType = UNSET) -> UpdateParams:
    """The title of the session; None removes it."""
    return session_update(session_id, SessionUpdateSessionInfoUpdate(title=title, meta=meta))
