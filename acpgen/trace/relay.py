"""Listen, and pass on what comes to a remote agent: all bytes, in both directions, with a look at them.

What the one side does not take is not read from the other one.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from acpgen.trace.exchanges import Ledger
from acpgen.trace.http1 import Http1
from acpgen.trace.http2 import PREFACE, Http2
from acpgen.trace.recorder import Recording, check_file, say
from acpgen.trace.wire import BrokenError, Hosts

_CHUNK = 2**16
_MAX_CONNECTIONS = 200
"""The most connections of TCP at a time. More wait until one has ended."""
_CONNECT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port, whether it has TLS, and the path that its users know."""

    host: str
    port: int
    is_secure: bool = False
    path: str = ""

    @property
    def netloc(self) -> str:
        """The address as it stands in URLs and in `Host`."""
        return self._shown(self.host, with_port=self.port != (443 if self.is_secure else 80))

    def names(self) -> set[str]:
        """What clients on this machine call the listener."""
        hosts = {self.host, "localhost", "127.0.0.1", "::1"}
        found = {self._shown(each, with_port=True) for each in hosts}
        return found if self.port != 80 else found | {self._shown(each, with_port=False) for each in hosts}

    @property
    def url(self) -> str:
        """The URL."""
        return f"http{'s' if self.is_secure else ''}://{self.netloc}{self.path}"

    def _shown(self, host: str, *, with_port: bool) -> str:
        shown = f"[{host}]" if ":" in host else host
        return f"{shown}:{self.port}" if with_port else shown


def run_relay(listen: Address, remote: Address, recording: Recording) -> None:
    """Pass on and record until a signal comes. Raises `OSError` if the file cannot be written, or the port be taken."""
    check_file(recording)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_Relay(listen, remote, recording).run())


class _Relay:
    def __init__(self, listen: Address, remote: Address, recording: Recording) -> None:
        self._listen = listen
        self._remote = remote
        self._recording = recording
        self._ledger = Ledger(recording, remote.url)
        self._hosts = Hosts((), remote.netloc)
        self._free = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until a signal comes, then end all connections."""
        stopping = asyncio.Event()
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            with contextlib.suppress(NotImplementedError, AttributeError):
                asyncio.get_running_loop().add_signal_handler(getattr(signal, name), stopping.set)
        server = await asyncio.start_server(self._arrive, self._listen.host, self._listen.port, limit=_CHUNK)
        port: int = server.sockets[0].getsockname()[1]
        here = Address(self._listen.host, port, path=self._remote.path)
        self._hosts = Hosts(here.names(), self._remote.netloc)
        say(f"recording from {here.url} to {self._remote.url}, in {self._recording.path}")
        try:
            await stopping.wait()
        finally:
            server.close()
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._ledger.end()

    def _arrive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._serve(_Side(reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: _Side) -> None:
        remote: _Side | None = None
        try:
            async with self._free:
                start = await client.start()
                is_http2 = start == PREFACE
                if start and (remote := await self._connect(is_http2=is_http2)) is not None:
                    followed = (Http2 if is_http2 else Http1)(self._hosts, self._ledger)
                    await _Passage(client, remote, followed).run(start)
                    await client.close()
                    await remote.close()
        finally:
            client.abort()
            if remote is not None:
                remote.abort()

    async def _connect(self, *, is_http2: bool) -> _Side | None:
        """Connect to the remote, which must speak the version of HTTP that the client speaks."""
        settings: dict[str, Any] = {}
        if self._remote.is_secure:
            context = ssl.create_default_context()
            context.set_alpn_protocols(["h2" if is_http2 else "http/1.1"])
            settings = {"ssl": context, "server_hostname": self._remote.host}
        opening = asyncio.open_connection(self._remote.host, self._remote.port, limit=_CHUNK, **settings)
        try:
            side = _Side(*await asyncio.wait_for(opening, _CONNECT_SECONDS))
        except (OSError, asyncio.TimeoutError) as error:
            say(f"cannot connect to {self._remote.url}: {error or 'no answer'}")
            return None
        if is_http2 and self._remote.is_secure and side.chosen() != "h2":
            say(f"{self._remote.url} does not speak HTTP/2, and the client does")
            side.abort()
            return None
        return side


class _Side:
    """The connection of TCP with one side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def start(self) -> bytes:
        """The first bytes: the preface of HTTP/2, or what tells that it is another protocol; none at the end."""
        found = b""
        with contextlib.suppress(OSError):
            while len(found) < len(PREFACE) and PREFACE.startswith(found):
                if not (more := await self.reader.read(len(PREFACE) - len(found))):
                    break
                found += more
        return found

    def chosen(self) -> str | None:
        """The protocol that TLS has chosen."""
        found: ssl.SSLObject = self.writer.get_extra_info("ssl_object")
        return found.selected_alpn_protocol()

    async def write(self, data: bytes) -> None:
        """Write, and wait while too much is buffered."""
        await self.writer.drain()
        self.writer.write(data)

    def finish(self) -> None:
        """Show the end of the other side."""
        if self.writer.can_write_eof():
            self.writer.write_eof()
        else:
            self.writer.close()

    async def close(self) -> None:
        """Close once all is sent."""
        with contextlib.suppress(OSError):
            self.writer.close()
            await self.writer.wait_closed()

    def abort(self) -> None:
        """Close at once, unless it is closed."""
        self.writer.transport.abort()


class _Passage:
    """What passes between a client and the remote, on one connection of TCP."""

    def __init__(self, client: _Side, remote: _Side, followed: Http1 | Http2) -> None:
        self._client = client
        self._remote = remote
        self._followed = followed

    async def run(self, start: bytes) -> None:
        """Pass on bytes until both sides have ended, or one of them has broken."""
        try:
            await (self._remote.write(start) if start == PREFACE else self._send(start))
            await _together(self._there(), self._back())
        except BrokenError as error:
            say(str(error))
            self._abort()
        except OSError:
            self._abort()  # the other side sees it, too
        finally:
            _guarded(self._followed.end)

    def _abort(self) -> None:
        for side in (self._client, self._remote):
            side.abort()

    async def _there(self) -> None:
        while data := await self._client.reader.read(_CHUNK):
            await self._send(data)
        self._remote.finish()

    async def _send(self, data: bytes) -> None:
        if passed := self._followed.sent(data):
            await self._remote.write(passed)

    async def _back(self) -> None:
        while data := await self._remote.reader.read(_CHUNK):
            await self._client.write(data)
            _guarded(partial(self._followed.received, data))
        _guarded(partial(self._followed.received, b""))
        self._client.finish()


def _guarded(follow: Callable[[], None]) -> None:
    """Follow bytes. A failure ends no connection."""
    try:
        follow()
    except BrokenError as error:
        say(f"a connection is recorded no further: {error}")
    except Exception:  # noqa: BLE001 - the conversation goes on, whatever is wrong with its recording
        traceback.print_exc()


async def _together(*each: Coroutine[Any, Any, None]) -> None:
    """Run all to their end; the first failure ends the others."""
    tasks = [asyncio.ensure_future(one) for one in each]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
