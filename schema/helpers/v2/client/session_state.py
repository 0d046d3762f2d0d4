"""The state of a session, built from its updates, for a client of protocol 2."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from .._base import UnsetType
from ..types import (
    NewSessionResponse,
    PlanUpdateContent,
    RequestPermissionRequest,
    RequestPermissionSubjectToolCall,
    SessionConfigOption,
    SessionUpdate,
    SessionUpdateAgentMessage,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThought,
    SessionUpdateAgentThoughtChunk,
    SessionUpdatePlanUpdate,
    SessionUpdateStateUpdate,
    SessionUpdateStateUpdateIdleNone,
    SessionUpdateTerminalOutputChunk,
    SessionUpdateTerminalUpdate,
    SessionUpdateToolCallContentChunk,
    SessionUpdateToolCallUpdate,
    SessionUpdateUserMessage,
    SessionUpdateUserMessageChunk,
    TerminalCapabilities,
    TerminalExitStatus,
    TerminalOutput,
    TerminalSize,
    ToolCallCapabilities,
    UpdateSessionNotification,
)
from .session_entries import AgentMessage, Compaction, SessionBase, Thought, Usage, UserMessage, patch
from .session_entries import ToolCall as AnyToolCall

__all__ = ["SessionChange", "SessionEntry", "SessionState", "Terminal", "ToolCall"]


@dataclass(eq=False, kw_only=True)
class ToolCall(AnyToolCall):
    """A tool call, with all that the agent has reported about it."""

    capabilities: ToolCallCapabilities | None = None
    """What the client may do with the call now."""


def _bytes(output: TerminalOutput | SessionUpdateTerminalOutputChunk) -> bytearray:
    """The bytes of an output; none where they are not in base64."""
    try:
        return bytearray(b64decode(output.data, validate=True))
    except ValueError:
        return bytearray()


@dataclass(eq=False, kw_only=True)
class Terminal:
    """A terminal of the agent, to show only. Its output is untrusted, and may have any control sequences."""

    id: str
    command: str | None = None
    cwd: str | None = None
    output: bytearray = field(default_factory=bytearray, metadata={"read": _bytes})  # base64 in updates
    exit_status: TerminalExitStatus | None = None
    """Set when the process has ended."""
    size: TerminalSize | None = None
    capabilities: TerminalCapabilities | None = None
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


SessionEntry: TypeAlias = UserMessage | AgentMessage | Thought | ToolCall | Compaction
"""An entry of the transcript."""
SessionChange: TypeAlias = "SessionEntry | Terminal | PlanUpdateContent | Usage | SessionState | SessionUpdate"
"""The argument of `on_change`: the object that has changed, which is the state itself where only its attributes have.

