"""Agents as people write them, each against its release, and the client that talks to them."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.history.timeline import TAGS
from tests.runtime_agents import AgentProcess

# --- What people write ----------------------------------------------------------------------------------------------

V1 = """
class Echo(Agent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        methods = [AuthMethod(id="key", name="A key")]
        return advertise(self, InitializeResponse(protocol_version=PROTOCOL_VERSION, auth_methods=methods))

    async def authenticate(self, params: AuthenticateRequest) -> AuthenticateResponse:
        if params.method_id != "key":
            raise InvalidParamsError("no such method")
        return AuthenticateResponse()

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id="session-1")

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        options = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = ToolCallUpdate(tool_call_id="call-1")
        request = RequestPermissionRequest(session_id=params.session_id, tool_call=call, options=options)
        answer = await self.client.session_request_permission(request)
        match answer.outcome:
            case RequestPermissionOutcomeSelected(option_id="yes"):
                pass
            case _:
                return PromptResponse(stop_reason="refusal")
        for block in params.prompt:
            update = SessionUpdateAgentMessageChunk(content=block)
            await self.client.session_update(SessionNotification(session_id=params.session_id, update=update))
        kill = KillTerminalCommandRequest(session_id=params.session_id, terminal_id="terminal-1")
        await self.client.terminal_kill(kill)
        return PromptResponse(stop_reason="end_turn")

    async def session_cancel(self, params: CancelNotification) -> None:
        self.cancelled = params.session_id

    async def session_set_mode(self, params: SetSessionModeRequest) -> SetSessionModeResponse:
        return SetSessionModeResponse(meta={"mode": params.mode_id})
"""

V1_MODELS = """
    async def session_set_model(self, params: SetSessionModelRequest) -> SetSessionModelResponse:
        return SetSessionModelResponse()
"""

V1_OPTIONS = """
    async def session_set_config_option(self, params: SetSessionConfigOptionRequest) -> SetSessionConfigOptionResponse:
        return SetSessionConfigOptionResponse(config_options=[], meta={"value": params.value})
