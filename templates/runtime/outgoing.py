"""Writes the messages of this side, and says what is wrong with those that cannot be sent."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Literal, NamedTuple

from ._decode import DecodeError, Drop, path_text
from .dispatch import overrides
from .errors import RequestError
from .limits import MAX_DEPTH
from .link import Link
from .negotiation import LocalSide


class _Part(NamedTuple):
    """The part of a message that has a type; `subject` begins a sentence about what is wrong with it."""

    name: Literal["params", "result"]
    subject: str
    type_: Any


class Outgoing:
    """The lines for the messages of this side. With the option `check_sent`, each is decoded before it is sent.

    `call` and `result` raise `TypeError` for values that are no JSON or do not fit their type. All methods raise
    `MessageTooLarge`.
    """

    def __init__(self, link: Link, side: LocalSide) -> None:
        self._link = link
        self._side = side

    def call(self, method: str, params: Any, **number: int) -> bytes:
        """The line for a request with this `id`, or for a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", **number, "method": method}
        if params is not None:
            message["params"] = params
        try:
            line = self._link.encode(message)
        except (TypeError, ValueError) as error:
            raise self._unsendable(self._params_of(method, is_request=bool(number)), params, error) from error
        if self._link.options.check_sent and params is not None:
            self._check(line, self._params_of(method, is_request=bool(number)))
        return line

    def result(self, number: Any, method: str, result: Any) -> bytes:
        """The line for the result of a request of the peer."""
        try:
            line = self._link.encode({"jsonrpc": "2.0", "id": number, "result": result})
        except (TypeError, ValueError) as error:
            raise self._unsendable(self._result_of(method), result, error) from error
        if self._link.options.check_sent:
            self._check(line, self._result_of(method))
        return line

    def error(self, number: Any, method: str, error: RequestError) -> bytes:
        """The line for an error in response to a request of the peer."""
        raw = error.to_json()
        if not isinstance(raw["message"], str):
            name = type(error).__name__
            hint = f"write {name}(message, code=..., data=...)"
            raised = f"{self._name_of(method)} raised a {name} whose message is {raw['message']!r}"
            raise TypeError(f"{raised}, and not a str: {hint}")
        return self._link.encode({"jsonrpc": "2.0", "id": number, "error": raw})

    # --- What is wrong -------------------------------------------------------------------------------------------

    def _params_of(self, method: str, *, is_request: bool) -> _Part:
        from .mistakes import caller

        record = self._side.handler.PEER_METHODS.get(method)
        if record is not None and record.notification is not None and not is_request:
            record = record.notification
        name = method if record is None else record.handler
        return _Part("params", f"{name}{caller()} got params", Any if record is None else record.params)

    def _result_of(self, method: str) -> _Part:
        handler = self._side.handler
        record = handler.METHODS.get(method)
        is_typed = record is not None and overrides(handler, record.handler)  # that of a fallback is raw JSON
        type_ = record.result if record is not None and is_typed else Any
        return _Part("result", f"{self._name_of(method)} returned a result", type_)

    def _name_of(self, method: str) -> str:
        """The handler of a method, for messages."""
        handler = self._side.handler
        record, kind = handler.METHODS.get(method), type(handler).__name__
        return f"{kind}.{record.handler}" if record is not None else f"{kind}, for {method},"

    def _check(self, line: bytes, part: _Part) -> None:
        raw = json.loads(line)[part.name]  # `loads` of the options may follow what the peer says
        if (misfit := self._misfit(part.type_, raw)) is not None:
            path, error = misfit
            text = f"{path_text(path)}: expected {error.expected}, found {error.found}"
            raise TypeError(f"{part.subject} not of its type: {text}") from error

    def _misfit(self, type_: Any, raw: Any) -> tuple[tuple[str | int, ...], DecodeError] | None:
        """The first value that does not fit, or that the peer would leave out, and its path."""
        drops: list[Drop] = []
        try:
            if type_ is not Any:
                self._side.handler.CODEC.decode(type_, raw, on_drop=drops.append)
        except DecodeError as error:
            return error.path, error
        return next(((each.path + each.error.path, each.error) for each in drops), None)

    def _unsendable(self, part: _Part, raw: Any, error: Exception) -> TypeError:
        """The explanation for a value that `dumps` refuses."""
        from .mistakes import hint_for, shown

        found = _not_json(raw)
        if found is None:
            return TypeError(f"{part.subject} that cannot be sent: {error}")
        path, value = found
        misfit = self._misfit(part.type_, raw)
        expected = misfit[1].expected if misfit is not None and misfit[0] == path else "a JSON value"
        text = f"{path_text(path)}: expected {expected}, found {shown(value)}{hint_for(value)}"
        return TypeError(f"{part.subject} that cannot be sent: {text}")


def _not_json(value: Any, path: tuple[str | int, ...] = ()) -> tuple[tuple[str | int, ...], Any] | None:
    """The first value that JSON does not have, and its path."""
    raw: Any = value
    if not isinstance(value, (dict, list, tuple)):
        is_json = raw is None or isinstance(raw, (str, int)) or (isinstance(raw, float) and isfinite(raw))
        return None if is_json else (path, raw)
    if len(path) > MAX_DEPTH:
        return path, raw
    members = raw.items() if isinstance(value, dict) else enumerate(raw)
    found = (_not_json(member, (*path, key)) for key, member in members)
    return next(filter(None, found), None)
