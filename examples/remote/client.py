"""A client that has a session with the agent behind the proxy, disconnects, connects again, and loads the session.

What it imports is built by this command, given in this folder:

    acpgen build --role both --with turns --with sessions --with remote --out acp_remote

Then run it; with a URL that starts with ws, it connects over WebSocket:

    python client.py http://127.0.0.1:8080/acp "Hello!"

The environment variable `ACP_TOKEN` is the token that it sends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from http.cookiejar import CookieJar

from acp_remote import (
    PROTOCOL_VERSION,
    Client,
    ConnectionClosed,
    ContentBlockText,
    InitializeRequest,
    InitializeResponse,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    RequestError,
    SessionNotification,
    SessionUpdateAgentMessageChunk,
    SessionUpdateUserMessageChunk,
    advertise,
)
from acp_remote.remote import connect_url

HEADERS = {"Authorization": f"Bearer {token}"} if (token := os.environ.get("ACP_TOKEN")) else {}


class PrintingClient(Client):
    """Prints the messages of a session."""

    async def session_update(self, params: SessionNotification) -> None:
        match params.update:
            case SessionUpdateUserMessageChunk(content=ContentBlockText(text=text)):
                print(f"user: {text}")
            case SessionUpdateAgentMessageChunk(content=ContentBlockText(text=text)):
                print(f"agent: {text}")
            case _:
                pass


def replica(answer: InitializeResponse) -> str:
    """Return the name of the process that has answered `initialize`."""
    info = answer.agent_info
    return str(info.title) if info else "?"


async def main(url: str, text: str) -> None:
    """Open a session, send a prompt, and go on with the session over another connection."""
    cookies = CookieJar()  # of both connections: it has the cookie that leads to the replica
    hello = advertise(PrintingClient, InitializeRequest(protocol_version=PROTOCOL_VERSION))
    async with connect_url(PrintingClient, url, cookies=cookies, headers=HEADERS) as agent:
        print(f"connected to {replica(await agent.initialize(hello))}")
        session_id = (await agent.session_new(NewSessionRequest(cwd="/", mcp_servers=[]))).session_id
        await agent.session_prompt(prompt_of(session_id, text))
    async with connect_url(PrintingClient, url, cookies=cookies, headers=HEADERS) as agent:
        print(f"connected to {replica(await agent.initialize(hello))} again")
        try:
            await agent.session_load(LoadSessionRequest(session_id=session_id, cwd="/", mcp_servers=[]))
        except RequestError as error:  # such as after a restart of the replica
            sys.exit(f"the session is lost: {error}")
        # Over HTTP, the history may come after the response, on another stream; what answers a prompt comes after both.
        await agent.session_prompt(prompt_of(session_id, f"{text} Once more!"))


def prompt_of(session_id: str, text: str) -> PromptRequest:
    """Return a prompt of one text."""
    return PromptRequest(session_id=session_id, prompt=[ContentBlockText(text=text)])


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except ConnectionClosed as error:  # docs/remote.md has a client that connects again
        sys.exit(str(error))
