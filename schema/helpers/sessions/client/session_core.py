"""The part of sessions that every version of the protocol has: their turns, questions, and early updates."""

from __future__ import annotations

import asyncio
import copy
import logging
import math
from collections.abc import Awaitable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, TypeVar

from ..types import ContentBlock, PromptRequest, RequestPermissionRequest, RequestPermissionResponse
from .content import text
from .idle_time import IdleTime, TurnStalledError
from .memory import memory_of
from .permission_subjects import tool_call_id_of
from .permissions import permission_answer, permission_cancelled
from .prompt_turns import NoAnswerError, SessionClosedError, SessionFullError, Turn
from .replays import REPLAYED, Quiet
from .session_choices import ChosenSetting, SettingKey, SettingValue
from .session_entries import FINAL, ToolCall
from .session_settings import apply_setting, mode_setting, model_setting, send_setting

__all__ = ["ConnectionChange", "PermissionAsked", "PermissionChanged", "TurnStalledError"]

_MAX_EARLY = 2**23
"""The most memory of the updates that are kept for sessions whose id is not known yet."""
logger = logging.getLogger("acp")
_CAPABILITIES = {"image": "image", "audio": "audio", "resource": "embedded_context"}
"""The capability that the agent must advertise, by the type of block in a prompt."""


@dataclass(frozen=True, kw_only=True)
class PermissionAsked:
    """The agent asks for permission; `SessionClient.answer_permission` answers."""

    request: RequestPermissionRequest


@dataclass(frozen=True, kw_only=True)
class PermissionChanged:
    """What the user has allowed does not hold: for `PermissionClient`, which says why in `permission_changed`.

    With "ask", the operation has become another one, and the user is asked again. With "deny" it is refused, and with
    "allow" a rule allows what it has become.
    """

    request: RequestPermissionRequest
    decision: Literal["allow", "ask", "deny"]


class ConnectionChange:
    """Something has happened to the connection of a session: the classes of the part `recovery` say what."""


class _State(Protocol):
    @property
    def is_full(self) -> bool: ...
    @property
    def last_bytes(self) -> int: ...
    def ask(self, params: RequestPermissionRequest) -> None: ...
    @property
    def entries(self) -> Sequence[Any]: ...
    def tool_call(self, tool_call_id: str) -> object | None: ...


S = TypeVar("S", bound=_State)
Ch = TypeVar("Ch")


