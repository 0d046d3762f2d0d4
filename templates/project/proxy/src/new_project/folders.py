"""The folders of the sessions, and which paths are outside of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Folders:
    """The folders that the client has named for each session. A session without any has no path inside."""

    def __init__(self) -> None:
        self._folders: dict[str, list[Any]] = {}

    def learn(self, params: Any, result: Any) -> None:
        """Note the folders of a session that a request has opened; other requests have no effect."""
        folder = _text(params, "cwd")
        session_id = _text(result, "sessionId") or _text(params, "sessionId")
        if folder and session_id:
            more = params.get("additionalDirectories")
            self._folders[session_id] = [folder, *(more if isinstance(more, list) else [])]

    def is_outside(self, session_id: str, path: str) -> bool:
        """True unless the path is in a folder of the session. Links are followed."""
        folders = self._folders.get(session_id, [])
        try:
            target = Path(path).resolve()
            return not any(target.is_relative_to(Path(folder).resolve()) for folder in folders)
        except (OSError, RuntimeError, TypeError, ValueError):  # a link to itself, or no path at all
            return True


def _text(raw: Any, name: str) -> str:
    found: Any = raw  # whose type `isinstance` does not narrow
    value = found.get(name) if isinstance(raw, dict) else None
    return value if isinstance(value, str) else ""
