"""Turns that are cancelled, that come together, and that the model fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.peers import clients
from tests.peers.situations import TURN_SECONDS, Found, do, end_of, found, says, situation, works
from tests.peers.world import World, becomes

SLEEP_SECONDS = 613
"""A number that tells the command from others."""
LEFT_SECONDS = 3.0
"""How long what was cancelled may take to end."""
IDLE_SECONDS = 20.0


async def _cancelled(world: World, session: Any, turn: asyncio.Task[str]) -> tuple[bool, str]:
    """Cancel a turn; returns whether it ends as it should and the next prompt works, and what has happened."""
    start = time.monotonic()
    await session.cancel()
    end = await turn
    seconds = time.monotonic() - start
    world.user.answer = "select"
    is_well = await works(session)
    text = f"`{end}` after {seconds:.1f} s; the next prompt {'works' if is_well else 'fails'}"
    return end == "cancelled" and is_well, text


@situation("cancel while it speaks")
async def cancel_in_text(world: World, keeper: Any) -> Found:
    """The turn ends as cancelled, and the next one works."""
    session = await world.open(keeper)
    world.user.start()
    turn = asyncio.ensure_future(end_of(session.prompt(do({"say": 400}))))
    await says(session, "word2", turn)
    return found(*await _cancelled(world, session, turn))


@situation("cancel while a command runs")
async def cancel_in_command(world: World, keeper: Any) -> Found:
    """The turn ends as cancelled, the command ends, and the next prompt works."""
    session = await world.open(keeper)
    world.user.start()
    file = Path(session.cwd) / "began.txt"
    command = f"echo a > {file}; sleep {SLEEP_SECONDS}; echo b > {session.cwd}/late.txt"
    turn = asyncio.ensure_future(end_of(session.prompt(do({"run": command}))))
    if not await becomes(file.exists, TURN_SECONDS):
        await session.cancel()
        return found(False, f"the command does not begin; the turn: {await turn}")
    is_right, text = await _cancelled(world, session, turn)
    is_over = await becomes(lambda: not world.sleeping(SLEEP_SECONDS), LEFT_SECONDS)
    calls = ", ".join(str(call.status) for call in session.state.tool_calls)
    text += f"; the command {'has ended' if is_over else 'RUNS ON'}, its call: {calls or 'none'}"
    for pid in world.sleeping(SLEEP_SECONDS):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found(is_right and is_over, text, otherwise="agent" if is_right else "no")


@situation("cancel while a question is open")
async def cancel_in_question(world: World, keeper: Any) -> Found:
    """The dialog is closed, the turn ends as cancelled, nothing runs, and the next prompt works."""
    session = await world.open(keeper)
    world.user.start(None)
    file = Path(session.cwd) / "ran.txt"
    turn = asyncio.ensure_future(end_of(session.prompt(do({"run": f"echo a >> {file}"}))))
    await becomes(lambda: world.user.shown.is_set() or turn.done(), TURN_SECONDS)
    if not world.user.shown.is_set():
        await session.cancel()
        return found(False, f"no dialog is shown; the turn: {await turn}")
    is_right, text = await _cancelled(world, session, turn)
    await becomes(file.exists, 1.0)
    text += f"; the command {'RAN' if file.exists() else 'did not run'}"
    return found(is_right and not file.exists() and world.user.closed == 1, text)


@situation("a second prompt while one runs")
async def second_prompt(world: World, keeper: Any) -> Found:
    """Both are answered, each with its own text, and each is worked on once."""
    session = await world.open(keeper)
    world.user.start()
    file = Path(session.cwd) / "ran.txt"
    first = asyncio.ensure_future(_result(session.prompt(do({"say": 60}))))
    await says(session, "word2", first)
    second = asyncio.ensure_future(_result(session.prompt(do({"run": f"echo b >> {file}"}, {"say": 3, "as": "next"}))))
    ends = [await end_of(first), await end_of(second)]
    texts = [turn.result().text if turn.done() and not turn.exception() else "" for turn in (first, second)]
    ran = file.read_text().split() if file.exists() else []
    is_apart = "next" not in texts[0] and "word" not in texts[1]
    is_whole = "word59" in texts[0] and "next2" in texts[1]
    text = f"{ends[0]}, {ends[1]}; the second ran {len(ran)} times; texts {'apart' if is_apart else 'MIXED'}"
    text += "" if is_whole else ", NOT WHOLE"
    return found(ends == ["end_turn", "end_turn"] and ran == ["b"] and is_apart and is_whole, text)


async def _result(turn: Any) -> Any:
    return await turn


@situation("usage")
async def usage(world: World, keeper: Any) -> Found:
    """Where the agent says what a turn has taken, the client has it."""
    session = await world.open(keeper)
    world.user.start()
    world.lines.clear()
    result = await asyncio.wait_for(session.prompt(do()), TURN_SECONDS)
    said = {name for line in world.received for name in _said(json.loads(line))}
    has = [name for name, value in _usages(session, result) if value]
    if not said - {"_meta"}:
        return Found("-", f"{'in `_meta` alone' if said else 'none is reported'}")
    text = f"in the messages: {', '.join(sorted(said))}; in the client: {', '.join(has) or 'nothing'}"
    return found(has, text)


def _said(value: Any, *, is_meta: bool = False) -> Iterator[str]:
    """Where a message tells what was used."""
    if isinstance(value, list):
        yield from (name for each in value for name in _said(each, is_meta=is_meta))
    elif isinstance(value, dict):
        if value.get("sessionUpdate") == "usage_update":
            yield "usage_update"
        if value.get("usage") or (is_meta and value.get("quota")):
            yield "_meta" if is_meta else "usage"
        yield from (name for key, each in value.items() for name in _said(each, is_meta=is_meta or key == "_meta"))


def _usages(session: Any, result: Any) -> list[tuple[str, Any]]:
    """Where a client finds it: the result has one since 0.4."""
    return [("turn.result.usage", getattr(result, "usage", None)), ("state.usage", session.state.usage)]


async def _model_fails(world: World, keeper: Any, status: int) -> Found:
    session = await world.open(keeper)
    world.user.start()
    start = time.monotonic()
    end = await end_of(clients.ask(session, do({"fail": status}), idle_seconds=IDLE_SECONDS))
    seconds = time.monotonic() - start
    is_well = await works(session)
    text = f"{end} after {seconds:.0f} s; the next prompt {'works' if is_well else 'fails'}"
    is_answer = end == "answer"
    if is_answer:
        text += "; the error is text of the agent"
    return found(is_well and not is_answer and end != "no end", text, otherwise="agent" if is_answer else "no")


@situation("the model answers with 400")
async def model_400(world: World, keeper: Any) -> Found:
    """The turn raises an error, and the next prompt works."""
    return await _model_fails(world, keeper, 400)


@situation(f"the model answers with 500, `idle_seconds={IDLE_SECONDS:g}`")
async def model_500(world: World, keeper: Any) -> Found:
    """The same, or the turn is given up when the agent is silent."""
    return await _model_fails(world, keeper, 500)
