"""What a situation is, and all that there are: small functions over an agent, each with what has to come out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tests.peers import clients
from tests.peers.world import World, becomes

Verdict: TypeAlias = Literal["yes", "no", "agent", "-"]
"""Whether it is what must be; "agent" if it is not, and no client can change it; "-" if the agent has no such thing."""
TURN_SECONDS = 120.0


@dataclass(frozen=True)
class Found:
    """What has happened in a situation."""

    verdict: Verdict
    text: str


Play: TypeAlias = Callable[[World, Any], Awaitable[Found]]


@dataclass(frozen=True)
class Situation:
    """A situation, by the name of its function; `play` gets the world and the keeper of its connection."""

    play: Play
    title: str
    seconds: float

    @property
    def name(self) -> str:
        """What `--situation` takes."""
        return self.play.__name__


SITUATIONS: list[Situation] = []


def situation(title: str, *, seconds: float = 300.0) -> Callable[[Play], Play]:
    """Add a function to the situations; it has so many seconds."""

    def add(play: Play) -> Play:
        SITUATIONS.append(Situation(play, title, seconds))
        return play

    return add


def found(is_right: object, text: str, *, otherwise: Verdict = "no") -> Found:
    """What was found, and whether it is right."""
    return Found("yes" if is_right else otherwise, text)


def do(*steps: dict[str, Any]) -> str:
    """The prompt that makes the model take these steps."""
    return f"DO{json.dumps(steps)}DO"


def answer_of(session: Any) -> str:
    """The text of all messages of the agent so far."""
    return "".join(str(entry.text) for entry in session.state.entries if type(entry).__name__ == "AgentMessage")


async def says(session: Any, word: str, turn: asyncio.Future[Any]) -> None:
    """Wait until the agent has said a word, or the turn has ended."""
    await becomes(lambda: turn.done() or word in answer_of(session), TURN_SECONDS)


async def end_of(turn: Awaitable[Any]) -> str:
    """How a turn, or a question by `ask`, ends: the stop reason, "answer", or the name of an error."""
    try:
        result = await asyncio.wait_for(turn, TURN_SECONDS)
    except (asyncio.TimeoutError, TimeoutError):
        return "no end"
    except Exception as error:  # noqa: BLE001 - any end of a turn is a finding
        code = getattr(error, "code", None)
        return f"{type(error).__name__}{'' if code is None else f' {code}'}"
    return getattr(result, "stop_reason", "answer")


async def works(session: Any) -> bool:
    """True if the next prompt gets its answer, and no other one."""
    try:
        return "done" in await asyncio.wait_for(clients.ask(session, do()), TURN_SECONDS)
    except Exception:  # noqa: BLE001 - that is what is found
        return False
