"""The client on a generated package."""

import asyncio
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), sys.argv[5]]

from demo import (
    Client,
    ContentBlockText,
    InitializeRequest,
    NewSessionRequest,
    PromptRequest,
    PromptResponse,
    SessionNotification,
)
from demo.remote import connect_http, connect_websocket
from remote_client import Counter, arguments, talk

counter = Counter()


class Listener(Client):
    """Counts updates."""

    async def session_update(self, params: SessionNotification) -> None:
        """Count it."""
        counter.count()


async def main() -> None:
    """Connect by what the URL says."""
    url = arguments()[0]
    connect = connect_websocket if url.startswith("ws") else connect_http
    async with connect(Listener, url) as agent:
        await agent.initialize(InitializeRequest(protocol_version=1))
        session = await agent.session_new(NewSessionRequest(cwd="/", mcp_servers=[]))

        async def prompt(text: str) -> PromptResponse:
            return await agent.session_prompt(
                PromptRequest(session_id=session.session_id, prompt=[ContentBlockText(text=text)])
            )

        await talk(prompt, counter)


asyncio.run(main())
