"""A client that lets a prompt hang, until Ctrl-C: `driver.py STDERR-POLICY COMMAND-AS-JSON`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from typing import Any

from puppet import acp


class Driver(acp.Client):  # type: ignore[misc]
    async def session_update(self, params: Any) -> None:
        print(json.dumps(params.update.content.text), flush=True)


async def main(policy: str, command: str) -> None:
    async with acp.spawn_agent(Driver, json.loads(command), stderr=policy) as agent:
        prompt = [acp.ContentBlockText(text="hang")]
        await agent.session_prompt(acp.PromptRequest(session_id="s", prompt=prompt))


async def interrupted(policy: str, command: str) -> None:
    """Let Ctrl-C cancel the task, as `asyncio.run` does from Python 3.11 on.

    Before, it raises wherever the event loop is, and a callback that was to run next may be lost: then nothing ends.
    """
    if sys.version_info < (3, 11) and (task := asyncio.current_task()) is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    await main(policy, command)


if __name__ == "__main__":
    # tests that run in the background, and all that they start, inherit that Ctrl-C is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        asyncio.run(interrupted(*sys.argv[1:]))
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
