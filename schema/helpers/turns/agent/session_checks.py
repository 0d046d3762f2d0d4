"""What every agent with sessions checks: that it knows the session, and that its folder is absolute."""

from __future__ import annotations

import ntpath
import posixpath

from ..decision import explains
from ..errors import InvalidParamsError, ResourceNotFoundError
from .memory import shortened

__all__ = ["check_cwd", "session_not_found"]


@explains
def session_not_found(session_id: str) -> ResourceNotFoundError:
    """The error for a session that is not there, or not open: -32002, with the id."""
    return ResourceNotFoundError("session not found", data={"sessionId": shortened(session_id)})


@explains
def check_cwd(cwd: str) -> None:
    """Raise `InvalidParamsError` for a folder that is not absolute, on this system or another one."""
    if not (posixpath.isabs(cwd) or ntpath.isabs(cwd)):  # the client may have another system
        raise InvalidParamsError("cwd must be absolute", data={"cwd": shortened(cwd)})
