"""A proxy between two transports: its two sides, the version of the protocol that they agree on, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final

from ..connection import warn_of_others
from ..dispatch import ConnectionClosed, Remote, call_handler
from ..message import Message
from ..options import ConnectionOptions
from ..records import ProtocolInfo
from ..tasks import Tasks
from ..transport import ByteTransport, Transport, carrying_messages
from .hop import Hop
from .introductions import Introductions
from .overriding import Neighbour, Passing, Route, names_of, routes_of
from .passing import PassingWire, dumps_number
from .sources import AnyAgent, opened


class Relay:
    """A proxy between two transports. `factories` make it, by version; the answer of the agent chooses one.

    `stubs` makes the stubs of a version from the connections with the client and with the agent. `tells` says whether
    one side learns how the other one has ended: what a process has written last is not for everybody.
    """

    def __init__(
        self,
        factories: Mapping[int, Callable[..., Passing]],
        protocols: Mapping[int, ProtocolInfo],
        *,
        client: Transport | ByteTransport,
        agent: Transport | ByteTransport,
        stubs: Callable[[int, Hop, Hop], tuple[Remote, Remote]],
        options: ConnectionOptions,
        tells: bool = True,
    ) -> None:
        self.options = options
        self.tells = tells
        self.proxy: Passing | None = None
        self.ended_by: Hop | None = None
        """The side that was the first to end its connection."""
        self._factories = factories
        self._protocols = protocols
        self._stubs = stubs
        self._made: dict[int, Passing] = {}
        self._version = max(protocols)
        self._is_agreed = False  # the agent has answered with a version of a proxy
        self._client, self._agent = Hop(client, self, "client"), Hop(agent, self, "agent")
        self._client.other, self._agent.other = self._agent, self._client
        self.hops = [self._client, self._agent]
        """Both sides, and the agents that the proxy has opened itself."""
        self._opened = AsyncExitStack()
        self._is_over = False
        if len(factories) == 1:
            self.use(next(iter(factories)))

    async def run(self) -> ConnectionClosed:
        """Pass messages on until one side closes its connection; returns why. Then the other one is closed, too."""
        client, agent = self._client, self._agent
        reason = ConnectionClosed("this side has closed the connection")
        try:
            for hop in (agent, client):
                hop.begin(self._protocols[self._version])
            ends = [asyncio.ensure_future(self._note_end(hop)) for hop in (client, agent)]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()
            reason = agent.endpoint.reason or client.endpoint.reason or reason
            client.endpoint.end_reading(ConnectionClosed("the agent has closed the connection"))
            await client.endpoint.wait_closed()
            return reason
        finally:
            await client.endpoint.close()
            await agent.endpoint.close()
            self._is_over = True
            await self._opened.aclose()
            await self._tell(reason)

    async def _tell(self, reason: ConnectionClosed) -> None:
        """Let the proxies of all versions know that the connection is closed."""
        steps = Tasks(self.options.cleanup_seconds)
        for proxy in self._made.values():
            found: Any = proxy
            await steps.run_step("connection_closed", call_handler(found, "connection_closed", reason))

    async def _note_end(self, hop: Hop) -> None:
        await hop.endpoint.wait_ended()
        self.ended_by = self.ended_by or hop

    def stop(self) -> None:
        """Close both connections; `run` returns when that is done."""
        self._client.endpoint.stop()

    # --- Versions --------------------------------------------------------------------------------------------------

    def use(self, version: int) -> None:
        """Let the proxy for a version handle messages from now on."""
        self._version = version
        if version not in self._made:
            found = self._made_by(self._factories[version], version)
            warn_of_others(type(found), names_of(type(found)), Passing)
            found.agent_opener = partial(self._open, found)
            self._made[version] = found
        self.proxy = self._made[version]
        for hop in self.hops:
            self._set_route(hop, self.proxy)

    def _made_by(self, factory: Callable[..., Any], version: int) -> Passing:
        stubs = self._stubs(version, self._client, self._agent)
        try:
            found = factory(*stubs)
        except TypeError as error:
            from ..mistakes import in_factory

            if (mistake := in_factory(factory, error, *stubs)) is error:
                raise
            raise mistake from error
        if isinstance(found, Passing):
            return found
        from ..mistakes import hint_for, name_of, shown

        raise TypeError(f"{name_of(factory)} made {shown(found)}{hint_for(found) or ': it must extend Proxy'}")

    def _set_route(self, hop: Hop, proxy: Passing) -> None:
        hop.route = self._routed(routes_of(type(proxy), hop.side), hop)

    async def _open(self, proxy: Passing, agent: AnyAgent) -> Remote:
        """Open another agent, whose messages `proxy` handles; returns its stub."""
        self._client.check_loop()
        source, over = opened(agent, self.options), ConnectionClosed("the connection of the proxy has ended")
        if self._is_over:
            raise over
        transport = await source.__aenter__()
        if self._is_over:  # in the meantime
            await source.__aexit__(None, None, None)
            raise over
        self._opened.push_async_exit(source)
        hop = Hop(carrying_messages(transport, self.options), self, "agent")
        hop.other = self._client
        self._opened.push_async_callback(hop.endpoint.close)
        self._set_route(hop, proxy)
        self.hops.append(hop)
        hop.begin(self._protocols[self._version])
        return self._stubs(self._version, self._client, hop)[1]

    def _routed(self, found: Callable[[Message], Route | None], hop: Hop) -> Callable[[Message], Route | None]:
        """The routes `found`, and one for the request that negotiates the version if there are several.

        The version of its response may have a method for it, which has to see it, and to change it.
        """
        if len(self._factories) == 1:
            return found
        other = Route("from_client")

        def route(message: Message) -> Route | None:
            is_opening = message.kind == "request" and self.negotiates(hop.other, message.method)
            return found(message) or (other if is_opening else None)

        return route

    def introductions(self, side: Neighbour) -> Introductions:
        """How a side has introduced itself: not yet."""
        return Introductions(self._protocols.values(), "params" if side == "client" else "result")

    def negotiates(self, hop: Hop, method: str) -> bool:
        """True for the request of the client to the agent that negotiates the version; `hop` is the agent's."""
        how = self._protocols[self._version].negotiation
        return how is not None and method == how.method and hop is self._agent

    def asks(self, hop: Hop, message: Message) -> None:
        """Choose the proxy for the version that the client asks for, if there are several."""
        if len(self._factories) > 1 and not self._is_agreed and self.negotiates(hop.other, message.method):
            version = self._named(message.value)
            self.use(max((each for each in self._factories if each <= version), default=min(self._factories)))

    def answered(self, hop: Hop, method: str, response: Message) -> None:
        """Choose the proxy for the version that the agent has answered with."""
        if response.kind == "result" and self.negotiates(hop, method):
            self.agree(response.value)

    def must_switch(self, hop: Hop, method: str, result: Any) -> bool:
        """True if the agent has answered with the version of another proxy."""
        if not self.negotiates(hop, method):
            return False
        version = self._named(result)
        self._is_agreed = self._is_agreed or version == self._version
        return version in self._factories and version != self._version

    def agree(self, result: Any) -> None:
        """Use the proxy for the version in a result, if there is one."""
        if (version := self._named(result)) in self._factories:
            if version != self._version:
                self.use(version)
            self._is_agreed = True

    def _named(self, raw: Any) -> int:
        """The version in params or a result; 0 if there is none."""
        how, found = self._protocols[self._version].negotiation, raw
        version = found.get(how.version) if how is not None and isinstance(raw, dict) else None
        return version if type(version) is int else 0


_MAX_ADDED: Final = 2**9
"""The most bytes by which a message grows on its way: by a longer id, and by the message that wraps it."""


def passing_options(options: ConnectionOptions) -> ConnectionOptions:
    """The options for the connections of a proxy: they keep the text of messages.

    A message that one proxy of a chain has just accepted is not too large for the next one.
    """
    from dataclasses import replace

    most = options.max_message_bytes + _MAX_ADDED
    return replace(options, wire=PassingWire, dumps=dumps_number, check_capabilities=False, max_message_bytes=most)