"""

V2 = """
class Echo(Agent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        info = Implementation(name="echo", version="1")
        methods = [AuthMethodAgent(id="key", name="A key")]
        return advertise(self, InitializeResponse(protocol_version=2, agent_info=info, auth_methods=methods))

    async def authenticate(self, params: AuthenticateRequest) -> AuthenticateResponse:
        if params.method_id != "key":
            raise InvalidParamsError("no such method")
        return AuthenticateResponse()

    async def session_new(self, params: NewSessionRequest) -> NewSessionResponse:
        return NewSessionResponse(session_id="session-1")

    async def session_prompt(self, params: PromptRequest) -> PromptResponse:
        options = [PermissionOption(option_id="yes", name="Yes", kind="allow_once")]
        call = ToolCallUpdate(tool_call_id="call-1")
        request = RequestPermissionRequest(session_id=params.session_id, tool_call=call, options=options)
        answer = await self.client.session_request_permission(request)
        match answer.outcome:
            case RequestPermissionOutcomeSelected(option_id="yes"):
                pass
            case _:
                raise InvalidParamsError("refused")
        for block in params.prompt:
            update = SessionUpdateAgentMessageChunk(message_id="message-1", content=block)
            await self.client.session_update(SessionNotification(session_id=params.session_id, update=update))
        idle = SessionUpdateStateUpdateIdle(stop_reason="end_turn")
        await self.client.session_update(SessionNotification(session_id=params.session_id, update=idle))
        return PromptResponse()

    async def session_cancel(self, params: CancelNotification) -> None:
        self.cancelled = params.session_id

    async def session_load(self, params: LoadSessionRequest) -> LoadSessionResponse:
        return LoadSessionResponse()
"""

WRITTEN: Mapping[tuple[int, str], str] = {
    (1, "0.4.9"): V1 + V1_MODELS,
    (1, "0.10.8"): V1 + V1_OPTIONS,
    (2, "0.14.0"): V2,
}
"""What is written against a release; from there, it is carried through the bumps."""

_FUNCTIONS = {"advertise", "decode", "run_agent"}


def written(body: str) -> str:
    """The file of an agent: what is imported is what it uses."""
    tree = ast.parse(body)
    (agent,) = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
    mentioned = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in mentioned} - {node.id for node in mentioned if isinstance(node.ctx, ast.Store)}
    names = sorted(name for name in {*used, "run_agent"} if name[0].isupper() or name in _FUNCTIONS)
    lines = [f"    {name}," for name in names]
    head = "\n".join(["from __future__ import annotations", "", "from acp import (", *lines, ")"])
    return f"{head}\n\n\n{body.strip()}\n\n\nif __name__ == '__main__':\n    run_agent({agent})\n"


# --- The client -----------------------------------------------------------------------------------------------------

TEXT = "What did you say?"
INFO = {"name": "a client", "version": "1"}
PARAMS: Mapping[int, Mapping[str, Any]] = {
    1: {"protocolVersion": 1, "clientCapabilities": {"terminal": True}},
    # under the one name and the other
    2: {"protocolVersion": 2, "info": INFO, "clientInfo": INFO, "capabilities": {}},
}
ANSWERS: Mapping[str, Any] = {
    "session/request_permission": {"outcome": {"outcome": "selected", "optionId": "yes"}},
    "terminal/kill": {},
}
"""What a client answers."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What the client asked and saw: methods in order, the answers by method, and updates."""

    asked: list[str]
    seen: list[str]
    answers: Mapping[str, Any]
    updates: list[Mapping[str, Any]]
    code: int
    stderr: str


def talk(folder: Path, protocol: int, release: str, *, options: tuple[str, ...] = ()) -> Talk:
    """Start the agent in `folder`, and have it do what agents of the release do."""
    command = [sys.executable, *options, "agent.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    asked = _requests(protocol, release, (folder / "agent.py").read_text(encoding="utf-8"))
    seen: list[str] = []
    updates: list[Mapping[str, Any]] = []
    answers: dict[str, Any] = {}
    with AgentProcess(command, environment, folder / "stderr", cwd=folder) as agent:
        for method, params in asked:
            number = agent.ask(method, **params)
            while (message := agent.read()) is not None and "method" in message:
                seen.append(message["method"])
                updates += [message["params"]["update"]] if message["method"] == "session/update" else []
                if "id" in message:
                    agent.write({"id": message["id"], "result": ANSWERS[message["method"]]})
            if message is None:
                break
            assert message["id"] == number, message
            answers[method] = message.get("result", message.get("error"))
        agent.close_stdin()
        code = agent.end()
    return Talk([method for method, _ in asked], seen, answers, updates, code, agent.stderr)


def _requests(protocol: int, release: str, source: str) -> list[tuple[str, Mapping[str, Any]]]:
    """What a client of the release asks: the essentials, and that for which the agent has a handler."""
    session = {"sessionId": "session-1"}
    login = "auth/login" if protocol == 2 and TAGS[2][release] >= (1, 2) else "authenticate"
    found: list[tuple[str, Mapping[str, Any]]] = [
        ("initialize", PARAMS[protocol]),
        (login, {"methodId": "key"}),
        ("session/new", {"cwd": "/", "mcpServers": []}),
        ("session/prompt", {**session, "prompt": [{"type": "text", "text": TEXT}]}),
    ]
    more: list[tuple[str, Mapping[str, Any]]] = [
        ("session/set_mode", {**session, "modeId": "calm"}),
        ("session/set_model", {**session, "modelId": "large"}),
        ("session/set_config_option", {**session, "configId": "depth", "value": "deep"}),
        ("session/load", {**session, "cwd": "/", "mcpServers": []}),
    ]
    return found + [each for each in more if f"def {each[0].replace('/', '_')}(" in source]


def complaint(said: Talk, protocol: int) -> str | None:
    """What is wrong with what the agent said; None if it did all that the client asked of it."""
    if list(said.answers) != said.asked or said.code != 0:
        return f"answered {list(said.answers)}, exit code {said.code}: {said.stderr}"
    if errors := {method: answer for method, answer in said.answers.items() if "code" in answer}:
        return f"{errors}: {said.stderr}"
    chunks = [each["content"]["text"] for each in said.updates if each["sessionUpdate"] == "agent_message_chunk"]
    if chunks != [TEXT]:
        return f"the prompt was not streamed back: {said.updates}"
    (method,) = said.answers["initialize"]["authMethods"]
    if "key" not in method.values():
        return f"not the method of authentication that there is: {method}"
    return _complaint_1(said) if protocol == 1 else _complaint_2(said)


def _complaint_1(said: Talk) -> str | None:
    if said.seen != ["session/request_permission", "session/update", "terminal/kill"]:
        return f"sent {said.seen}"
    if said.answers["session/prompt"] != {"stopReason": "end_turn"}:
        return f"ended with {said.answers['session/prompt']}"
    option = said.answers.get("session/set_config_option")
    if option is not None and option != {"configOptions": [], "_meta": {"value": "deep"}}:
        return f"took the option as {option}"
    return None


def _complaint_2(said: Talk) -> str | None:
    if said.seen != ["session/request_permission", "session/update", "session/update"]:
        return f"sent {said.seen}"
    state = said.updates[-1]
    if state != {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}:
        return f"ended with {state}"
    if "echo" not in str(said.answers["initialize"]):
        return f"does not say who it is: {said.answers['initialize']}"
    return None
