"""The parts of a session that every version of the protocol has, their changes, and how an update makes these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import MISSING, Field, InitVar, dataclass, field, fields, replace
from sys import getsizeof
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, cast

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
from .memory import memory_of

__all__ = [
    "AgentMessage",
    "AttributesChange",
    "Compaction",
    "CompactionChange",
    "Message",
    "MessageChange",
    "PlanChange",
    "Thought",
    "ToolCallChange",
    "Usage",
    "UserMessage",
]


_TELLING: Final = ("title", "kind", "name", "content", "locations", "raw_input")
"""What tells the operation of a tool call."""
_PIECE: Final = 1_000
"""The memory of a piece of text beside the text."""


def patch(target: object, update: object, *names: str, null_clears: bool = True, empty_clears: bool = True) -> set[Any]:
    """Change the fields of a dataclass that an update has, too: all of them, or those in `names`. Returns their names.

    A field that is absent from the update keeps its value; null sets it to its default, or keeps it with `null_clears`
    off; any other value replaces it, but for an empty one with `empty_clears` off. `meta` is merged by key instead, and
    null under a key removes the key. A field can have its own function "read" in `metadata`, for a value that has
    another form in updates.
    """
    changed: set[Any] = set()
    for each in fields(cast("Any", target)):
        value: Any = getattr(update, each.name, UNSET)
        is_asked = not names or each.name in names
        if value is UNSET or each.name == "id" or not is_asked or (value is None and not null_clears):
            continue
        if not empty_clears and _is_empty(update, each.name):
            continue
        changed.add(each.name)
        if value is None:
            setattr(target, each.name, _default(each))
        elif each.name == "meta":
            _merge(getattr(target, each.name), value)
        else:
            read: Callable[[Any], Any] = each.metadata.get("read", copy)  # a copy: chunks are appended to lists
            setattr(target, each.name, read(value))
    return changed


def _is_empty(update: object, name: str) -> bool:
    """True if an update has a value that says nothing."""
    value: Any = getattr(update, name, UNSET)
    return _is_nothing(value) if name in ("raw_input", "raw_output") else value is None or value in ("", [])


def _is_nothing(raw: Any) -> bool:
    """True if JSON is empty, or made of empty values alone."""
    if raw.__class__ is dict:
        return all(map(_is_nothing, raw.values()))
    if raw.__class__ is list:
        return all(map(_is_nothing, raw))
    return raw is None or raw == ""


def _joined(known: Any, said: Any) -> Any:
    """The input that was known with what a question says of it."""
    if known.__class__ is not dict or said.__class__ is not dict:
        return said
    return {**known, **{name: value for name, value in said.items() if not _is_nothing(value)}}


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
    _joined: tuple[list[ContentBlock], int, str] | None = field(init=False, repr=False, default=None)
    """The list of which text was read, how many of its blocks, and their text."""

    @property
    def text(self) -> str:
        """The text of all blocks that are text, joined. Reads only the blocks that are new since the last time."""
        blocks, count, text = self._joined or (self.content, 0, "")
        if blocks is not self.content or count > len(blocks):
            count, text = 0, ""
        text += _text(self.content[count:])
        self._joined = (self.content, len(self.content), text)
        return text


def _text(blocks: Iterable[ContentBlock]) -> str:
    return "".join(block.text for block in blocks if isinstance(block, ContentBlockText))


class UserMessage(Message):
    """A message of the user."""


class AgentMessage(Message):
    """A message of the agent."""


class Thought(Message):
    """A part of the agent's reasoning."""


@dataclass(eq=False, kw_only=True)
class ToolCall(_Entry):
    """A tool call as the agent has reported it; attributes that were not reported have their defaults."""

    title: str | None = None
    name: str | None = None
    kind: ToolKind | None = None
    """None if the agent has not said it: it may be any."""
    status: ToolCallStatus = "pending"
    content: list[ToolCallContent] = field(default_factory=list[ToolCallContent])
    locations: list[ToolCallLocation] = field(default_factory=list[ToolCallLocation])
    raw_input: Any = None
    raw_output: Any = None
    reported: Any = field(init=False, repr=False, default=None)
    """The same call by its reports alone, if questions have said more of it, or reports have emptied something."""


@dataclass(eq=False, kw_only=True)
class Compaction(_Entry):
    """A compaction of the context."""

    status: str = "in_progress"
    summary: list[ContentBlock] = field(default_factory=list[ContentBlock])
    error: str | None = None


# --- Changes ---------------------------------------------------------------------------------------------------------

C = TypeVar("C", bound=ToolCall)
N = TypeVar("N", bound=str)
P = TypeVar("P")

AnyMessage: TypeAlias = UserMessage | AgentMessage | Thought


