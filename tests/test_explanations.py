"""No explanation fails: whatever is passed to a package, it works, or the error names the user's code.

The share of the cases that is tried grows from the quick tests to `full`, and `deep` tries all.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import importlib
import inspect
import itertools
import logging
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, TypeVar, get_args

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import V1, V2, RawPeer, acp_log, agent_of, client_of, raw_peer, unchecked
from tests.support import DEEP, Packages
from tests.test_dataclasses import Samples, model_for
from tests.wrong_values import WRONG, UsersOwnError, close

pytestmark = pytest.mark.every_python

T = TypeVar("T")
BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
SHARES = pytest.mark.parametrize("share", [101, pytest.param(11, marks=pytest.mark.full)], ids=["few", "many"])
HERE = "test_explanations.py"
REFUSED = -31999


def part(cases: Iterable[T], share: int) -> Iterator[T]:
    """One of so many cases; `share` has no factor in common with the number of values."""
    return itertools.islice(cases, 0, None, 1 if DEEP else share)


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to everything in a value, itself first."""
    yield path
    inner: Iterable[tuple[str | int, Any]] = ()
    if dataclasses.is_dataclass(value):
        inner = [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, each in inner:
        yield from places(each, (*path, key))


def put(value: Any, path: tuple[str | int, ...], wrong: Any) -> Any:
    """A copy of a value with something else at a place."""
    if not path:
        return wrong
    value = copy.deepcopy(value)
    *outer, last = path
    target = value
    for key in outer:
        target = target[key] if isinstance(key, int) else getattr(target, key)
    target.__setitem__(last, wrong) if isinstance(last, int) else setattr(target, last, wrong)
    return value


def run(main: Any) -> None:
    asyncio.run(asyncio.wait_for(main, 600))
    gc.collect()


def last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1]


# --- Params of stubs --------------------------------------------------------------------------------------------------


async def refuse(peer: RawPeer) -> None:
    """Answer each request with an error, so that it is seen that it has come."""
    while (message := await peer.receive()) is not None:
        if "id" in message and "method" in message:
            await peer.answer(message["id"], error={"code": REFUSED, "message": "no"})


@SHARES
@pytest.mark.parametrize("check_sent", [False, True], ids=["unchecked", "checked"])
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_params_of_stubs(packages: Packages, sources: SchemaChoice, *, check_sent: bool, share: int) -> None:
    acp = packages(sources)
    samples = Samples(model_for(sources), full=True)

    async def call(stub: Any, method: Any, params: Any) -> None:
        failure: BaseException | None = None
        try:
            await getattr(stub, method.handler)(params)
        except (acp.RequestError, TypeError, UsersOwnError) as error:
            failure = error
        if isinstance(failure, TypeError):
            assert HERE in last_line(failure)
        assert getattr(failure, "code", REFUSED) == REFUSED

    async def main() -> None:
        for kind in (agent_of(acp), client_of(acp)):
            async with raw_peer(acp, kind, options=unchecked(acp, check_sent=check_sent)) as peer:
                answering = asyncio.create_task(refuse(peer))
                typed = (each for each in peer.stub.METHODS.values() if isinstance(each.params, type))
                valid = ((each, acp.decode(each.params, samples.named(each.params.__name__))) for each in typed)
                every = ((method, params, path) for method, params in valid for path in places(params))
                for (method, params, path), make in part(itertools.product(every, WRONG.values()), share):
                    wrong = make(acp)
                    await call(peer.stub, method, put(params, path, wrong))
                    close(wrong)
                answering.cancel()

    run(main())


# --- Results of handlers ----------------------------------------------------------------------------------------------


@SHARES
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_of_handlers(packages: Packages, sources: SchemaChoice, share: int) -> None:
    acp = packages(sources)
    samples = Samples(model_for(sources), full=True)

    def cases() -> Iterator[tuple[Any, Any, Any]]:
        for base in (acp.Agent, acp.Client):
            for method in base.REQUESTS.values():
                if isinstance(method.result, type):
                    valid = acp.decode(method.result, samples.named(method.result.__name__))
                    for path in places(valid):
                        for make in WRONG.values():
                            yield base, method, (valid, path, make)

    def params_of(method: Any) -> Any:
        kind = method.params if isinstance(method.params, type) else get_args(method.params)[0]
        return acp.decode(kind, samples.named(kind.__name__))

    async def ask(base: Any, method: Any, result: Any) -> Any:
        async def handler(self: Any, params: Any) -> Any:
            return result

        kind = type("TestHandler", (base,), {method.handler: handler})
        async with raw_peer(acp, kind, options=unchecked(acp)) as peer:
            return await peer.ask(1, method.name, acp.encode(params_of(method)))

    async def main() -> None:
        for base, method, (valid, path, make) in part(cases(), share):
            wrong = make(acp)
            with acp_log(logging.ERROR) as records:
                answer = await ask(base, method, put(valid, path, wrong))
            close(wrong)
            if "error" in answer:
                assert answer["error"]["code"] == -32603
                assert named(records, f"TestHandler.{method.handler}"), (method.name, path, answer)

    run(main())


def named(records: list[logging.LogRecord], name: str) -> bool:
    """True if an error in the log names something of the user's, or is the user's own."""
    errors = [each.exc_info[1] for each in records if each.exc_info]
    own = (UsersOwnError, OSError, OverflowError, ValueError)  # their texts say what is wrong with a value
    return any(isinstance(each, own) or name in last_line(each) for each in errors if each is not None)


