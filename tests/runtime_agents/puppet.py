"""An agent that tests control: a prompt names a method of `Puppet` and its argument."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])

STARTED = "import sys; print('from a process'); sys.exit(len(sys.stdin.read()))"


def note(entry: str) -> None:
    """Write into the diary of the test, if it keeps one."""
    if path := os.environ.get("ACP_DIARY"):
        with Path(path).open("a", encoding="utf-8") as diary:
            diary.write(f"{entry}\n")


class Puppet(acp.Agent):  # type: ignore[misc]
    async def initialize(self, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=params.protocol_version)

    async def session_new(self, params: Any) -> Any:
        return acp.NewSessionResponse(session_id="s")

    async def session_prompt(self, params: Any) -> Any:
        word, *arguments = params.prompt[0].text.split(maxsplit=1)
        await getattr(self, word)(*arguments)
        return acp.PromptResponse(stop_reason="end_turn")

    async def connection_closed(self, reason: Any) -> None:
        note(f"closed: {reason}")

    async def ext_notification(self, method: str, params: Any) -> None:
        """Take some seconds; what comes next has to wait."""
        await asyncio.sleep(params["seconds"])

    async def tell(self, text: str) -> None:
        update = acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text=text))
        await self.client.session_update(acp.SessionNotification(session_id="s", update=update))

    async def hang(self) -> None:
        await self.tell("hangs")
        try:
            await asyncio.Event().wait()
        finally:
            note("cleaned up")

    async def hang_on(self) -> None:
        """Do not end when cancelled."""
        await self.tell("hangs")
        try:
            await asyncio.Event().wait()
        finally:
            note("cancelled")
            await asyncio.Event().wait()

    async def stream(self, size_and_count: str) -> None:
        size, count = map(int, size_and_count.split())
        text = "x" * size
        try:
            for _ in range(count):
                await self.tell(text)
        finally:
            note("cleaned up")

    async def chatter(self) -> None:
        """Write to what is usually stdout, in all the ways that there are."""
        print("from print")
        print("from print to what was stdout", file=sys.__stdout__)
        os.write(1, b"from os.write\n")
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", STARTED)
        await self.tell(f"asyncio {await process.wait()}")
        done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", STARTED], check=False)
        await self.tell(f"subprocess {done.returncode}")
        await self.tell(f"stdin {sys.stdin.read()!r}")

    async def size(self, text: str) -> None:
        await self.tell(str(len(text)))

    async def fail(self) -> None:
        raise ValueError("the password is swordfish")

    async def leave(self, code: str) -> None:
        print("last words", file=sys.stderr)
        os._exit(int(code))

    async def kill(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def describe(self) -> None:
        await self.tell(f"{Path.cwd()} {os.environ.get('ACP_GREETING')} {os.getpid()} {os.getpgrp()}")

    async def mutter(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    logging.getLogger("asyncio").addFilter(lambda record: not record.msg.startswith("Executing "))
    chosen = json.loads(os.environ.get("ACP_OPTIONS", "{}"))
    options = acp.ConnectionOptions(**{"check_capabilities": False, **chosen})  # what its peers send is no protocol
    acp.run_agent(Puppet, options=options)
    note("returned")
