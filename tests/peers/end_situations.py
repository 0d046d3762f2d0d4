"""Agents that end: in a turn, between turns and while they start; and sessions that are opened again."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

from tests.peers import clients
from tests.peers.situations import TURN_SECONDS, Found, answer_of, do, end_of, found, says, situation, works
from tests.peers.world import START_SECONDS, World

KEPT = "told-first2"
"""The last word of the first answer, which must not be lost."""
FIRST = {"say": 3, "as": "told-first"}


class Kept:
    """A session with one answer, in which commands leave a line each."""

    def __init__(self, world: World, session: Any) -> None:
        self.world, self.session = world, session
        self.file = Path(session.cwd) / "ran.txt"

    @classmethod
    async def opened(cls, world: World, keeper: Any) -> Kept:
        """Open one, and get the answer."""
        session, start = await world.open(keeper), time.time()
        world.user.start()
        await asyncio.wait_for(clients.ask(session, do(FIRST)), TURN_SECONDS)
        await world.age(start)
        return cls(world, session)

    def run(self, word: str) -> dict[str, str]:
        """The step that leaves a line."""
        return {"run": f"echo {word} >> {self.file}"}

    @property
    def ran(self) -> str:
        """What has run, in its order."""
        return "".join(self.file.read_text(encoding="utf-8").split()) if self.file.exists() else ""

    async def goes_on(self) -> tuple[bool, str]:
        """Send the next prompt: it works, what was answered is there, and the agent knows it, too."""
        self.world.heard.clear()
        try:
            await asyncio.wait_for(clients.ask(self.session, do(self.run("b"))), START_SECONDS)
        except Exception as error:  # noqa: BLE001 - that is what is found
            reason = str(getattr(error, "reason", None) or error)
            return False, f"the next prompt raises {type(error).__name__}: {reason[:120]}"
        is_shown, is_known = KEPT in answer_of(self.session), KEPT in self.world.heard
        text = f"ran {self.ran or 'nothing'}; the earlier answer is {'shown' if is_shown else 'NOT SHOWN'}"
        text += f", and {'known to the agent' if is_known else 'NOT KNOWN to the agent'}"
        return is_shown and is_known, text


async def _in_turn(world: World, keeper: Any, number: signal.Signals) -> Found:
    kept = await Kept.opened(world, keeper)
    task = asyncio.ensure_future(end_of(clients.ask(kept.session, do(kept.run("a"), {"say": 400, "as": "cut"}))))
    await says(kept.session, "cut2", task)
    if task.done():
        return found(False, f"the turn ends before: {await task}; ran {kept.ran or 'nothing'}")
    world.kill(number)
    end = await task
    await world.is_noticed()
    is_well, text = await kept.goes_on()
    counts = "; the cut answer COUNTS as one" if end == "answer" else ""
    return found(is_well and kept.ran == "ab" and not counts, f"the turn: {end}{counts}; {text}")


async def _between(world: World, keeper: Any, number: signal.Signals) -> Found:
    kept = await Kept.opened(world, keeper)
    world.kill(number)
    is_gone = await world.is_noticed()
    is_well, text = await kept.goes_on()
    return found(is_well and is_gone and kept.ran == "b", text if is_gone else f"it DOES NOT END; {text}")


async def _at_start(world: World, keeper: Any, number: signal.Signals) -> Found:
    kept = await Kept.opened(world, keeper)
    starts, loop = world.starts, asyncio.get_running_loop()
    world.at_start = lambda: loop.call_later(0.3, world.kill, number)
    world.kill(signal.SIGKILL)
    await world.is_noticed()
    is_well, text = await kept.goes_on()
    return found(is_well and kept.ran == "b", f"{world.starts - starts} starts; {text}")


@situation("SIGTERM in a turn", seconds=600)
async def term_in_turn(world: World, keeper: Any) -> Found:
    """The turn raises, its command has run once, nothing is lost, and the next prompt works."""
    return await _in_turn(world, keeper, signal.SIGTERM)


@situation("SIGKILL in a turn", seconds=600)
async def kill_in_turn(world: World, keeper: Any) -> Found:
    """The same."""
    return await _in_turn(world, keeper, signal.SIGKILL)


@situation("SIGTERM between turns", seconds=600)
async def term_between(world: World, keeper: Any) -> Found:
    """Nothing is lost, and the next prompt works."""
    return await _between(world, keeper, signal.SIGTERM)


@situation("SIGKILL between turns", seconds=600)
async def kill_between(world: World, keeper: Any) -> Found:
    """The same."""
    return await _between(world, keeper, signal.SIGKILL)


@situation("SIGTERM while it starts again", seconds=600)
async def term_at_start(world: World, keeper: Any) -> Found:
    """It is started once more, and the session goes on."""
    return await _at_start(world, keeper, signal.SIGTERM)


@situation("SIGKILL while it starts again", seconds=600)
async def kill_at_start(world: World, keeper: Any) -> Found:
    """The same."""
    return await _at_start(world, keeper, signal.SIGKILL)


@situation("`keeper.restart()` between turns", seconds=600)
async def restarted(world: World, keeper: Any) -> Found:
    """Another process goes on with the session."""
    kept = await Kept.opened(world, keeper)
    starts = world.starts
    if not await asyncio.wait_for(clients.restart(keeper), START_SECONDS):
        return Found("-", "the keeper has no `restart`")
    is_well, text = await kept.goes_on()
    return found(is_well and world.starts == starts + 1, f"{world.starts - starts} starts; {text}")


@situation("`keeper.reconnect()` while it runs", seconds=600)
async def reconnected(world: World, keeper: Any) -> Found:
    """The session goes on, with the same process."""
    kept = await Kept.opened(world, keeper)
    starts = world.starts
    await asyncio.wait_for(keeper.reconnect(), START_SECONDS)
    is_well, text = await kept.goes_on()
    return found(is_well and world.starts == starts, f"{world.starts - starts} starts; {text}")


async def _again(world: World, keeper: Any, way: str) -> Found:
    """Open a session of an earlier process by `load` or `resume`, with another keeper."""
    if not keeper.client.agent.supports("session/resume" if world.protocol == 2 else f"session/{way}"):
        return Found("-", "not offered")
    async with world.connected() as other:  # it ends before the session is opened again: an agent may lock it
        kept = await Kept.opened(world, other)
        await asyncio.wait_for(clients.ask(kept.session, do(kept.run("a"))), TURN_SECONDS)
    async with world.connected() as other:
        opening = getattr(other, way)(kept.session.id, kept.session.cwd)
        kept.session = await asyncio.wait_for(opening, START_SECONDS)
        await asyncio.sleep(3)  # one agent answers before the replay has ended
        shown = _shown(kept)
        expected = (2, 1, 1) if way == "load" else (0, 0, 0)
        world.heard.clear()
        is_well = await works(kept.session) and KEPT in world.heard
        text = "{} prompts, {} tool calls, the first answer {} times".format(*shown)
        text += f"; the next prompt {'works' if is_well else 'DOES NOT KNOW the earlier ones'}"
        return found(is_well and shown == expected and kept.ran == "a", text)


def _shown(kept: Kept) -> tuple[int, int, int]:
    """What the state has: prompts, tool calls, and how often the first answer."""
    entries = kept.session.state.entries
    prompts = [entry for entry in entries if type(entry).__name__ == "UserMessage" and "DO[" in entry.text]
    return len(prompts), len(kept.session.state.tool_calls), answer_of(kept.session).count(KEPT)


@situation("`load` in another process", seconds=600)
async def loaded(world: World, keeper: Any) -> Found:
    """The conversation is there, once, and the agent knows it."""
    return await _again(world, keeper, "load")


@situation("`resume` in another process", seconds=600)
async def resumed(world: World, keeper: Any) -> Found:
    """Nothing is shown again, and the agent knows the conversation."""
    return await _again(world, keeper, "resume")


@situation("the mode of the user, after SIGKILL", seconds=600)
async def mode_kept(world: World, keeper: Any) -> Found:
    """It is the mode again, and the agent does as it says."""
    kept = await Kept.opened(world, keeper)
    now, modes, _ = clients.mode_of(kept.session)
    wanted = world.ready.agent.free_mode or next((mode for mode in modes if mode != now), None)
    if wanted not in modes:
        return Found("-", f"no other mode is offered: {', '.join(modes) or 'none'}")
    await clients.set_mode(world.acp, keeper.client, kept.session, wanted)
    world.kill(signal.SIGKILL)
    await world.is_noticed()
    world.user.start("deny")
    end = await end_of(kept.session.prompt(do({**kept.run("b"), "inside": True})))
    mode = clients.mode_of(kept.session)[0]
    is_free = kept.ran == "b" and not world.user.asked
    text = f"{now} → {wanted}, after the restart {mode}; {len(world.user.asked)} dialogs, ran {kept.ran or 'nothing'}"
    is_right = mode == wanted and (is_free or not world.ready.agent.free_mode)
    return found(is_right, f"{text}; the turn: {end}")
