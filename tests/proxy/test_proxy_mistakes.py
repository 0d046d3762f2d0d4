"""Mistakes in the code of a user's proxy: the log names that code, and the peer gets an answer."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import Programs, between, conducted, package, prompt, proxy_of
from tests.proxy.test_proxy_cases import chunk
from tests.runtime_support import acp_log, run, texts
from tests.support import Packages

pytestmark = pytest.mark.every_python


async def _returns_five(self: Any, params: Any) -> Any:
    return 5


async def _returns_an_object(self: Any, call: Any) -> Any:
    return {"a": [object()]}


def _not_async(self: Any, params: Any) -> Any:
    return None


async def _takes_nothing(self: Any) -> Any:
    pass


async def _sends_five(self: Any, params: Any) -> Any:
    return await self.agent.session_prompt(5)


MISTAKES: list[tuple[str, Callable[..., Any], str]] = [
    ("session_prompt", _returns_five, "TestProxy.session_prompt returned 5; expected a PromptResponse"),
    ("from_client", _returns_five, ""),
    ("from_client", _returns_an_object, "TestProxy.from_client returned a result that cannot be sent: $.a[0]"),
    ("session_prompt", _not_async, "TestProxy.session_prompt returned None, which cannot be awaited: write `async def"),
    ("session_prompt", _takes_nothing, "TestProxy.session_prompt cannot be called with what a message has"),
    ("from_client", _takes_nothing, "TestProxy.from_client cannot be called with what a message has"),
    ("session_prompt", _sends_five, "session_prompt, called by _sends_five in line"),
]


@pytest.mark.parametrize(("name", "method", "said"), MISTAKES)
def test_a_handler(acp: ModuleType, name: str, method: Callable[..., Any], said: str) -> None:
    async def main() -> None:
        async with between(acp, [proxy_of(acp, **{name: method})]) as stage:
            number = await stage.client.request("session/prompt", prompt("t"))
            answer = await stage.client.receive()
            assert answer["id"] == number
            assert answer.get("result") == 5 if not said else answer["error"]["code"] == -32603
            await stage.agent.notify("session/update", chunk("t"))
            assert (await stage.client.receive())["method"] == "session/update"

    with acp_log() as records:
        run(main())
    assert said in texts(records)
    assert "_Entrance" not in texts(records)


def _fails(client: Any, agent: Any) -> Any:
    raise RuntimeError("no settings")


def _makes_none(client: Any, agent: Any) -> Any:
    return None


FACTORIES = pytest.mark.parametrize(
    ("factory", "said"), [(_fails, "no settings"), (_makes_none, "_makes_none made None: it must extend Proxy")]
)


@FACTORIES
def test_a_factory(acp: ModuleType, programs: Programs, factory: Any, said: str) -> None:
    """The client gets an error and the end, and the caller gets the exception."""

    async def main() -> None:
        async with conducted(acp, [acp.Proxy, factory], programs.agent) as client:
            number = await client.request("initialize", {"protocolVersion": 1})
            answer = await client.receive()
            assert (answer["id"], answer["error"]["code"]) == (number, -32603)
            assert await client.receive() is None

    with pytest.raises((RuntimeError, TypeError), match=said):
        run(main())


@pytest.mark.parametrize("answered", [1, 2])
@FACTORIES
def test_a_factory_for_one_version(packages: Packages, factory: Any, said: str, answered: int) -> None:
    """It fails when that version is asked for, or answered with: the request does, and the connection lives on."""
    acp = package(packages, 12)

    async def main() -> None:
        async with between(acp, [{1: acp.v1.Proxy, 2: factory}]) as stage:
            number = await stage.client.request("initialize", {"protocolVersion": 3 - answered})
            if answered == 2:
                await stage.agent.answer(await stage.agent.receive(), result={"protocolVersion": 2})
            answer = await stage.client.receive()
            assert (answer["id"], answer["error"]["code"]) == (number, -32603)
            await stage.barrier()

    with acp_log() as records:
        run(main())
    assert said in texts(records)
