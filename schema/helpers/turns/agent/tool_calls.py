"""Tool calls of an agent: one block of code reports how a call starts, goes on and ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import fields, replace
from os import urandom
from types import TracebackType
from typing import Any, Final, Literal, Protocol, TypeAlias

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import decides
from ..known import ToolCallStatus, ToolKind
from ..types import (
    ContentBlock,
    PermissionOption,
    SessionUpdate,
    SessionUpdateToolCallUpdate,
    ToolCallContent,
    ToolCallLocation,
    ToolCallUpdate,
)
from .call_messages import CANCELLED, appended, ask_permission, first_update
from .content import items_of, name_of, tool_content
from .notification import session_update
from .permissions import PermissionAnswer

__all__ = ["PermissionRecall", "RunningToolCall", "tool_call"]

Reports: TypeAlias = Iterable[tuple[SessionUpdate, ToolCallUpdate]]
"""Updates, each with the tool call as the client has it after the update.

If they depend on what was reported before, they come from a generator: it starts when all earlier reports were sent.
"""

ToolCallEnd: TypeAlias = Literal["completed", "failed", "cancelled"]
"""How a tool call ends. In protocol 1, `cancelled` is reported as `failed`."""

_ENDED: Final = ("completed", "failed", "cancelled")

Ask: TypeAlias = Callable[[Sequence[PermissionOption] | None], Awaitable[PermissionAnswer]]
"""Asks the user, with these options."""

_unfinished: Final = set[asyncio.Task[None]]()
"""Tasks that send a report; the event loop itself keeps no strong reference to them."""


def tool_call(
    client: RemoteClient,
    session_id: str,
    title: str,
    *,
    kind: ToolKind | UnsetType = UNSET,
    status: Literal["pending", "in_progress"] = "in_progress",
    content: Iterable[str | ContentBlock | ToolCallContent] = (),
    locations: Iterable[str | ToolCallLocation] = (),
    raw_input: Any = UNSET,
    tool_call_id: str | None = None,
    name: str | None = None,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> RunningToolCall:
    """Report a tool call to the client, from its start to its end. Use it with `async with`, around the work.

    The end of the block reports the status `completed`, or `failed` if permission was refused. A block that raises
    reports `failed`, without the text of the exception: the user sees what `call.fail(text)` says, and nothing else.
    A block that is cancelled reports `cancelled`, in protocol 1 `failed`. After `call.fail`, or an update with a final
    status, the end of the block reports nothing more. If `call.permission` is asked first, start with `pending`.

    A str in `content` is text, and one in `locations` is an absolute path. By default the id is a random one. `name` is
    that of the tool in code; releases such as 0.10.8 have none, and raise `TypeError`.
    """
    first = ToolCallUpdate(
        tool_call_id=tool_call_id or urandom(16).hex(),
        title=title,
        kind=kind,
        status=status,
        content=[tool_content(each) for each in items_of(content, "content")] or UNSET,
        locations=_locations(locations) or UNSET,
        raw_input=raw_input,
        meta=meta,
        **name_of(name),
    )
    return RunningToolCall(client, session_id, first)


class PermissionRecall(Protocol):
    """Knows what the user has answered for good, such as `PermissionMemory`."""

    async def answer(
        self, call: RunningToolCall, options: Sequence[PermissionOption] | None, ask: Ask
    ) -> PermissionAnswer:
        """The answer for a call: one that is remembered, or that of `await ask(options)`."""
        ...


class RunningToolCall:
    """A tool call that runs; `tool_call` makes it, and so does `ToolCalls`.

    `reported` is the call as the client has it: its id, and everything that was reported so far.

    The methods raise what `client.session_update` raises, and `RuntimeError` before the block has started, and after
    the end of the turn that has ended a call of `ToolCalls`. A report that has begun is sent in full and in order, even
    if the task is cancelled meanwhile. An object is for one block.
    """

    def __init__(self, client: RemoteClient, session_id: str, first: ToolCallUpdate) -> None:
        self.reported = first
        self._client = client
        self._session_id = session_id
        self._is_started = False
        self._is_refused = False
        self._is_turn_over = False
        self._order = asyncio.Lock()

    @property
    def has_ended(self) -> bool:
        """True if the client knows the end of the call."""
        return self.reported.status in _ENDED

    async def __aenter__(self) -> RunningToolCall:
        if self._is_started:
            raise RuntimeError("this tool call was reported already: make a new one for each block")
        self._is_started = True
        try:
            await self._report([(first_update(self.reported), self.reported)])
        except asyncio.CancelledError:
            await self._end_after_error(CANCELLED)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        match error:
            case None:
                await self.end()
            case KeyboardInterrupt() | SystemExit():
                pass  # the event loop stops
            case GeneratorExit():  # a generator or a coroutine is closed, so this must not wait
                with contextlib.suppress(RuntimeError):  # without an event loop
                    self._start_sending(self._end(CANCELLED))
            case asyncio.CancelledError():
                await self._end_after_error(CANCELLED)
            case _:
                await self._end_after_error("failed")

    async def _end_after_error(self, status: ToolCallStatus) -> None:
        with contextlib.suppress(Exception):  # the connection may be gone, and what the block raised matters more
            await asyncio.shield(self._start_sending(self._end(status)))

    def _end(self, status: ToolCallStatus, **known: Any) -> Reports:
        if self.reported.status not in _ENDED:
            yield from self._change(self._update(status=status, **known))

    async def update(
        self,
        *,
        title: str | UnsetType = UNSET,
        kind: ToolKind | UnsetType = UNSET,
        status: ToolCallStatus | UnsetType = UNSET,
        content: Iterable[str | ContentBlock | ToolCallContent] | UnsetType = UNSET,
        locations: Iterable[str | ToolCallLocation] | UnsetType = UNSET,
        raw_input: Any = UNSET,
        raw_output: Any = UNSET,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> None:
        """Report changes. `content` and `locations` replace those before; `add` appends content.

        Raises `RuntimeError` for a status that is not final after a final one.
        """
        change = self._update(
            title=title,
            kind=kind,
            status=status,
            content=content,
            locations=locations,
            raw_input=raw_input,
            raw_output=raw_output,
            meta=meta,
        )
        await self._report(self._change(change))

    async def end(
        self,
        status: ToolCallEnd | None = None,
        *,
        content: Iterable[str | ContentBlock | ToolCallContent] | UnsetType = UNSET,
        locations: Iterable[str | ToolCallLocation] | UnsetType = UNSET,
        raw_output: Any = UNSET,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> None:
        """Report the end, with what replaces content and locations from before. Nothing if the call has ended.

        By default the status is `completed`, or `failed` if permission was refused.
        """
        if self._is_turn_over:
            return
        end = status or ("failed" if self._is_refused else "completed")
        known = {"content": content, "locations": locations, "raw_output": raw_output, "meta": meta}
        await self._report(self._end(CANCELLED if end == "cancelled" else end, **known))

    def _update(self, *, content: Any = UNSET, locations: Any = UNSET, **given: Any) -> SessionUpdateToolCallUpdate:
        return SessionUpdateToolCallUpdate(
            tool_call_id=self.reported.tool_call_id,
            content=UNSET if content is UNSET else [tool_content(each) for each in items_of(content, "content")],
            locations=UNSET if locations is UNSET else _locations(locations),
            **given,
        )

    def _change(self, change: SessionUpdateToolCallUpdate) -> Reports:
        if self.reported.status in _ENDED and change.status not in (UNSET, *_ENDED):
            raise RuntimeError("this tool call has ended: make a new one")
        values = {each.name: getattr(change, each.name) for each in fields(self.reported)}
        given = {name: value for name, value in values.items() if value is not UNSET}
        yield change, replace(self.reported, **given)

    async def add(
        self, *content: str | ContentBlock | ToolCallContent, meta: dict[str, Any] | UnsetType = UNSET
    ) -> None:
        """Append content. Protocol 1 sends all content each time, so for much output add larger pieces."""
        await self._report(self._append([tool_content(each) for each in content], meta))

    def _append(self, added: Sequence[ToolCallContent], meta: dict[str, Any] | UnsetType) -> Reports:
        yield from appended(self.reported, added, meta=meta)

    async def fail(self, text: str = "") -> None:
        """Report that the call has failed, with a text for the user. The block goes on: return, or raise."""
        if text:
            await self.add(text)
        await self.update(status="failed")

    @decides
    async def permission(
        self,
        options: Sequence[PermissionOption] | None = None,
        *,
        foreground: bool = True,
        memory: PermissionRecall | None = None,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> PermissionAnswer:
        """Ask the user for permission, and wait for the answer: `if await call.permission():`.

        By default the user may allow or reject, both once; `permission_options` makes other sets. Start the call with
        `status="pending"`: it is `in_progress` once it is allowed. If it is refused, the end of the block reports
        `failed`. `foreground` is that of `ask_permission`. With a `memory`, what was answered for good is not asked
        again.
        """
        await self._report([])  # earlier reports come first

        async def ask(offered: Sequence[PermissionOption] | None) -> PermissionAnswer:
            return await ask_permission(
                self._client, self._session_id, self.reported, options=offered, foreground=foreground, meta=meta
            )

        answer = await (ask(options) if memory is None else memory.answer(self, options, ask))
        self._check_turn()  # it may have ended meanwhile: what is allowed now must not run any more
        self._is_refused = not answer
        if answer and self.reported.status == "pending":
            await self.update(status="in_progress")
        return answer

    async def _report(self, reports: Reports) -> None:
        """Send in a task of its own, so that a cancellation ends the waiting and not the sending."""
        if not self._is_started:
            raise RuntimeError("this tool call was not reported yet: use it with `async with`")
        self._check_turn()
        await asyncio.shield(self._start_sending(reports))

    def _check_turn(self) -> None:
        if self._is_turn_over:
            raise RuntimeError("the turn of this tool call has ended, and the call with it: report nothing more of it")

    def _start_sending(self, reports: Reports) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(self._send(reports))
        _unfinished.add(task)
        task.add_done_callback(_finish)
        return task

    async def _send(self, reports: Reports) -> None:
        async with self._order:
            for update, reported in reports:
                await self._client.session_update(session_update(self._session_id, update))
                self.reported = reported

    async def _end_with_turn(self, status: ToolCallStatus) -> None:
        self._is_turn_over = True
        await asyncio.shield(self._start_sending(self._end(status)))


async def end_with_turn(calls: Iterable[RunningToolCall], *, is_cancelled: bool) -> None:
    """Report the end of those that are open, after what has begun. All that comes later is refused."""
    status = CANCELLED if is_cancelled else "failed"
    await asyncio.gather(*(call._end_with_turn(status) for call in calls))  # pyright: ignore[reportPrivateUsage]


def _finish(task: asyncio.Task[None]) -> None:
    _unfinished.discard(task)
    if not task.cancelled():
        task.exception()  # marks it as retrieved: after a cancellation, nothing else does


def _locations(locations: Iterable[str | ToolCallLocation]) -> list[ToolCallLocation]:
    return [ToolCallLocation(path=each) if isinstance(each, str) else each for each in items_of(locations, "locations")]
