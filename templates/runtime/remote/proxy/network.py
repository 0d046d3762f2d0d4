"""Agents on the network, for proxies: a proxy takes one in place of the command of an agent.

    run_proxy(Guard, NetworkAgent("wss://agent.example.com/acp", headers={"Authorization": f"Bearer {token}"}))

The libraries for it are those of `remote_transport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from http.cookiejar import CookieJar

from ._runtime.decision import explains
from ._runtime.network.remote_failures import address
from ._runtime.network.remote_transport import check_url, open_url
from ._runtime.options import ConnectionOptions, options_or_default
from ._runtime.proxy.relay import passing_options
from ._runtime.transport import Transport

__all__ = ["NetworkAgent"]


class NetworkAgent:
    """An agent at a URL: each proxy that uses it makes a connection of its own.

    "ws" and "wss" stand for WebSocket. For "http" and "https", Streamable HTTP is tried first, and then WebSocket if
    the server has no Streamable HTTP. `headers` go with each request. `cookies` keeps the server's cookies for all
    connections, so that a load balancer finds the same server again. Raises `ValueError` for any other URL.

    For other settings, such as certificates, write a class with a method `open` that returns `open_http` or
    `open_websocket` of `remote_transport`.
    """

    @explains
    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, cookies: CookieJar | None = None) -> None:
        check_url(url)
        self._url = url
        self._headers = dict(headers or {})
        self._cookies = CookieJar() if cookies is None else cookies

    def __repr__(self) -> str:
        return f"NetworkAgent({address(self._url)!r})"  # the URL may have secrets

    def open(self, options: ConnectionOptions | None = None) -> AbstractAsyncContextManager[Transport]:
        """Open a transport that keeps the text of messages, as for `serve_proxy`; the end of the block closes it.

        Raises `ConnectionClosed`, or the first message does, if the server refuses.
        """
        options = passing_options(options_or_default(options))
        return open_url(self._url, headers=self._headers, cookies=self._cookies, options=options)