class SessionCore(Generic[S, Ch]):
    """A session: the base of `Session`."""

    def __init__(self, client: Any, session_id: str, cwd: str, *, state: S) -> None:
        self.id = session_id
        self.cwd = cwd
        self.state: S = state
        """The state of the session, as the agent has reported it, and as this side has set it."""
        self.reported: S = state
        """What reports of the agent go to: another state while the session is being opened again."""
        self.chosen: dict[SettingKey, SettingValue] = {}
        """The values that were set by this side, by the kind and the id of the setting."""
        self.opened_at: float | None = None
        """When a request for a new session has made it, by the clock of the event loop; None if it may be older."""
        self.idle_time = IdleTime(self._idle_limit)
        self.quiet = Quiet()
        self._client = client
        self._turns = list[Turn[Ch]]()  # those that were sent and have not ended, in this order
        self._first_entry = 0  # the number of entries when the first of them began
        self._questions = set[asyncio.Future[None]]()  # of each open question; done if it is closed
        self._asked: dict[int, object] = {}  # the tool call of each open question, as it was then, by id of the request
        self._handlers = set[object]()  # the tasks that answer requests about the session
        self._gone = ""  # why nothing is sent in it any more

    @property
    def has_turns(self) -> bool:
        """True while the agent works on a prompt of this session."""
        return bool(self._turns)

    def prompt(self, *content: str | ContentBlock, idle_seconds: float | None = None) -> Turn[Ch]:
        """A prompt with this content; it is sent when the `Turn` is used.

        With `idle_seconds`, the turn is cancelled and raises `TurnStalledError` once the agent has sent nothing about
        the session for so long. While a request of the agent is open, such as a question to the user or a command in a
        terminal, that time does not begin; nor does it before the prompt is sent. While a tool call of the turn has no
        final status, as the agent may run a command that says nothing, the time is `SessionClient.call_seconds`.

        Raises `ValueError` without content and for content that the agent has not advertised, `TypeError` for what is
        no content, and `SessionClosedError`.
        """
        self._check_open()
        if not content:
            raise ValueError("a prompt needs content: at least one text or content block")
        if idle_seconds is not None and not idle_seconds > 0:
            raise ValueError(f"idle_seconds must be above 0, and not {idle_seconds}")
        blocks: list[ContentBlock] = [text(each) if isinstance(each, str) else each for each in content]
        for block in blocks:
            if not hasattr(block, "type"):
                raise TypeError(f"a prompt has texts and content blocks, and no {type(block).__name__}")
            name = _CAPABILITIES.get(block.type)
            if name is not None and not self._client.takes(name):
                raise ValueError(f"the agent takes no {block.type} in prompts: it has not advertised {name}")
        request = PromptRequest(session_id=self.id, prompt=blocks)

        def play(turn: Turn[Ch]) -> Awaitable[tuple[str, str]]:
            return self._play(turn, request)

        return Turn(
            play,
            self._cancel_turn,
            cancel_seconds=self._client.cancel_seconds,
            max_pending=self._client.max_pending,
            idle_seconds=idle_seconds,
            check=self._check_waiter,
        )

    async def ask(self, *content: str | ContentBlock, idle_seconds: float | None = None) -> str:
        """Send a prompt, and wait for the end of its turn; returns the text of the agent's messages.

        It raises what `prompt` and its turn do, and `NoAnswerError` for every end but `end_turn`.
        """
        result = await self.prompt(*content, idle_seconds=idle_seconds)
        if result.stop_reason != "end_turn":
            raise NoAnswerError(result)
        return result.text

    # --- Settings ----------------------------------------------------------------------------------------------------

    async def set_mode(self, mode_id: str) -> None:
        """Choose the mode. The state has it when this returns, and the change is reported.

        An agent may offer modes as an option of this category; then that is set. Raises `RequestError` if the agent
        refuses, and `ValueError` if it offers no modes and the protocol has no request for them.
        """
        shown: Any = self.state  # of this version of the protocol
        await self._choose(mode_setting(shown, mode_id))

    async def set_model(self, model_id: str) -> None:
        """Choose the model: by `session/set_model` where package and agent have it, or by an option of this category.

        Raises `RequestError`, and `ValueError` if the agent offers no models.
        """
        shown: Any = self.state
        await self._choose(model_setting(shown, model_id))

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Set an option: a text chooses one of the values of a list. Raises `RequestError` if the agent refuses."""
        await self._choose(ChosenSetting("option", option_id, value))

    async def _choose(self, setting: ChosenSetting) -> None:
        self._check_open()
        result = await send_setting(self._client.agent, self.id, setting)
        self.chosen[setting.key] = setting.value
        state: Any = self.reported
        apply_setting(state, setting, result)

    # --- Turns -------------------------------------------------------------------------------------------------------

    def join(self, client: Any) -> None:
        """Go on with another client, after the connection of this one has ended."""
        self._client = client

    def heard(self, update: Any = None) -> bool:
        """Note that the agent has sent an update of the session, or a request about it; false if it does not count."""
        self.idle_time.heard()
        if update is not None and update.session_update in REPLAYED:
            self.quiet.heard()
        return True

    async def _ready(self, turn: Turn[Ch], request: PromptRequest) -> PromptRequest:
        """Called before a prompt is sent, when it is its turn; returns what to send. What it raises ends the turn."""
        return request

    def _show_prompt(self, request: PromptRequest) -> None:
        """Add a prompt to the conversation, if agents need not report it."""

    async def _send_prompt(self, turn: Turn[Ch], request: PromptRequest) -> Any:
        """Send a prompt that was shown; returns the response."""
        return await self._client.agent.session_prompt(request)

    async def _play(self, turn: Turn[Ch], request: PromptRequest) -> tuple[str, str]:
        """Send a prompt, and wait for the end of its turn; returns the stop reason, and the id of the message."""
        raise NotImplementedError

    def _check_open(self) -> None:
        if self._gone:
            raise SessionClosedError(self._gone)

    def _check_waiter(self) -> None:
        if self._turns and asyncio.current_task() in self._handlers:
            text = "the agent waits for this handler, and would not end a turn before: start a task for the prompt"
            raise RuntimeError(text)

    @contextmanager
    def handling(self, task: object) -> Generator[None, None, None]:
        """The task answers a request of the agent about this session during the block."""
        self._handlers.add(task)
        try:
            yield
        finally:
            self._handlers.discard(task)

    async def _cancelled(self, turn: Turn[Ch]) -> None:
        """Ask why a turn was cancelled, before the next prompt is sent."""
        turn.is_unasked = turn.is_cut_off(len(self.state.entries)) and not self._gone
        if turn.is_unasked:
            await self._cut_off()

    async def _cut_off(self) -> None:
        """Called when the agent has cancelled a turn by itself; what it raises ends the turn."""

    async def _cancel_turn(self, turn: Turn[Ch]) -> None:
        if turn in self._turns:
            for each in self._turns:
                each.may_be_cancelled = True
            await self._send_cancel()
        else:
            turn.drop()  # its prompt was not sent: the agent must not get a cancellation that comes first

    async def _send_cancel(self) -> None:
        """Ask the agent to cancel its work."""
        raise NotImplementedError

    def _changed(self, change: Any) -> None:
        """Give a change to the first turn that runs, or else to the client."""
        if self._turns:
            self._turns[0].receive(change, self.state.last_bytes)
        else:
            self._client.session_changed(self, change)

    def _idle_limit(self, seconds: float) -> float:
        """How long the agent may be silent now, where `seconds` is what a turn says."""
        if self._client.open_requests.is_about(self.id):
            return math.inf
        recent = self.state.entries[self._first_entry :]
        if any(isinstance(each, ToolCall) and each.status not in FINAL for each in recent):
            limit: float | None = self._client.call_seconds
            return math.inf if limit is None else max(seconds, limit)
        return seconds

    @contextmanager
    def _active(self, turn: Turn[Ch]) -> Generator[None, None, None]:
        if self._gone or self.state.is_full:
            self._check_open()
            raise self.full()
        if not self._turns:
            self._first_entry = len(self.state.entries)
        self._turns.append(turn)
        try:
            with self.idle_time.limited(turn.idle_seconds, turn.stall):
                yield
        finally:
            self._turns.remove(turn)

    async def ask_user(self, request: RequestPermissionRequest) -> RequestPermissionResponse:
        """The answer to a question about this session; "cancelled" if `cancel_questions` is called before.

        That holds also where the user has answered at the same time, or the dialog does not end when it is cancelled.
        """
        self.reported.ask(request)
        if self._gone or self.state.is_full:
            return permission_cancelled()
        tool_call_id = tool_call_id_of(request)
        known = None if tool_call_id is None else self.state.tool_call(tool_call_id)
        asked = copy.copy(getattr(known, "reported", None) or known)
        self._changed(PermissionAsked(request=request))
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        question: asyncio.Future[RequestPermissionResponse] = asyncio.ensure_future(
            self._client.answer_permission(self, request)
        )
        self._questions.add(closed)
        self._asked[id(request)] = asked
        try:
            ends: set[asyncio.Future[Any]] = {question, closed}
            with self.handling(question):
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            is_closed = closed.done() or question.cancelled()
            answer = permission_cancelled() if is_closed else question.result()
            self._note_answer(request, answer)
            return answer
        finally:
            del self._asked[id(request)]
            self._questions.discard(closed)
            closed.cancel()
            question.cancel()

    def _note_answer(self, request: RequestPermissionRequest, answer: object) -> None:
        """Some agents cancel the turn when the user says no: that is no end that nobody has asked for."""
        said = answer if isinstance(answer, RequestPermissionResponse) else permission_cancelled()
        if not permission_answer(request.options, said).allowed:
            for turn in self._turns:
                turn.refused(len(self.state.entries))

    def asked_tool_call(self, request: RequestPermissionRequest) -> object | None:
        """The tool call of an open question, as it was reported when the question came."""
        return self._asked.get(id(request))

    def permission_changed(self, change: PermissionChanged) -> None:
        """What the user has allowed does not hold."""
        self._changed(change)

    def cancel_questions(self) -> None:
        """Close the open questions, and the forms of a `FormClient`."""
        for closed in self._questions:
            if not closed.done():
                closed.set_result(None)
        cancel_forms: Any = getattr(self._client, "cancel_forms", None)
        if cancel_forms is not None:
            cancel_forms(self.id)

    def give_up(self) -> None:
        """End all turns: the agent has reported too much."""
        for turn in [*self._turns]:
            turn.abort(self.full())
        self.cancel_questions()

    def full(self) -> SessionFullError:
        """The error of a session whose state is full."""
        return SessionFullError(f"the agent has reported too much in the session {self.id!r} (max_state_bytes)")

    def lose(self, reason: Exception) -> None:
        """End everything that waits: the connection has ended."""
        self.cancel_questions()
        self.quiet.lose(reason)

    def retire(self, reason: str) -> None:
        """End this object: nothing is sent in it any more."""
        self._gone = reason
        self.lose(SessionClosedError(reason))


class Early:
    """Updates for sessions whose id is not known yet, as their request is not answered."""

    def __init__(self) -> None:
        self._opening = 0
        self._updates: dict[str, list[Any]] = {}
        self._bytes = 0

    @contextmanager
    def kept(self) -> Generator[None, None, None]:
        """Keep updates of unknown sessions while the block runs."""
        self._opening += 1
        try:
            yield
        finally:
            self._opening -= 1
            if not self._opening:
                self._updates.clear()
                self._bytes = 0

    def add(self, session_id: str, params: Any) -> None:
        """Keep an update if a session is being opened, and those that are kept are not too large."""
        if not self._opening:
            return
        size = memory_of(params)
        if self._bytes + size > _MAX_EARLY:
            logger.warning("an update of a session that is not open yet is ignored: there are too many")
            return
        self._updates.setdefault(session_id, []).append(params)
        self._bytes += size

    def take(self, session_id: str) -> Sequence[Any]:
        """The updates of a session, in their order; they are not kept any more."""
        return self._updates.pop(session_id, [])
