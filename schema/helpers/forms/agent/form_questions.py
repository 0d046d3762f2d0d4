"""Asking the user: with a form whose answer is checked, or by a page to visit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar, cast, overload
from uuid import uuid4

from .._base import UNSET, UnsetType
from ..agent import RemoteClient
from ..closed_gates import CapabilityError
from ..decision import Decision, explains
from ..types import (
    CompleteElicitationNotification,
    CreateElicitationRequestFormSession,
    CreateElicitationRequestUrlSession,
    CreateElicitationResponse,
    CreateElicitationResponseAccept,
    CreateElicitationResponseDecline,
    ElicitationSchema,
)
from .foreground import ask_in_foreground
from .form_fields import FormValue, check_values, fields_of
from .form_schema import form_values, schema_of

__all__ = ["FormError", "NoAnswer", "UrlVisit", "ask_form", "ask_url"]

T = TypeVar("T")


class FormError(ValueError):
    """The client has accepted a form with values that do not fit it. `flaws` says why, by the names of the fields."""

    def __init__(self, flaws: Mapping[str, str]) -> None:
        super().__init__(
            "the client's answer does not fit the form: " + "; ".join(f"{k}: {v}" for k, v in flaws.items())
        )
        self.flaws = flaws


@dataclass(frozen=True)
class NoAnswer:
    """The user was asked, and has given no answer; or nobody was asked. It is false.

    `reason` is "unsupported" if the client has not advertised that it can show this: then nothing was sent. It is
    "declined" if the user has said no, and "cancelled" for any other end, also one that this version does not know.
    """

    reason: Literal["cancelled", "declined", "unsupported"]
    response: CreateElicitationResponse | None = None

    def __bool__(self) -> Literal[False]:
        return False


@overload
def ask_form(
    client: RemoteClient,
    session_id: str,
    message: str,
    form: type[T],
    *,
    tool_call_id: str | UnsetType = ...,
    foreground: bool = ...,
    meta: dict[str, Any] | UnsetType = ...,
) -> Decision[T | NoAnswer]: ...


@overload
def ask_form(
    client: RemoteClient,
    session_id: str,
    message: str,
    form: Mapping[str, Any] | ElicitationSchema,
    *,
    tool_call_id: str | UnsetType = ...,
    foreground: bool = ...,
    meta: dict[str, Any] | UnsetType = ...,
) -> Decision[dict[str, FormValue] | NoAnswer]: ...


@explains
def ask_form(
    client: RemoteClient,
    session_id: str,
    message: str,
    form: Any,
    *,
    tool_call_id: str | UnsetType = UNSET,
    foreground: bool = True,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> Decision[Any]:
    """Ask the user to fill in a form, and wait for the values, which are checked.

        @dataclass
        class Deploy:
            target: Literal["staging", "production"]
            replicas: Annotated[int, FormInput(minimum=1, maximum=9)] = 1

        if deploy := await ask_form(self.client, params.session_id, "Where to?", Deploy):
            ...  # a Deploy

    A form is a dataclass, or a dict with its schema in JSON; then the values are a dict. Fields are str, int, float,
    bool, Literal or Enum of texts, and lists of these two; `FormInput` says more about one.

    In protocol 2, the session is in the state `requires_action` meanwhile, unless `foreground` is False.

    Raises `TypeError` and `ValueError` for what a form cannot have, `FormError` for an answer that does not fit, and
    what `client.elicitation_create` raises.
    """
    schema = schema_of(form)
    request = CreateElicitationRequestFormSession(
        session_id=session_id, tool_call_id=tool_call_id, message=message, requested_schema=schema, meta=meta
    )

    def read(response: CreateElicitationResponseAccept) -> Any:
        values, flaws = check_values(fields_of(schema), response.content or {})
        if flaws:
            raise FormError(flaws)
        return form_values(cast("type[Any]", form), values) if isinstance(form, type) else values

    is_able = client.supports("elicitation.form")
    return Decision(_ask(client, request, read, is_able=is_able, foreground=foreground))


@explains
def ask_url(
    client: RemoteClient,
    session_id: str,
    message: str,
    url: str,
    *,
    elicitation_id: str | None = None,
    tool_call_id: str | UnsetType = UNSET,
    foreground: bool = True,
    meta: dict[str, Any] | UnsetType = UNSET,
) -> Decision[UrlVisit | NoAnswer]:
    """Ask the user to visit a page, and wait until the user agrees: what happens there, the agent learns by itself.

        if visit := await ask_url(self.client, params.session_id, "Log in to the forge", url):
            await token_has_come()
            await visit.complete()

    The id is a random one if you give none. Raises what `client.elicitation_create` raises.
    """
    request = CreateElicitationRequestUrlSession(
        session_id=session_id,
        tool_call_id=tool_call_id,
        message=message,
        url=url,
        elicitation_id=elicitation_id or uuid4().hex,
        meta=meta,
    )
    is_able = client.supports("elicitation.url")

    def read(_: CreateElicitationResponseAccept) -> UrlVisit:
        return UrlVisit(client, request.elicitation_id)

    return Decision(_ask(client, request, read, is_able=is_able, foreground=foreground))


@dataclass(frozen=True)
class UrlVisit:
    """A visit of a page that the user has agreed to."""

    client: RemoteClient
    elicitation_id: str

    async def complete(self) -> None:
        """Tell the client that the user is done there."""
        await self.client.elicitation_complete(CompleteElicitationNotification(elicitation_id=self.elicitation_id))


async def _ask(
    client: RemoteClient,
    request: CreateElicitationRequestFormSession | CreateElicitationRequestUrlSession,
    read: Callable[[CreateElicitationResponseAccept], T],
    *,
    is_able: bool,
    foreground: bool,
) -> T | NoAnswer:
    if not is_able:
        return NoAnswer("unsupported")
    ask = partial(client.elicitation_create, request)
    try:
        response = await (ask_in_foreground(client, request.session_id, ask) if foreground else ask())
    except CapabilityError:
        return NoAnswer("unsupported")
    if isinstance(response, CreateElicitationResponseAccept):
        return read(response)
    return NoAnswer("declined" if isinstance(response, CreateElicitationResponseDecline) else "cancelled", response)
