"""The state of a session, built from its updates, for a client of protocol 2."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

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
from .session_entries import (
    AgentMessage,
    AttributesChange,
    Compaction,
    CompactionChange,
    MessageChange,
    PlanChange,
    SessionBase,
    Thought,
    ToolCallChange,
    UserMessage,
    patch,
)
from .session_entries import ToolCall as AnyToolCall

__all__ = [
    "SessionAttribute",
    "SessionChange",
    "SessionEntry",
    "SessionState",
    "Terminal",
    "TerminalChange",
    "ToolCall",
]


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


@dataclass(frozen=True, kw_only=True)
class TerminalChange:
    """A terminal is new, has new output, or has changed otherwise."""

    terminal: Terminal
    output: bytes
    """The output that is new."""
    is_whole: bool
    """True if `output` is all that the terminal has now; otherwise it continues what was there."""


SessionAttribute: TypeAlias = Literal[
    "available_commands", "config_options", "meta", "state", "title", "updated_at", "usage"
]
"""An attribute of a `SessionState` that `AttributesChange` names."""
SessionChange: TypeAlias = (
    MessageChange
    | ToolCallChange[ToolCall]
    | TerminalChange
    | PlanChange[PlanUpdateContent]
    | CompactionChange
    | AttributesChange[SessionAttribute]
    | SessionUpdate
)
"""The argument of `on_change`. An update that changes nothing here, such as one that the package does not know, is
passed on as it is.
"""

_M = TypeVar("_M", UserMessage, AgentMessage, Thought)


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
    the same object while it changes. After each message, `on_change` is called with what the message has changed.

    An update of something new makes it. A field that is absent from an update keeps its value, null clears it, any
    other value replaces it, and chunks append; `meta` is merged by key. A permission request takes back nothing that
    is known. Messages of one class with an equal id are one message.

    Use a new object before a `session/resume` with `replay_from`, which sends the conversation again. What the agent
    reports takes at most `max_bytes` of memory; after that, `is_full` is true, and updates are ignored: end the
    session.
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

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """The tool call with this id; None if there is none."""
        found = self._known.get((ToolCall, tool_call_id))
        return found if isinstance(found, ToolCall) else None

    def update(self, params: UpdateSessionNotification) -> None:
        """Apply the params of `session/update`; those of other sessions are ignored."""
        if params.session_id == self.session_id and self._has_room(params.update):
            self._report(self._changed_by(params.update))

    def ask(self, params: RequestPermissionRequest) -> None:
        """Apply what the params of `session/request_permission` tell about a tool call, if they are about one."""
        if params.session_id != self.session_id or not self._has_room(params):
            return
        if isinstance(params.subject, RequestPermissionSubjectToolCall):
            self._report(self._ask_about(ToolCall, params.subject.tool_call))

    def apply(self, result: _SessionResult) -> None:
        """Apply the result of `session/new`, `resume`, `fork` or `set_config_option`."""
        if not self._has_room(result):
            return
        names: set[SessionAttribute] = patch(self, result, "config_options", "available_commands")
        if isinstance(result, NewSessionResponse) and self.state is None:
            self.state = SessionUpdateStateUpdateIdleNone()  # by the protocol, a new session is idle
            names.add("state")
        self._report(AttributesChange(names=frozenset(names)))

    def _changed_by(self, update: SessionUpdate) -> SessionChange:
        if isinstance(update, SessionUpdateStateUpdate):
            self.state = update
            return AttributesChange[SessionAttribute](names=frozenset({"state"}))
        match update:
            case SessionUpdateUserMessage():
                return self._patch_message(UserMessage, update)
            case SessionUpdateAgentMessage():
                return self._patch_message(AgentMessage, update)
            case SessionUpdateAgentThought():
                return self._patch_message(Thought, update)
            case SessionUpdateToolCallUpdate():
                return self._patch_tool_call(ToolCall, update)
            case SessionUpdateTerminalUpdate():
                return self._patch_terminal(update)
            case _:
                return self._append(update)

    def _append(self, update: SessionUpdate) -> SessionChange:
        match update:
            case SessionUpdateUserMessageChunk():
                return self._add(self._entry(UserMessage, update.message_id), update.content)
            case SessionUpdateAgentMessageChunk():
                return self._add(self._entry(AgentMessage, update.message_id), update.content)
            case SessionUpdateAgentThoughtChunk():
                return self._add(self._entry(Thought, update.message_id), update.content)
            case SessionUpdateToolCallContentChunk():
                is_new = (ToolCall, update.tool_call_id) not in self._known
                call = self._entry(ToolCall, update.tool_call_id)
                call.content.append(update.content)
                if call.reported is not None and call.reported.content is not call.content:
                    call.reported.content.append(update.content)
                return ToolCallChange(call=call, is_new=is_new)
            case SessionUpdateTerminalOutputChunk():
                terminal = self._terminal(update.terminal_id)
                output = _bytes(update)
                terminal.output += output
                return _terminal_change(terminal, output)
            case _:
                change: SessionChange = self._apply_to_session(update)
                return change

    def _patch_message(
        self,
        kind: type[_M],
        update: SessionUpdateUserMessage | SessionUpdateAgentMessage | SessionUpdateAgentThought,
    ) -> MessageChange:
        entry = self._entry(kind, update.message_id)
        content = tuple(entry.content) if "content" in patch(entry, update) else ()
        return MessageChange(entry=entry, content=content, is_whole=len(content) == len(entry.content))

    def _patch_terminal(self, update: SessionUpdateTerminalUpdate) -> TerminalChange:
        terminal = self._terminal(update.terminal_id)
        return _terminal_change(terminal, terminal.output if "output" in patch(terminal, update) else b"")

    def _terminal(self, terminal_id: str) -> Terminal:
        if terminal_id not in self.terminals:
            self.terminals[terminal_id] = Terminal(id=terminal_id)
        return self.terminals[terminal_id]


def _terminal_change(terminal: Terminal, output: bytes | bytearray) -> TerminalChange:
    return TerminalChange(terminal=terminal, output=bytes(output), is_whole=len(output) == len(terminal.output))
