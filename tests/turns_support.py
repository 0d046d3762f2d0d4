"""What the tests of `Turns` share: an agent that runs its work with it, and its messages in short."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from tests.runtime_support import V1, V2, raw_peer

Work = Callable[[Any, Any], Coroutine[Any, Any, Any]]
"""The work of an agent for the params of a prompt."""
PROTOCOLS = {"v1": V1, "v2": V2}


def turns_of(acp: Any, client: Any) -> Any:
    """The object that runs the turns of an agent."""
    return helpers_of(acp).Turns() if is_v1(acp) else helpers_of(acp).Turns(client)


def helpers_of(acp: Any) -> Any:
    """The helpers of a package."""
    return importlib.import_module(f"{acp.__name__}.helpers")


def turns_agent(acp: Any, work: Work) -> type[Any]:
    """Agents as the documentation of `Turns` writes them."""

    class TurnsAgent(acp.Agent):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.turns = turns_of(acp, client)

        async def session_prompt(self, params: Any) -> Any:
            return await self.turns.run(params, work(self, params))

        async def session_cancel(self, params: Any) -> None:
            self.turns.cancel(params.session_id)

        async def session_close(self, params: Any) -> Any:
            await self.turns.close(params.session_id)
            return acp.CloseSessionResponse()

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

        async def tell(self, session_id: str, text: str) -> None:
            content = acp.ContentBlockText(text=text)
            if is_v1(acp):
                update = acp.SessionUpdateAgentMessageChunk(content=content)
                await self.client.session_update(acp.SessionNotification(session_id=session_id, update=update))
            else:
                update = acp.SessionUpdateAgentMessageChunk(message_id="m", content=content)
                await self.client.session_update(acp.UpdateSessionNotification(session_id=session_id, update=update))

    async def connection_closed(self: Any, reason: Any) -> None:
        await self.turns.close_all()

    if not is_v1(acp):  # the runtime cancels the handlers of protocol 1, and so their turns
        TurnsAgent.connection_closed = connection_closed
    return TurnsAgent


class Talk:
    """A client by hand."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer

    async def prompt(self, number: object, text: str = "hello", session: str = "s") -> None:
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        await self.peer.request(number, "session/prompt", params)

    async def cancel(self, session: str = "s") -> None:
        await self.peer.notify("session/cancel", {"sessionId": session})

    async def cancel_request(self, number: object) -> None:
        await self.peer.notify("$/cancel_request", {"requestId": number})

    async def close(self, number: object, session: str = "s") -> None:
        await self.peer.request(number, "session/close", {"sessionId": session})

    async def until(self, *last: str) -> list[str]:
        """The messages in short, up to the one with which all of `last` have come."""
        wanted, found = list(last), list[str]()
        while wanted:
            message = await self.peer.receive()
            assert message is not None, f"the connection has ended after {found}"
            found.append(short(message))
            if found[-1] in wanted:
                wanted.remove(found[-1])
        return found

    async def rest(self) -> list[str]:
        """What is sent without a further message: of what it has begun, an agent may do more after other requests."""
        found = await self.peer.ping()
        for _ in range(100):
            await asyncio.sleep(0)
        return [short(message) for message in (*found, *await self.peer.ping())]


@asynccontextmanager
async def talk(acp: Any, work: Work, *, max_messages: int = 1_000) -> AsyncGenerator[Talk, None]:
    """A client by hand, of an agent with this work."""
    async with raw_peer(acp, turns_agent(acp, work), max_messages=max_messages) as peer:
        yield Talk(peer)


def short(message: Any) -> str:
    """A message of an agent in short: "1: end_turn" answers request 1, "idle cancelled" is an update of the state."""
    if "error" in message:
        return f"{message['id']}: {message['error']['code']}"
    if "result" in message:
        result = message["result"] or {}
        return f"{message['id']}: {result.get('stopReason', 'accepted' if 'messageId' in result else 'ok')}"
    update = message["params"]["update"]
    kind = update["sessionUpdate"]
    if kind == "state_update":
        return " ".join([update["state"], *filter(None, [update.get("stopReason")])])
    if kind == "agent_message_chunk":
        return str(update["content"]["text"])
    return str(kind)


def is_v1(acp: Any) -> bool:
    """True for a package of protocol 1."""
    return bool(acp.PROTOCOL_VERSION == 1)


def told(acp: Any, number: int, end: str, *between: str) -> list[str]:
    """What an agent sends for a prompt whose turn ends so, with `between` from its work."""
    if is_v1(acp):
        return [*between, f"{number}: {end}"]
    return ["user_message", f"{number}: accepted", "running", *between, f"idle {end}"]
