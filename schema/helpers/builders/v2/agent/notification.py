"""The params of `session/update`."""

from __future__ import annotations

from typing import Any, TypeAlias

from .._base import UNSET, UnsetType
from ..types import SessionUpdate, UpdateSessionNotification

__all__ = ["session_update"]

UpdateParams: TypeAlias = UpdateSessionNotification


def session_update(session_id: str, update: SessionUpdate, *, meta: dict[str, Any] | UnsetType = UNSET) -> UpdateParams:
    """The params of `session/update`, for an update of any kind. `meta` is that of the params, not of the update."""
    return UpdateSessionNotification(session_id=session_id, update=update, meta=meta)
