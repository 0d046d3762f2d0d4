"""The state of a session, built from its updates, for a client of protocol 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias, TypeVar

from .._base import UNSET, UnsetType
from ..types import (
    ContentBlock,
    ContentBlockText,
    ContentChunk,
    PromptRequest,
    RequestPermissionRequest,
    SessionConfigOption,
    SessionMode,
    SessionNotification,
    SessionUpdate,
    SessionUpdateAgentMessageChunk,
    SessionUpdateAgentThoughtChunk,
    SessionUpdatePlan,
    SessionUpdateToolCall,
    SessionUpdateToolCallUpdate,
    SessionUpdateUserMessageChunk,
    SetSessionModeRequest,
)
from .session_entries import (
    AgentMessage,
    AttributesChange,
    Compaction,
    CompactionChange,
    MessageChange,
    Plan,
    PlanChange,
    SessionBase,
    Thought,
    ToolCall,
    ToolCallChange,
    UserMessage,
    patch,
)

__all__ = ["SessionAttribute", "SessionChange", "SessionEntry", "SessionState", "ToolCall"]


SessionEntry: TypeAlias = UserMessage | AgentMessage | Thought | ToolCall | Compaction
"""An entry of the transcript."""
SessionAttribute: TypeAlias = Literal[
    "available_commands",
    "available_models",
    "available_modes",
    "config_options",
    "current_mode_id",
    "current_model_id",
    "meta",
    "title",
    "updated_at",
    "usage",
]
"""An attribute of a `SessionState` that `AttributesChange` names."""
SessionChange: TypeAlias = (
    MessageChange
    | ToolCallChange[ToolCall]
    | PlanChange[SessionUpdatePlan | Plan]
    | CompactionChange
    | AttributesChange[SessionAttribute]
    | SessionUpdate
)
"""The argument of `on_change`. An update that changes nothing here, such as one that the package does not know, is
passed on as it is.
"""
_OF_RESULTS = ("available_models", "available_modes", "config_options", "current_mode_id", "current_model_id")


_M = TypeVar("_M", UserMessage, AgentMessage, Thought)


class _SessionResult(Protocol):
    """The result of a request that opens a session or sets an option. It may have `modes` and `models`, too."""

    @property
    def config_options(self) -> list[SessionConfigOption] | UnsetType | None: ...


class _Model(Protocol):
    """A model that the user can choose. A protocol, as only the extension session-model has a class for it."""

    @property
    def model_id(self) -> str: ...
    @property
    def name(self) -> str: ...


class _ModelChoice(Protocol):
    """The params of `session/set_model`."""

    @property
    def model_id(self) -> str: ...


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
    the same object while it changes. After each message, `on_change` is called with what the message has changed.

    Chunks with an equal message id are one message. A chunk without an id continues the last entry, if that is a
    message of its kind, and begins a message otherwise. A `tool_call` and a `tool_call_update` change the fields that
    they have, and make the call if it is new; so does a permission request, which takes back nothing that is known.

    Use a new object before `session/load`, which sends the whole conversation again. What the agent reports takes at
    most `max_bytes` of memory; after that, `is_full` is true, and updates are ignored: end the session.
    """

    on_change: Callable[[SessionChange], object] | None = field(default=None, kw_only=True, repr=False)
    entries: list[SessionEntry] = field(init=False, default_factory=list[SessionEntry])
    plan: SessionUpdatePlan | None = field(init=False, default=None)
    """The plan without an id; those of the extension plan-operations are in `plans`."""
    plans: dict[str, Plan] = field(init=False, default_factory=dict[str, Plan])
    available_modes: list[SessionMode] = field(init=False, default_factory=list[SessionMode])
    current_mode_id: str | None = field(init=False, default=None)
    available_models: list[_Model] = field(init=False, default_factory=list[_Model])
    """With the extension session-model."""
    current_model_id: str | None = field(init=False, default=None)
    _prompted: UserMessage | None = field(init=False, default=None, repr=False)
    _unechoed: list[ContentBlock] = field(init=False, default_factory=list[ContentBlock], repr=False)
    """What of the last prompt the agent has not reported itself."""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls of the transcript."""
        return [entry for entry in self.entries if isinstance(entry, ToolCall)]

    def tool_call(self, tool_call_id: str) -> ToolCall | None:
        """The tool call with this id; None if there is none."""
        found = self._known.get((ToolCall, tool_call_id))
        return found if isinstance(found, ToolCall) else None

    def update(self, params: SessionNotification) -> None:
        """Apply the params of `session/update`; those of other sessions are ignored."""
        if params.session_id == self.session_id and self._has_room(params.update):
            self._report(self._changed_by(params.update))

    def ask(self, params: RequestPermissionRequest) -> None:
        """Apply what the params of `session/request_permission` tell about the tool call."""
        if params.session_id == self.session_id and self._has_room(params):
            self._report(self._ask_about(ToolCall, params.tool_call))

    def prompt(self, params: PromptRequest) -> None:
        """Append the message of a `session/prompt`, before it is sent: agents need not report it.

        If the agent reports it all the same, before it says anything, it stays one message.
        """
        self._prompted = UserMessage(content=list(params.prompt))
        self._unechoed = params.prompt
        self.entries.append(self._prompted)
        self._report(MessageChange(entry=self._prompted, content=tuple(params.prompt), is_whole=True))

    def apply(self, result: _SessionResult) -> None:
        """Apply the result of `session/new`, `load`, `resume`, `fork` or `set_config_option`."""
        names: set[SessionAttribute] = set()
        if not self._has_room(result):
            return
        for part in (result, getattr(result, "modes", None), getattr(result, "models", None)):
            names |= patch(self, part, *_OF_RESULTS)
        self._report(AttributesChange(names=frozenset(names)))

    def set_mode(self, params: SetSessionModeRequest) -> None:
        """Apply the params of a `session/set_mode` that has succeeded: its result is empty."""
        self.current_mode_id = params.mode_id
        self._report(AttributesChange(names=frozenset({"current_mode_id"})))

    def set_model(self, params: _ModelChoice) -> None:
        """Apply the params of a `session/set_model` that has succeeded, with the extension session-model."""
        self.choose_model(params.model_id)

    def choose_model(self, model_id: str) -> None:
        """Note that a model was set."""
        self.current_model_id = model_id
        self._report(AttributesChange(names=frozenset({"current_model_id"})))

    def _changed_by(self, update: SessionUpdate) -> SessionChange:
        match update:
            case SessionUpdateUserMessageChunk():
                return self._echo(update) or self._append(UserMessage, update)
            case SessionUpdateAgentMessageChunk():
                return self._append(AgentMessage, update)
            case SessionUpdateAgentThoughtChunk():
                return self._append(Thought, update)
            case SessionUpdateToolCall() | SessionUpdateToolCallUpdate():
                return self._patch_tool_call(ToolCall, update, null_clears=False)
            case SessionUpdatePlan():
                self.plan = update
                return PlanChange(plan=update)
            case _:
                change: SessionChange = self._apply_to_session(update)
                return change

    def _echo(self, chunk: SessionUpdateUserMessageChunk) -> MessageChange | None:
        """The change by a chunk that repeats what comes next in the prompt; None if it is a message of its own.

        The prompt is the last entry then: what follows the agent's work is not an echo, but said anew.
        """
        message, message_id = self._prompted, getattr(chunk, "message_id", UNSET)
        if message is None or self.entries[-1] is not message:
            return None
        rest = _without(self._unechoed, chunk.content)
        if rest is None or (isinstance(message_id, str) and not self._gets_id(message, message_id)):
            return None
        self._unechoed = rest
        return MessageChange(entry=message, content=(), is_whole=False)

    def _gets_id(self, message: UserMessage, message_id: str) -> bool:
        """True if the message has the id from now on, if not before; one has one, and no other message has it."""
        if (
            message.id not in ("", message_id)
            or self._known.setdefault((UserMessage, message_id), message) is not message
        ):
            return False
        message.id = message_id
        return True

    def _append(self, kind: type[_M], chunk: ContentChunk) -> MessageChange:
        return self._add(self._message(kind, getattr(chunk, "message_id", UNSET)), chunk.content)

    def _message(self, kind: type[_M], message_id: object) -> _M:
        if isinstance(message_id, str):
            return self._entry(kind, message_id)
        last = self.entries[-1] if self.entries else None
        if isinstance(last, kind) and last is not self._prompted:
            return last
        message = kind()
        self.entries.append(message)
        return message


def _without(blocks: list[ContentBlock], first: ContentBlock) -> list[ContentBlock] | None:
    """The blocks without the one that they begin with; None if they begin with another one. Texts may be split."""
    blocks = [block for block in blocks if not (isinstance(block, ContentBlockText) and not block.text)]
    if not isinstance(first, ContentBlockText):
        return blocks[1:] if blocks and blocks[0] == first else None
    wanted = first.text
    if not wanted:
        return None
    for number, block in enumerate(blocks):
        if not isinstance(block, ContentBlockText):
            return None
        if block.text.startswith(wanted):
            rest = block.text[len(wanted) :]
            return [ContentBlockText(text=rest), *blocks[number + 1 :]] if rest else blocks[number + 1 :]
        if not wanted.startswith(block.text):
            return None
        wanted = wanted[len(block.text) :]
    return None
