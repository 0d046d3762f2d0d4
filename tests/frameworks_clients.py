"""Three clients that have a conversation with an agent of a framework: ours, which is scripted, and the SDKs'."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.frameworks_conversation import ASK, CANCEL, CONVERSATION, Prompt, Restart, Step, kinds, text_of
from tests.frameworks_support import SECONDS, Project, check_quiet
from tests.interop.pairs import HERE, LIMIT, OurAgent, Setup
from tests.interop.theatre import FENCE

Json = Any
UNKNOWN = r"ERROR:root:Unhandled error while handling notification method=\$/cancel_request\n.*?Method not found\n"
"""What the SDK of Python says if a question is withdrawn, which the protocol allows: here as its turn is cancelled."""


class Client(Protocol):
    """A client that is connected to an agent."""

    async def answer(self, plan: Json) -> None:
        """Forget what was seen, and answer questions so from now on."""

    async def say(self, method: str, params: Json) -> Json:
        """Send a message; what came back: a `result`, an `error`, or nothing."""

    async def seen(self, count: int = 0) -> list[Json]:
        """What the agent has sent since the last `answer`, once that is `count` messages."""


class Scripted:
    """Our client, in raw messages."""

    def __init__(self, client: Any, error: type[Exception]) -> None:
        """`error` is what a request raises that is refused."""
        self._client = client
        self._error = error
        self._start = 0

    async def answer(self, plan: Json) -> None:
        self._start = len(self._client.received)

        async def decide(params: Json) -> Json:
            for each in plan.get("first", ()):
                await self.say(each["method"], each["params"])
            chosen = plan["result"]["outcome"].get("optionId")
            ids = {each["kind"]: each["optionId"] for each in params["options"]}  # the same in the examples alone
            return {"outcome": {"outcome": "selected", "optionId": ids[chosen]}} if chosen else plan["result"]

        self._client.answers[ASK] = decide

    async def say(self, method: str, params: Json) -> Json:
        if method == "session/cancel":
            await self._client.notify(method, **params)
            return {}
        try:
            return {"result": await self._client.request(method, **params)}
        except self._error as error:
            return {"error": str(error)}

    async def seen(self, count: int = 0) -> list[Json]:
        def log() -> list[Json]:
            return [each for each in self._client.received[self._start :] if "method" in each]

        await self._client.until(lambda: len(log()) >= count)
        return log()


class OfSdk:
    """A client of an official SDK, in its process."""

    def __init__(self, pair: OurAgent) -> None:
        self._pair = pair

    async def answer(self, plan: Json) -> None:
        await self._pair.order("client", "reset", {"answers": {ASK: plan}})

    async def say(self, method: str, params: Json) -> Json:
        return await self._pair.say("client", method, params)

    async def seen(self, count: int = 0) -> list[Json]:
        await self.say(FENCE, {})  # the SDK of Python may answer before it has told all
        return await self._pair.seen("client", count)


@asynccontextmanager
async def scripted(project: Project) -> AsyncGenerator[Client, None]:
    async with project.talk() as client:
        yield Scripted(client, project.acp.RequestError)


@dataclass(frozen=True)
class Sdk:
    """An official SDK: the command that runs a script with it, and its folder."""

    setup: Setup
    command: tuple[str, ...]
    folder: Path

    @asynccontextmanager
    async def __call__(self, project: Project) -> AsyncGenerator[Client, None]:
        answers, log = project.home / "answers.json", project.home / "stderr"
        answers.write_text("{}")
        script = HERE / {"ts": "ts_peer.mjs", "py": "py_peer.py"}[self.setup.sdk]
        peer = [*self.command, str(script), "client", str(self.setup.version), str(self.folder), str(answers)]
        with log.open("ab") as stderr:
            process = await asyncio.create_subprocess_exec(
                *peer,
                *project.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                limit=LIMIT,
            )
        pair = OurAgent(self.setup, process)
        try:
            yield OfSdk(pair)
        finally:
            await pair.end()
            await process.wait()
        assert pair.exit == 0
        check_quiet(re.sub(UNKNOWN, "", log.read_text(), flags=re.DOTALL))


def mode_of(result: Json) -> str:
    """The mode in a result; empty if it has none."""
    options = result.get("configOptions") or ()
    return next((str(each["currentValue"]) for each in options if each.get("category") == "mode"), "")


class Start(Protocol):
    """What starts an agent and connects a client to it."""

    def __call__(self, project: Project) -> AbstractAsyncContextManager[Client]: ...


@dataclass
class Talk:
    """A conversation, from its begin to its end."""

    project: Project
    start: Start
    patience: float = SECONDS
    """How long to wait for the agent before, and after a turn is cancelled."""
    session: str = ""
    told: list[list[Json]] = field(default_factory=list)
    """What the client got in each step."""
    transcript: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What is in the file after each prompt."""
    modes: list[str] = field(default_factory=list)
    """The mode of the session when it has begun, and in each step, as the client was told last."""

    async def play(self, conversation: Sequence[Step] = CONVERSATION) -> None:
        at = conversation.index(Restart())
        for steps in (conversation[:at], conversation[at + 1 :]):
            async with self.start(self.project) as client:
                await self._open(client)
                for step in steps:
                    assert isinstance(step, Prompt)
                    self.project.restore()
                    await self._choose(client, step.mode or self.modes[-1])
                    end = await self._prompt(client, step)
                    self._note(await client.seen(), end)
                    self.notes.append(self.project.notes.read_text())

    async def _open(self, client: Client) -> None:
        await client.say("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        params = {"cwd": str(self.project.folder), "mcpServers": self.project.servers}
        if not self.session:
            opened = (await client.say("session/new", params))["result"]
            self.session = opened["sessionId"]
            self.modes.append(mode_of(opened))
            return
        await client.answer({})
        outcome = await client.say("session/load", {"sessionId": self.session, **params})
        self.modes.append(mode_of(outcome.get("result") or {}))
        self._note(await client.seen(), "refused" if "error" in outcome else "")

    async def _choose(self, client: Client, mode: str) -> None:
        """Choose the mode for a step, unless it is in force."""
        if mode != self.modes[-1]:
            choice = {"sessionId": self.session, "configId": "mode", "value": mode}
            mode = mode_of((await client.say("session/set_config_option", choice))["result"])
        self.modes.append(mode)

    async def _prompt(self, client: Client, step: Prompt) -> str:
        """Send a prompt; how its turn has ended."""
        cancel = {"method": "session/cancel", "params": {"sessionId": self.session}}
        if step.answer == CANCEL:
            plan: Json = {"first": [cancel], "result": {"outcome": {"outcome": "cancelled"}}}
        else:
            plan = {"result": {"outcome": {"outcome": "selected", "optionId": step.answer}}}
        await client.answer(plan)
        prompt = {"sessionId": self.session, "prompt": [{"type": "text", "text": step.text}]}
        turn = asyncio.ensure_future(client.say("session/prompt", prompt))
        if step.cancel_after:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(client.seen(step.cancel_after), self.patience)
            await client.say(**cancel)
        try:
            outcome = await asyncio.wait_for(turn, self.patience)
        except asyncio.TimeoutError:
            return "no response"
        return str(outcome["result"]["stopReason"]) if "result" in outcome else "error"

    def _note(self, messages: list[Json], end: str = "") -> None:
        copied: list[Json] = json.loads(json.dumps(messages))
        self.told.append(copied)
        self.transcript.append(kinds(copied, end=end))

    def updates(self, steps: slice) -> list[Json]:
        """What the agent reported in some of the steps."""
        messages = [each for told in self.told[steps] for each in told]
        return [each["params"]["update"] for each in messages if each.get("method") == "session/update"]

    def text(self, step: int) -> str:
        """What the agent said in a step."""
        return text_of(self.told[step])
