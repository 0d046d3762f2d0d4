"""A client that answers permission requests: by rules, or by asking the user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from ..client import Client, RemoteAgent
from ..types import PermissionOption, RequestPermissionRequest, RequestPermissionResponse
from .permission_records import line_of
from .permission_rules import PermissionDecision, PermissionRules
from .permission_subjects import subject_of, title_of, tool_call_id_of
from .permissions import permission_cancelled, select_permission_option
from .tool_subjects import PermissionSubject

__all__ = ["PermissionChoice", "PermissionClient", "PermissionQuestion"]

PermissionChoice: TypeAlias = Literal["allow", "allow_always", "deny", "deny_always", "cancel"]
"""The answer of the user. With "always", the client answers further questions like this, each with "once"."""

logger: Final = logging.getLogger("acp")


@dataclass(frozen=True, kw_only=True)
class PermissionQuestion:
    """A question for the user. `title` is text of the model: show it, but decide by `subject`. `lines` have both.

    The subject is a record of what is shown, made when the question is put, and it alone is remembered. An answer that
    allows refuses the operation if the tool call, or what its paths lead to, has changed meanwhile.
    """

    title: str
    subject: PermissionSubject
    request: RequestPermissionRequest

    @property
    def lines(self) -> list[str]:
        """The title, and a line for each thing that the subject has, safe to print on a terminal."""
        return [line_of(self.title), *self.subject.lines]

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
    dialog then; the answer is `cancelled`.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.permissions = PermissionRules()
        self._asking: dict[str, tuple[asyncio.Lock, list[asyncio.Task[Any] | None]]] = {}  # by session

    async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice | PermissionOption | None:
        """Ask the user. An option has to be one of the request; None leaves the answer to the next class."""
        return None

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
        try:
            known = self.asked_tool_call(params) or self._known(params)
            before = subject_of(params, known, folder=self.session_folder(params.session_id), is_known_newer=True)
            if (answer := self._by_rules(self._question(params), before)) is not None:
                return answer
            async with self._turn_of(params.session_id):
                question = self._question(params)
                if (answer := self._by_rules(question, before)) is not None:  # remembered meanwhile
                    return answer
                choice = await self.ask_permission(question)
        except asyncio.CancelledError:
            return permission_cancelled()
        if choice is None:
            return await super().session_request_permission(params)
        return self._by_choice(question, choice, before)

    def cancel_questions(self, session_id: str) -> None:
        """Answer all open questions of a session with `cancelled`: call it right after sending `session/cancel`."""
        _, tasks = self._asking.get(session_id, (None, ()))
        for task in tasks:
            if task is not None:
                task.cancel()

    def _subject(self, params: RequestPermissionRequest, *, is_known_newer: bool = False) -> PermissionSubject:
        folder = self.session_folder(params.session_id)
        return subject_of(params, self._known(params), folder=folder, is_known_newer=is_known_newer)

    def _known(self, params: RequestPermissionRequest) -> object | None:
        tool_call_id = tool_call_id_of(params)
        return None if tool_call_id is None else self.known_tool_call(params.session_id, tool_call_id)

    def _question(self, params: RequestPermissionRequest) -> PermissionQuestion:
        return PermissionQuestion(title=title_of(params), subject=self._subject(params), request=params)

    def _by_rules(self, question: PermissionQuestion, before: PermissionSubject) -> RequestPermissionResponse | None:
        options = question.request.options
        decision = self.permissions.decide(question.subject)
        _check(decision, get_args(PermissionDecision), f"{type(self.permissions).__name__}.decide")
        if self._has_changed(question, before):  # it says itself what the call is not any more
            return _answer(options, "deny")
        if decision == "ask" or (decision == "allow" and not _option_for(options, "allow")):
            return None  # a rule allows once, and the agent may offer only more than that
        return _answer(options, decision)

    def _by_choice(
        self, question: PermissionQuestion, choice: PermissionChoice | PermissionOption, before: PermissionSubject
    ) -> RequestPermissionResponse:
        options = question.request.options
        if isinstance(choice, PermissionOption):
            if choice not in options:
                raise ValueError(f"the agent has not offered the option {choice.option_id!r:.200}")
            if choice.kind in {"reject_once", "reject_always"} or not self._has_changed(question, before):
                return select_permission_option(choice.option_id)
            return _answer(options, "deny")
        _check(choice, get_args(PermissionChoice), f"{type(self).__name__}.ask_permission")
        if choice == "cancel":
            return permission_cancelled()
        decision: PermissionDecision = "allow" if choice in {"allow", "allow_always"} else "deny"
        if choice in {"allow_always", "deny_always"}:
            self.permissions.remember_answer(question.subject, decision)
        has_changed = decision == "allow" and self._has_changed(question, before)
        return _answer(options, "deny" if has_changed else decision)

    def _has_changed(self, question: PermissionQuestion, before: PermissionSubject) -> bool:
        """True if what would run now is not what was shown: the call was updated, or a path leads elsewhere."""
        newer = self._subject(question.request, is_known_newer=True)
        has_changed = self._subject(question.request) != question.subject or newer.differs(question.subject, before)
        if has_changed:
            logger.warning("an operation is refused: it is not the one any more that the user was shown")
        return has_changed

    @asynccontextmanager
    async def _turn_of(self, session_id: str) -> AsyncGenerator[None, None]:
        lock, tasks = self._asking.setdefault(session_id, (asyncio.Lock(), []))
        task = asyncio.current_task()
        tasks.append(task)
        try:
            async with lock:
                yield
        finally:
            tasks.remove(task)
            if not tasks:
                del self._asking[session_id]


def _check(answer: object, known: tuple[str, ...], method: str) -> None:
    """Raise `TypeError` for what a method of the user has returned, and is no answer: it must not become one."""
    if not (isinstance(answer, str) and answer in known):
        found = f"{answer!r:.100}" if isinstance(answer, (str, bool)) else type(answer).__name__
        hint = ": is an `await` missing?" if isinstance(answer, Awaitable) else ""
        raise TypeError(f"{method} returned {found}; expected one of {', '.join(map(repr, known))}{hint}")


def _answer(options: list[PermissionOption], decision: PermissionDecision) -> RequestPermissionResponse:
    option = _option_for(options, decision)
    if option is None and decision == "allow":
        logger.warning("an operation is refused: the agent does not offer to allow it once")
        option = _option_for(options, "deny")
    return permission_cancelled() if option is None else select_permission_option(option.option_id)


def _option_for(options: list[PermissionOption], decision: PermissionDecision) -> PermissionOption | None:
    """The option that is no more than the decision. An id that stands for two kinds could mean the other one."""
    kinds = ("allow_once",) if decision == "allow" else ("reject_once", "reject_always")
    for kind in kinds:
        for option in options:
            if option.kind == kind and all(each.kind == kind for each in options if each.option_id == option.option_id):
                return option
    return None
