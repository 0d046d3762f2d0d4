"""The same agent on asyncio and json, written plainly: a write and a drain for each message, no types, no checks."""

import asyncio
import json
import sys


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), sys.stdout
    )
    writer = asyncio.StreamWriter(transport, protocol, None, loop)

    async def send(message: object) -> None:
        writer.write((json.dumps(message, separators=(",", ":")) + "\n").encode())
        await writer.drain()

    async def prompt(params: dict) -> dict:
        label, count, *turns = params["prompt"][0]["text"].split()
        for at in range(int(count)):
            if turns:
                await asyncio.sleep(0)
            content = {"type": "text", "text": f"{label}: piece {at} of what the agent has to say about it. "}
            update = {"sessionUpdate": "agent_message_chunk", "content": content}
            params_out = {"sessionId": params["sessionId"], "update": update}
            await send({"jsonrpc": "2.0", "method": "session/update", "params": params_out})
        return {"stopReason": "end_turn"}

    async def initialize(params: dict) -> dict:
        return {"protocolVersion": params["protocolVersion"]}

    async def new_session(params: dict) -> dict:
        return {"sessionId": "session-1"}

    handlers = {"initialize": initialize, "session/new": new_session, "session/prompt": prompt}

    async def answer(message: dict) -> None:
        result = await handlers[message["method"]](message["params"])
        await send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    tasks: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.create_task(answer(json.loads(line)))  # a request may wait for something
        tasks.add(task)
        task.add_done_callback(tasks.discard)


asyncio.run(main())
