"""Tool calls of a turn, by ids: for frameworks that report how a tool starts, goes on and ends as events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..decision import explains
from ..known import ToolCallStatus, ToolKind
from ..types import ContentBlock, ToolCallContent, ToolCallLocation
from .edit_calls import edit_call
from .tool_calls import RunningToolCall, ToolCallEnd, end_with_turn, tool_call
from .turn_queue import TurnQueue

__all__ = ["ToolCalls"]


class ToolCalls:
    """The tool calls of the turn that runs in a session, each by an id of yours.

        async def work(self, params: PromptRequest) -> None:
            calls = ToolCalls(self.client, params.session_id, self.turns)
            async for event in framework.run(...):
                match event:
                    case ToolStarts():
                        await calls.start(event.id, event.name, kind="read", raw_input=event.arguments)
                    case ToolEnds():
                        await calls.end(event.id, content=[event.output])

    What is open when the turn ends is ended before the end of the turn is reported: as `cancelled` if the turn was
    cancelled (in protocol 1 `failed`), and otherwise as `failed`. `update` and `end` ignore what events tell later, but
    for ids that were not started; `calls["id"]` itself raises `RuntimeError`, but for its `end`.

    An id stands for one call at a time. Models may use the same ids again, so the client gets random ones: that of a
    call is `calls["id"].reported.tool_call_id`. Methods raise what `client.session_update` raises, and `KeyError` for
    an id that was not started.
    """

    @explains
    def __init__(self, client: RemoteClient, session_id: str, turns: TurnQueue) -> None:
        """Raises `RuntimeError` if no turn runs in the session, or the work of its turn has ended."""
        self._client = client
        self._session_id = session_id
        self._calls: dict[str, RunningToolCall] = {}
        self._is_over = False
        turn = turns.running(session_id)
        if not turn.is_working:  # nobody would end the calls
            raise RuntimeError(f"the turn of session_id {session_id!r:.80} has ended")
        turn.at_end = (*turn.at_end, self._end_all)

    def __getitem__(self, id: str) -> RunningToolCall:
        """The call with this id, the latest one if there were several."""
        if (call := self._calls.get(id)) is None:
            raise KeyError(f"no tool call {id!r:.80} was started in this turn")
        return call

    def __contains__(self, id: object) -> bool:
        return id in self._calls

    async def start(
        self,
        id: str,
        title: str,
        *,
        kind: ToolKind | UnsetType = UNSET,
        status: Literal["pending", "in_progress"] = "in_progress",
        content: Iterable[str | ContentBlock | ToolCallContent] = (),
        locations: Iterable[str | ToolCallLocation] = (),
        raw_input: Any = UNSET,
        name: str | None = None,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> RunningToolCall:
        """Report the start of a call; the arguments are those of `tool_call`. Ask its permission with what it returns.

        Raises `RuntimeError` if a call with this id is open, or the turn has ended.
        """
        call = tool_call(
            self._client,
            self._session_id,
            title,
            kind=kind,
            status=status,
            content=content,
            locations=locations,
            raw_input=raw_input,
            name=name,
            meta=meta,
        )
        return await self._start(id, call)

    async def start_edit(
        self,
        id: str,
        path: str,
        *,
        old: str | None,
        new: str | None,
        title: str | None = None,
        status: Literal["pending", "in_progress"] = "in_progress",
        raw_input: Any = UNSET,
        name: str | None = None,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> RunningToolCall:
        """Report the start of a call that changes a file; the arguments are those of `edit_call`."""
        call = edit_call(
            self._client,
            self._session_id,
            path,
            old=old,
            new=new,
            title=title,
            status=status,
            raw_input=raw_input,
            name=name,
            meta=meta,
        )
        return await self._start(id, call)

    async def update(
        self,
        id: str,
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
        """Report changes of a call, as `RunningToolCall.update` does; `calls[id].add` appends content."""
        call = self[id]
        if not self._is_over:
            await call.update(
                title=title,
                kind=kind,
                status=status,
                content=content,
                locations=locations,
                raw_input=raw_input,
                raw_output=raw_output,
                meta=meta,
            )

    async def end(
        self,
        id: str,
        status: ToolCallEnd | None = None,
        *,
        content: Iterable[str | ContentBlock | ToolCallContent] | UnsetType = UNSET,
        locations: Iterable[str | ToolCallLocation] | UnsetType = UNSET,
        raw_output: Any = UNSET,
        meta: dict[str, Any] | UnsetType = UNSET,
    ) -> None:
        """Report the end of a call, as `RunningToolCall.end` does. Nothing if it has ended."""
        await self[id].end(status, content=content, locations=locations, raw_output=raw_output, meta=meta)

    async def _start(self, id: str, call: RunningToolCall) -> RunningToolCall:
        if self._is_over:
            raise RuntimeError("the turn of these tool calls has ended: make new ones in each turn")
        if (known := self._calls.get(id)) is not None and not known.has_ended:
            raise RuntimeError(f"the tool call {id!r:.80} is open: update or end it")
        self._calls[id] = call
        try:
            return await call.__aenter__()
        except Exception:
            del self._calls[id]  # the client does not know of it
            raise

    async def _end_all(self, is_cancelled: bool) -> None:
        self._is_over = True
        await end_with_turn(self._calls.values(), is_cancelled=is_cancelled)
