"""Plays flows on pairs that are started once, in an event loop that outlives the tests."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from acpgen.roles import RoleChoice
from tests.interop import peers, recordings, values_v1, values_v2
from tests.interop.gaps import gap_of
from tests.interop.pairs import Json, Pair, Setup, Stage, open_pair
from tests.interop.remote_pairs import open_remote_pair
from tests.interop.values import SESSION
from tests.needs import lacks
from tests.support import Packages
from tests.test_dataclasses import SOURCES

SECONDS = 120
"""How long a flow may take; all but the first take milliseconds."""
VALUES = {1: values_v1, 2: values_v2}
SIDES = ("client", "agent")
FENCE = "_fence"
"""A request that does nothing: once it is answered, what was sent before it has arrived."""
Scenario = Callable[[Pair], Awaitable[None]]


class Share(Enum):
    """How much is played with a pair each time, in tests that are all `full`. The rest is `deep`: it shows no more."""

    ALL = auto()
    METHODS = auto()
    """All flows, and of the exchanges one of each method."""
    FLOWS = auto()
    """All flows but exchanges."""
    NOTHING = auto()


BOTH_WAYS = pytest.mark.parametrize("caller", SIDES)


def other(side: str) -> str:
    return "agent" if side == "client" else "client"


def matches(got: Json, expected: Json) -> bool:
    """Whether `got` is `expected`, with at most defaults made explicit: null is no default, for it may mean "clear"."""
    match got, expected:
        case dict(), dict():
            extra = got.keys() - expected.keys()
            return (
                expected.keys() <= got.keys()
                and all(matches(got[key], expected[key]) for key in expected)
                and not any(got[key] is None for key in extra)
            )
        case list(), list():
            return len(got) == len(expected) and all(map(matches, got, expected))
    return bool(got == expected) and isinstance(got, bool) is isinstance(expected, bool)


class Theatre:
    """Opens pairs on demand, and lets flows be played on them, in an event loop that outlives the tests."""

    def __init__(self, packages: Packages, home: Path, folder: Path) -> None:
        self.folder = folder
        self._packages = packages
        self._home = home
        self._loop = asyncio.new_event_loop()
        self._pairs: dict[Setup, tuple[Pair, AsyncExitStack, Json]] = {}
        self._stages: dict[Setup, Stage] = {}
        self._sdks: dict[str, tuple[tuple[str, ...], Path] | peers.MissingPeerError] = {}

    def play(self, setup: Setup, flow: str, scenario: Scenario, *, version: int | None = None) -> None:
        """Let a pair play `scenario`; where there is a gap, check that it is still there.

        With a `version`, the pair is a new one, whose client asks for that.
        """
        if version is not None:
            self.drop(setup)
        stage = self.stage(setup)  # not within the time of a flow: an SDK may have to be installed
        self._loop.set_debug(setup.transport == "stdio")  # the libraries for the network would take most of the time
        act = partial(self._act, setup, stage, flow, scenario, version=version or setup.version)
        gap = gap_of(flow, setup)
        if gap is None:
            self._play(setup, act)
            return
        with pytest.raises(AssertionError) as caught:
            self._play(setup, act)
        if gap.ends:
            self.drop(setup)
        assert re.search(gap.shows, str(caught.value)), f"the gap has changed: {caught.value}"

    def _play(self, setup: Setup, act: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            self._loop.run_until_complete(asyncio.wait_for(act(), SECONDS))
        except asyncio.TimeoutError:
            self.drop(setup)
            pytest.fail(f"took more than {SECONDS} seconds")
        except OSError:
            self.drop(setup)
            raise

    async def _act(self, setup: Setup, stage: Stage, flow: str, scenario: Scenario, *, version: int) -> None:
        if setup not in self._pairs:
            self._pairs[setup] = await self._open(setup, stage, version)
        pair, _, _ = self._pairs[setup]
        if setup.is_recorded:
            await recordings.begin(pair, flow)
        if setup.is_http or setup.is_recorded:  # on HTTP, only a session that is open has a stream
            await pair.open_session(SESSION["sessionId"], new_session(setup))
        await pair.reset(**answers_of(setup))
        await scenario(pair)

    async def _open(self, setup: Setup, stage: Stage, version: int) -> tuple[Pair, AsyncExitStack, Json]:
        first = VALUES[setup.version].INITIALIZE
        async with AsyncExitStack() as stack:
            opened = open_pair if setup.transport == "stdio" else open_remote_pair
            pair = await stack.enter_async_context(opened(setup, stage))
            outcome = await pair.initialize({**first.params, "protocolVersion": version})
            seen = await pair.seen("agent")
            return pair, stack.pop_all(), (outcome, seen)

    def drop(self, setup: Setup) -> Pair | None:
        """Close a pair that is not to be used any more."""
        if setup not in self._pairs:
            return None
        pair, stack, _ = self._pairs.pop(setup)
        self._loop.run_until_complete(stack.aclose())
        return pair

    def initialized(self, setup: Setup) -> Json:
        """What `initialize` brought the client, and what the agent saw of it."""
        return self._pairs[setup][2]

    def stage(self, setup: Setup) -> Stage:
        """All that it takes to open a pair."""
        if setup in self._stages:
            return self._stages[setup]
        command, sdk = self.sdk(setup.sdk)
        answers = self.folder / f"answers-{setup.version}.json"
        answers.write_text(json.dumps(answers_of(setup)), encoding="utf-8")
        sources = SOURCES.values() if setup.of_two else [SOURCES[setup.version]]
        acp = self._packages(*sources, remote=setup.transport != "stdio")
        offered = {number: values.INITIALIZE.params for number, values in VALUES.items()}
        proxies = self._packages(*SOURCES.values(), roles=RoleChoice.PROXY.roles, remote=True) if setup.proxy else None
        other = self.sdk(setup.agent_of) if setup.agent_of else None
        trace = self.trace(setup) if setup.is_recorded else None
        stage = Stage(acp, command, sdk, answers, self.stderr(setup), offered, proxies, other, trace)
        self._stages[setup] = stage
        return stage

    def sdk(self, name: str) -> tuple[tuple[str, ...], Path]:
        """The command and the folder of an SDK, installed if need be; skips the test if it cannot be had."""
        if name not in self._sdks:
            try:
                self._sdks[name] = {"ts": peers.typescript, "py": peers.python}[name](self._home)
            except peers.MissingPeerError as error:
                self._sdks[name] = error
        found = self._sdks[name]
        if isinstance(found, Exception):
            lacks("registry", found)
        return found

    def stderr(self, setup: Setup) -> Path:
        """Where the started process writes to stderr: on stdio it is our agent, and on the network the peer."""
        return self.folder / f"{setup}.{'stderr' if setup.transport == 'stdio' else 'peer'}"

    def trace(self, setup: Setup) -> Path:
        """Where our side of a recorded pair writes what is said."""
        return self.folder / f"{setup}.trace"

    def close(self) -> None:
        """End all processes."""
        for setup in [*self._pairs]:
            self.drop(setup)
        self._loop.close()


def new_session(setup: Setup) -> Json:
    """The params with which the client opens a session."""
    return next(each.params for each in VALUES[setup.version].EXCHANGES if each.method == "session/new")


def answers_of(setup: Setup) -> Json:
    """The usual answers by method."""
    values = VALUES[setup.version]
    return {each.method: {"result": each.result} for each in (values.INITIALIZE, *values.EXCHANGES)}
