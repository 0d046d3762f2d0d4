"""The agent of these tests, and what it has seen: the number of the connections that it had, and how calls ended."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from types import ModuleType
from typing import Any


class Notes:
    """What the agents of a process have noted."""

    def __init__(self) -> None:
        self.made = 0
        self.closings: Counter[int] = Counter()  # calls of `connection_closed`, by the number of the agent
        self.ends: Counter[str] = Counter()  # how permission requests, and prompts that wait, have ended
        self.history: defaultdict[str, list[str]] = defaultdict(list)  # the prompts of each session

    def as_json(self) -> dict[str, Any]:
        """The notes, for a test in another process."""
        return {
            "made": self.made,
            "closed": len(self.closings),
            "closed_twice": sum(count > 1 for count in self.closings.values()),
            "ends": dict(self.ends),
        }


def counting_agent(acp: ModuleType | Any, notes: Notes) -> type[Any]:
    """A class of agents for version 1. The text of a prompt is a command: see `session_prompt`."""
    v1 = acp.v1

    class CountingAgent(v1.Agent):  # type: ignore[misc, name-defined]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            notes.made += 1
            self.number = notes.made

        async def initialize(self, params: Any) -> Any:
            resume = v1.SessionCapabilities(resume=v1.SessionResumeCapabilities(), close=v1.SessionCloseCapabilities())
            able = v1.AgentCapabilities(load_session=True, session_capabilities=resume)
            return v1.InitializeResponse(protocol_version=1, agent_capabilities=able)

        async def session_new(self, params: Any) -> Any:
            return v1.NewSessionResponse(session_id=params.cwd)

        async def session_load(self, params: Any) -> Any:
            for text in list(notes.history[params.session_id]):
                await self.update(params.session_id, text)
            return v1.LoadSessionResponse()

        async def session_resume(self, params: Any) -> Any:
            return v1.ResumeSessionResponse()

        async def session_close(self, params: Any) -> Any:
            return v1.CloseSessionResponse()

        async def session_cancel(self, params: Any) -> None:
            notes.ends["session/cancel"] += 1

        async def session_prompt(self, params: Any) -> Any:
            """`count N` sends N numbered updates, `ask` asks for permission, `wait` waits, `pad N` sends N bytes."""
            name, _, number = params.prompt[0].text.partition(" ")
            session = params.session_id
            notes.history[session].append(params.prompt[0].text)
            if name == "count":
                for each in range(int(number)):
                    await self.update(session, str(each))
            elif name == "pad":
                await self.update(session, "x" * int(number))
            else:
                await self.note_end(name, self.ask(session) if name == "ask" else asyncio.Event().wait())
            return v1.PromptResponse(stop_reason="end_turn")

        async def note_end(self, name: str, work: Any) -> None:
            try:
                await work
            except BaseException as error:
                notes.ends[f"{name}: {type(error).__name__}"] += 1
                raise
            notes.ends[f"{name}: done"] += 1

        async def update(self, session: str, text: str) -> None:
            chunk = v1.SessionUpdateAgentMessageChunk(content=v1.ContentBlockText(text=text))
            await self.client.session_update(v1.SessionNotification(session_id=session, update=chunk))

        async def ask(self, session: str) -> None:
            option = v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once")
            call = v1.ToolCallUpdate(tool_call_id="call")
            request = v1.RequestPermissionRequest(session_id=session, tool_call=call, options=[option])
            await self.client.session_request_permission(request)

        async def ext_method(self, method: str, params: Any) -> Any:
            """`_wait` waits, and keeps its params; any other method returns them."""
            if method == "_wait":
                await asyncio.Event().wait()
            return params

        async def connection_closed(self, reason: Any) -> None:
            notes.closings[self.number] += 1

    return CountingAgent


def counting_client(acp: ModuleType | Any) -> type[Any]:
    """A class of clients that keep the texts of the updates of each session, and allow everything after `answers`."""
    v1 = acp.v1

    class CountingClient(v1.Client):  # type: ignore[misc, name-defined]
        def __init__(self, agent: Any) -> None:
            super().__init__(agent)
            self.texts: defaultdict[str, list[str]] = defaultdict(list)
            self.closings = 0
            self.asked = asyncio.Event()
            self.may_answer = asyncio.Event()
            self.pause = 0.0

        async def session_update(self, params: Any) -> None:
            if self.pause:
                await asyncio.sleep(self.pause)
            self.texts[params.session_id].append(params.update.content.text)

        async def session_request_permission(self, params: Any) -> Any:
            self.asked.set()
            await self.may_answer.wait()
            chosen = v1.RequestPermissionOutcomeSelected(option_id=params.options[0].option_id)
            return v1.RequestPermissionResponse(outcome=chosen)

        async def connection_closed(self, reason: Any) -> None:
            self.closings += 1

    return CountingClient
