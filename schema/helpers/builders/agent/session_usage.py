"""Updates of what a session has used."""

from __future__ import annotations

from typing import Any

from .._base import UNSET, UnsetType
from ..types import Cost, SessionUpdateUsageUpdate
from .notification import UpdateParams, session_update

__all__ = ["usage"]


def usage(
    session_id: str,
    *,
    used: int,
    size: int,
    cost: float | None = None,
    currency: str = "USD",
    meta: dict[str, Any] | UnsetType = UNSET,
) -> UpdateParams:
    """The tokens in the context window, and its size; `cost` is that of the whole session so far."""
    total = UNSET if cost is None else Cost(amount=cost, currency=currency)
    return session_update(session_id, SessionUpdateUsageUpdate(used=used, size=size, cost=total, meta=meta))
