"""A client that shows the forms of an agent, and answers with values that fit them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from ..client import Client, RemoteAgent
from ..decision import explains
from ..types import (
    CreateElicitationRequest,
    CreateElicitationRequestForm,
    CreateElicitationRequestFormRequest,
    CreateElicitationRequestFormSession,
    CreateElicitationResponse,
    CreateElicitationResponseAccept,
    CreateElicitationResponseCancel,
    CreateElicitationResponseDecline,
)
from .form_fields import FormField, FormValue, check_values, fields_of
from .memory import memory_of

__all__ = ["FormClient", "FormQuestion", "FormReply", "read_entry"]

FormReply: TypeAlias = Mapping[str, FormValue | None] | Literal["decline", "cancel"]
"""The values that the user has entered, by the names of the fields; or that there are none.

A field that is not there gets its default. None leaves it out.
"""

logger: Final = logging.getLogger("acp")

_MAX_TRIES: Final = 20
_YES_OR_NO: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


@dataclass(frozen=True, kw_only=True)
class FormQuestion:
    """A form for the user. All texts are those of the agent: escape them for a terminal.

    `values` are what the fields show at first: the defaults, or what was entered the last time, if that did not fit.
    Then `flaws` says why, by the names of the fields. `title` and `description` may be empty.
    """

    message: str
    title: str
    description: str
    fields: tuple[FormField, ...]
    request: CreateElicitationRequestForm
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    flaws: Mapping[str, str] = field(default_factory=dict[str, str])


class FormClient(Client):
    """A client that has the user fill in forms.

        class Chat(FormClient):
            async def ask_form(self, question: FormQuestion) -> FormReply:
                return await show_dialog(question.message, question.fields, question.values, question.flaws)

    A form that has what this version of the protocol does not know, what no value fits, or more than `max_form_fields`
    or `max_form_bytes` in memory, is declined, and so is every other kind of elicitation. A session has one form for
    the user at a time. If the request is cancelled, `ask_form` is, too: close the dialog then.
    """

    ADVERTISES: ClassVar[tuple[str, ...]] = ("elicitation.form",)

    max_form_fields: int = 50
    max_form_bytes: int = 2**18

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self._open_forms: dict[str, tuple[asyncio.Lock, list[asyncio.Task[Any] | None]]] = {}  # by session

    async def ask_form(self, question: FormQuestion) -> FormReply:
        """Let the user fill in a form. It is called again while the values do not fit."""
        return "decline"

    async def elicitation_create(self, params: CreateElicitationRequest) -> CreateElicitationResponse:
        """Answer a question of the agent."""
        if not isinstance(params, (CreateElicitationRequestFormSession, CreateElicitationRequestFormRequest)):
            return CreateElicitationResponseDecline()
        try:
            question = self._form_question(params)
        except ValueError as error:
            logger.warning("a form is declined: %s", error)
            return CreateElicitationResponseDecline()
        try:
            async with self._form_turn(getattr(params, "session_id", "")):
                return await self._form_answer(question)
        except asyncio.CancelledError:
            return CreateElicitationResponseCancel()

    def cancel_forms(self, session_id: str) -> None:
        """Answer all open forms of a session with `cancel`.

        A `SessionClient` does so where it closes the questions of a session; other clients call it right after sending
        `session/cancel`.
        """
        _, tasks = self._open_forms.get(session_id, (None, list[asyncio.Task[Any] | None]()))
        for number, task in enumerate(tasks):
            if task is not None:
                tasks[number] = None  # a second cancellation would end the request, and not the form
                task.cancel()

    def _form_question(self, params: CreateElicitationRequestForm) -> FormQuestion:
        schema = params.requested_schema
        if len(schema.properties) > self.max_form_fields or memory_of(params) > self.max_form_bytes:
            raise ValueError("it is too large (max_form_fields, max_form_bytes)")
        fields = tuple(_with_default(each) for each in fields_of(schema))
        return FormQuestion(
            message=params.message,
            title=schema.title or "",
            description=schema.description or "",
            fields=fields,
            request=params,
            values={each.name: each.default for each in fields if each.default is not None},
        )

    async def _form_answer(self, question: FormQuestion) -> CreateElicitationResponse:
        defaults = question.values
        for _ in range(_MAX_TRIES):
            reply: object = await self.ask_form(question)
            if reply == "decline":
                return CreateElicitationResponseDecline()
            if reply == "cancel":
                return CreateElicitationResponseCancel()
            entered = {**defaults, **self._form_values(question, reply)}
            entered = {name: value for name, value in entered.items() if value is not None}
            values, flaws = check_values(question.fields, entered)
            if not flaws:
                return CreateElicitationResponseAccept(content={**values})
            question = replace(question, values=entered, flaws=flaws)
        logger.warning(
            "a form is cancelled: what ask_form returns does not fit, %d times: %s", _MAX_TRIES, question.flaws
        )
        return CreateElicitationResponseCancel()

    def _form_values(self, question: FormQuestion, reply: object) -> Mapping[str, object]:
        """What was entered. Raises `TypeError` and `ValueError` for what is no answer: it must not become one."""
        called, found = f"{type(self).__name__}.ask_form returned", type(reply).__name__
        if not isinstance(reply, Mapping):
            hint = ": is an `await` missing?" if isinstance(reply, Awaitable) else ""
            raise TypeError(f"{called} {found}; expected values by name, 'decline' or 'cancel'{hint}")
        entered = cast("Mapping[str, object]", reply)
        if unknown := entered.keys() - {each.name for each in question.fields}:
            raise ValueError(f"{called} a value for {min(unknown, key=str)!r:.80}, which is no field of the form")
        return entered

    @asynccontextmanager
    async def _form_turn(self, session_id: str) -> AsyncGenerator[None, None]:
        lock, tasks = self._open_forms.setdefault(session_id, (asyncio.Lock(), []))
        task = asyncio.current_task()
        tasks.append(task)
        try:
            async with lock:
                yield
        finally:
            tasks.remove(task if task in tasks else None)
            if not tasks:
                del self._open_forms[session_id]


def _with_default(field: FormField) -> FormField:
    """The field without a default that does not fit."""
    try:
        return field if field.default is None else replace(field, default=field.check(field.default))
    except ValueError:
        return replace(field, default=None)


@explains
def read_entry(field: FormField, line: str) -> FormValue:
    """The value that a line stands for: options by their numbers, several with commas, and yes or no.

    Raises `ValueError` that says why it does not fit.
    """
    value: object = line
    try:
        if field.kind == "integer":
            value = int(line)
        elif field.kind == "number":
            value = float(line)
        elif field.kind == "boolean":
            value = _YES_OR_NO.get(line.strip().lower(), line)
        elif field.options:
            numbers = [int(each) for each in line.split(",")]
            chosen = [field.options[number - 1].value for number in numbers if 0 < number <= len(field.options)]
            if len(chosen) == len(numbers):
                value = chosen if field.kind == "choices" else chosen[0] if len(chosen) == 1 else line
    except ValueError:
        pass  # the check says what is expected
    return field.check(value)
