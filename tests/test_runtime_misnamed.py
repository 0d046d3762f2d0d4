"""Methods of a handler class that look like handlers, and that no message reaches."""

from __future__ import annotations

from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import EVERY_BASE, V1, V2, acp_log, agent_of, client_of, raw_peer, run, texts, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python


async def handler(self: Any, params: Any) -> None:
    """Any."""


async def of_several(self: Any, prompt: Any, session_id: str, **more: Any) -> None:
    """As the official SDK for Python passes params."""


async def without_params(self: Any) -> None:
    """No message could call it."""


def plain(self: Any, params: Any) -> None:
    """Not a coroutine."""


def warnings(acp: Any, kind: type[Any]) -> str:
    async def main() -> None:
        async with raw_peer(acp, kind, options=unchecked(acp)) as peer:
            await peer.ping()

    with acp_log() as records:
        run(main())
    return texts(records)


AGENT = {
    "prompt": "session_prompt",
    "new_session": "session_new",
    "newSession": "session_new",
    "load_session": "session_load",
    "list_sessions": "session_list",
    "set_session_mode": "session_set_mode",
    "cancel": "session_cancel",
    "session_promt": "session_prompt",
    "session_prmopt": "session_prompt",
    "session_prompts": "session_prompt",
    "initialise": "initialize",
}
CLIENT = {
    "read_text_file": "fs_read_text_file",
    "request_permission": "session_request_permission",
    "create_terminal": "terminal_create",
    "wait_for_terminal_exit": "terminal_wait_for_exit",
    "sessionUpdate": "session_update",
}


@pytest.mark.parametrize("method", [handler, of_several])
@pytest.mark.parametrize(("name", "meant"), [*AGENT.items(), *CLIENT.items()])
def test_a_method_that_looks_like_a_handler(packages: Packages, name: str, meant: str, method: Any) -> None:
    acp = packages(V1)
    kind = (agent_of if name in AGENT else client_of)(acp, **{name: method})
    kind = type("Inheriting", (kind,), {})
    found = warnings(acp, kind)
    assert f"Inheriting.{name} " in found
    assert meant in found
    assert found.count("WARNING") == 1


@EVERY_BASE
def test_classes_without_such_methods(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    class Mixin:
        async def turn(self, params: Any) -> None:
            """A helper."""

    class Good(acp.Agent, Mixin):  # type: ignore[misc]
        session_prompt = session_cancel = session_new = initialize = handler
        session_update = handler  # as that of the client, whose stub it may call
        cancel = prompt = handler  # helpers of the above
        new = close = without_params
        load_session = plain
        _load_session = handler
        stream = answer = open_file = handler
        ext_method = ext_notification = connection_closed = handler

    async def ext_method(self: Any, method: str, params: Any) -> None:
        """Answer pings."""

    Good.ext_method = ext_method
    Good.connection_closed = handler
    assert warnings(acp, Good) == ""


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
def test_handlers_do_not_look_like_each_other(packages: Packages, sources: SchemaChoice) -> None:
    """Each alone is overridden, and no other one is meant."""
    acp = packages(sources)

    async def main() -> list[str]:
        seen = []
        for base in (acp.Agent, acp.Client):
            for route in (*base.REQUESTS.values(), *base.NOTIFICATIONS.values()):
                async with raw_peer(acp, type("One", (base,), {route.handler: handler})):
                    seen.append(route.handler)
            async with raw_peer(acp, type("Wrong", (base,), {f"{seen[-1]}s": handler})):  # there would be a warning
                pass
        return seen

    with acp_log() as records:
        seen = run(main())
    assert len(seen) > 10
    assert "One." not in texts(records)
    assert texts(records).count("Wrong.") == 2