For an update that changes nothing here, such as one that the package does not know, it is the update.
"""


class _SessionResult(Protocol):
    """The result of a request that opens a session or sets an option. Commands are read if they are there, too."""

    @property
    def config_options(self) -> list[SessionConfigOption] | UnsetType: ...


@dataclass(eq=False)
class SessionState(SessionBase):
    """All that an agent has reported about a session, for a client to show: one object for each session.

        def opened(self, result: NewSessionResponse) -> None:
            state = self.sessions[result.session_id] = SessionState(result.session_id, on_change=self.draw)
            state.apply(result)

        async def session_update(self, params: UpdateSessionNotification) -> None:
            if (state := self.sessions.get(params.session_id)) is not None:
                state.update(params)

    Pass in what the handlers get, and results as soon as they are there; nothing that a peer sends raises. `entries` is
    the transcript: messages, thoughts, tool calls and compactions in the order in which they first appeared. Each stays
    the same object while it changes, and `on_change` is called with it after each change.

    An update of something new makes it. A field that is absent from an update keeps its value, null clears it, any
    other value replaces it, and chunks append; `meta` is merged by key. Messages of one class
    with an equal id are one message.

    Use a new object before a `session/resume` with `replay_from`, which sends the conversation again. Nothing limits
    the size of a state: an agent can add to it without end. If the agent is not trusted, end the session at a size of
    your choice.
    """

    on_change: Callable[[SessionChange], object] | None = field(default=None, kw_only=True, repr=False)
    entries: list[SessionEntry] = field(init=False, default_factory=list[SessionEntry])
    state: SessionUpdateStateUpdate | None = field(init=False, default=None)
    """The last update of the state: running, idle, or in need of the user. None if there was none yet."""
    plans: dict[str, PlanUpdateContent] = field(init=False, default_factory=dict[str, PlanUpdateContent])
    terminals: dict[str, Terminal] = field(init=False, default_factory=dict[str, Terminal])

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the transcript."""
        return [entry for entry in self.entries if isinstance(entry, ToolCall)]

    def update(self, params: UpdateSessionNotification) -> None:
        """Apply the params of `session/update`; those of other sessions are ignored."""
        if params.session_id == self.session_id:
            self._report(self._changed_by(params.update))

    def ask(self, params: RequestPermissionRequest) -> None:
        """Apply what the params of `session/request_permission` tell about a tool call, if they are about one."""
        if params.session_id == self.session_id and isinstance(params.subject, RequestPermissionSubjectToolCall):
            call = params.subject.tool_call
            self._report(patch(self._entry(ToolCall, call.tool_call_id), call))

    def apply(self, result: _SessionResult) -> None:
        """Apply the result of `session/new`, `resume`, `fork` or `set_config_option`."""
        patch(self, result, "config_options", "available_commands")
        if isinstance(result, NewSessionResponse) and self.state is None:
            self.state = SessionUpdateStateUpdateIdleNone()  # by the protocol, a new session is idle
        self._report(self)

    def _changed_by(self, update: SessionUpdate) -> SessionChange:
        if isinstance(update, SessionUpdateStateUpdate):
            self.state = update
            return self
        match update:
            case SessionUpdateUserMessage():
                return patch(self._entry(UserMessage, update.message_id), update)
            case SessionUpdateAgentMessage():
                return patch(self._entry(AgentMessage, update.message_id), update)
            case SessionUpdateAgentThought():
                return patch(self._entry(Thought, update.message_id), update)
            case SessionUpdateToolCallUpdate():
                return patch(self._entry(ToolCall, update.tool_call_id), update)
            case SessionUpdateTerminalUpdate():
                return patch(self._terminal(update.terminal_id), update)
            case SessionUpdatePlanUpdate(plan=plan):
                self.plans[plan.plan_id] = plan
                return plan
            case _:
                return self._append(update)

    def _append(self, update: SessionUpdate) -> SessionChange:
        entry: SessionEntry
        match update:
            case SessionUpdateUserMessageChunk():
                entry = self._entry(UserMessage, update.message_id)
            case SessionUpdateAgentMessageChunk():
                entry = self._entry(AgentMessage, update.message_id)
            case SessionUpdateAgentThoughtChunk():
                entry = self._entry(Thought, update.message_id)
            case SessionUpdateToolCallContentChunk():
                call = self._entry(ToolCall, update.tool_call_id)
                call.content.append(update.content)
                return call
            case SessionUpdateTerminalOutputChunk():
                terminal = self._terminal(update.terminal_id)
                terminal.output += _bytes(update)
                return terminal
            case _:
                return self._apply_rest(update)
        entry.content.append(update.content)
        return entry

    def _apply_rest(self, update: SessionUpdate) -> SessionChange:
        plan_id = getattr(update, "plan_id", "")  # not every release has a class for the removal
        if update.session_update == "plan_removed" and self.plans.pop(plan_id, None) is not None:
            return self
        changed: SessionChange = self._apply_to_session(update)
        return changed

    def _terminal(self, terminal_id: str) -> Terminal:
        if terminal_id not in self.terminals:
            self.terminals[terminal_id] = Terminal(id=terminal_id)
        return self.terminals[terminal_id]
