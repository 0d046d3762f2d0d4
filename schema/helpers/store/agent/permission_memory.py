"""Permissions that the user has given or refused for good, kept with the session."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from ..decision import explains
from ..types import PermissionOption
from .operation_facts import ONLY_LOOKING
from .operations import Statement, is_same_operation, subject_of
from .permission_records import PermissionRecord, PermissionSubject, why_once, write_record
from .permissions import PermissionAnswer, permission_options
from .tool_calls import Ask, RunningToolCall
from .tool_subjects import said_by

__all__ = ["PermissionMemory"]

_MAX_ENTRIES: Final = 1000
_MAX_TEXT: Final = 2**14
_ALWAYS: Final = ("reject_always", "allow_always")
"""What is remembered; a refusal comes first."""
_VERSION: Final = 3
"""Of an entry: records of those without it lack the title, and the input of what was read."""

_logger: Final = logging.getLogger("acp")


class PermissionMemory:
    """Remembers the answers "always" in a list of JSON of yours, such as one in the data of a session.

        session = self.session(params.session_id)
        session.data = session.data or {"permissions": []}
        memory = PermissionMemory(session.data["permissions"], folder=session.cwd)
        async with tool_call(self.client, session.id, "Run make", kind="execute", status="pending", ...) as call:
            if await call.permission(memory=memory):
                ...

    An entry is the record of what was shown: the title, the kind and the name of the tool, its files and where they
    led, the command with its folder and its variables, and a digest of the input. It answers for calls with an equal
    record, and for no others. "Always" is offered only for a call that says enough for a record.

    `folder` is where commands run that name none: the one of the session. Entries that are not of this form answer for
    nothing; of an earlier version, those that refuse still do.
    """

    @explains
    def __init__(self, entries: list[Any], *, folder: str | None = None) -> None:
        self._entries = entries
        self._folder = folder
        if any(isinstance(each, dict) and "record" in each and "version" not in each for each in entries):
            _logger.warning("permissions of an earlier version allow nothing any more: the user is asked again")

    async def answer(
        self, call: RunningToolCall, options: Sequence[PermissionOption] | None, ask: Ask
    ) -> PermissionAnswer:
        """The answer that is remembered, or that of `ask`; `RunningToolCall.permission` calls it.

        If the call is another one than what was shown when it is allowed, the user is asked again. Options of which
        several are of one kind are a choice, which only the user makes.
        """
        kinds = [each.kind for each in options or ()]
        is_choice = len({*kinds}) < len(kinds)
        first = said_by(call.reported)
        shown = await self._subject(call, first)
        while True:
            offered = list(options or permission_options("allow_once", "allow_always", "reject_once"))
            if is_choice:
                pass
            elif shown.record is None:
                offered = [each for each in offered if each.kind not in _ALWAYS] or permission_options()
            elif (kind := self._recalled(shown, shown.record)) is not None:
                known = [each for each in offered if each.kind == kind] or permission_options(kind)
                return PermissionAnswer(known[0])
            answer = await ask(offered)
            now = await self._subject(call, first)
            if not answer or is_same_operation(shown, now):
                if not is_choice and answer.option is not None and answer.option.kind in _ALWAYS:
                    self._remember(shown, answer.option.kind)
                return answer
            _logger.warning("an operation is not the one any more that the user has allowed: they are asked again")
            shown = now

    async def _subject(self, call: RunningToolCall, first: Statement) -> PermissionSubject:
        said = said_by(call.reported).completed_by(first)
        return await asyncio.to_thread(partial(subject_of, said, folder=self._folder))

    def _recalled(self, shown: PermissionSubject, record: PermissionRecord) -> Any:
        if _earlier_refusal(shown, record) in self._entries:
            return "reject_always"
        return next((kind for kind in _ALWAYS if _entry(record, kind) in self._entries), None)

    def _remember(self, shown: PermissionSubject, kind: str) -> None:
        if shown.record is None:
            _logger.warning("an answer holds once, not always: %s", why_once(shown))
            return
        entry = _entry(shown.record, kind)
        if len(self._entries) >= _MAX_ENTRIES or len(json.dumps(entry)) > _MAX_TEXT:
            _logger.warning("an answer holds once, not always: it is too long, or there are %d of them", _MAX_ENTRIES)
        elif entry not in self._entries:
            self._entries.append(entry)


def _entry(record: PermissionRecord, kind: str) -> Any:
    """The entry as it is when it was read from a store: JSON has no tuples."""
    return json.loads(json.dumps({"version": _VERSION, "answer": kind, "record": write_record(record)}))


def _earlier_refusal(shown: PermissionSubject, record: PermissionRecord) -> Any:
    """The entry of a refusal as earlier versions made it: without the title, and with a digest of the whole input."""
    plain = PermissionRecord(kind=record.kind, tool=record.tool, files=record.files)
    if record.folder is not None and not (record.kind in ONLY_LOOKING and record.command is None):
        plain = replace(plain, folder=record.folder, input=shown.input)
    return json.loads(json.dumps({"answer": "reject_always", "record": write_record(plain)}))
