"""Entries of plans."""

from __future__ import annotations

from typing import Any

from .._base import UNSET, UnsetType
from ..known import PlanEntryPriority, PlanEntryStatus
from ..types import PlanEntry

__all__ = ["plan_entry"]


def plan_entry(
    content: str,
    *,
    priority: PlanEntryPriority = "medium",
    status: PlanEntryStatus = "pending",
    meta: dict[str, Any] | UnsetType = UNSET,
) -> PlanEntry:
    """One step of a plan."""
    return PlanEntry(content=content, priority=priority, status=status, meta=meta)


def as_entry(entry: str | PlanEntry) -> PlanEntry:
    """An entry as it is, and a str as an entry with the usual priority and status."""
    return plan_entry(entry) if isinstance(entry, str) else entry
