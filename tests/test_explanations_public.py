"""No explanation fails, for every name that a package exports: it works, or the last line says what to do, and where.

In code that the package runs, the last line names the user's line; outside of it, that or at least the argument. An
error that a package defines, or that a file or a program has caused, says it itself.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from acpgen.config import SchemaChoice
from acpgen.roles import RoleChoice
from tests import public_calls
from tests.public_calls import LEFT_OUT, PROGRAMS, Callee, called, finished, public_callables
from tests.public_world import World
from tests.runtime_support import V1, V2, acp_log
from tests.support import DEEP, Packages
from tests.test_explanations import last_line, named, run
from tests.wrong_values import WRONG, UsersOwnError, close

pytestmark = [
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of what was not awaited
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of what a text in a path stands for
]

HERE = Path(public_calls.__file__).name
"""The file of the calls."""
SHARES = pytest.mark.parametrize("share", [199, pytest.param(7, marks=pytest.mark.full)], ids=["few", "many"])
SECONDS = 60

KINDS: dict[str, tuple[tuple[SchemaChoice, ...], RoleChoice, bool]] = {
    "v1": ((V1,), RoleChoice.BOTH, False),
    "v2": ((V2,), RoleChoice.BOTH, False),
    "proxy v1": ((V1,), RoleChoice.PROXY, True),
    "proxy v2": ((V2,), RoleChoice.PROXY, True),
    "both, remote": ((V1, V2), RoleChoice.BOTH, True),
}
EVERY_PYTHON = [pytest.mark.every_python] if sys.version_info >= (3, 11) else []
"""Before Python 3.11, the signature of a generic class does not tell its parameters."""
EVERY_KIND = pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "both, remote" else EVERY_PYTHON) for kind in KINDS]
)
"""On other versions than the main one, the libraries for the network may be missing."""


@pytest.fixture
def world(packages: Packages, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """The arguments for a package, in a folder for the files that wrong values name."""
    monkeypatch.chdir(tmp_path)
    sources, role, remote = KINDS[kind]
    return World(packages(*sources, roles=role.roles, remote=remote), sources[0], tmp_path)


@pytest.fixture(autouse=True)
def nobody_at_stdin() -> Iterator[None]:
    """An end of the input at once, and an output that nobody reads."""
    kept = os.dup(0), os.dup(1)
    with Path(os.devnull).open("r+b") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(nothing.fileno(), 1)
    yield
    for number, copy in enumerate(kept):
        os.dup2(copy, number)
        os.close(copy)


T = TypeVar("T")


def part(cases: Iterable[T], share: int) -> Iterator[T]:
    """One of so many cases; `share` has no factor in common with the number of values."""
    return itertools.islice(cases, 0, None, 1 if DEEP else share)


def callables(world: World) -> list[Callee]:
    """All that is tried in an event loop."""
    return [each for each in public_callables(world.acp) if each.name not in {*LEFT_OUT, *PROGRAMS}]


def cases(callees: list[Callee], share: int) -> Iterator[tuple[Callee, inspect.Parameter, Callable[[Any], Any]]]:
    """Each with a parameter, and what makes a wrong value for it."""
    every = ((callee, parameter) for callee in callees for parameter in callee.parameters)
    for (callee, parameter), make in part(itertools.product(every, WRONG.values()), share):
        if f"{callee.name}.{parameter.name}" not in LEFT_OUT:
            yield callee, parameter, make


def says_it_itself(world: World, error: BaseException) -> bool:
    """True for an error of the package, the end of a wait, and what a file or a program with this name has caused.

    So is what the package says of a library that is not installed.
    """
    if type(error).__module__.startswith(world.acp.__name__):
        return True
    if isinstance(error, ImportError) and "needs: pip install" in str(error):
        return True
    expected = (UsersOwnError, asyncio.TimeoutError, NotImplementedError)
    return isinstance(error, expected) or isinstance(getattr(error, "filename", None), (str, bytes))


async def failure_of(work: Coroutine[Any, Any, Any]) -> BaseException | None:
    """What a call raises. It must not wait for ever."""
    task = asyncio.create_task(work)
    await asyncio.wait({task}, timeout=SECONDS)
    if not task.done():
        task.cancel()
        return AssertionError("it waits for ever")
    return task.exception()


def failure_in(call: Callable[[], object]) -> BaseException | None:
    """The same without an event loop."""
    try:
        call()
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return error
    return None


async def use(world: World, callee: Callee, other: dict[str, Any], *, to_the_end: bool = True) -> None:
    """Call something, and use what it returns."""
    result = await world.call(callee, **other)
    if to_the_end:
        await finished(result)


# --- All of them ------------------------------------------------------------------------------------------------------


@EVERY_KIND
def test_the_arguments_fit(world: World) -> None:
    """So that of each name that is exported one argument at a time is wrong."""
    failed: list[str] = []

    async def main() -> None:
        async with world:
            for callee in callables(world):
                error = await failure_of(use(world, callee, {}))
                if error is not None and not says_it_itself(world, error):
                    failed.append(f"{callee.name}: {last_line(error)}")

    run(main())
    assert not failed, "add arguments to tests/public_world.py, or the name and a reason to LEFT_OUT"


def test_nothing_is_left_out_that_is_gone(packages: Packages) -> None:
    names: set[str] = set()
    for sources, role, remote in KINDS.values():
        for callee in public_callables(packages(*sources, roles=role.roles, remote=remote)):
            names |= {callee.name, callee.name.partition(".")[0]}
            names |= {f"{callee.name}.{each.name}" for each in callee.parameters}
    assert {*LEFT_OUT, *PROGRAMS} <= names


# --- In code that the package runs ------------------------------------------------------------------------------------


@SHARES
@EVERY_KIND
def test_in_a_handler(world: World, share: int) -> None:
    async def ext_method(self: Any, method: str, params: Any) -> None:
        await use(world, *params)

    async def main() -> None:
        async with world:
            handler = type("TestHandler", (type(world.handler()),), {"ext_method": ext_method})(world.client)
            for callee, parameter, make in cases(callables(world), share):
                wrong = make(world.one)
                job = callee, {parameter.name: wrong}
                error = await failure_of(world.acp.dispatch_request(handler, "_go", job))
                if error is not None and not says_it_itself(world, error):
                    assert HERE in last_line(error), (callee.name, parameter.name, type(wrong), error)
                close(wrong)

    run(main())


# --- Outside of it ----------------------------------------------------------------------------------------------------


def check(world: World, place: tuple[Callee, inspect.Parameter], wrong: Any, error: BaseException | None) -> None:
    """Fail unless the last line names the line of the user, the argument, or what was called."""
    callee, name = place[0], place[1].name
    if error is not None and not says_it_itself(world, error):
        names = (HERE, name.strip("_"), *callee.name.split("."))
        is_named = any(re.search(rf"\b{re.escape(each)}\b", last_line(error)) for each in names)
        assert is_named, (callee.name, name, type(wrong), last_line(error))


@SHARES
@EVERY_KIND
def test_functions_and_constructors(world: World, share: int) -> None:
    """As in a script, or in the main function of a program. Helpers make values that may be wrong where they go."""

    async def main() -> None:
        async with world:
            sync = [each for each in callables(world) if not each.owner and not each.is_async]
            for callee, parameter, make in cases(sync, share):
                wrong = make(world.one)
                work = use(world, callee, {parameter.name: wrong}, to_the_end=not callee.is_helper)
                check(world, (callee, parameter), wrong, await failure_of(work))
                close(wrong)

    run(main())


@pytest.mark.needs("posix")
@SHARES
@EVERY_KIND
def test_programs(world: World, share: int) -> None:
    """What runs an event loop of its own."""
    programs = [each for each in public_callables(world.acp) if each.name in PROGRAMS]
    assert programs
    for callee, parameter, make in cases(programs, max(1, share // 7)):
        wrong = make(world.one)
        given = {**world.fitting(callee), parameter.name: wrong}
        check(world, (callee, parameter), wrong, failure_in(partial(called, callee, given)))
        close(wrong)


# --- Blocks, threads and other loops ----------------------------------------------------------------------------------

BOTH = pytest.mark.parametrize("kind", ["v1", "v2"])


@BOTH
def test_the_block_of_a_connection(world: World) -> None:
    """What the code of a client does in it is explained as in a handler."""

    async def main() -> None:
        acp, helpers = world.acp, world.helpers
        here, there = acp.memory_transports()
        with pytest.raises(TypeError, match=r"^SessionClient\.open, called by .*got 7 for directories") as caught:
            async with helpers.ScriptedAgent(None).connected(there), acp.connect(helpers.SessionClient, here) as agent:
                await helpers.SessionClient(agent).open("/", directories=7)
        assert Path(__file__).name in last_line(caught.value)

    run(main())


@pytest.mark.parametrize("is_blocking", [False, True], ids=["awaited", "blocking"])
@BOTH
def test_stubs_in_another_thread(world: World, *, is_blocking: bool) -> None:
    """One that is awaited in another event loop says so; the blocking form explains wrong params."""

    def in_thread(stub: Any, methods: list[str]) -> list[str]:
        def call(name: str) -> None:
            if is_blocking:
                getattr(world.acp.blocking(stub), name)(object())
            else:
                asyncio.run(awaited(getattr(stub, name), stub.METHODS))

        failures = [failure_in(partial(call, name)) for name in methods]
        return [last_line(error) for error in failures if error is not None]

    async def awaited(method: Any, records: Any) -> None:
        record = next(each for each in records.values() if each.handler == method.__name__)
        await method(world.sample(record.params.__name__) if isinstance(record.params, type) else {})

    async def main() -> None:
        async with world:
            for stub in (world.agent, world.client):
                typed = [each.handler for each in stub.METHODS.values() if isinstance(each.params, type)]
                lines = await asyncio.to_thread(in_thread, stub, typed)
                assert len(lines) == len(typed)
                assert all(Path(__file__).name in line for line in lines), lines
                assert all(("got an object" if is_blocking else "blocking(stub)") in line for line in lines)

    run(main())


@BOTH
def test_a_program_that_cannot_be_started(world: World) -> None:
    """The system says the same for its name and for its folder."""
    acp = world.acp
    for cwd, text in (("", "cwd is empty"), ("missing", "missing, which is no folder")):
        with pytest.raises(FileNotFoundError, match=text):
            run(finished(acp.spawn_agent(acp.Client, ["/bin/sh"], cwd=cwd)))


# --- Proxies ----------------------------------------------------------------------------------------------------------


@SHARES
@pytest.mark.parametrize("kind", ["proxy v1", "proxy v2"])
def test_overrides_of_proxies(world: World, share: int) -> None:
    """A wrong result of an override, and wrong params that it passes on, by the stub and by `forward`."""
    jobs: list[Callable[[Any, Any], Any]] = []

    async def session_new(self: Any, params: Any) -> Any:
        return await jobs.pop()(self, params)

    async def from_client(self: Any, call: Any) -> Any:
        return await jobs.pop()(self, call)

    def ways(wrong: Any) -> Iterator[tuple[str, Any]]:
        async def result(_: Any, __: Any) -> Any:
            return wrong

        async def passed_on(self: Any, _: Any) -> Any:
            return await self.agent.session_new(wrong)

        async def forwarded(_: Any, call: Any) -> Any:
            return await call.forward(wrong)

        async def to_another(_: Any, call: Any) -> Any:
            return await call.forward(to=wrong)

        yield from (("session/new", result), ("session/new", passed_on), ("_x", result), ("_x", forwarded))
        yield "_x", to_another

    async def main() -> None:
        acp, params = world.acp, world.samples.named("NewSessionRequest")
        guard = type("Guard", (acp.Proxy,), {"session_new": session_new, "from_client": from_client})
        (here, client), (agent, there) = acp.memory_transports(), acp.memory_transports()
        serving = asyncio.create_task(acp.serve_proxy(guard, client, agent))
        answers = {"session/new": {"sessionId": "s"}, "_x": {}}
        peers = world.helpers.ScriptedAgent(None, answers=answers), world.helpers.ScriptedClient()
        async with peers[0].connected(there), peers[1].connected(here):
            jobs.append(lambda self, call: call.forward())
            await peers[1].initialize()
            for make in part(WRONG.values(), max(1, share // 100)):
                for method, job in ways(wrong := make(acp)):
                    jobs[:] = [job]
                    with acp_log() as records:
                        error: Any = await failure_of(peers[1].request(method, **params))
                    if error is not None:
                        where = (method, job.__name__, type(wrong), str(error))
                        assert named(records, "Guard.") or named(records, Path(__file__).name), where
                        assert error.code == -32603, where
                close(wrong)
        with suppress(ConnectionError):
            await serving

    run(main())


# --- Options ----------------------------------------------------------------------------------------------------------


def is_option(name: str, usual: object, value: object) -> bool:
    """True for a value that an option may have, as its documentation says."""
    if name == "trace":
        return value is None or isinstance(value, str)
    if usual is None or callable(usual):
        return callable(value) or value is usual
    if isinstance(usual, bool) or isinstance(value, bool):
        return isinstance(usual, bool) and isinstance(value, bool)
    return isinstance(value, (int, type(usual))) and value >= 0


@BOTH
def test_an_option_is_checked_where_it_is_given(world: World) -> None:
    """Not at the first message for which it counts."""
    acp = world.acp
    for field in dataclasses.fields(acp.ConnectionOptions):
        for wrong in (*(make(acp) for make in WRONG.values()), 0, 0.5):
            error = failure_in(lambda: acp.ConnectionOptions(**{field.name: wrong}))  # noqa: B023
            assert (error is None) == is_option(field.name, field.default, wrong), (field.name, type(wrong), error)
            if error is not None:
                assert re.search(rf"{Path(__file__).name},? got .* for {field.name}; expected", last_line(error)), error
            close(wrong)
