"""A chat in the terminal, with the official SDK."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from acp import (
    PROTOCOL_VERSION,
    Client,
    CreateTerminalResponse,
    NewSessionResponse,
    ReadTextFileResponse,
    RequestError,
    RequestPermissionResponse,
    TerminalOutputResponse,
    WaitForTerminalExitResponse,
    spawn_agent_process,
    text_block,
)
from acp.interfaces import Agent
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    EnvVariable,
    FileEditToolCallContent,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    PermissionOption,
    TerminalExitStatus,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)
from keyboard import ask, choose, diff, on_interrupt


class Terminal:
    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process, self.limit = process, limit
        self.output, self.truncated = b"", False
        self.reading = asyncio.create_task(self.read())

    async def read(self) -> None:
        assert self.process.stdout is not None
        while data := await self.process.stdout.read(65536):
            print(data.decode(errors="replace"), end="", flush=True)
            self.output += data
            if self.limit is not None and len(self.output) > self.limit:
                self.output, self.truncated = self.output[len(self.output) - self.limit :], True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()

    @property
    def status(self) -> dict[str, Any]:
        code = self.process.returncode
        assert code is not None
        return {"exit_code": code} if code >= 0 else {"signal": str(-code)}


class Chat(Client):
    def __init__(self) -> None:
        self.terminals: dict[str, Terminal] = {}
        self.calls: dict[str, ToolCallStart | ToolCallProgress] = {}
        self.question: asyncio.Task[int | None] | None = None

    def on_connect(self, conn: Agent) -> None:
        self.agent = conn

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **kwargs: Any
    ) -> RequestPermissionResponse:
        call = self.calls.get(tool_call.tool_call_id)
        title = tool_call.title or (call and call.title) or ""
        self.question = asyncio.create_task(choose(title, [option.name for option in options]))
        number = None
        with suppress(asyncio.CancelledError):
            number = await self.question
        if number is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = AllowedOutcome(outcome="selected", option_id=options[number].option_id)
        return RequestPermissionResponse(outcome=chosen)

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                print(text, end="", flush=True)
            case ToolCallStart() | ToolCallProgress():
                before = self.calls.get(update.tool_call_id)
                title = update.title or (before and before.title)
                content = update.content or (before and before.content) or []
                self.calls[update.tool_call_id] = update.model_copy(update={"title": title, "content": content})
                if update.status in ("completed", "failed"):
                    print(f"\n* {title}: {update.status}")
                    for each in content:
                        if isinstance(each, FileEditToolCallContent):
                            print(diff(each.path, each.old_text or "", each.new_text))
            case _:
                pass

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **kwargs: Any
    ) -> ReadTextFileResponse:
        lines = self.inside(path).read_text(encoding="utf-8").splitlines(keepends=True)
        start = (line or 1) - 1
        return ReadTextFileResponse(content="".join(lines[start : None if limit is None else start + limit]))

    async def write_text_file(self, session_id: str, path: str, content: str, **kwargs: Any) -> None:
        self.inside(path).write_text(content, encoding="utf-8")

    def inside(self, path: str) -> Path:
        found = Path(path).resolve()
        if not found.is_relative_to(Path.cwd()):
            raise RequestError.invalid_params({"path": path})
        return found

    async def create_terminal(
        self,
        session_id: str,
        command: str,
        args: list[str] | None = None,
        env: list[EnvVariable] | None = None,
        cwd: str | None = None,
        output_byte_limit: int | None = None,
        **kwargs: Any,
    ) -> CreateTerminalResponse:
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            env={**os.environ, **{each.name: each.value for each in env or []}},
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        terminal_id = uuid4().hex
        self.terminals[terminal_id] = Terminal(process, output_byte_limit)
        return CreateTerminalResponse(terminal_id=terminal_id)

    def terminal(self, terminal_id: str) -> Terminal:
        if terminal_id not in self.terminals:
            raise RequestError.resource_not_found(terminal_id)
        return self.terminals[terminal_id]

    async def terminal_output(self, session_id: str, terminal_id: str, **kwargs: Any) -> TerminalOutputResponse:
        terminal = self.terminal(terminal_id)
        has_ended = terminal.process.returncode is not None
        return TerminalOutputResponse(
            output=terminal.output.decode(errors="replace"),
            truncated=terminal.truncated,
            exit_status=TerminalExitStatus(**terminal.status) if has_ended else None,
        )

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **kwargs: Any
    ) -> WaitForTerminalExitResponse:
        terminal = self.terminal(terminal_id)
        await terminal.process.wait()
        await asyncio.wait([terminal.reading], timeout=1)
        return WaitForTerminalExitResponse(**terminal.status)

    async def kill_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self.terminal(terminal_id).kill()

    async def release_terminal(self, session_id: str, terminal_id: str, **kwargs: Any) -> None:
        self.terminal(terminal_id).kill()
        del self.terminals[terminal_id]

    async def open(self, agreed: InitializeResponse) -> NewSessionResponse:
        try:
            return await self.agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])
        except RequestError as error:
            if error.code != -32000 or not agreed.auth_methods:
                raise
        await self.agent.authenticate(method_id=agreed.auth_methods[0].id)
        return await self.agent.new_session(cwd=str(Path.cwd()), mcp_servers=[])

    async def cancel(self, session_id: str) -> None:
        await self.agent.cancel(session_id=session_id)
        if self.question is not None:
            self.question.cancel()


async def main(*command: str) -> None:
    client = Chat()
    async with spawn_agent_process(client, *command, env=os.environ) as (agent, _):
        agreed = await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(
                fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
            ),
            client_info=Implementation(name="chat", version="1.0.0"),
        )
        if agreed.protocol_version != PROTOCOL_VERSION:
            raise SystemExit(f"the agent speaks version {agreed.protocol_version}")
        session_id = (await client.open(agreed)).session_id
        while line := await ask("> "):
            try:
                with on_interrupt(lambda: client.cancel(session_id)):
                    answer = await agent.prompt(session_id=session_id, prompt=[text_block(line)])
                print(f"\n[{answer.stop_reason}]")
            except RequestError as error:
                print(f"\n[{error}]")
        for terminal in client.terminals.values():
            terminal.kill()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
