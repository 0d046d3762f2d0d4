"""Sends the messages of a connection over Streamable HTTP with httpx2, one POST each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import httpx2

from ..dispatch import ConnectionClosed
from .remote_failures import TOO_LARGE

_MAX_REQUESTS: Final = 500
"""After so many requests, messages go over another connection: servers that close one after 1000 may lose a message."""
_IDLE_SECONDS: Final = 0.5
"""After so long, what a server has sent on the connection for messages can be its end."""
_MAX_IDLE_SECONDS: Final = 5.0
"""After so long, messages go over another connection: what lies between may have forgotten this one silently."""
_REST_SECONDS: Final = 0.5
"""After a pause, the end of the last response should be there."""
_TLS: Final[Mapping[str, Any]] = {"verify": True, "cert": None, "trust_env": True}
_NOT_SHARED: Final = frozenset({"transport", "mounts"})
_BUSY_SECONDS: Final = (0.1, 0.3, 1.0, 3.0, 9.0)
"""The pauses after which a message is sent again that the server had no room for."""
_CONNECT_SECONDS: Final = 10.0
BROKEN: Final = (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError)


def client_maker(settings: Mapping[str, Any], silence_seconds: float | None) -> Callable[[], httpx2.AsyncClient]:
    """Returns a function that makes clients with these settings; they share the cookies and the context for TLS.

    Without a time-out among the settings, a response may take as long as a stream may be silent. Raises `ValueError`
    for settings that clients cannot share, as each of them closes its own.
    """
    if unfit := settings.keys() & _NOT_SHARED:
        raise ValueError(f"each stream has a client of its own: the settings cannot have {', '.join(sorted(unfit))}")
    shared = {name: settings.get(name, default) for name, default in _TLS.items()}
    others = {name: value for name, value in settings.items() if name not in _TLS}
    context = httpx2.create_ssl_context(**shared)
    others["cookies"] = httpx2.Cookies(settings.get("cookies")).jar
    others.setdefault("timeout", httpx2.Timeout(_CONNECT_SECONDS, read=silence_seconds))
    return lambda: httpx2.AsyncClient(**others, verify=context, trust_env=shared["trust_env"])


class Poster:
    """Sends messages one at a time, with a client of its own. `max_bytes` limits the body of a response.

    It replaces the client when needed: httpx2 does not notice that a server has closed a connection over HTTP/2.
    """

    def __init__(self, url: httpx2.URL, make_client: Callable[[], httpx2.AsyncClient], max_bytes: int) -> None:
        self._url = url
        self._make_client = make_client
        self._client = make_client()
        self._max_bytes = max_bytes
        self._sent = 0  # with this client
        self._last_used = 0.0  # when a response came, in the time of the event loop
        self._last: httpx2.Response | None = None  # one whose end was not read
        self._network: Any = None  # the connection that it came on, as httpx2 knows it

    @property
    def timeout(self) -> httpx2.Timeout:
        """The time-outs of the client."""
        return self._client.timeout

    @property
    def is_closed(self) -> bool:
        """True after `close`."""
        return self._client.is_closed

    async def close(self) -> None:
        """Close the client."""
        await self._end_last(is_idle=False)
        await self._client.aclose()

    async def delete(self, headers: Mapping[str, str]) -> None:
        """Send the request that ends the connection at the server. Raises what httpx2 raises."""
        await self._renew()
        try:
            await self._client.delete(self._url, headers=headers)
        except BROKEN:  # this request may be sent twice
            await self._client.delete(self._url, headers=headers)

    async def post(self, line: bytes, headers: Mapping[str, str]) -> tuple[httpx2.Response, bytes]:
        """Send a message; returns the response and its body. Raises `ConnectionClosed`, and what httpx2 raises."""
        await self._renew()
        self._sent += 1
        progress = _SendingProgress()
        try:
            return await self._post_once(line, headers, progress)
        except BROKEN as error:
            if not progress.is_under_way:
                raise
            broken = error
        try:  # the server has closed an idle connection at this moment; it does not have the message
            return await self._post_once(line, headers, progress)
        except httpx2.ConnectError:
            raise broken from None

    async def post_when_possible(self, line: bytes, headers: Mapping[str, str]) -> tuple[httpx2.Response, bytes]:
        """Send a message as `post` does, and again while the server has no room for it."""
        for pause in _BUSY_SECONDS:
            response, body = await self.post(line, headers)
            if response.status_code != 429:
                return response, body
            await asyncio.sleep(pause)
        return await self.post(line, headers)

    async def _renew(self) -> None:
        """Use another connection if this one has sent enough, or if the server seems to have closed it."""
        if self.is_closed:
            return
        idle_seconds = asyncio.get_running_loop().time() - self._last_used
        is_idle = idle_seconds > _IDLE_SECONDS
        is_old = self._network is not None and idle_seconds > _MAX_IDLE_SECONDS
        is_broken = not await self._end_last(is_idle=is_idle and not is_old)
        # httpx2 looks for the end of a connection over HTTP/1.1 only
        is_ended = is_idle and self._network is not None and self._network.get_extra_info("is_readable")
        if self._sent >= _MAX_REQUESTS or is_old or is_broken or is_ended:
            self._sent, self._network = 0, None
            used, self._client = self._client, self._make_client()
            await used.aclose()

    async def _end_last(self, *, is_idle: bool) -> bool:
        """End the last response; after a pause, read the rest of it, and return whether that succeeded."""
        response, self._last = self._last, None
        if response is None:
            return True
        with contextlib.suppress(Exception):  # httpx2 passes on what h2 raises
            async with contextlib.aclosing(response):
                if is_idle:
                    await asyncio.wait_for(self._body(response), _REST_SECONDS)
            return True
        return False

    async def _post_once(
        self, line: bytes, headers: Mapping[str, str], progress: _SendingProgress
    ) -> tuple[httpx2.Response, bytes]:
        extensions = {"trace": progress.trace}
        request = self._client.build_request("POST", self._url, content=line, headers=headers, extensions=extensions)
        response = await self._client.send(request, stream=True)
        self._network = response.extensions.get("network_stream")
        self._last_used = asyncio.get_running_loop().time()
        if response.status_code == HTTPStatus.ACCEPTED:  # it has no body, and its end may come late
            self._last = response
            return response, b""
        async with contextlib.aclosing(response):
            return response, await self._body(response)

    async def _body(self, response: httpx2.Response) -> bytes:
        chunks, size = list[bytes](), 0
        async for chunk in response.aiter_bytes():
            chunks.append(chunk)
            size += len(chunk)
            if size > self._max_bytes:
                raise ConnectionClosed(TOO_LARGE)
        return b"".join(chunks)


class _SendingProgress:
    """The progress of a request: `is_under_way` is true from its first byte until all of it has been sent."""

    def __init__(self) -> None:
        self.is_under_way = False

    async def trace(self, event: str, _info: Mapping[str, Any]) -> None:
        """Called by httpx2 for each step of a request."""
        if event.endswith("send_request_headers.started"):
            self.is_under_way = True
        elif event.endswith("send_request_body.complete"):
            self.is_under_way = False
