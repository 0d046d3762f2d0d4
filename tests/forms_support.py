"""What the tests of forms share: clients whose user is scripted, and an agent that asks them."""

from __future__ import annotations

import importlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.runtime_support import Pair, pair, run

Work = Callable[[Any], Coroutine[Any, Any, Any]]
"""What an agent does with the stub of its client."""
ABLE = {"form": {}}


def helpers_of(acp: Any) -> Any:
    """The helpers of a package."""
    return importlib.import_module(f"{acp.__name__}.helpers")


def form_client(acp: Any, *replies: Any, then: Any = "decline") -> type[Any]:
    """A client whose user replies like this, and to further questions with `then`; `asked` has the questions."""
    given = iter(replies)

    class Chat(helpers_of(acp).FormClient):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.asked: list[Any] = []
            self.updates: list[Any] = []

        async def ask_form(self, question: Any) -> Any:
            self.asked.append(question)
            reply = next(given, then)
            return await reply(question) if callable(reply) else reply

        async def session_update(self, params: Any) -> None:
            self.updates.append(params.update)

    return Chat


def hand_client(acp: Any, *responses: Any) -> type[Any]:
    """A client that gives these answers, as JSON; `received` has the requests."""
    given = iter(responses)

    class Hand(acp.Client):  # type: ignore[misc]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.received: list[Any] = []

        async def elicitation_create(self, params: Any) -> Any:
            self.received.append(params)
            return acp.decode(acp.CreateElicitationResponse, next(given))

        async def elicitation_complete(self, params: Any) -> None:
            self.received.append(params)

        async def session_update(self, params: Any) -> None:
            self.received.append(params.update)

    return Hand


@asynccontextmanager
async def talking(acp: Any, client: type[Any], capabilities: Any = None) -> AsyncGenerator[Pair, None]:
    """An agent and a client that has advertised these capabilities for elicitation; by default, forms."""
    able = {"elicitation": ABLE if capabilities is None else capabilities}
    info = {"name": "test", "version": "1"}
    version = acp.PROTOCOL_VERSION
    names = ("clientCapabilities", "clientInfo", "agentInfo") if version == 1 else ("capabilities", "info", "info")
    hello = {"protocolVersion": version, names[0]: able, names[1]: info}

    class Asking(acp.Agent):  # type: ignore[misc]
        async def initialize(self, params: Any) -> Any:
            return acp.decode(acp.InitializeResponse, {"protocolVersion": version, names[2]: info})

    async with pair(acp, Asking, client) as both:
        await both.agent.initialize(acp.decode(acp.InitializeRequest, hello))
        yield both


def ask(
    acp: Any, client: type[Any], work: Work, capabilities: Any = None, *, runner: Callable[[Any], Any] = run
) -> tuple[Any, Any]:
    """What `work` returns, or raises; and the client afterwards."""

    async def main() -> tuple[Any, Any]:
        async with talking(acp, client, capabilities) as both:
            try:
                return await work(both.client), both.client_handler
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return error, both.client_handler

    found: tuple[Any, Any] = runner(main())
    return found


def fill_in(acp: Any, form: Any, *replies: Any, runner: Callable[[Any], Any] = run) -> tuple[Any, Sequence[Any]]:
    """What an agent gets that asks for a form, and the questions that the user saw."""
    helpers = helpers_of(acp)

    def work(stub: Any) -> Any:
        return helpers.ask_form(stub, "s", "Well?", form)

    answer, client = ask(acp, form_client(acp, *replies), work, runner=runner)
    return answer, client.asked


def answer_by_hand(acp: Any, form: Any, content: Any, runner: Callable[[Any], Any] = run) -> Any:
    """What an agent gets that asks for a form, and whose client accepts it with this content."""
    helpers = helpers_of(acp)
    client = hand_client(acp, {"action": "accept", "content": content})
    return ask(acp, client, lambda stub: helpers.ask_form(stub, "s", "Well?", form), runner=runner)[0]
