"""The base of `ScriptedAgent`, and the prompts that its script works on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from ..codec import encode
from ..decision import explains
from ..methods import AGENT_METHODS
from ..types import SessionUpdate
from .scripted_peer import Answer, ScriptedPeer

__all__ = ["ScriptedTurn"]


class ScriptedTurn:
    """A prompt that a scripted agent works on. `text` is that of its blocks, `params` has all of it.

    `session/cancel` cancels the script, unless `is_deaf` is set; what it returns then does not count.
    """

    def __init__(self, agent: ScriptedTurns, params: Any) -> None:
        self.agent = agent
        self.params = params
        self.session_id: str = params["sessionId"]
        self.text = "".join(block.get("text", "") for block in params["prompt"])
        self.is_cancelled = False
        self.is_deaf = False
        self._calls = 0
        self._work: asyncio.Future[str | None] | None = None

    async def say(self, *pieces: str) -> None:
        """Send pieces of a message."""
        for piece in pieces:
            await self.update(self.agent.piece("agent_message_chunk", piece))

    async def think(self, *pieces: str) -> None:
        """Send pieces of the agent's thoughts."""
        for piece in pieces:
            await self.update(self.agent.piece("agent_thought_chunk", piece))

    async def tool(self, title: str, status: str = "in_progress", **more: Any) -> str:
        """Report a tool call, with `more` properties by their names on the wire; returns its id."""
        self._calls += 1
        call = {"toolCallId": f"call-{self._calls}", "title": title, "status": status, **more}
        await self.update({"sessionUpdate": self.agent.FIRST_OF_CALL, **call})
        return str(call["toolCallId"])

    async def tool_update(self, tool_call_id: str, status: str = "completed", **more: Any) -> None:
        """Report a change of a tool call: by default, that it has ended."""
        await self.update({"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": status, **more})

    async def update(self, update: SessionUpdate | dict[str, Any]) -> None:
        """Send an update of the session: a value of the package, or any object."""
        raw = update if isinstance(update, dict) else encode(update)
        await self.agent.notify("session/update", sessionId=self.session_id, update=raw)

    async def ask(self, title: str, *kinds: str) -> str | None:
        """Ask for permission, with an option of each kind that has the kind for its id; returns the id that is chosen.

        Without `kinds`, there are `allow_once` and `reject_once`. None stands for a question that was cancelled.
        """
        options = [
            {"optionId": kind, "name": kind.replace("_", " ").capitalize(), "kind": kind}
            for kind in kinds or ("allow_once", "reject_once")
        ]
        question = {"sessionId": self.session_id, **self.agent.question(title), "options": options}
        answer = await self.agent.request("session/request_permission", **question)
        chosen: str | None = answer["outcome"].get("optionId")
        return chosen

    async def request(self, method: str, **params: Any) -> Any:
        """Call the client, such as `fs/read_text_file`, with this session; returns the result as it is."""
        return await self.agent.request(method, sessionId=self.session_id, **params)

    async def hang(self) -> None:
        """Wait until the turn is cancelled; for ever if the turn is deaf."""
        await asyncio.get_running_loop().create_future()

    async def die(self, code: int = 1) -> None:
        """End the process of the agent at once; in the process of the test, only its connection."""
        await self.agent.die(code)

    def cancel(self) -> None:
        """Cancel the script: the client has cancelled the turn."""
        self.is_cancelled = True
        if self._work is not None and not self.is_deaf:
            self._work.cancel()

    async def run(self) -> str:
        """Run the script; returns the stop reason. Raises what the script raises."""
        self._work = work = asyncio.ensure_future(self.agent.play(self))
        try:
            reason = await work
        except asyncio.CancelledError:
            if not self.is_cancelled:
                raise
            reason = None
        return "cancelled" if self.is_cancelled else reason or "end_turn"


Play: TypeAlias = Callable[[ScriptedTurn], Awaitable[str | None]]
"""A script: it is called for each prompt, and returns the stop reason; None is `end_turn`."""


class ScriptedTurns(ScriptedPeer):
    """The base of `ScriptedAgent`."""

    METHODS = AGENT_METHODS
    FIRST_OF_CALL = "tool_call_update"
    """The update that begins a tool call."""

    @explains
    def __init__(
        self,
        play: Callable[[ScriptedTurn], Any],
        *,
        capabilities: Mapping[str, Any] | None = None,
        answers: Mapping[str, Answer] | None = None,
    ) -> None:
        super().__init__(answers)
        self.play = play
        self.capabilities = dict(capabilities or {})
        self.turns: list[ScriptedTurn] = []
        """The turns that go on."""
        self._sessions = 0

    async def handle(self, method: str, params: Any) -> Any:
        """Answer a request: from `answers`, or as an agent that opens sessions and plays the script."""
        if method in self.answers:
            return await super().handle(method, params)
        match method:
            case "initialize":
                return self.hello()
            case "session/new":
                self._sessions += 1
                return {"sessionId": f"session-{self._sessions}"}
            case "session/prompt":
                return await self.prompt(ScriptedTurn(self, params))
            case _:
                return await super().handle(method, params)

    def notified(self, method: str, params: Any) -> None:
        """Cancel the turns of a session."""
        if method == "session/cancel":
            for turn in self.turns:
                if turn.session_id == params["sessionId"]:
                    turn.cancel()

    async def finish(self, turn: ScriptedTurn) -> str:
        """Run the script of a turn; returns the stop reason."""
        self.turns.append(turn)
        try:
            return await turn.run()
        finally:
            self.turns.remove(turn)

    def advertising(self) -> Any:
        """The type of the result of `initialize`."""
        return AGENT_METHODS["initialize"].result

    def hello(self) -> dict[str, Any]:
        """The result of `initialize`."""
        raise NotImplementedError

    def piece(self, kind: str, text: str) -> dict[str, Any]:
        """The update with a piece of a message."""
        raise NotImplementedError

    def question(self, title: str) -> dict[str, Any]:
        """The params of `session/request_permission` that say what it is about."""
        raise NotImplementedError

    async def prompt(self, turn: ScriptedTurn) -> dict[str, Any]:
        """The result of `session/prompt`."""
        raise NotImplementedError