@dataclass(frozen=True, kw_only=True)
class MessageChange:
    """A message is new, goes on, or was replaced."""

    entry: AnyMessage
    content: tuple[ContentBlock, ...]
    """The blocks that are new."""
    is_whole: bool
    """True if `content` is all that the message has now; otherwise it continues what was there."""

    @property
    def text(self) -> str:
        """The text that is new."""
        first = self.content[0] if len(self.content) == 1 else None  # of a streamed message, which must be fast
        return first.text if isinstance(first, ContentBlockText) else _text(self.content)


@dataclass(frozen=True, kw_only=True)
class ToolCallChange(Generic[C]):
    """A tool call is new, has changed, or has ended; a short one is new and has ended at once."""

    call: C
    is_new: bool = False
    has_ended: bool = False
    """True if this change has made its status final."""


@dataclass(frozen=True, kw_only=True)
class CompactionChange:
    """A compaction is new or has changed."""

    compaction: Compaction


@dataclass(frozen=True, kw_only=True)
class PlanChange(Generic[P]):
    """A plan is new, was replaced, or was removed."""

    plan: P | None
    """The plan as it is now; None if it was removed."""
    plan_id: str = ""
    """Its id; empty for the one plan of a session in protocol 1."""


@dataclass(frozen=True, kw_only=True)
class AttributesChange(Generic[N]):
    """Attributes of the `SessionState` that were set, by their names."""

    names: frozenset[N]


FINAL: Final = ("completed", "failed", "cancelled")
"""The statuses of tool calls that have ended."""


def _progress(status: str) -> int:
    """How far a tool call is: statuses that are not known are between the start and the end."""
    return 0 if status == "pending" else 2 if status in FINAL else 1


def _option_id(option: object) -> object:
    return getattr(option, "id", None) or getattr(option, "config_id", None)


def _with_value(option: Any, value: str | bool) -> Any:
    return replace(option, current_value=value) if hasattr(option, "current_value") else option


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


