"""A client that prompts without end, to be killed: `client.py TRANSPORT URL`."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import Any

from agents import counting_client  # type: ignore[import-not-found]

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
remote: Any = importlib.import_module(f"{acp.__name__}.remote")


async def main(transport: str, url: str) -> None:
    v1 = acp.v1
    async with getattr(remote, f"connect_{transport}")(counting_client(acp), url) as agent:
        await agent.initialize(v1.InitializeRequest(protocol_version=1))
        await agent.session_new(v1.NewSessionRequest(cwd="/killed", mcp_servers=[]))
        while True:
            text = v1.ContentBlockText(text="count 10")
            await agent.session_prompt(v1.PromptRequest(session_id="/killed", prompt=[text]))
            print("prompted", flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
