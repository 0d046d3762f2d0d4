"""A client of the official Python SDK that has the conversation of the examples, and prints what it is told.

python frameworks_peer.py FOLDER SESSION PROMPTS COMMAND OF THE AGENT ...; SESSION is "" for a new one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from acp import connect_to_agent, schema, text_block
from acp.stdio import spawn_stdio_transport


class Told:
    """Prints the kinds of updates, and allows what is asked."""

    def on_connect(self, peer: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        print(json.dumps({"kind": update.session_update, "status": getattr(update, "status", None)}))

    async def request_permission(self, options: Any, session_id: str, tool_call: Any, **more: Any) -> Any:
        print(json.dumps({"asked": [option.kind for option in options]}))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return schema.RequestPermissionResponse(outcome=chosen)


async def main(folder: str, session: str, prompts: str, *command: str) -> None:
    async with spawn_stdio_transport(command[0], *command[1:]) as (reader, writer, _):
        agent = connect_to_agent(Told(), writer, reader)
        await agent.initialize(protocol_version=1)
        if session:
            await agent.load_session(cwd=folder, session_id=session, mcp_servers=[])
        else:
            session = (await agent.new_session(cwd=folder, mcp_servers=[])).session_id
        print(json.dumps({"session": session}))
        for prompt in prompts.split(","):
            print(json.dumps({"prompt": prompt}))
            ended = await agent.prompt(session_id=session, prompt=[text_block(prompt)])
            print(json.dumps({"end": ended.stop_reason}))
        await agent.close()


asyncio.run(main(*sys.argv[1:]))
