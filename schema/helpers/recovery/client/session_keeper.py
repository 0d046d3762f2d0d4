"""Sessions that outlive their agent: it is started, or connected to, again, and they go on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from .._decode import excerpt
from ..decision import explains
from ..dispatch import ConnectionClosed
from ..spawn import AgentConnection
from ..types import McpServer
from .keeping_client import KeptClient
from .kept_session import KeptSession
from .recovery_changes import Reconnecting, SessionLost
from .recovery_policy import Outages, RecoveryError, RecoveryPolicy
from .session_client import Session

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RecoveryPolicy", "SessionKeeper"]

C = TypeVar("C", bound=KeptClient)


class SessionKeeper(Generic[C]):
    """Keeps the sessions of an agent: if the connection ends, it makes another one, and opens them again.

        def connect() -> AgentConnection[Chat]:
            return spawn_agent(Chat, command)

        async def start(client: Chat) -> None:
            await client.start("chat", "1.0.0")

        async with SessionKeeper(connect, start) as keeper:
            session = await keeper.open(cwd)
            async for change in session.prompt("Hello!"):
                ...

    `connect` returns a connection that was not entered, at once or awaited; `start` calls `initialize`, and logs in
    where that is needed. Both are called for each connection. The block raises a failure of the first one, and closes
    the last one at its end.

    What happens is a `ConnectionChange` among the changes of the turn that was interrupted, or else of
    `session_changed`: `ConnectionLost`, `Reconnecting` before each attempt, and `SessionRecovered` or `SessionLost`.
    After that, the turn raises `TurnInterruptedError`; its prompt is not sent again. One that was not sent yet waits.
    """

    @explains
    def __init__(
        self,
        connect: Callable[[], AgentConnection[C] | Awaitable[AgentConnection[C]]],
        start: Callable[[C], Awaitable[object]],
        *,
        policy: RecoveryPolicy | None = None,
    ) -> None:
        for name, found in (("connect", connect), ("start", start)):
            if not callable(found):
                raise TypeError(f"`{name}` is a function that is called for each connection, not {excerpt(found)}")
        given: Any = policy
        if given is not None and not isinstance(given, RecoveryPolicy):
            raise TypeError(f"`policy` is a RecoveryPolicy, and not {excerpt(given)}")
        self._connect = connect
        self._start = start
        self._policy = policy or RecoveryPolicy()
        self._outages = Outages(self._policy)
        self._client: C | None = None
        self._task: asyncio.Task[None] | None = None
        self._sessions: dict[str, KeptSession] = {}
        self._error: Exception | None = None  # why it has given up
        self._is_closed = False
        self._is_settled = asyncio.Event()  # there is a connection, or none will be made
        self._is_asked = asyncio.Event()  # somebody wants the next attempt now
        self._opening = asyncio.Lock()
        self._is_restarting = False  # the end of this connection is wanted
        self._behind = set[asyncio.Task[None]]()  # those that open sessions again which the agent has forgotten

    @property
    def client(self) -> C:
        """The client of the last connection. Another one takes its place when the connection is made again."""
        if self._client is None:
            raise RuntimeError("there is no connection yet: enter the block")
        return self._client

    async def __aenter__(self) -> Self:
        """Make the first connection."""
        if self._task is not None:
            raise RuntimeError("this keeper has been used in an `async with` block already: make another one")
        self._task = asyncio.ensure_future(self._keep())
        try:
            await self._is_settled.wait()
        except BaseException:
            await self._close()
            raise
        if self._error is not None:
            await self._close()
            raise self._error
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the connection."""
        await self._close()

    # --- Sessions ----------------------------------------------------------------------------------------------------

    async def open(
        self, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a new session, and keep it."""
        client = await self._connected()
        session = await client.open(cwd, mcp_servers=mcp_servers, directories=directories)
        return self.keep(session, mcp_servers=mcp_servers, directories=directories)

    async def load(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again with the conversation so far, and keep it."""
        client = await self._connected()
        session = await client.load(session_id, cwd, mcp_servers=mcp_servers, directories=directories)
        return self.keep(session, mcp_servers=mcp_servers, directories=directories)

    async def resume(
        self, session_id: str, cwd: str, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Open a session again without the conversation so far, and keep it."""
        client = await self._connected()
        session = await client.resume(session_id, cwd, mcp_servers=mcp_servers, directories=directories)
        return self.keep(session, mcp_servers=mcp_servers, directories=directories)

    @explains
    def keep(
        self, session: Session, *, mcp_servers: Sequence[McpServer] = (), directories: Sequence[str] = ()
    ) -> Session:
        """Keep a session that the client has opened, such as a fork. It is opened again with what is given here.

        Raises `RecoveryError` if its connection has ended: nobody would open it again before the next one ends, too.
        """
        if not isinstance(session, KeptSession):
            raise TypeError(f"a session of a `KeptClient` can be kept, and no {type(session).__name__}")
        if not session.is_kept and (reason := session.end) is not None:
            raise RecoveryError(f"the session cannot be kept, as its connection has ended: {reason}", reason)
        session.mcp_servers, session.directories = (*mcp_servers,), (*directories,)
        session.is_kept, session.on_forgotten = True, self._open_forgotten
        earlier = self._sessions.get(session.id)
        if earlier is not None and earlier is not session:
            earlier.retire("the session was opened again: use the object that was returned then")
        self._sessions = {each.id: each for each in self._sessions.values() if each.is_kept}
        self._sessions[session.id] = session
        return session

    async def reconnect(self) -> None:
        """Connect now, if there is no connection, and open the sessions again that are lost.

        While there is a connection, and no session is lost, it opens those again in which no turn runs: the agent may
        have lost them. It ends the pause before the next attempt, and begins anew after giving up. Raises
        `RecoveryError` if there is no connection at the end. If it is cancelled, sessions that it has not opened are
        lost again.
        """
        has_connection = self._is_settled.is_set() and self._error is None
        for session in self._kept():
            session.try_again()
        if has_connection and not self._waiting():
            for session in self._kept():
                session.begin_again()
        if self._is_settled.is_set() and self._error is not None and not self._is_closed:
            self._is_settled.clear()
            self._error = None
        self._is_asked.set()
        client = await self._connected()
        try:
            await self._open_again(client)
        except BaseException:
            if client.end is None:  # nobody else opens them now
                self._lose(RecoveryError("`reconnect` has ended before the session was opened"))
            raise

    async def restart(self) -> None:
        """End the connection, and with it the process of the agent; make another one, and open the sessions again.

        For a login that the environment of the process has, or an agent that hangs: `connect` is called again. Turns
        that run are interrupted. Without a connection, this is `reconnect`, whose errors it raises.
        """
        if self._is_settled.is_set() and self._error is None and not self._is_closed:
            self._is_settled.clear()
            self._is_restarting = True
            self.client.leave()
        await self.reconnect()

    async def _connected(self) -> C:
        """The client, when there is a connection."""
        if self._task is None or self._is_closed:
            raise RuntimeError("the keeper has no connection outside of its `async with` block")
        await self._is_settled.wait()
        if self._error is not None:
            raise self._error
        return self.client

    def _kept(self) -> list[KeptSession]:
        return [session for session in self._sessions.values() if session.is_kept]

    def _waiting(self) -> list[KeptSession]:
        return [session for session in self._kept() if not session.is_open]

    def _lose(self, error: RecoveryError) -> None:
        for session in self._waiting():
            session.settle(SessionLost(error=error))

    # --- Connections: one task makes them all, and closes each before the next ---------------------------------------

    async def _keep(self) -> None:
        is_first = True
        while not self._is_closed:
            reason, was_up = await self._talk()
            if self._is_closed:  # what ends an attempt that is too late takes every cancellation for its own
                return
            if is_first and not was_up:
                self._settle(reason)
                return
            is_first = False
            self._is_settled.clear()
            for session in self._waiting():
                await session.interrupt(reason)
            if self._is_restarting:
                self._is_restarting = False
                self._outages.begin_anew()
                self._tell(reason, 0.0)
            else:
                await self._pause(reason, was_up=was_up)

    async def _talk(self) -> tuple[Exception, bool]:
        """Make a connection, and wait for its end; returns the reason, and whether it was in use."""
        was_up = False
        try:
            with ExitStack() as stack:
                stack.enter_context(_limited(self._policy.attempt_seconds))
                made = self._connect()
                connection = await made if isawaitable(made) else made
                _check(connection)
                async with connection:
                    self._client = client = connection.handler
                    await self._start(client)
                    await self._open_again(client)
                    stack.close()  # nothing limits what follows
                    was_up = True
                    self._settle(None)
                    reason = await client.ended()
                    self._is_settled.clear()
                    if reason is not None:
                        for session in self._waiting():
                            await session.interrupt(reason)
                return client.end or ConnectionClosed("the connection was left"), was_up
        except Exception as error:  # the policy decides
            return error, was_up

    async def _open_again(self, client: C) -> None:
        """Open all sessions that are not, with those that begin to wait meanwhile.

        The client sends one request after the other; what follows the responses goes on side by side.
        """
        async with self._opening:
            while waiting := self._waiting():
                await _all_of([self._recover(client, session) for session in waiting])

    def _open_forgotten(self) -> None:
        """Open the sessions again that the agent has forgotten, behind the prompts that have told so."""
        task = asyncio.ensure_future(self._bring_back(self.client))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def _bring_back(self, client: C) -> None:
        try:
            with _limited(self._policy.attempt_seconds):
                await self._open_again(client)
        except Exception as error:
            if client.end is None and not isinstance(error, ConnectionClosed):  # otherwise the next connection does it
                self._lose(RecoveryError(f"the session cannot be opened again: {error}", error))

    async def _recover(self, client: C, session: KeptSession) -> None:
        try:
            await session.go_on(client, self._policy)
        except RecoveryError as error:
            session.settle(SessionLost(error=error))
        except OSError:
            raise
        except Exception as error:  # the others may go on
            lost = RecoveryError(f"the session cannot be opened again: {error}", error)
            session.settle(SessionLost(error=lost))

    async def _pause(self, reason: Exception, *, was_up: bool) -> None:
        """Wait for the time of the next attempt, or for somebody who asks for one after giving up."""
        self._is_asked.clear()
        try:
            seconds = self._outages.next(reason, was_up=was_up)
        except RecoveryError as error:
            self._lose(error)
            self._settle(error)
            await self._is_asked.wait()
            self._outages.forget()
            return
        self._tell(reason, seconds)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._is_asked.wait(), seconds)

    def _tell(self, reason: Exception, seconds: float) -> None:
        for session in self._waiting():
            session.report(Reconnecting(attempt=self._outages.attempt, seconds=seconds, reason=reason))

    def _settle(self, error: Exception | None) -> None:
        self._error = error
        self._is_settled.set()

    async def _close(self) -> None:
        self._is_closed = True
        sessions = self._kept()
        for session in sessions:
            session.is_kept = False  # its turns end with the connection
        try:
            for task in self._behind:
                task.cancel()
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait({self._task, *self._behind})
        finally:  # also if this is cancelled: what waits has an end
            error = RecoveryError("the keeper was closed")
            for session in sessions:
                if not session.is_open:
                    session.settle(SessionLost(error=error))
            if self._error is None:
                self._settle(error)


def _check(connection: object) -> None:
    if not isinstance(connection, AgentConnection):
        raise TypeError(f"`connect` has to return what `spawn_agent` or `connect` does, and not {excerpt(connection)}")


async def _all_of(calls: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Await all at once; raises the first error, when none runs any more."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _limited(seconds: float) -> Generator[None, None, None]:
    """Raise `TimeoutError` if the block takes longer. Python has this from 3.11 on."""
    task: asyncio.Task[object] | None = asyncio.current_task()
    is_late = False

    def end() -> None:
        nonlocal is_late
        is_late = task is not None and task.cancel()

    timer = asyncio.get_running_loop().call_later(seconds, end)
    try:
        yield
    except asyncio.CancelledError:
        if is_late:
            raise asyncio.TimeoutError(f"an attempt to connect has taken more than {seconds:g} s") from None
        raise
    finally:
        timer.cancel()
