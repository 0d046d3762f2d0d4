"""Starts an agent, and chats with it in the version of the protocol that it chooses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from .acp import spawn_agent, v1, v2
from .client_v1 import ClientV1
from .client_v2 import ClientV2
from .screen import Screen
from .terminal import Keyboard, on_interrupt

NAME, VERSION = "new-project", "0.1.0"
HELLO_V1 = v1.InitializeRequest(
    protocol_version=v1.PROTOCOL_VERSION, client_info=v1.Implementation(name=NAME, version=VERSION)
)
HELLO_V2 = v2.InitializeRequest(
    protocol_version=v2.PROTOCOL_VERSION, info=v2.Implementation(name=NAME, version=VERSION)
)


async def chat(command: Sequence[str]) -> None:
    """Start the agent with `command`, and chat with it until the end of the input."""
    screen = Screen(Keyboard())
    spawned = spawn_agent(
        {1: partial(ClientV1, screen=screen), 2: partial(ClientV2, screen=screen)},
        command,
        params={1: HELLO_V1, 2: HELLO_V2},
    )
    async with spawned:
        client = spawned.handler
        assert isinstance(client, (ClientV1, ClientV2))
        await client.open()
        with on_interrupt(screen.interrupt):
            await screen.talk(client)
