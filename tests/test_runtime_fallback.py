"""`fallback_request` and `fallback_notification`: for what nothing else handles."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import V1, V2, acp_log, agent_of, pair, raw_peer, run, texts, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python

PACKAGES = pytest.mark.parametrize("sources", [(V1,), (V2,), (V1, V2)], ids=["v1", "v2", "both"])


def parts(packages: Packages, sources: tuple[SchemaChoice, ...]) -> tuple[Any, Any]:
    """The package, and the part of it that has the classes of the highest version."""
    acp = packages(*sources)
    return acp, acp if len(sources) == 1 else acp.v2


def recording(base: type[Any], seen: list[Any]) -> type[Any]:
    class Fallback(base):  # type: ignore[misc]
        async def fallback_request(self, method: str, params: Any) -> Any:
            seen.append((method, params))
            return {"from": method}

        async def fallback_notification(self, method: str, params: Any) -> None:
            seen.append((method, params))

        async def ext_method(self, method: str, params: Any) -> Any:
            return "extension"

    return Fallback


@PACKAGES
def test_what_nothing_handles(packages: Packages, sources: tuple[SchemaChoice, ...]) -> None:
    acp, part = parts(packages, sources)
    for base, known in ((part.Agent, "session/list"), (part.Client, "elicitation/create")):
        seen: list[Any] = []

        kind = recording(base, seen)

        async def main(kind: type[Any] = kind, known: str = known) -> list[Any]:
            async with raw_peer(_with_stubs(acp, part), kind, options=unchecked(acp)) as peer:
                for method in ("session/rewind", known, "_vendor/x"):
                    await peer.request(method, method, [1])
                await peer.notify("session/later", 5)
                await peer.notify("session/later")
                await peer.notify("_vendor/note")
                await peer.notify("$/cancel_request", {"requestId": 1})
                return await peer.ping()

        answers = {each["id"]: each["result"] for each in run(main())}
        assert answers.pop("_vendor/x") == "extension"
        assert answers == {name: {"from": name} for name in ("session/rewind", known)}
        assert seen == [("session/rewind", [1]), (known, [1]), ("session/later", 5), ("session/later", None)]


def _with_stubs(acp: Any, part: Any) -> Any:
    return type("Package", (), {**vars(part), **vars(acp)})


def test_a_known_notification_that_is_not_overridden(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[Any] = []

    async def main() -> None:
        async with raw_peer(acp, recording(acp.Agent, seen), options=unchecked(acp)) as peer:
            await peer.notify("session/cancel", {"sessionId": 5})
            assert await peer.ping() == []

    run(main())
    assert seen == [("session/cancel", {"sessionId": 5})]


def test_what_is_overridden_does_not_reach_it(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[Any] = []

    class Agent(recording(acp.Agent, seen)):  # type: ignore[misc]
        async def session_list(self, params: Any) -> Any:
            raise acp.MethodNotFoundError("not today")

        async def session_cancel(self, params: Any) -> None:
            """Ignore it."""

    async def main() -> list[Any]:
        async with raw_peer(acp, Agent, options=unchecked(acp)) as peer:
            await peer.notify("session/cancel", {"sessionId": "s"})
            return [await peer.ask(1, "session/list", {}), await peer.ask(2, "session/list", 5)]

    assert [answer["error"]["code"] for answer in run(main())] == [-32601, -32602]
    assert seen == []


def test_by_default_a_method_is_not_found(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            await peer.notify("session/later")
            return [await peer.ask(1, "session/rewind"), await peer.ask(2, "session/list"), *await peer.ping()]

    assert [answer["error"]["code"] for answer in run(main())] == [-32601, -32601]


def test_a_fallback_overrides_no_method(packages: Packages) -> None:
    """Neither `advertise` nor the warnings count it."""
    acp = packages(V1)
    kind = recording(acp.Agent, [])
    empty = acp.InitializeResponse(protocol_version=1)
    assert acp.advertise(kind, empty) == empty

    async def initialize(self: Any, params: Any) -> Any:
        capabilities = acp.AgentCapabilities(load_session=True)
        return acp.InitializeResponse(protocol_version=1, agent_capabilities=capabilities)

    async def main() -> None:
        async with pair(acp, type("Loading", (kind,), {"initialize": initialize}), acp.Client) as both:
            await both.agent.initialize(acp.InitializeRequest(protocol_version=1))

    with acp_log() as records:
        run(main())
    assert "advertised, but not overridden in Loading: session/load" in texts(records)


def test_it_may_negotiate(packages: Packages) -> None:
    """A fallback that passes on everything passes on the handshake, too."""
    acp = packages(V1)

    class Passing(acp.Agent):  # type: ignore[misc, name-defined]
        async def fallback_request(self, method: str, params: Any) -> Any:
            return {"protocolVersion": 1} if method == "initialize" else "later"

    async def main() -> list[Any]:
        async with raw_peer(acp, Passing) as peer:
            early = await peer.ask(1, "session/rewind")
            hello = await peer.ask(2, "initialize", {"protocolVersion": 1})
            return [early["error"]["code"], hello["result"], (await peer.ask(3, "session/rewind"))["result"]]

    assert run(main()) == [-32600, {"protocolVersion": 1}, "later"]
