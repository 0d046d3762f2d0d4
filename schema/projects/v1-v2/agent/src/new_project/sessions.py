"""The sessions of the agent. They last as long as the process."""

from __future__ import annotations

from uuid import uuid4

from .acp import InvalidParamsError


class Sessions:
    """The ids of the sessions, each with its folder."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def open(self, cwd: str) -> str:
        """Begin a session; returns its id."""
        session_id = uuid4().hex
        self._folders[session_id] = cwd
        return session_id

    def known(self, session_id: str) -> str:
        """The id as it is. Raises `InvalidParamsError` if there is no such session."""
        if session_id not in self._folders:
            raise InvalidParamsError(f"no session {session_id!r}")
        return session_id

    def list(self, cwd: object) -> dict[str, str]:
        """The sessions in the folder `cwd`, or all of them if that is no folder."""
        return {each: folder for each, folder in self._folders.items() if folder == cwd or not isinstance(cwd, str)}

    def forget(self, session_id: str) -> None:
        """End a session. Raises `InvalidParamsError` if there is no such session."""
        del self._folders[self.known(session_id)]
