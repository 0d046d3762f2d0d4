"""`Turns` in races: random schedules of prompts, cancels, closes and ends of the connection, the same for each seed.

Nothing depends on time: all tasks yield a number of times that the seed decides. The agent notes what it has handled
in which order; from this follows how each prompt may end.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import acp_log, raw_peer, run
from tests.support import DEEP, Packages
from tests.turns_support import PROTOCOLS, Talk, short, turns_agent

BOTH = pytest.mark.parametrize("sources", PROTOCOLS.values(), ids=PROTOCOLS.keys())
SESSIONS = ("one", "two")
MAX_YIELDS = 5_000
"""A race that has not ended after so many turns of the event loop never ends."""
QUIET_YIELDS = 100
"""An agent that has sent nothing in so many turns has nothing to do: the steps of its work yield less often."""


@dataclass(eq=False)
class Prompt:
    """A prompt, and what the agent has seen of it. Each letter of `steps` is a step of its work, see `Race.take`."""

    number: int
    session: str
    steps: str
    is_known: bool = True
    has_begun: bool = False
    has_worked: bool = False
    has_ended: bool = False
    must_be_cancelled: bool = False
    may_be_cancelled: bool = False

    @property
    def natural_end(self) -> str:
        """The end of the turn if nothing cancels it."""
        ends = {"!": "-32603", "?": "-32602", "t": "max_tokens"}
        return next((ends[step] for step in self.steps if step in ends), "end_turn")


@dataclass
class Race:
    """One race: its prompts by number, and all that the agent has sent."""

    acp: Any
    random: Random
    prompts: dict[int, Prompt] = field(default_factory=dict)
    messages: list[Any] = field(default_factory=list)
    started: defaultdict[str, list[Prompt]] = field(default_factory=lambda: defaultdict(list))
    working: Counter[str] = field(default_factory=Counter)
    closing: Counter[str] = field(default_factory=Counter)
    closed: set[str] = field(default_factory=set)
    is_overlapping: bool = False
    closes: dict[str, list[Prompt]] = field(default_factory=dict)
    """The prompts that had not ended when the agent began to handle this request to close or delete."""
    requests_cancelled: set[int] = field(default_factory=set)

    async def pause(self, most: int) -> None:
        for _ in range(self.random.randrange(most + 1)):
            await asyncio.sleep(0)

    def cancelled(self, session: str) -> list[Prompt]:
        """Note that the agent handles a cancel. Returns the prompts that it concerns."""
        concerned = [each for each in self.prompts.values() if each.session == session and not each.has_ended]
        for each in concerned:
            each.may_be_cancelled = True
            each.must_be_cancelled |= not each.has_worked
        return concerned

    def agent(self) -> type[Any]:
        """The agent: that of the documentation, and notes."""
        race, forgets_first = self, self.random.random() < 0.5

        async def close(agent: Any, session: str) -> None:
            race.closes[f"close {len(race.closes)}"] = race.cancelled(session)
            race.closing[session] += 1
            if forgets_first:
                race.closed.add(session)
            await agent.turns.close(session)
            race.closed.add(session)
            race.closing[session] -= 1

        class Agent(turns_agent(self.acp, self.work)):  # type: ignore[misc]
            async def session_prompt(self, params: Any) -> Any:
                number, _, steps = params.prompt[0].text.partition(" ")
                prompt = race.prompts[int(number)] = Prompt(int(number), params.session_id, steps)
                if prompt.session in race.closed:
                    prompt.is_known, prompt.has_ended = False, True
                    raise race.acp.InvalidParamsError
                if race.closing[prompt.session]:
                    prompt.must_be_cancelled = prompt.may_be_cancelled = True
                try:
                    return await super().session_prompt(params)
                finally:
                    prompt.has_ended = race.acp.PROTOCOL_VERSION == 1

            async def session_cancel(self, params: Any) -> None:
                race.cancelled(params.session_id)
                await super().session_cancel(params)

            async def session_close(self, params: Any) -> Any:
                await close(self, params.session_id)
                return race.acp.CloseSessionResponse()

            async def session_delete(self, params: Any) -> Any:
                await close(self, params.session_id)
                return race.acp.DeleteSessionResponse()

        return Agent

    async def work(self, agent: Any, params: Any) -> Any:
        prompt = self.prompts[int(params.prompt[0].text.partition(" ")[0])]
        prompt.has_begun = True
        self.started[prompt.session].append(prompt)
        self.working[prompt.session] += 1
        self.is_overlapping |= self.working[prompt.session] > 1
        try:
            return await self.take(agent, prompt, iter(prompt.steps))
        finally:
            self.working[prompt.session] -= 1
            prompt.has_worked = True

    async def take(self, agent: Any, prompt: Prompt, steps: Iterator[str]) -> Any:
        for step in steps:
            match step:
                case ".":
                    await asyncio.sleep(0)
                case "u":
                    await agent.tell(prompt.session, str(prompt.number))
                case "p":
                    await agent.client.ext_method("_ask", None)
                case "!":
                    raise ValueError
                case "?":
                    raise self.acp.InvalidParamsError
                case "t":
                    return "max_tokens"
                case "s":
                    self.cancelled(prompt.session)
                    agent.turns.cancel(prompt.session)
                case _:
                    return await self.react(agent, prompt, steps, step)
        return None

    async def react(self, agent: Any, prompt: Prompt, steps: Iterator[str], how: str) -> Any:
        """Take the other steps, and react to being cancelled: clean up, return or raise."""
        try:
            return await self.take(agent, prompt, steps)
        except asyncio.CancelledError:
            if how == "i":
                return "max_tokens"
            if how == "r":
                raise ValueError from None
            await asyncio.sleep(0)
            await agent.tell(prompt.session, str(prompt.number))
            raise

    # --- The client ---

    async def read(self, client: Talk) -> None:
        slowness = self.random.choice((0, 0, 1, 5))
        while (message := await client.peer.receive()) is not None:
            if message.get("method") == "_ask":
                await self.pause(5)
                with suppress(BrokenPipeError):
                    await client.peer.answer(message["id"], result=None)
            elif message.get("method") in (None, "session/update"):
                self.messages.append(message)
                self.note_end(message)
            await self.pause(slowness)

    def note_end(self, message: Any) -> None:
        """Note that a turn of protocol 2 has ended: a cancel that the agent handles from now on is too late."""
        if "method" not in message:
            prompt = self.prompts.get(message["id"])
            if prompt is not None and "error" in message:
                prompt.has_ended = True
        elif short(message).startswith("idle"):
            session = message["params"]["sessionId"]
            number = sum(is_idle(each, session) for each in self.messages) - 1
            self.accepted(session)[number].has_ended = True

    def accepted(self, session: str) -> list[Prompt]:
        """The prompts of a session that were accepted, in the order of their messages; for protocol 2."""
        answers = {
            each["result"]["messageId"]: self.prompts[each["id"]]
            for each in self.messages
            if "messageId" in (each.get("result") or {})
        }
        told = [each["params"] for each in self.messages if "method" in each and short(each) == "user_message"]
        return [answers[each["update"]["messageId"]] for each in told if each["sessionId"] == session]

    def script(self) -> list[tuple[str, str]]:
        kinds = ("prompt",) * 6 + ("cancel",) * 3 + ("cancel_request",) * 2 + ("close", "delete") + ("pause",) * 4
        length = self.random.randrange(3, 16)
        return [(self.random.choice(kinds), self.random.choice(SESSIONS)) for _ in range(length)]

    async def play(self, client: Talk, script: list[tuple[str, str]]) -> tuple[list[int], int]:
        """Send what is in the script; returns the numbers of the prompts, and how often a session was closed."""
        prompts, closes = list[int](), 0
        for kind, session in script:
            match kind:
                case "prompt":
                    number = len(prompts)
                    prompts.append(number)
                    steps = "".join(self.random.choices(".up!?tscir", (8, 8, 2, 1, 1, 1, 1, 2, 1, 1), k=4))
                    await client.prompt(number, f"{number} {steps[: self.random.randrange(5)]}", session)
                case "cancel":
                    await client.cancel(self.random.choice((session, session, session, "unknown")))
                case "cancel_request":
                    number = self.random.randrange(len(prompts) + 2)
                    self.requests_cancelled |= {number} & {*prompts}
                    await client.cancel_request(number)
                case "close" | "delete":
                    await client.peer.request(f"close {closes}", f"session/{kind}", {"sessionId": session})
                    closes += 1
                case _:
                    await self.pause(12)
        return prompts, closes

    async def run(self) -> None:
        before = asyncio.all_tasks()
        script, ends_early = self.script(), self.random.random() < 0.3
        async with raw_peer(self.acp, self.agent(), max_messages=self.random.choice((1, 2, 64, 64, 64))) as peer:
            client = Talk(peer)
            reader = asyncio.create_task(self.read(client))
            if ends_early:
                await self.end_early(client, script, reader)
            else:
                sent = await self.play(client, script)
                await self.rest()
                self.check(*sent)
        await asyncio.wait([reader])
        assert reader.cancelled() or reader.result() is None
        answered = [each["id"] for each in self.messages if "method" not in each]
        assert len(answered) == len({*answered}), "a request was answered twice"
        assert not +self.working, "work has outlived the connection"
        assert not self.is_overlapping, "two turns of a session ran at the same time"
        left = asyncio.all_tasks() - before
        assert not left, f"left: {left}"

    async def end_early(self, client: Talk, script: list[tuple[str, str]], reader: asyncio.Task[None]) -> None:
        """End the connection from either side in the middle of the script. The client may have stopped to read."""
        player = asyncio.create_task(self.play(client, script))
        await self.pause(60)
        player.cancel()
        if self.random.random() < 0.5:
            reader.cancel()
            await self.pause(60)
        await asyncio.wait([player])
        await self.random.choice((client.peer.transport.close, client.peer.connection.close))()

    async def rest(self) -> None:
        """Wait until the agent has nothing to do."""
        seen = quiet = 0
        for _ in range(MAX_YIELDS):
            await asyncio.sleep(0)
            quiet = quiet + 1 if len(self.messages) == seen else 0
            seen = len(self.messages)
            if quiet == QUIET_YIELDS:
                return
        pytest.fail("the agent does not come to rest")

    # --- What must hold ---

    def check(self, numbers: list[int], closes: int) -> None:
        stories = [short(each) for each in self.messages]
        answers = Counter(each["id"] for each in self.messages if "method" not in each)
        assert answers == Counter([*numbers, *(f"close {number}" for number in range(closes))]), stories
        for session in SESSIONS:
            started = [each.number for each in self.started[session]]
            assert started == sorted(started), "prompts have overtaken each other"
            self.check_states(session)
        ends = {number: self.end_of(self.prompts[number]) for number in numbers}
        for number, (end, at) in ends.items():
            prompt = self.prompts[number]
            assert end in self.allowed(prompt), f"{prompt} has ended with {end}: {stories}"
            assert str(number) not in stories[at:], f"prompt {number} has ended before its updates: {stories}"
        for name, concerned in self.closes.items():
            late = [each for each in concerned if ends[each.number][1] > stories.index(f"{name}: ok")]
            assert not late, f"{name} was answered before {late} had ended: {stories}"

    def allowed(self, prompt: Prompt) -> set[str]:
        """The ends that the protocol allows for a prompt."""
        natural, is_v1 = prompt.natural_end, self.acp.PROTOCOL_VERSION == 1
        if not prompt.is_known:
            return {"-32602"}
        if not is_v1 and natural.startswith("-"):
            natural = "error"
        allowed = set() if prompt.must_be_cancelled else {natural}
        if prompt.may_be_cancelled:
            allowed.add("cancelled")
        waited = not is_v1 and not prompt.has_begun
        if prompt.number in self.requests_cancelled and is_v1:
            allowed |= {"-32800"} | {
                end for step, end in (("i", "max_tokens"), ("r", "-32603")) if step in prompt.steps
            }
        elif waited and (prompt.number in self.requests_cancelled or prompt.may_be_cancelled):
            allowed.add("-32800")
        return allowed

    def end_of(self, prompt: Prompt) -> tuple[str, int]:
        """How a prompt has ended, and the index of the message that says so."""
        at, response = next((i, each) for i, each in enumerate(self.messages) if each.get("id") == prompt.number)
        if "error" in response or self.acp.PROTOCOL_VERSION == 1:
            return short(response).partition(": ")[2], at
        number = self.accepted(prompt.session).index(prompt)
        at = [i for i, each in enumerate(self.messages) if is_idle(each, prompt.session)][number]
        return short(self.messages[at]).partition(" ")[2], at

    def check_states(self, session: str) -> None:
        """In protocol 2, each accepted prompt has a message, then a time in which the session runs; then it is idle."""
        updates = [each for each in self.messages if each.get("params", {}).get("sessionId") == session]
        states = [short(each).partition(" ")[0] for each in updates]
        states = [state for state in states if state in ("user_message", "running", "idle")]
        assert states == ["user_message", "running", "idle"] * len(self.accepted(session))


CLEAN_UP = re.compile("during clean-up|(connection_closed|closing the transport|a task of the connection) failed")
"""What the log says about a connection that could not end as it should."""


def is_idle(message: Any, session: str) -> bool:
    return short(message).startswith("idle") and message["params"]["sessionId"] == session


def hold_races(acp: Any, seeds: range) -> None:
    async def main() -> None:
        for seed in seeds:
            try:
                await Race(acp, Random(seed)).run()
            except (Exception, pytest.fail.Exception) as error:
                raise AssertionError(f"race {seed}: {error}") from error

    with acp_log(logging.WARNING) as records:
        run(main(), seconds=1_800)
    said = [record.getMessage() for record in records]
    assert not [text for text in said if CLEAN_UP.search(text)], "the clean-up hung or failed"


@BOTH
@pytest.mark.every_python
def test_some_races(packages: Packages, sources: SchemaChoice) -> None:
    hold_races(packages(sources), range(100))


@BOTH
@pytest.mark.full
def test_many_races(packages: Packages, sources: SchemaChoice) -> None:
    hold_races(packages(sources), range(1_000 if DEEP else 300))
