"""A client that answers permission requests: by rules, or by asking the user."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args

from ..client import Client, RemoteAgent
from ..types import PermissionOption, RequestPermissionRequest, RequestPermissionResponse
from .operations import Statement, is_same_operation, subject_of
from .permission_records import line_of
from .permission_rules import PermissionDecision, PermissionRules
from .permission_subjects import said_in, tool_call_id_of
from .permissions import permission_cancelled, select_permission_option
from .tool_subjects import PermissionSubject, said_by

__all__ = ["PermissionChoice", "PermissionClient", "PermissionQuestion"]

PermissionChoice: TypeAlias = Literal["allow", "allow_always", "deny", "deny_always", "cancel"]
"""The answer of the user. With "always", the client answers further questions like this, each with "once"."""

logger: Final = logging.getLogger("acp")
_NO_TITLE: Final = "Permission"
_MAX_LOOKS: Final = 3
"""How often a record is made anew because the agent has reported more meanwhile."""


@dataclass(frozen=True, kw_only=True)
class PermissionQuestion:
    """A question for the user. `title` is text of the model: show it, but decide by `subject`. `lines` have both.

    The subject is a record of what is shown, made when the question is put from all that the agent has said of the
    operation, and it alone is remembered. If the operation is another one when the user has allowed it, they are asked
    again: `earlier` is what they have allowed then.
    """

    title: str
    subject: PermissionSubject
    request: RequestPermissionRequest
    earlier: PermissionSubject | None = None

    @property
    def lines(self) -> list[str]:
        """The title, and a line for each thing that the subject has, safe to print on a terminal."""
        return [line_of(self.title), *self.subject.lines]

    @property
    def is_choice(self) -> bool:
        """True if several options are of one kind: show them, as neither a rule nor "allow" can answer for the user."""
        return _is_choice(self.request.options)

    def can(self, decision: PermissionDecision) -> bool:
        """True if the agent offers an option for it. Otherwise "allow" becomes "deny", and "deny" cancels the turn."""
        return bool(_option_for(self.request.options, decision))


class PermissionClient(Client):
    """A client that answers permission requests by `permissions`, and otherwise by `ask_permission`.

        class Chat(PermissionClient):
            def __init__(self, agent: RemoteAgent) -> None:
                super().__init__(agent)
                self.permissions = PermissionRules(PermissionRule("deny", path="/etc"), path="permissions.json")

            async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice:
                return "allow" if await yes_or_no(question.title) else "deny"

    A session has one question for the user at a time. Cancelling the request cancels `ask_permission`, which closes its
    dialog then; the answer is `cancelled`. `SessionClient` comes before it: `class Chat(SessionClient,
    PermissionClient)`.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.permissions = PermissionRules()
        self._asking: dict[str, tuple[asyncio.Lock, asyncio.Lock, list[asyncio.Task[Any] | None]]] = {}  # by session

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _check_order(cls)

    async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice | PermissionOption | None:
        """Ask the user. An option has to be one of the request; None leaves the answer to the next class."""
        return None

    def permission_changed(self, request: RequestPermissionRequest, decision: PermissionDecision) -> None:
        """Called where what the user has allowed does not hold; override it to tell them.

        With "ask", the operation has become another one, and they are asked about it next. With "deny", a rule refuses
        what it has become, or the agent offers no option for what they have said. With "allow", a rule allows what it
        has become. `SessionClient` makes it a change of the session.
        """

    def known_tool_call(self, session_id: str, tool_call_id: str) -> object | None:
        """The tool call that a question is about, as it was reported: the question may say only what is new.

        With a `SessionState`, look it up in `tool_calls`.
        """
        return None

    def asked_tool_call(self, request: RequestPermissionRequest) -> object | None:
        """The tool call of a question, as it was when the question came; None if it is the one that is known now."""
        return None

    def session_folder(self, session_id: str) -> str | None:
        """The folder of a session, in which commands run that name none; None if it is not known.

        What is remembered holds for this folder. `SessionClient` knows it.
        """
        return None

    async def session_request_permission(self, params: RequestPermissionRequest) -> RequestPermissionResponse:
        """Answer a question."""
        asked = self.asked_tool_call(params)
        first = self._reported(params) if asked is None else said_by(asked)
        try:
            with self._open(params.session_id) as (looking, lock):
                async with looking:  # so that the user gets them in their order
                    question = await self._question(params, first)
                answer = self._by_rules(question)
                if answer is None:
                    answer = await self._by_user(question, first, lock)
        except asyncio.CancelledError:
            return permission_cancelled()
        return await super().session_request_permission(params) if answer is None else answer

    def cancel_questions(self, session_id: str) -> None:
        """Answer all open questions of a session with `cancelled`: call it right after sending `session/cancel`."""
        *_, tasks = self._asking.get(session_id, (None, None, ()))
        for task in tasks:
            if task is not None:
                task.cancel()

    def _reported(self, params: RequestPermissionRequest) -> Statement:
        """What the agent has reported of the tool call of a question, without what questions have said of it."""
        tool_call_id = tool_call_id_of(params)
        known = None if tool_call_id is None else self.known_tool_call(params.session_id, tool_call_id)
        return said_by(getattr(known, "reported", None) or known)

    async def _question(
        self, params: RequestPermissionRequest, first: Statement, earlier: PermissionSubject | None = None
    ) -> PermissionQuestion:
        """The question as it is now. `first` is what was reported when it came: that is not taken back by silence."""
        folder, said = self.session_folder(params.session_id), said_in(params)
        looks = _MAX_LOOKS
        while True:
            now, looks = self._reported(params), looks - 1
            report = now.completed_by(first)
            look = partial(subject_of, said, report, folder=folder, is_report_newer=report != first)
            subject = await asyncio.to_thread(look)  # paths may be slow to look at
            if not looks or self._reported(params) == now:  # nothing was reported meanwhile
                break
        return PermissionQuestion(title=subject.title or _NO_TITLE, subject=subject, request=params, earlier=earlier)

    def _by_rules(self, question: PermissionQuestion) -> RequestPermissionResponse | None:
        options = question.request.options
        if question.is_choice:
            return None
        decision = self._decision(question)
        if decision == "ask" or (decision == "allow" and not _option_for(options, "allow")):
            return None  # a rule allows once, and the agent may offer only more than that
        return _answer(options, decision)

    def _decision(self, question: PermissionQuestion) -> PermissionDecision:
        decision = self.permissions.decide(question.subject)
        _check(decision, get_args(PermissionDecision), f"{type(self.permissions).__name__}.decide")
        return decision

    async def _by_user(
        self, question: PermissionQuestion, first: Statement, lock: asyncio.Lock
    ) -> RequestPermissionResponse | None:
        params, has_to_wait = question.request, lock.locked()
        async with lock:
            if has_to_wait:
                question = await self._question(params, first)
                if (answer := self._by_rules(question)) is not None:  # remembered meanwhile
                    return answer
            while True:
                choice = await self.ask_permission(question)
                if choice is None:
                    return None
                if not self._allows(question, choice):
                    return self._said(question, choice)
                now = await self._question(params, first, earlier=question.subject)
                is_same = is_same_operation(question.subject, now.subject)
                self._remember(question, choice)
                if is_same and (question.is_choice or self._decision(now) != "deny"):
                    if now.subject.record != question.subject.record:
                        self._remember(now, choice)  # it is the same with more detail, as it may be shown next time
                    return self._said(question, choice)
                if (answer := self._by_rules(now)) is not None:
                    return self._changed(now, answer)
                self._changed(now, None)
                question = now

    def _changed(
        self, question: PermissionQuestion, answer: RequestPermissionResponse | None
    ) -> RequestPermissionResponse | None:
        """Tell the log and the program that an operation is not the one that the user has allowed."""
        decision: PermissionDecision = "ask"
        if answer is not None:
            decision = "allow" if answer == _answer(question.request.options, "allow") else "deny"
        logger.warning(
            "an operation is not the one any more that the user has allowed: %s",
            {"ask": "they are asked again", "allow": "a rule allows it", "deny": "a rule refuses it"}[decision],
        )
        self.permission_changed(question.request, decision)
        return answer

    def _allows(self, question: PermissionQuestion, choice: PermissionChoice | PermissionOption) -> bool:
        """True if a choice is to let the operation go on."""
        if isinstance(choice, PermissionOption):
            return choice in question.request.options and choice.kind not in {"reject_once", "reject_always"}
        _check(choice, get_args(PermissionChoice), f"{type(self).__name__}.ask_permission")
        return choice in {"allow", "allow_always"}

    def _remember(self, question: PermissionQuestion, choice: PermissionChoice | PermissionOption) -> None:
        if choice == "allow_always" and not question.is_choice:
            self.permissions.remember_answer(question.subject, "allow")
        elif choice == "deny_always":
            self.permissions.remember_answer(question.subject, "deny")

    def _said(
        self, question: PermissionQuestion, choice: PermissionChoice | PermissionOption
    ) -> RequestPermissionResponse:
        """The answer that is what the user has said, or less."""
        options = question.request.options
        if isinstance(choice, PermissionOption):
            if choice in options:
                return select_permission_option(choice.option_id)
            logger.warning("an operation is refused: the agent has not offered the option that was chosen")
            return _answer(options, "deny")
        if choice == "cancel":
            return permission_cancelled()
        if choice in {"deny", "deny_always"}:
            self._remember(question, choice)
            return _answer(options, "deny")
        if not question.can("allow"):
            logger.warning("an operation is refused: the agent does not offer to allow it once")
            self.permission_changed(question.request, "deny")
            return _answer(options, "deny")
        return _answer(options, "allow")

    @contextmanager
    def _open(self, session_id: str) -> Generator[tuple[asyncio.Lock, asyncio.Lock], None, None]:
        """Let `cancel_questions` know a question. The locks are for its record, and for the user who is asked."""
        looking, lock, tasks = self._asking.setdefault(session_id, (asyncio.Lock(), asyncio.Lock(), []))
        task = asyncio.current_task()
        tasks.append(task)
        try:
            yield looking, lock
        finally:
            tasks.remove(task)
            if not tasks:
                del self._asking[session_id]


