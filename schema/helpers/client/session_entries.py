"""The parts of a session that every version of the protocol has, and the one rule by which an update changes them."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Protocol, TypeVar, cast

from .._base import UNSET
from ..types import (
    AvailableCommand,
    ContentBlock,
    ContentBlockText,
    SessionConfigOption,
    ToolCallContent,
    ToolCallLocation,
    ToolCallStatus,
    ToolKind,
)

__all__ = ["AgentMessage", "Compaction", "Message", "Thought", "Usage", "UserMessage"]

T = TypeVar("T")


def patch(target: T, update: object, *names: str, null_clears: bool = True) -> T:
    """Change the fields of a dataclass that an update has, too: all of them, or those in `names`. Returns `target`.

    A field that is absent from the update keeps its value; null sets it to its default, or keeps it with `null_clears`
    off; any other value replaces it. `meta` is merged by key instead, and null under a key removes the key. A field can
    have its own function "read" in `metadata`, for a value that has another form in updates.
    """
    for each in fields(cast("Any", target)):
        value: Any = getattr(update, each.name, UNSET)
        if value is UNSET or each.name == "id" or (names and each.name not in names):
            continue
        if value is None:
            if null_clears:
                setattr(target, each.name, _default(each))
        elif each.name == "meta":
            _merge(getattr(target, each.name), value)
        else:
            read: Callable[[Any], Any] = each.metadata.get("read", copy)  # a copy: chunks are appended to lists
            setattr(target, each.name, read(value))
    return target


def _default(each: Field[Any]) -> Any:
    return each.default if each.default_factory is MISSING else each.default_factory()


def _merge(meta: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if value is None:
            meta.pop(key, None)
        else:
            meta[key] = value


# --- Entries ---------------------------------------------------------------------------------------------------------


@dataclass(eq=False, kw_only=True)
class _Entry:
    """An entry of the transcript. It stays the same object when it changes, and can be a key of a dict."""

    id: str = ""
    """The id that the agent chose; empty if there is none."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])


E = TypeVar("E", bound=_Entry)


@dataclass(eq=False, kw_only=True)
class Message(_Entry):
    """A message: the base of `UserMessage`, `AgentMessage` and `Thought`."""

    content: list[ContentBlock] = field(default_factory=list[ContentBlock])
    """The blocks as they came: a streamed text has one for each chunk."""

    @property
    def text(self) -> str:
        """The text of all blocks that are text, joined."""
        return "".join(block.text for block in self.content if isinstance(block, ContentBlockText))


class UserMessage(Message):
    """A message of the user."""


class AgentMessage(Message):
    """A message of the agent."""


class Thought(Message):
    """A part of the agent's reasoning."""


@dataclass(eq=False, kw_only=True)
class ToolCall(_Entry):
    """A tool call, with all that the agent has reported about it; what it has not is at its default."""

    title: str | None = None
    name: str | None = None
    kind: ToolKind = "other"
    status: ToolCallStatus = "pending"
    content: list[ToolCallContent] = field(default_factory=list[ToolCallContent])
    locations: list[ToolCallLocation] = field(default_factory=list[ToolCallLocation])
    raw_input: Any = None
    raw_output: Any = None


@dataclass(eq=False, kw_only=True)
class Compaction(_Entry):
    """A compaction of the context."""

    status: str = "in_progress"
    summary: list[ContentBlock] = field(default_factory=list[ContentBlock])
    error: str | None = None


# --- The session -----------------------------------------------------------------------------------------------------


class _Cost(Protocol):
    """A cost. A protocol, as older releases have no class for it."""

    @property
    def amount(self) -> float: ...
    @property
    def currency(self) -> str: ...


@dataclass(eq=False, kw_only=True)
class Usage:
    """How many tokens the context holds, how many it can hold, and what the session has cost so far."""

    used: int = 0
    size: int = 0
    cost: _Cost | None = None


_FIELDS = {
    "available_commands_update": ("available_commands",),
    "config_option_update": ("config_options",),
    "current_mode_update": ("current_mode_id",),
    "session_info_update": ("title", "updated_at", "meta"),
}
"""The fields of the session that an update changes, by its tag."""


@dataclass(eq=False)
class SessionBase:
    """The part of `SessionState` that all versions of the protocol share."""

    session_id: str
    on_change: Callable[[Any], object] | None = field(default=None, kw_only=True, repr=False)
    entries: list[Any] = field(init=False, default_factory=list[Any])
    config_options: list[SessionConfigOption] = field(init=False, default_factory=list[SessionConfigOption])
    available_commands: list[AvailableCommand] = field(init=False, default_factory=list[AvailableCommand])
    title: str | None = field(init=False, default=None)
    updated_at: str | None = field(init=False, default=None)
    meta: dict[str, Any] = field(init=False, default_factory=dict[str, Any])
    usage: Usage | None = field(init=False, default=None)
    _known: dict[tuple[type, str], Any] = field(init=False, repr=False, default_factory=dict[tuple[type, str], Any])
    """The entries that have an id, by class and id: found without a search of the transcript."""

    def _entry(self, kind: type[E], entry_id: str) -> E:
        """The entry with this id, which is appended to the transcript if it is new."""
        found = self._known.get((kind, entry_id))
        if isinstance(found, kind):
            return found
        made = self._known[kind, entry_id] = kind(id=entry_id)
        self.entries.append(made)
        return made

    def _apply_to_session(self, update: Any) -> Any:
        """Apply an update that is not of a message or tool call. Returns what it has changed, or itself if unknown.

        It is recognised by tag and attributes: not every release has a class for it, and unknown updates have the tag
        alone.
        """
        match update.session_update:
            case "usage_update" if hasattr(update, "used"):
                self.usage = patch(self.usage or Usage(), update)
                return self.usage
            case "compaction_update" if hasattr(update, "compaction_id"):
                return patch(self._entry(Compaction, update.compaction_id), update)
            case "compaction_summary_chunk" if hasattr(update, "compaction_id"):
                compaction = self._entry(Compaction, update.compaction_id)
                compaction.summary.append(update.content)
                return compaction
            case tag if any(hasattr(update, name) for name in _FIELDS.get(tag, ())):
                return patch(self, update, *_FIELDS[tag])
            case _:
                return update

    def _report(self, changed: object) -> None:
        if self.on_change is not None:
            self.on_change(changed)
