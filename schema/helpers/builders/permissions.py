"""Permissions: the options to offer, the answer as the agent reads it, and the answers of the client."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from .._base import UNSET, UnsetType
from .._decode import DecodeError
from ..decision import explains
from ..known import PermissionOptionKind
from ..types import (
    PermissionOption,
    RequestPermissionOutcomeCancelled,
    RequestPermissionOutcomeSelected,
    RequestPermissionRequest,
    RequestPermissionResponse,
)

__all__ = [
    "PermissionAnswer",
    "permission_answer",
    "permission_cancelled",
    "permission_options",
    "select_permission",
    "select_permission_option",
]

_logger: Final = logging.getLogger("acp")
_USUAL: Final[tuple[PermissionOptionKind, ...]] = ("allow_once", "reject_once")
_NAMES: Final[Mapping[str, str]] = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}


@dataclass(frozen=True)
class PermissionAnswer:
    """The answer to a permission request. It is true if the user has allowed the operation.

    `option` is the chosen one. It is None if the request was cancelled, or if the client chose what was not offered.
    """

    option: PermissionOption | None = None
    cancelled: bool = False

    @property
    def allowed(self) -> bool:
        """True if an option was chosen that allows: once or always."""
        return self.option is not None and self.option.kind in ("allow_once", "allow_always")

    def __bool__(self) -> bool:
        return self.allowed


# --- The agent's side ------------------------------------------------------------------------------------------------


@explains
def permission_options(*kinds: PermissionOptionKind) -> list[PermissionOption]:
    """Options with the usual names, one of each kind: by default "Allow" and "Reject", both once.

    The id of an option is its kind. So `permission_options("allow_once", "allow_always", "reject_once")` is another
    common set; for options with other names, construct `PermissionOption`.
    """
    return [PermissionOption(option_id=kind, name=_NAMES.get(kind, kind), kind=kind) for kind in kinds or _USUAL]


@explains
def permission_answer(options: Iterable[PermissionOption], response: RequestPermissionResponse) -> PermissionAnswer:
    """Read the response to a request that offered `options`.

    An outcome that is unknown, or an option that was not offered, allows nothing, which the log says.
    """
    match response.outcome:
        case RequestPermissionOutcomeCancelled():
            return PermissionAnswer(cancelled=True)
        case RequestPermissionOutcomeSelected(option_id=chosen):
            found = next((option for option in options if option.option_id == chosen), None)
            return PermissionAnswer(found) if found else _unusable("it names an option that was not offered")
        case _:
            return _unusable("its outcome is unknown")


async def read_permission(
    options: Iterable[PermissionOption], asking: Awaitable[RequestPermissionResponse]
) -> PermissionAnswer:
    """Wait for the response to a request that offers `options`, and read it; one that does not fit allows nothing."""
    try:
        response = await asking
    except DecodeError:
        return _unusable("it does not fit")
    return permission_answer(options, response)


def _unusable(reason: str) -> PermissionAnswer:
    _logger.warning("an answer to a permission request allows nothing: %s", reason)
    return PermissionAnswer()


# --- The client's side -----------------------------------------------------------------------------------------------


@explains
def select_permission(
    params: RequestPermissionRequest, *kinds: PermissionOptionKind, meta: dict[str, Any] | UnsetType = UNSET
) -> RequestPermissionResponse:
    """The answer that chooses the first option of the first of these kinds that the agent offers.

    If it offers none of them, the answer is `permission_cancelled()`: the agent must not proceed then.
    """
    for kind in kinds:
        for option in params.options:
            if option.kind == kind:
                return select_permission_option(option.option_id, meta=meta)
    return permission_cancelled(meta=meta)


def select_permission_option(option_id: str, *, meta: dict[str, Any] | UnsetType = UNSET) -> RequestPermissionResponse:
    """The answer that chooses the option with this id."""
    return RequestPermissionResponse(outcome=RequestPermissionOutcomeSelected(option_id=option_id), meta=meta)


def permission_cancelled(*, meta: dict[str, Any] | UnsetType = UNSET) -> RequestPermissionResponse:
    """The answer if the user has chosen nothing, or if the turn was cancelled."""
    return RequestPermissionResponse(outcome=RequestPermissionOutcomeCancelled(), meta=meta)
