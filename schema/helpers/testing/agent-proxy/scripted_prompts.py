"""The base of `ScriptedClient`: it opens sessions, sends prompts, and answers requests of the agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..codec import encode
from ..decision import explains
from ..errors import InvalidParamsError
from ..methods import AGENT_METHODS, CLIENT_METHODS
from ..types import ContentBlock
from .content import as_block
from .scripted_peer import Answer, ScriptedPeer

__all__ = ["ScriptedAnswer", "choose"]


@dataclass(frozen=True)
class ScriptedAnswer:
    """The end of a prompt, and the updates between it and the prompt, as they were on the wire."""

    stop_reason: str
    updates: list[Any]

    @property
    def text(self) -> str:
        """The text of the agent's messages."""
        pieces = [each for each in self.updates if each["sessionUpdate"] == "agent_message_chunk"]
        return "".join(each["content"].get("text", "") for each in pieces)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the updates."""
        return [each["sessionUpdate"] for each in self.updates]


def choose(*kinds: str) -> Callable[[Any], Any]:
    """An answer for `session/request_permission`: the first option of one of these kinds; without any, "cancelled"."""

    def answer(params: Any) -> Any:
        for option in params["options"] if kinds else ():
            if option["kind"] in kinds:
                return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        if kinds:
            raise InvalidParamsError(f"there is no option of a kind among {kinds}")
        return {"outcome": {"outcome": "cancelled"}}

    return answer


class ScriptedPrompts(ScriptedPeer):
    """The base of `ScriptedClient`."""

    METHODS = CLIENT_METHODS
    wait_seconds = 30.0

    @explains
    def __init__(
        self, *, capabilities: Mapping[str, Any] | None = None, answers: Mapping[str, Answer] | None = None
    ) -> None:
        super().__init__(answers)
        self.capabilities = dict(capabilities or {})
        self._has_agreed = False

    async def initialize(self, **params: Any) -> Any:
        """Agree on the protocol, with these params in place of those of `hello`; returns the result of the agent.

        `open` and `load` call it if that was not done before.
        """
        result = await self.request("initialize", **{**self.hello(), **params})
        self._has_agreed = True
        return result

    async def open(self, cwd: str = "/", **more: Any) -> str:
        """Open a session, with these params besides; returns its id."""
        if not self._has_agreed:
            await self.initialize()
        result = await self.request("session/new", **{"cwd": cwd, "mcpServers": [], **more})
        return str(result["sessionId"])

    async def load(self, session_id: str, cwd: str = "/", **more: Any) -> list[Any]:
        """Open a session again, with these params besides; returns the updates that report the conversation so far."""
        if not self._has_agreed:
            await self.initialize()
        start = len(self.updates(session_id))
        method, params = self.loading()
        await self.request(method, **{"sessionId": session_id, "cwd": cwd, "mcpServers": [], **params, **more})
        return self.updates(session_id)[start:]

    def updates(self, session_id: str) -> list[Any]:
        """All updates of a session that have come."""
        return [each["update"] for each in self.calls("session/update") if each["sessionId"] == session_id]

    async def update(self, session_id: str, count: int = 1) -> Any:
        """Wait for the update number `count` of a session, from 1 on."""
        await self.until(lambda: len(self.updates(session_id)) >= count)
        return self.updates(session_id)[count - 1]

    async def prompt(self, session_id: str, *content: str | ContentBlock) -> ScriptedAnswer:
        """Send a prompt, and wait for the end of its turn. Raises `RequestError` if it is refused."""
        start = len(self.updates(session_id))
        blocks = [encode(as_block(each)) for each in content]
        reason = await self.end_of(
            session_id, await self.request("session/prompt", sessionId=session_id, prompt=blocks)
        )
        return ScriptedAnswer(reason, self.updates(session_id)[start:])

    async def cancel(self, session_id: str) -> None:
        """Cancel the turns of a session."""
        await self.notify("session/cancel", sessionId=session_id)

    def advertising(self) -> Any:
        """The type of the params of `initialize`."""
        return AGENT_METHODS["initialize"].params

    def hello(self) -> dict[str, Any]:
        """The params of `initialize`."""
        raise NotImplementedError

    def loading(self) -> tuple[str, dict[str, Any]]:
        """The method that opens a session again and reports its conversation, and its further params."""
        raise NotImplementedError

    async def end_of(self, session_id: str, result: Any) -> str:
        """Wait for the end of the turn that began with this result; returns the stop reason."""
        raise NotImplementedError
