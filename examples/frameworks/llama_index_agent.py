"""An agent of LlamaIndex workflows. README.md beside it says how its package is built, and what to install."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import acp_frameworks as acp
from acp_frameworks import helpers
from scripted_workflow import stream  # or a client of a real model
from workflows import Context, Workflow, step
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent


class Ask(InputRequiredEvent):
    """The user is asked about the first of `calls`; `messages` are those so far."""


class Answer(HumanResponseEvent):
    """The answer of the user, `allowed`, with what the question had."""


class Progress(Event):
    """The `value` of a `kind` to show: "text", "thought", or the "start", "update" or "end" of a tool."""


class ToolLoop(Workflow):
    """Asks the model, and calls the tools that it names, until it calls none."""

    cwd: Path
    tools: dict[str, Any]

    @step
    async def go(self, ctx: Context, event: StartEvent | Answer) -> Ask | StopEvent:
        messages, calls, answer = [*event.messages], getattr(event, "calls", []), getattr(event, "allowed", None)
        while calls or (calls := await self.think(ctx, messages)):
            if calls[0]["tool"] == "write_file" and answer is None:
                return Ask(messages=messages, calls=calls)
            await self.act(ctx, messages, calls.pop(0), is_refused=answer is False)
            answer = None
        return StopEvent(result=messages)

    async def think(self, ctx: Context, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        found: dict[str, list[Any]] = {"thought": [], "text": [], "call": []}
        async for kind, piece in stream(messages):
            found[kind].append(piece)
            ctx.write_event_to_stream(Progress(kind=kind, value=piece))
        messages.append({"role": "assistant", "text": "".join(found["text"]), "calls": [*found["call"]]})
        return found["call"]

    async def act(self, ctx: Context, messages: list[Any], call: dict[str, Any], *, is_refused: bool) -> None:
        ctx.write_event_to_stream(Progress(kind="start", value=call))
        output, end = "the user has refused", "failed"
        try:
            output, end = (output, end) if is_refused else (str(await self.call(ctx, call)), "completed")
        except Exception as error:  # noqa: BLE001  the model may try something else
            output = str(error)
        ctx.write_event_to_stream(Progress(kind="end", value=(call["id"], end, output)))
        messages.append({"role": "tool", "id": call["id"], "text": output})

    async def call(self, ctx: Context, call: dict[str, Any]) -> Any:
        match call:
            case {"tool": "write_todos"}:  # the start of the call has shown it
                return "shown"
            case {"tool": "read_file", "arguments": {"path": path}}:
                return (self.cwd / path).read_text()
            case {"tool": "write_file", "arguments": {"path": path, "text": text}}:
                (self.cwd / path).write_text(text)
                return f"{path} is written"
            case {"tool": "count", "id": key, "arguments": {"to": last}}:
                for number in range(1, last + 1):
                    await asyncio.sleep(0.01)
                    ctx.write_event_to_stream(Progress(kind="update", value=(key, f"{number} of {last}")))
                return f"counted to {last}"
            case {"tool": name, "arguments": given}:
                return await self.tools[name](**given)


class WorkflowAgent(helpers.StoredAgent):
    """Its sessions have the messages of the model, the mode, and what the user has allowed for good."""

    store = helpers.SqliteStore(sys.argv[1] if len(sys.argv) > 1 else "sessions.db")

    def __init__(self, client: acp.RemoteClient) -> None:
        super().__init__(client)
        self.servers: dict[str, helpers.SessionTools] = {}

    async def initialize(self, params: acp.InitializeRequest) -> acp.InitializeResponse:
        return acp.advertise(self, acp.InitializeResponse(protocol_version=1), mcp_capabilities={"http": True})

    async def on_open(self, session: helpers.ActiveSession, params: helpers.OpenSessionRequest) -> None:
        session.data = session.data or {"history": [], "permissions": [], "mode": "ask"}
        self.servers[session.id] = helpers.SessionTools(helpers.mcp_parameters(params.mcp_servers, cwd=session.cwd))

    async def on_close(self, session_id: str) -> None:
        await self.servers.pop(session_id).close()

    def config_options(self, session: helpers.ActiveSession) -> list[acp.SessionConfigOption]:
        both = [acp.SessionConfigSelectOption(value=each, name=each.title()) for each in ("ask", "edit")]
        now = session.data["mode"]
        return [acp.SessionConfigOptionSelect(id="mode", name="Mode", category="mode", current_value=now, options=both)]

    async def work(self, params: acp.PromptRequest) -> None:
        session = self.session(params.session_id)
        calls = helpers.ToolCalls(self.client, session.id, self.turns)
        memory = helpers.PermissionMemory(session.data["permissions"], folder=session.cwd)
        prompt = "\n".join(getattr(block, "text", "") for block in params.prompt)
        loop = ToolLoop(timeout=None)
        loop.cwd, loop.tools = Path(session.cwd), {each.name: each for each in await self.servers[session.id].list()}
        run = loop.run(messages=[*session.data["history"], {"role": "user", "text": prompt}])
        try:
            async for event in run.stream_events():
                if isinstance(event, Progress):
                    await self.tell(session.id, calls, event)
                elif isinstance(event, Ask):
                    key, name, given = (event.calls[0][each] for each in ("id", "tool", "arguments"))
                    path, new = loop.cwd / given["path"], given["text"]
                    old = path.read_text() if path.exists() else None
                    status: Any = "pending" if session.data["mode"] == "ask" else "in_progress"
                    call = await calls.start_edit(key, str(path), old=old, new=new, status=status, name=name)
                    allowed = status != "pending" or (await call.permission(memory=memory)).allowed
                    run.ctx.send_event(Answer(messages=event.messages, calls=event.calls, allowed=allowed))
            session.data["history"] = await run
        finally:
            with suppress(Exception):
                await run.cancel_run()
                await run

    async def tell(self, session_id: str, calls: helpers.ToolCalls, event: Progress) -> None:
        match event.kind, event.value:
            case "text" | "thought" as kind, text:
                build = helpers.agent_message if kind == "text" else helpers.agent_thought
                await self.client.session_update(build(session_id, text))
            case "start", {"tool": "write_todos", "arguments": {"steps": steps, "done": done}}:
                entries = [helpers.plan_entry(each, status="completed") for each in steps[:done]]
                await self.client.session_update(helpers.plan(session_id, [*entries, *steps[done:]]))
            case "start", {"id": key, "tool": tool, "arguments": raw} if tool != "write_file":
                await calls.start(key, tool, kind="read" if tool == "read_file" else "other", name=tool, raw_input=raw)
            case "update", (key, text):
                await calls.update(key, content=[text])
            case "end", (key, end, output) if key in calls:
                shown = calls[key].reported.content if calls[key].reported.kind == "edit" else [output]
                await calls.end(key, end, content=shown or (), raw_output=output)


if __name__ == "__main__":
    acp.run_agent(WorkflowAgent, options=acp.ConnectionOptions(cleanup_seconds=10.0))  # for the end of MCP servers
