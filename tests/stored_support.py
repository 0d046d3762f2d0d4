"""What the tests of `StoredAgent` share: an agent that follows the words of its prompts, and a client by hand."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.runtime_support import raw_peer
from tests.turns_support import is_v1


def helpers_of(acp: Any) -> Any:
    """The helpers of a package."""
    return importlib.import_module(f"{acp.__name__}.helpers")


def teller(acp: Any, kept: Any, *, seconds: float = 1000.0) -> type[Any]:
    """Agents that say back each word of a prompt, but for these: "wait", "pause", "fail", "tool", "flood", "name"."""
    helpers = helpers_of(acp)
    ids = {} if is_v1(acp) else {"message_id": "m"}

    class Teller(helpers.StoredAgent):  # type: ignore[name-defined, misc]
        store = kept
        save_seconds = seconds

        async def work(self, params: Any) -> None:
            key = params.session_id
            session = self.session(key)
            session.data = [*(session.data or []), params.prompt[0].text]
            for word in params.prompt[0].text.split():
                match word:
                    case "wait":
                        await asyncio.Event().wait()
                    case "pause":
                        await asyncio.sleep(0)
                    case "fail":
                        raise acp.InvalidParamsError("not this")
                    case "tool":
                        call = helpers.tool_call(self.client, key, "Edit", tool_call_id=f"call-{len(session.data)}")
                        await call.__aenter__()
                    case "flood":
                        for at in range(3000):
                            await self.client.session_update(helpers.agent_message(key, f"{at:1000}", **ids))
                    case "name":
                        await self.client.session_update(helpers.title(key, "A name"))
                    case _:
                        await self.client.session_update(helpers.agent_message(key, word, **ids))

        async def ext_method(self, method: str, params: Any) -> Any:
            return None

    return Teller


class Editor:
    """A client by hand that waits for each answer; `updates` has what came since it was last emptied."""

    def __init__(self, acp: Any, peer: Any) -> None:
        self.acp = acp
        self.peer = peer
        self.updates: list[dict[str, Any]] = []
        self._number = 0

    async def ask(self, method: str, **params: Any) -> Any:
        """The result of a request, or its error."""
        self._number += 1
        await self.peer.request(self._number, method, params)
        while True:
            message = await self.peer.receive()
            assert message is not None, "the connection has ended"
            if message.get("id") == self._number:
                return message.get("result", message.get("error"))
            self.updates.append(message["params"]["update"])

    async def new(self, cwd: str = "/project") -> str:
        """The id of a new session."""
        return str((await self.ask("session/new", cwd=cwd, mcpServers=[]))["sessionId"])

    async def prompt(self, session: str, *texts: str) -> Any:
        """Send a prompt and wait for the end of its turn: the stop reason, or the error."""
        found = await self.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": t} for t in texts])
        if is_v1(self.acp) or "code" in found:
            return found.get("stopReason", found)
        while not (self.updates and self.updates[-1].get("state") == "idle"):
            self.updates.append((await self.peer.receive())["params"]["update"])
        return self.updates[-1]["stopReason"]

    async def load(self, session: str, cwd: str = "/project") -> Any:
        """Open a session again, with all of it."""
        if is_v1(self.acp):
            return await self.ask("session/load", sessionId=session, cwd=cwd, mcpServers=[])
        start = {"type": "start"}
        return await self.ask("session/resume", sessionId=session, cwd=cwd, mcpServers=[], replayFrom=start)

    def said(self) -> list[Any]:
        """The updates in short, but for states."""
        return [_short(update) for update in self.updates if update["sessionUpdate"] != "state_update"]


def _short(update: dict[str, Any]) -> Any:
    kind = update["sessionUpdate"]
    content = update.get("content")
    if kind.startswith("user"):
        blocks = content if isinstance(content, list) else [content]
        return tuple(block["text"] for block in blocks)
    if kind.endswith("message_chunk"):
        return update["content"]["text"]
    return f"{kind} {update.get('status', update.get('title', ''))}".strip()


@asynccontextmanager
async def editor(acp: Any, agent: type[Any], **more: Any) -> AsyncGenerator[Editor, None]:
    """A client by hand, of an agent of this class."""
    async with raw_peer(acp, agent, max_messages=100_000, **more) as peer:
        yield Editor(acp, peer)
