"""No explanation fails: whatever is passed to a package, it works, or the error names the user's code.

Each wrong value is tried in each place of some messages: more in `full` than in the quick tests, and all in `deep`.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import itertools
import logging
import traceback
from collections.abc import Iterable, Iterator
from typing import Any, get_args

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import V1, V2, RawPeer, acp_log, agent_of, client_of, raw_peer, unchecked
from tests.support import Packages
from tests.test_dataclasses import Samples, model_for
from tests.wrong_values import WRONG, UsersOwnError, close

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
HERE = "test_explanations.py"
REFUSED = -31999


def of_methods(few: set[str], many: set[str]) -> pytest.MarkDecorator:
    """What a test tries: the messages of `few` methods, of `many`, which have all kinds of places, or of any."""
    everything = pytest.param(None, id="all", marks=pytest.mark.deep)
    cases = [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.full), everything]
    return pytest.mark.parametrize("methods", cases)


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


# a prompt has texts, a number, enumerations, and a list of members of a union; an id is a text, a number or null
@of_methods({"session/close"}, {"session/prompt", "$/cancel_request"})
@pytest.mark.parametrize("check_sent", [False, True], ids=["unchecked", "checked"])
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_params_of_stubs(
    packages: Packages, sources: SchemaChoice, *, check_sent: bool, methods: set[str] | None
) -> None:
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
                chosen = (each for each in peer.stub.METHODS.values() if methods is None or each.name in methods)
                typed = (each for each in chosen if isinstance(each.params, type))
                valid = ((each, acp.decode(each.params, samples.named(each.params.__name__))) for each in typed)
                every = ((method, params, path) for method, params in valid for path in places(params))
                for (method, params, path), make in itertools.product(every, WRONG.values()):
                    wrong = make(acp)
                    await call(peer.stub, method, put(params, path, wrong))
                    close(wrong)
                answering.cancel()

    run(main())


# --- Results of handlers ----------------------------------------------------------------------------------------------


# a stop reason is an enumeration; an option is a member of a union, and has a list
@of_methods({"session/prompt"}, {"session/prompt", "session/set_config_option"})
@BOTH
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_of_handlers(packages: Packages, sources: SchemaChoice, methods: set[str] | None) -> None:
    acp = packages(sources)
    samples = Samples(model_for(sources), full=True)

    def cases() -> Iterator[tuple[Any, Any, Any]]:
        for base in (acp.Agent, acp.Client):
            for method in base.REQUESTS.values():
                if isinstance(method.result, type) and (methods is None or method.name in methods):
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
        for base, method, (valid, path, make) in cases():
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
    return any(isinstance(each, UsersOwnError) or name in last_line(each) for each in errors if each is not None)
