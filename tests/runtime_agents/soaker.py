"""An agent for the soak: numbered updates, now and then a question, and both kinds of cancelling."""

from __future__ import annotations

import asyncio
import importlib
import os
from types import ModuleType
from typing import Any


def soaker(acp: ModuleType | Any) -> type[Any]:
    """The class of agents, from the package to use."""

    class Soaker(acp.Agent):  # type: ignore[misc]
        def __init__(self, client: Any) -> None:
            super().__init__(client)
            self.running: dict[str, asyncio.Event] = {}
            self.sent: dict[str, dict[int, int]] = {}

        async def session_new(self, params: Any) -> Any:
            return acp.NewSessionResponse(session_id=params.cwd)

        async def session_cancel(self, params: Any) -> None:
            if params.session_id in self.running:
                self.running[params.session_id].set()

        async def session_prompt(self, params: Any) -> Any:
            """The text of the prompt says which turn this is, and how many updates it has."""
            turn, count = map(int, params.prompt[0].text.split())
            cancelled = self.running[params.session_id] = asyncio.Event()
            try:
                for number in range(count):
                    if cancelled.is_set():
                        return acp.PromptResponse(stop_reason="cancelled")
                    await self.tell(params.session_id, turn, number)
                return acp.PromptResponse(stop_reason="end_turn")
            finally:
                if self.running.get(params.session_id) is cancelled:
                    del self.running[params.session_id]

        async def tell(self, session: str, turn: int, number: int) -> None:
            chunk = acp.SessionUpdateAgentMessageChunk(content=acp.ContentBlockText(text=f"{turn} {number}"))
            await self.client.session_update(acp.SessionNotification(session_id=session, update=chunk))
            self.sent.setdefault(session, {})[turn] = number + 1
            if number % 7 == 3:
                call, option = acp.ToolCallUpdate(tool_call_id=f"{turn}"), acp.PermissionOption
                await self.client.session_request_permission(
                    acp.RequestPermissionRequest(
                        session_id=session,
                        tool_call=call,
                        options=[option(option_id=f"{number}", name="Yes", kind="allow_once")],
                    )
                )
            else:
                await asyncio.sleep(0)

        async def ext_method(self, method: str, params: Any) -> Any:
            """Tell how many updates each turn of a session had, and forget it; or tell the number of the process."""
            if method == "_pid":
                return os.getpid()
            return {str(turn): count for turn, count in self.sent.pop(params["session"], {}).items()}

    return Soaker


if __name__ == "__main__":
    package: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
    package.run_agent(soaker(package), options=package.ConnectionOptions(check_capabilities=False))