class Plan(Protocol):
    """A plan with an id. A protocol, as protocol 1 has no class for it without an extension."""

    @property
    def plan_id(self) -> str: ...


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
    max_bytes: InitVar[int] = field(default=2**28, kw_only=True)
    """The most memory of what the agent has reported."""
    _is_full: bool = field(init=False, repr=False, default=False)
    _last_bytes: int = field(init=False, repr=False, default=0)
    _bytes: int = field(init=False, repr=False, default=0)
    entries: list[Any] = field(init=False, default_factory=list[Any])
    config_options: list[SessionConfigOption] = field(init=False, default_factory=list[SessionConfigOption])
    available_commands: list[AvailableCommand] = field(init=False, default_factory=list[AvailableCommand])
    title: str | None = field(init=False, default=None)
    updated_at: str | None = field(init=False, default=None)
    meta: dict[str, Any] = field(init=False, default_factory=dict[str, Any])
    usage: Usage | None = field(init=False, default=None)
    plans: dict[str, Any] = field(init=False, default_factory=dict[str, Any])
    """The plans that have an id, by it."""
    _known: dict[tuple[type, str], Any] = field(init=False, repr=False, default_factory=dict[tuple[type, str], Any])
    """The entries that have an id, by class and id: found without a search of the transcript."""
    _ended: set[ToolCall] = field(init=False, repr=False, default_factory=set[ToolCall])
    """The calls that this side has shown as ended."""

    def __post_init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    @property
    def is_full(self) -> bool:
        """True if the agent has reported more than `max_bytes`: since then, nothing is applied."""
        return self._is_full

    @property
    def last_bytes(self) -> int:
        """The memory of what was reported last."""
        return self._last_bytes

    def _has_room(self, report: Any) -> bool:
        """Count what the agent reports; False if it must not be applied.

        What replaces something else is counted, too, until the limit is reached. Then all that is there is measured.
        """
        if self._is_full:
            return False
        content: Any = getattr(report, "content", None)
        is_text = content.__class__ is ContentBlockText and not (content.meta or content.annotations or report.meta)
        if is_text and hasattr(report, "message_id"):  # a piece of a message: the usual case, which must be fast
            self._last_bytes = _PIECE + getsizeof(content.text) + getsizeof(report.message_id)
        else:
            self._last_bytes = memory_of(report)
        self._bytes += self._last_bytes
        if self._bytes > self._max_bytes:
            kept = [getattr(self, each.name) for each in fields(self) if each.name != "on_change"]
            self._bytes = self._last_bytes + memory_of(kept)
            self._is_full = self._bytes > self._max_bytes * 3 // 4  # so that it is not measured each time from now on
        return not self._is_full

    def _entry(self, kind: type[E], entry_id: str) -> E:
        """The entry with this id, which is appended to the transcript if it is new."""
        found = self._known.get((kind, entry_id))
        if isinstance(found, kind):
            return found
        made = self._known[kind, entry_id] = kind(id=entry_id)
        self.entries.append(made)
        return made

    def _add(self, entry: AnyMessage, content: ContentBlock) -> MessageChange:
        entry.content.append(content)
        return MessageChange(entry=entry, content=(content,), is_whole=len(entry.content) == 1)

    def _patch_tool_call(
        self, kind: type[C], update: Any, *, null_clears: bool = True, is_question: bool = False
    ) -> ToolCallChange[C]:
        is_new = (kind, update.tool_call_id) not in self._known
        call: Any = self._entry(kind, update.tool_call_id)
        was = call.status
        if call.reported is None and (is_question or any(_is_empty(update, name) for name in _TELLING)):
            call.reported = copy(call)
        if call.reported is not None and not is_question:
            patch(call.reported, update, null_clears=False, empty_clears=False)
        patch(call, update, null_clears=null_clears, empty_clears=not is_question)
        is_final = call.status in FINAL
        if was in FINAL and not is_final and call in self._ended:
            call.status = was  # an end that was shown is not taken back
        return ToolCallChange(call=call, is_new=is_new, has_ended=is_final and was not in FINAL)

    def _ask_about(self, kind: type[C], said: Any) -> ToolCallChange[C]:
        """Apply what a question says about a tool call; what it leaves empty, or knows less of, stays.

        An input is what was reported and what the question says: agents tell a part in each. The status goes forward,
        unless the call has ended: then it is another one, with an id that is used again.
        """
        before: Any = copy(self._known.get((kind, said.tool_call_id)))
        change = self._patch_tool_call(kind, said, null_clears=False, is_question=True)
        if before is None or before.status in FINAL:
            return change
        call: Any = change.call
        call.raw_input = _joined(before.raw_input, call.raw_input)
        call.status = max(before.status, call.status, key=_progress)
        return ToolCallChange(call=call, has_ended=call.status in FINAL)

    def end_call(self, call: C, status: str) -> ToolCallChange[C]:
        """Show a call as ended before the agent says so: a later report may have another end, and none opens it."""
        ended: Any = status
        call.status = ended
        self._ended.add(call)
        return ToolCallChange(call=call, has_ended=True)

    def follow(self, other: SessionBase, names: Iterable[str]) -> None:
        """Take attributes of another state of this session, and report them."""
        found = frozenset(names)
        for name in found:
            if name == "meta":
                _merge(self.meta, other.meta)
            else:
                setattr(self, name, getattr(other, name))
        if found:
            self._report(AttributesChange[Any](names=found))

    def set_option(self, option_id: str, value: str | bool) -> None:
        """Apply an option that was set, where the result has not told the options: those that are known, with it."""
        self.config_options = [
            _with_value(option, value) if _option_id(option) == option_id else option for option in self.config_options
        ]
        self._report(AttributesChange[Any](names=frozenset({"config_options"})))

    def _apply_to_session(self, update: Any) -> Any:
        """Apply an update that is not of a message or tool call. Returns the change, or the update if it is unknown.

        It is recognised by tag and attributes: not every release has a class for it, and unknown updates have the tag
        alone.
        """
        match update.session_update:
            case "usage_update" if hasattr(update, "used"):
                self.usage = self.usage or Usage()
                patch(self.usage, update)
                return AttributesChange[Any](names=frozenset({"usage"}))
            case "compaction_update" if hasattr(update, "compaction_id"):
                compaction = self._entry(Compaction, update.compaction_id)
                patch(compaction, update)
                return CompactionChange(compaction=compaction)
            case "compaction_summary_chunk" if hasattr(update, "compaction_id"):
                compaction = self._entry(Compaction, update.compaction_id)
                compaction.summary.append(update.content)
                return CompactionChange(compaction=compaction)
            case "plan_update" if hasattr(update, "plan") and hasattr(update.plan, "plan_id"):
                self.plans[update.plan.plan_id] = update.plan
                return PlanChange[Any](plan=update.plan, plan_id=update.plan.plan_id)
            case "plan_removed" if hasattr(update, "plan_id") and self.plans.pop(update.plan_id, None) is not None:
                return PlanChange[Any](plan=None, plan_id=update.plan_id)
            case tag if any(hasattr(update, name) for name in _FIELDS.get(tag, ())):
                return AttributesChange[Any](names=frozenset(patch(self, update, *_FIELDS[tag])))
            case _:
                return update

    def _report(self, change: object) -> None:
        if self.on_change is not None:
            self.on_change(change)
