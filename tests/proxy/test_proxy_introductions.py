"""How both sides of a proxy introduce themselves: `capabilities`, `info` and `supports` of its two stubs."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.proxy.between import between, package, proxy_of
from tests.runtime_support import run
from tests.support import Packages
from tests.test_runtime_introductions import ANSWER, HELLO

pytestmark = pytest.mark.every_python


def noting(acp: ModuleType, made: list[Any], **methods: Any) -> type[Any]:
    """A class of proxies whose instances are kept in `made`."""

    def begin(self: Any, client: Any, agent: Any) -> None:
        acp.Proxy.__init__(self, client, agent)
        made.append(self)

    return proxy_of(acp, __init__=begin, **methods)


async def initialize(self: Any, params: Any) -> Any:
    """An override that sees what the client says before the agent has answered."""
    assert self.client.info.name == "editor"
    return await self.agent.initialize(params)


async def from_client(self: Any, call: Any) -> Any:
    return await call.forward()


OVERRIDES = pytest.mark.parametrize(
    "methods", [{}, {"initialize": initialize}, {"from_client": from_client}], ids=["passed", "typed", "json"]
)


@OVERRIDES
@pytest.mark.parametrize("protocol", [1, 2])
def test_both_stubs_of_a_proxy(packages: Packages, protocol: int, methods: dict[str, Any]) -> None:
    acp, made = package(packages, protocol), list[Any]()

    async def main() -> None:
        async with between(acp, [noting(acp, made, **methods)]) as stage:
            await stage.asked("_before")
            (proxy,) = made
            assert (proxy.client.capabilities, proxy.agent.info) == (None, None)
            _, request = await stage.asked("initialize", HELLO[protocol])
            assert isinstance(proxy.client.capabilities, acp.ClientCapabilities)
            assert proxy.client.info.name == "editor"
            assert proxy.agent.capabilities is None
            await stage.agent.answer(request, result=ANSWER[protocol])
            await stage.client.receive()
            assert isinstance(proxy.agent.capabilities, acp.AgentCapabilities)
            assert proxy.agent.info.version == "7"
            name, other = ("fs.read_text_file", "terminal") if protocol == 1 else ("auth.terminal", "elicitation.url")
            assert proxy.client.supports(name)
            assert not proxy.client.supports(other)
            assert proxy.agent.supports("promptCapabilities.image" if protocol == 1 else "session.prompt.image")

    run(main())


@OVERRIDES
def test_a_request_that_fails_has_said_nothing(packages: Packages, methods: dict[str, Any]) -> None:
    acp, made = package(packages), list[Any]()

    async def main() -> None:
        async with between(acp, [noting(acp, made, **methods)]) as stage:
            _, request = await stage.asked("initialize", HELLO[1])
            await stage.agent.answer(request, error={"code": -32603, "message": "no"})
            assert "error" in await stage.client.receive()
            (proxy,) = made
            assert (proxy.client.info, proxy.agent.info) == (None, None)

    run(main())


def test_a_chain_of_proxies(packages: Packages) -> None:
    """Each sees its neighbours: what an override changes, the next one gets."""
    acp, made = package(packages), list[Any]()

    async def renamed(self: Any, params: Any) -> Any:
        params.client_info.name = "renamed"
        return await self.agent.initialize(params)

    async def main() -> None:
        first, second = noting(acp, made, initialize=renamed), noting(acp, made)
        async with between(acp, [first, second]) as stage:
            _, request = await stage.asked("initialize", HELLO[1])
            await stage.agent.answer(request, result=ANSWER[1])
            await stage.client.receive()
            names = {type(each): each.client.info.name for each in made}
            assert names == {first: "editor", second: "renamed"}

    run(main())


@pytest.mark.parametrize("answered", [1, 2])
def test_a_proxy_of_both_versions(packages: Packages, answered: int) -> None:
    """The agent's answer chooses the version, and with it the types."""
    acp, made = package(packages, 12), list[Any]()
    kinds = {version: noting(getattr(acp, f"v{version}"), made) for version in (1, 2)}

    async def main() -> None:
        async with between(acp, [kinds]) as stage:
            _, request = await stage.asked("initialize", {**HELLO[1], **HELLO[2]})
            await stage.agent.answer(request, result=ANSWER[answered])
            await stage.client.receive()
            proxy = next(each for each in made if isinstance(each, kinds[answered]))
            chosen = getattr(acp, f"v{answered}")
            assert isinstance(proxy.client.capabilities, chosen.ClientCapabilities)
            assert isinstance(proxy.agent.capabilities, chosen.AgentCapabilities)
            assert (proxy.client.info.name, proxy.agent.info.name) == ("editor", "a")

    run(main())
