"""The client on the official Python SDK, with its defaults; over HTTP, with a client that speaks HTTP/2 without TLS."""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import httpx
from acp import Client, connect_to_agent, text_block
from acp.http import create_http_stream
from acp.ws import create_websocket_stream
from remote_client import Counter, arguments, talk

counter = Counter()


class Listener(Client):
    """Counts updates."""

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        """Count it."""
        counter.count()


async def main() -> None:
    """Connect by what the URL says."""
    url = arguments()[0]
    async with httpx.AsyncClient(http1=False, http2=True, timeout=None) as client:
        if url.startswith("ws"):
            transport = await create_websocket_stream(url)
        else:
            transport = create_http_stream(url, client=client)
        agent = connect_to_agent(Listener(), transport)
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd="/", mcp_servers=[])

        async def prompt(text: str) -> object:
            return await agent.prompt(session_id=session.session_id, prompt=[text_block(text)])

        await talk(prompt, counter)
        await agent.close()


asyncio.run(main())