def _check_order(cls: type) -> None:
    """Raise `TypeError` for a class whose sessions come after its permissions: they would not hear of the questions."""
    bases: tuple[type[Any], ...] = cls.__mro__
    after = bases[bases.index(PermissionClient) :]
    late = next((each for each in after if "answer_permission" in vars(each)), None)
    if late is None:
        return
    session = next(each for each in bases if issubclass(each, late) and not issubclass(each, PermissionClient))
    others = [each.__name__ for each in cls.__bases__ if not issubclass(each, session)]
    raise TypeError(
        f"{session.__name__} must come before {PermissionClient.__name__} in the bases of {cls.__name__}: "
        f"class {cls.__name__}({', '.join([session.__name__, *others])})"
    )


def _check(answer: object, known: tuple[str, ...], method: str) -> None:
    """Raise `TypeError` for what a method of the user has returned, and is no answer: it must not become one."""
    if not (isinstance(answer, str) and answer in known):
        found = f"{answer!r:.100}" if isinstance(answer, (str, bool)) else type(answer).__name__
        hint = ": is an `await` missing?" if isinstance(answer, Awaitable) else ""
        raise TypeError(f"{method} returned {found}; expected one of {', '.join(map(repr, known))}{hint}")


def _answer(options: list[PermissionOption], decision: PermissionDecision) -> RequestPermissionResponse:
    option = _option_for(options, decision)
    return permission_cancelled() if option is None else select_permission_option(option.option_id)


def _is_choice(options: list[PermissionOption]) -> bool:
    return any(count > 1 for count in Counter(each.kind for each in options).values())


def _option_for(options: list[PermissionOption], decision: PermissionDecision) -> PermissionOption | None:
    """The option that is no more than the decision. An id that stands for two kinds could mean the other one."""
    if decision == "allow" and _is_choice(options):
        return None
    kinds = ("allow_once",) if decision == "allow" else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.kind == kind and all(each.kind == kind for each in options if each.option_id == option.option_id):
                return option
    return None
