"""The state of a session, built from its updates, for a client of protocol 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, TypeVar

from .._base import UNSET, UnsetType
from ..types import (
    ContentChunk,
    PromptRequest,
    RequestPermissionRequest,
    SessionConfigOption,
    SessionMode,
    SessionModeState,
    SessionNotification,
    SessionUpdate,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThoughtChunk,
    SessionUpdatePlan,
    SessionUpdateToolCall,
    SessionUpdateToolCallUpdate,
    SessionUpdateUserMessageChunk,
    SetSessionModeRequest,
    ToolCallUpdate,
)
from .session_entries import (
    AgentMessage,
    Compaction,
    SessionBase,
    Thought,
    ToolCall,
    Usage,
    UserMessage,
    patch,
)

__all__ = ["SessionChange", "SessionEntry", "SessionState", "ToolCall"]


SessionEntry: TypeAlias = UserMessage | AgentMessage | Thought | ToolCall | Compaction
"""An entry of the transcript."""
SessionChange: TypeAlias = "SessionEntry | Usage | SessionState | SessionUpdate"
"""The argument of `on_change`: the object that has changed, which is the state itself where only its attributes have.

For an update that changes nothing here, such as one that the package does not know, it is the update.
"""


_M = TypeVar("_M", UserMessage, AgentMessage, Thought)


class _SessionResult(Protocol):
    """The result of a request that opens a session or sets an option. `modes` is read if it is there, too."""

    @property
    def config_options(self) -> list[SessionConfigOption] | UnsetType | None: ...


@dataclass(eq=False)
class SessionState(SessionBase):
    """All that an agent has reported about a session, for a client to show: one object for each session.

        def opened(self, result: NewSessionResponse) -> None:
            state = self.sessions[result.session_id] = SessionState(result.session_id, on_change=self.draw)
            state.apply(result)

        async def session_update(self, params: SessionNotification) -> None:
            if (state := self.sessions.get(params.session_id)) is not None:
                state.update(params)

    Pass in what the handlers get, and results as soon as they are there; nothing that a peer sends raises. `entries` is
    the transcript: messages, thoughts, tool calls and compactions in the order in which they first appeared. Each stays
    the same object while it changes, and `on_change` is called with it after each change.

    Chunks with an equal message id are one message. A chunk without an id continues the last entry, if that is a
    message of its kind, and begins a message otherwise. A `tool_call` and a `tool_call_update` change the fields that
    they have, and make the call if it is new; so does a permission request.

    Use a new object before `session/load`, which sends the whole conversation again. Nothing limits the size of a
    state: an agent can add to it without end. If the agent is not trusted, end the session at a size of your choice.
    """

    on_change: Callable[[SessionChange], object] | None = field(default=None, kw_only=True, repr=False)
    entries: list[SessionEntry] = field(init=False, default_factory=list[SessionEntry])
    plan: SessionUpdatePlan | None = field(init=False, default=None)
    available_modes: list[SessionMode] = field(init=False, default_factory=list[SessionMode])
    current_mode_id: str | None = field(init=False, default=None)
    _prompted: UserMessage | None = field(init=False, default=None, repr=False)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the transcript."""
        return [entry for entry in self.entries if isinstance(entry, ToolCall)]

    def update(self, params: SessionNotification) -> None:
        """Apply the params of `session/update`; those of other sessions are ignored."""
        if params.session_id == self.session_id:
            self._report(self._changed_by(params.update))

    def ask(self, params: RequestPermissionRequest) -> None:
        """Apply what the params of `session/request_permission` tell about the tool call."""
        if params.session_id == self.session_id:
            self._report(self._patch_tool_call(params.tool_call))

    def prompt(self, params: PromptRequest) -> None:
        """Append the message of a `session/prompt`, before it is sent: agents need not report it.

        Do not call this for an agent that reports it: the transcript would have the message twice.
        """
        self._prompted = UserMessage(content=list(params.prompt))
        self.entries.append(self._prompted)
        self._report(self._prompted)

    def apply(self, result: _SessionResult) -> None:
        """Apply the result of `session/new`, `load`, `resume`, `fork` or `set_config_option`."""
        patch(self, result, "config_options")
        modes = getattr(result, "modes", UNSET)
        if isinstance(modes, SessionModeState):
            patch(self, modes, "available_modes", "current_mode_id")
        self._report(self)

    def set_mode(self, params: SetSessionModeRequest) -> None:
        """Apply the params of a `session/set_mode` that has succeeded: its result is empty."""
        self.current_mode_id = params.mode_id
        self._report(self)

    def _changed_by(self, update: SessionUpdate) -> SessionChange:
        match update:
            case SessionUpdateUserMessageChunk():
                return self._append(UserMessage, update)
            case SessionUpdateAgentMessageChunk():
                return self._append(AgentMessage, update)
            case SessionUpdateAgentThoughtChunk():
                return self._append(Thought, update)
            case SessionUpdateToolCall() | SessionUpdateToolCallUpdate():
                return self._patch_tool_call(update)
            case SessionUpdatePlan():
                self.plan = update
                return self
            case _:
                changed: SessionChange = self._apply_to_session(update)
                return changed

    def _append(self, kind: type[_M], chunk: ContentChunk) -> _M:
        message = self._message(kind, getattr(chunk, "message_id", UNSET))
        message.content.append(chunk.content)
        return message

    def _message(self, kind: type[_M], message_id: object) -> _M:
        if isinstance(message_id, str):
            return self._entry(kind, message_id)
        last = self.entries[-1] if self.entries else None
        if isinstance(last, kind) and last is not self._prompted:
            return last
        message = kind()
        self.entries.append(message)
        return message

    def _patch_tool_call(self, update: SessionUpdateToolCall | ToolCallUpdate) -> ToolCall:
        return patch(self._entry(ToolCall, update.tool_call_id), update, null_clears=False)
