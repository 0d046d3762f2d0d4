"""The state of a session: each function returns the params of `session/update`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from .._base import UNSET, UnsetType
from ..types import (
    SessionUpdateStateUpdateIdle,
    SessionUpdateStateUpdateIdleCancelled,
    SessionUpdateStateUpdateIdleEndTurn,
    SessionUpdateStateUpdateIdleError,
    SessionUpdateStateUpdateIdleMaxTokens,
    SessionUpdateStateUpdateIdleMaxTurnRequests,
    SessionUpdateStateUpdateIdleNone,
    SessionUpdateStateUpdateIdleOther,
    SessionUpdateStateUpdateIdleRefusal,
    SessionUpdateStateUpdateRequiresAction,
    SessionUpdateStateUpdateRunning,
)
from .notification import UpdateParams, session_update

__all__ = ["idle", "requires_action", "running"]

_IDLE: Final[Mapping[str | None, Callable[..., SessionUpdateStateUpdateIdle]]] = {
    "end_turn": SessionUpdateStateUpdateIdleEndTurn,
    "max_tokens": SessionUpdateStateUpdateIdleMaxTokens,
    "max_turn_requests": SessionUpdateStateUpdateIdleMaxTurnRequests,
    "refusal": SessionUpdateStateUpdateIdleRefusal,
    "cancelled": SessionUpdateStateUpdateIdleCancelled,
    "error": SessionUpdateStateUpdateIdleError,
    None: SessionUpdateStateUpdateIdleNone,
}


def idle_update(stop_reason: str | None, *, meta: dict[str, Any] | UnsetType = UNSET) -> SessionUpdateStateUpdateIdle:
    """The update to `idle` with any stop reason, also one that this version does not know; None gives no reason."""
    known = _IDLE.get(stop_reason) if stop_reason is None or isinstance(stop_reason, str) else None  # pyright: ignore
    if known is not None:
        return known(meta=meta)
    return SessionUpdateStateUpdateIdleOther(stop_reason=stop_reason or "", meta=meta)


def running(session_id: str, *, meta: dict[str, Any] | UnsetType = UNSET) -> UpdateParams:
    """The agent works in the foreground."""
    return session_update(session_id, SessionUpdateStateUpdateRunning(meta=meta))


def requires_action(session_id: str, *, meta: dict[str, Any] | UnsetType = UNSET) -> UpdateParams:
    """Nothing in the foreground can go on until the user acts; send `running` afterwards."""
    return session_update(session_id, SessionUpdateStateUpdateRequiresAction(meta=meta))


def idle(
    session_id: str,
    stop_reason: Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"] | None = None,
    *,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The agent is ready for a prompt; `stop_reason` is why its work ended, if there was any."""
    return session_update(session_id, idle_update(stop_reason, meta=meta))
