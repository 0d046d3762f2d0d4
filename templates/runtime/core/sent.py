"""Explanations for messages of this side that cannot be sent, or do not fit their types."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import isfinite
from typing import Any

from ..errors import RequestError
from ._decode import DecodeError, path_text
from ._lenient import Drop
from .dispatch import Handler, overrides
from .message import MAX_DEPTH, Message
from .mistakes import hint_for, reason_of, safely, shown
from .places import caller


def misfit_in(message: Message, handler: Handler, dumps: Callable[[Any], bytes]) -> TypeError | None:
    """The explanation for a value that does not fit its type, as it will be on the wire; None if there is none."""
    return safely(_misfit_in, message, handler, dumps, otherwise=None)


def _misfit_in(message: Message, handler: Handler, dumps: Callable[[Any], bytes]) -> TypeError | None:
    if message.kind == "error" or (message.value is None and message.kind != "result"):
        return None
    subject, type_ = _part_of(message, handler)
    try:
        raw = json.loads(dumps(message.value))  # `loads` of the options may follow what the peer says
    except Exception as error:
        return unsendable(message, handler, error)
    found = _first_misfit(type_, raw, handler)
    return None if found is None else not_of_type(subject, *found)


def not_of_type(subject: str, path: tuple[str | int, ...], reason: DecodeError) -> TypeError:
    """The explanation for a value that does not fit its type; `subject` begins the sentence."""
    mistake = TypeError(
        f"{subject} not of its type: {path_text(path)}: expected {reason.expected}, found {reason.found}"
    )
    mistake.__cause__ = reason
    return mistake


def unsendable(message: Message, handler: Handler, error: Exception, *, subject: str = "") -> TypeError:
    """The explanation for a value that cannot be written; `subject` begins the sentence if the handler does not."""
    part, type_ = _part_of(message, handler)
    found = safely(_not_json, message.value, otherwise=None)
    why = reason_of(error)
    if found is not None:  # with what was expected there, if that is known
        path, value = found
        misfit = safely(_first_misfit, type_, message.value, handler, otherwise=None)
        expected = misfit[1].expected if misfit is not None and misfit[0] == path else "a JSON value"
        why = f"{path_text(path)}: expected {expected}, found {shown(value)}{hint_for(value)}"
    return TypeError(f"{subject or part} that cannot be sent: {why}")


def unsendable_error(message: Message, handler: Handler, error: RequestError) -> TypeError:
    """The explanation for an error of a handler whose message is no text, or whose code is no integer."""
    name, raw = type(error).__name__, error.to_json()
    member, expected = ("code", "an int") if isinstance(raw["message"], str) else ("message", "a str")
    raised = f"{_name_of(message.method, handler)} raised a {name} whose {member} is {raw[member]!r}"
    return TypeError(f"{raised}, and not {expected}: write {name}(message, code=..., data=...)")


def _part_of(message: Message, handler: Handler) -> tuple[str, Any]:
    """The beginning of a sentence about what is wrong with the value of a message, and the type of that."""
    if message.kind == "result":
        answered = handler.METHODS.get(message.method)
        is_typed = answered is not None and overrides(handler, answered.handler)  # that of a fallback is raw JSON
        type_ = answered.result if answered is not None and is_typed else Any
        return of_result(message.method, handler), type_
    if message.kind == "error":
        return f"{_name_of(message.method, handler)} raised an error", Any
    record = handler.PEER_METHODS.get(message.method)
    if record is not None and record.notification is not None and message.kind == "notification":
        record = record.notification
    name = message.method if record is None else record.handler
    return f"{name}{caller()} got params", Any if record is None else record.params


def of_result(method: str, handler: Handler) -> str:
    """The beginning of a sentence about the result of a handler."""
    return f"{_name_of(method, handler)} returned a result"


def _name_of(method: str, handler: Handler) -> str:
    """The handler of a method, for messages."""
    record, kind = handler.METHODS.get(method), type(handler).__name__
    return f"{kind}.{record.handler}" if record is not None else f"{kind}, for {method},"


def _first_misfit(type_: Any, raw: Any, handler: Handler) -> tuple[tuple[str | int, ...], DecodeError] | None:
    """The first value that does not fit, or that the peer would leave out, and its path."""
    drops: list[Drop] = []
    try:
        if type_ is not Any:
            handler.CODEC.decode(type_, raw, on_drop=drops.append)
    except DecodeError as error:
        return error.path, error
    return next(((each.path + each.error.path, each.error) for each in drops), None)


def _not_json(value: Any, path: tuple[str | int, ...] = ()) -> tuple[tuple[str | int, ...], Any] | None:
    """The first value that JSON cannot express, and its path."""
    raw: Any = value
    if not isinstance(value, (dict, list, tuple)):
        is_json = raw is None or isinstance(raw, (str, int)) or (isinstance(raw, float) and isfinite(raw))
        return None if is_json else (path, raw)
    if len(path) > MAX_DEPTH:
        return path, raw
    members = raw.items() if isinstance(value, dict) else enumerate(raw)
    found = (_not_json(member, (*path, key)) for key, member in members)
    return next(filter(None, found), None)
