"""Errors of connections over the network, in the same words for all libraries."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterator
from http import HTTPStatus
from socket import gaierror
from typing import Final
from urllib.parse import urlsplit

from ..dispatch import ConnectionClosed
from ..log import one_line

LOST: Final = "the connection was lost"
TOO_LARGE: Final = "a message of the server is larger than max_message_bytes"
NO_PROXY_ACCESS: Final = HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
_NO_ACCESS: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, NO_PROXY_ACCESS})
_BUSY: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})
_UNSUPPORTED: Final = frozenset({HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED})
_MAX_CAUSES: Final = 10


def address(url: str) -> str:
    """The host and the port in a URL, without what may be secret. Raises `ValueError` for invalid ones."""
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:  # `port` raises it for other invalid numbers
        raise ValueError("a host is missing, or the port is 0")
    return parts.netloc.rpartition("@")[2]


def refusal(
    status: int,
    body: bytes = b"",
    location: str | None = None,
    *,
    is_first: bool,
    kind: type[ConnectionClosed] = ConnectionClosed,
) -> ConnectionClosed:
    """The error for a response with this status. One to the first request also tells if the URL is wrong."""
    is_final = status in _UNSUPPORTED or (status < HTTPStatus.INTERNAL_SERVER_ERROR and status not in _BUSY)
    text = f"the server answered {status}"
    if location is not None and HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        text += f", a redirect to {one_line(location)}, which is not followed"
    elif body:
        text += f": {one_line(body)}"
    return kind(text, status=status, is_permanent=status in _NO_ACCESS or (is_first and is_final))


def failure(
    error: BaseException, what: str = LOST, otherwise: str = "", *, kind: type[ConnectionClosed] = ConnectionClosed
) -> ConnectionClosed:
    """The error for an exception of a library: `what`, and the reason if the system gives one, or else `otherwise`."""
    reason, is_permanent = otherwise, False
    for cause in _causes(error):
        if (known := _reason(cause)) is not None:
            reason, is_permanent = known, isinstance(cause, ssl.SSLCertVerificationError)
            break
    return kind(f"{what}: {reason}" if reason else what, is_permanent=is_permanent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes; of a group, the first member."""
    found: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if found is None:
            return
        yield found
        group = getattr(found, "exceptions", None)
        found = group[0] if group else found.__cause__ or found.__context__


def _reason(error: BaseException) -> str | None:
    """The reason in an error of the standard library; None for any other."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"the certificate of the server is not trusted: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS failed: {(error.reason or 'unknown').lower().replace('_', ' ')}"
        case gaierror():  # raised for a name that does not exist, and for a network that is down
            return "this name cannot be resolved"
        case TimeoutError() | asyncio.TimeoutError():
            return "the server did not answer in time"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return None
