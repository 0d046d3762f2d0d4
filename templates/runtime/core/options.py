"""Options of a connection: limits, hooks and the JSON library."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from ..errors import RequestError
from ._base import Struct
from .dispatch import OnDrop, OnInvalid
from .log import PROGRAM_ENDS, log_program_end, logger
from .message import dumps_json, loads_json
from .places import caller

__all__ = ["ConnectionOptions"]

T = TypeVar("T")


class ConnectionOptions(Struct):
    """The limits and hooks of a connection. They cannot be changed; `dataclasses.replace` makes others of them.

    `loads` and `dumps` parse and write JSON; those of a faster library may be used (`orjson.loads`, `orjson.dumps`).
    """

    max_message_bytes: int = 32 * 2**20
    """The size of the largest message; a larger one of the peer is skipped, and answered with an error."""
    max_in_flight_bytes: int = 128 * 2**20
    """The bytes of text of all requests of the peer in flight, and of a message that is parsed; a request above it is
    answered with an error. Parsed JSON takes up to 64 times its text. So where many clients share a process, on the
    network, its memory counts in place of its text, estimated before it is parsed."""
    max_write_buffer_bytes: int = 2**18
    """The bytes that may be buffered for the peer before senders have to wait."""
    max_requests: int = 1024
    """The most requests of the peer in flight; more are answered with an error."""
    finish_seconds: float = 0.5
    """The seconds that handlers may run after the peer has closed the connection, before they are cancelled."""
    cleanup_seconds: float = 2.0
    """The seconds that cancelled handlers may take to clean up before they are abandoned."""
    check_capabilities: bool = True
    """Require the handshake first, and refuse calls that the peer has not advertised. To choose a version, the
    handshake is required in any case."""
    check_sent: bool = sys.flags.dev_mode
    """Decode the params and results of this side before they are sent: a value that does not fit its type raises
    `TypeError` with its place. Extension methods without a type are not checked. On under `python -X dev`."""
    on_message: Callable[[Literal["in", "out"], bytes], object] | None = None
    """Called with every message, as it is on the wire."""
    on_drop: OnDrop | None = None
    """Called for each value of a message that is dropped because the schema is lenient about it."""
    on_invalid: OnInvalid | None = None
    """Called with the method, the params and the `DecodeError` if params do not fit their type. Such a notification is
    ignored, such a request is answered with "invalid params"."""
    on_error: Callable[[str, BaseException], RequestError | None] | None = None
    """Called with the method and the exception if a handler fails with another exception than a `RequestError`. The
    error that it returns is sent to the peer; for None, it is "internal error" without details."""
    loads: Callable[[bytes], Any] = loads_json
    dumps: Callable[[Any], bytes] = dumps_json
    trace: str | os.PathLike[str] | None = None
    """A file to which each message is written as a JSON line, with its time, sender and size; its owner alone can read
    it. Without this option, the environment variable `ACP_TRACE` names one."""
    trace_secrets: bool = False
    """Write the values of environment variables and headers, and the params of logins, too. Otherwise these are masked.
    """
    wire: Callable[[ConnectionOptions], Any] | None = None
    """Makes the object that reads and writes messages in place of `Wire`, which uses `loads` and `dumps`."""

    def __post_init__(self) -> None:
        from dataclasses import fields  # which has made this `__init__`

        for field in fields(self):
            value = getattr(self, field.name)
            if value is not field.default and (expected := _lacking(field.name, field.default, value)):
                from .mistakes import shown

                name = type(self).__name__
                raise TypeError(f"{name}{caller()} got {shown(value)} for {field.name}; expected {expected}")

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{name} cannot be changed: make other options with dataclasses.replace")
        super().__setattr__(name, value)


def _lacking(name: str, usual: object, value: Any) -> str | None:
    """What an option expects if `value` is not of its type; None if it is. `usual` is its default."""
    if isinstance(usual, bool):
        return None if isinstance(value, bool) else "True or False"
    if isinstance(usual, (int, float)):
        fits = isinstance(value, (int, type(usual))) and not isinstance(value, bool) and value >= 0
        return None if fits else f"{'an integer' if isinstance(usual, int) else 'a number'} of at least 0"
    if name == "trace":
        return None if isinstance(value, (str, os.PathLike)) else "the path of a file"
    return None if callable(value) else "a function"


def options_or_default(options: object) -> ConnectionOptions:
    """The options that were passed to a function, or the usual ones. Raises `TypeError` for anything else."""
    if options is None:
        return ConnectionOptions()
    if not isinstance(options, ConnectionOptions):
        from .mistakes import shown

        raise TypeError(f"options{caller()} is {shown(options)}: write options=ConnectionOptions(...)")
    return options


def call_hook(name: str, hook: Callable[..., T], *values: Any) -> T | None:
    """Call a hook of the user, and return its result. An exception is logged, and gives None."""
    try:
        return hook(*values)
    except PROGRAM_ENDS as error:
        log_program_end(f"the hook {name}", error)
        raise
    except BaseException:
        logger.exception("%s failed", name)
        return None
