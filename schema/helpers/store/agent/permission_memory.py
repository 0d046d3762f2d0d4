"""Permissions that the user has given or refused for good, kept with the session."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any, Final

from ..types import PermissionOption
from .permission_records import PermissionRecord, write_record
from .permissions import PermissionAnswer, permission_options
from .tool_calls import Ask, RunningToolCall
from .tool_subjects import subject_of_tool

__all__ = ["PermissionMemory"]

_MAX_ENTRIES: Final = 1000
_MAX_TEXT: Final = 2**14
_ALWAYS: Final = ("reject_always", "allow_always")
"""What is remembered; a refusal comes first."""

_logger: Final = logging.getLogger("acp")


class PermissionMemory:
    """Remembers the answers "always" in a list of JSON of yours, such as one in the data of a session.

        session = self.session(params.session_id)
        session.data = session.data or {"permissions": []}
        memory = PermissionMemory(session.data["permissions"], folder=session.cwd)
        async with tool_call(self.client, session.id, "Run make", kind="execute", status="pending", ...) as call:
            if await call.permission(memory=memory):
                ...

    An entry is the record of what was shown: the kind and the name of the tool, its files and where they led, the
    command with its folder and its variables, and a digest of the input. It answers for calls with an equal record, and
    for no others. "Always" is offered only for a call that says enough for a record.

    `folder` is where commands run that name none: the one of the session. Entries that are not of this form answer for
    nothing.
    """

    def __init__(self, entries: list[Any], *, folder: str | None = None) -> None:
        self._entries = entries
        self._folder = folder

    async def answer(
        self, call: RunningToolCall, options: Sequence[PermissionOption] | None, ask: Ask
    ) -> PermissionAnswer:
        """The answer that is remembered, or that of `ask`; `RunningToolCall.permission` calls it.

        A call that is not any more what was shown, when the answer comes, is refused.
        """
        shown = subject_of_tool(call.reported, folder=self._folder)
        offered = list(options or permission_options("allow_once", "allow_always", "reject_once"))
        if shown.record is None:
            offered = [each for each in offered if each.kind not in _ALWAYS] or permission_options()
        elif (kind := self._recalled(shown.record)) is not None:
            known = [each for each in offered if each.kind == kind] or permission_options(kind)
            return PermissionAnswer(known[0])
        answer = await ask(offered)
        if answer and subject_of_tool(call.reported, folder=self._folder) != shown:
            _logger.warning("an operation is refused: it is not the one any more that the user was shown")
            return PermissionAnswer()
        if answer.option is not None and answer.option.kind in _ALWAYS and shown.record is not None:
            self._remember(shown.record, answer.option.kind)
        return answer

    def _recalled(self, record: PermissionRecord) -> Any:
        return next((kind for kind in _ALWAYS if _entry(record, kind) in self._entries), None)

    def _remember(self, record: PermissionRecord, kind: str) -> None:
        entry = _entry(record, kind)
        if len(self._entries) >= _MAX_ENTRIES or len(json.dumps(entry)) > _MAX_TEXT:
            _logger.warning("an answer holds once, not always: it is too long, or there are %d of them", _MAX_ENTRIES)
        elif entry not in self._entries:
            self._entries.append(entry)


def _entry(record: PermissionRecord, kind: str) -> dict[str, Any]:
    """The entry as it is when it was read from a store: JSON has no tuples."""
    entry: dict[str, Any] = json.loads(json.dumps({"answer": kind, "record": write_record(record)}))
    return entry
