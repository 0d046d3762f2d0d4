"""Starts an agent, and chats with it in the version of the protocol that it chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from .acp import advertise, spawn_agent, v1, v2
from .acp.v1.helpers import LoginError as LoginErrorV1
from .acp.v2.helpers import LoginError as LoginErrorV2
from .client_v1 import ClientV1
from .client_v2 import ClientV2
from .screen import Screen
from .terminal import Keyboard

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
        {
            1: partial(ClientV1, screen=screen, command=command),
            2: partial(ClientV2, screen=screen, command=command),
        },
        command,
        params={1: advertise(ClientV1, HELLO_V1), 2: advertise(ClientV2, HELLO_V2)},
    )
    async with spawned:
        client = spawned.handler
        assert isinstance(client, (ClientV1, ClientV2))
        try:
            await client.enter()
            await screen.talk(client)
        except (LoginErrorV1, LoginErrorV2) as error:
            raise SystemExit(str(error)) from error
        except asyncio.CancelledError:  # Ctrl-C, twice
            raise KeyboardInterrupt from None