# --- Arguments of functions -------------------------------------------------------------------------------------------


def arguments(acp: ModuleType, sources: SchemaChoice) -> dict[str, Any]:
    """A value that fits, by the name of the parameter."""
    samples = Samples(model_for(sources), full=True)

    def sample(name: str) -> Any:
        kind = getattr(acp, name)
        return acp.decode(kind, samples.named(name))

    return {
        "call": acp.ToolCallUpdate(tool_call_id="t", title="T"),
        "client": acp.RemoteClient(None),
        "contents": "text",
        "data": b"data",
        "entries": ["one"],
        "handler": acp.Agent,
        "kinds": "allow_once",
        "accept": "stdio",
        "message": sample("InitializeRequest"),
        "options": [acp.PermissionOption(option_id="a", name="A", kind="allow_once")],
        "params": sample("RequestPermissionRequest"),
        "response": sample("RequestPermissionResponse"),
        "servers": [],
        "size": 2,
        "update": sample("SessionUpdate"),
        "used": 1,
        "value": None,
    }


LEFT_OUT = {
    "check_store",  # is for tests, and asserts
    "run_agent",  # is for a whole program
    "choose",  # of scripted peers
    *("ScriptedAgent", "ScriptedClient", "ScriptedTurn", "ScriptedAnswer"),
    "SqliteStore",  # would make files with these names
}


def calls(acp: ModuleType, sources: SchemaChoice) -> Iterator[tuple[Any, dict[str, Any], str, Callable[[Any], Any]]]:
    """All public functions, each with arguments that fit, and the parameter that shall get something else."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    known = arguments(acp, sources)
    for module in (helpers, acp):
        for name in sorted({*module.__all__} - LEFT_OUT):
            function = getattr(module, name)
            is_class = module is helpers and inspect.isclass(function) and inspect.isfunction(function.__init__)
            is_plain = inspect.isfunction(function) and not inspect.iscoroutinefunction(inspect.unwrap(function))
            if not (is_plain or is_class) or getattr(function, "_is_protocol", False):
                continue
            parameters = inspect.signature(function).parameters.values()
            fitting = {each.name: known.get(each.name, "text") for each in parameters if each.default is each.empty}
            for parameter in parameters:
                for make in WRONG.values():
                    yield function, fitting, parameter.name, make


def called(function: Any, given: dict[str, Any]) -> Any:
    positional = [
        given[name]
        for name, each in inspect.signature(function).parameters.items()
        if name in given and each.kind in (each.POSITIONAL_OR_KEYWORD, each.VAR_POSITIONAL)
    ]
    named = [name for name, each in inspect.signature(function).parameters.items() if each.kind is each.KEYWORD_ONLY]
    return function(*positional, **{name: given[name] for name in named if name in given})


@SHARES
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arguments_of_functions(packages: Packages, sources: SchemaChoice, share: int) -> None:
    """What a handler passes to them: the log names the line of the user."""
    acp = packages(sources)
    jobs: list[Any] = []

    async def ext_method(self: Any, method: str, params: Any) -> None:
        called(*jobs.pop())

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=unchecked(acp)) as peer:
            for function, fitting, name, make in part(calls(acp, sources), share):
                wrong = make(acp)
                jobs.append((function, {**fitting, name: wrong}))
                with acp_log(logging.ERROR) as records:
                    answer = await peer.ask(1, "_go")
                close(wrong)
                if "error" in answer:
                    assert named(records, HERE), (function.__name__, name, wrong.__class__, lines(records))

    run(main())


def methods_of_a_call(acp: ModuleType) -> Iterator[tuple[str, str, Callable[[Any], Any]]]:
    """The methods of a running tool call, each with the parameters that shall get something else."""
    kind = importlib.import_module(f"{acp.__name__}.helpers").RunningToolCall
    for name in ("add", "fail", "permission", "update"):
        for parameter in list(inspect.signature(getattr(kind, name)).parameters)[1:]:
            for make in WRONG.values():
                yield name, parameter, make


@SHARES
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arguments_of_tool_calls(packages: Packages, sources: SchemaChoice, share: int) -> None:
    acp = packages(sources)
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    jobs: list[Any] = []

    async def session_prompt(self: Any, params: Any) -> Any:
        name, parameter, wrong = jobs.pop()
        async with helpers.tool_call(self.client, "s", "T") as call:
            given = {parameter: wrong}
            await called(getattr(call, name), given)
        return acp.decode(acp.PromptResponse, Samples(model_for(sources)).named("PromptResponse"))

    prompt = Samples(model_for(sources)).named("PromptRequest")

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp, session_prompt=session_prompt), options=unchecked(acp)) as peer:
            for name, parameter, make in part(methods_of_a_call(acp), share):
                wrong = make(acp)
                jobs.append((name, parameter, wrong))
                with acp_log(logging.ERROR) as records:
                    await peer.request("prompt", "session/prompt", prompt)
                    while (message := await peer.receive()).get("id") != "prompt":
                        if "id" in message:
                            await peer.answer(message["id"], error={"code": REFUSED, "message": "no"})
                close(wrong)
                if message.get("error", {}).get("code", REFUSED) != REFUSED:
                    assert named(records, HERE), (name, parameter, wrong.__class__, lines(records))

    run(main())


def lines(records: list[logging.LogRecord]) -> list[str]:
    return ["".join(traceback.format_exception(each.exc_info[1])[-6:]) for each in records if each.exc_info]
