"""An agent that corrects the spelling of a file, with the package that acpgen builds."""

from uuid import uuid4

from acp_ours import (
    PROTOCOL_VERSION,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    NewSessionRequest,
    NewSessionResponse,
    PromptRequest,
    advertise,
    run_agent,
)
from acp_ours.helpers import TurnAgent, agent_message, diff, plan, plan_entry, tool_call
from model import NEW, OLD, PATH, reply, save


class Corrector(TurnAgent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="corrector", version="1.0.0")
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_info=info))

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def work(self, params: PromptRequest) -> None:
        session_id, send = params.session_id, self.client.session_update
        await send(plan(session_id, [plan_entry("Correct the notes", status="in_progress")]))
        async for word in reply(params.prompt):
            await send(agent_message(session_id, word))
        change = diff(PATH, OLD, NEW)
        async with tool_call(self.client, session_id, "Edit notes.txt", kind="edit", content=[change]) as call:
            if await call.permission():
                save(PATH, NEW)
        await send(plan(session_id, [plan_entry("Correct the notes", status="completed")]))


if __name__ == "__main__":
    run_agent(Corrector)
