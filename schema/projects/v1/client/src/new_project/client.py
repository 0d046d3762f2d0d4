"""The client in version 1 of the protocol: it shares the files of the folder, and runs commands for the agent."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from .acp import (
    PROTOCOL_VERSION,
    AuthMethod,
    Implementation,
    InitializeRequest,
    PermissionOption,
    RemoteAgent,
    SessionUpdatePlan,
    ToolCallContentDiff,
    advertise,
)
from .acp.helpers import (
    AgentMessage,
    FileClient,
    Files,
    FormClient,
    FormField,
    FormQuestion,
    FormReply,
    LoginClient,
    LoginError,
    MessageChange,
    PermissionChoice,
    PermissionClient,
    PermissionQuestion,
    PlanChange,
    Session,
    SessionClient,
    TerminalClient,
    Terminals,
    Thought,
    ToolCall,
    ToolCallChange,
    TurnChange,
    read_entry,
)
from .screen import Blank, Screen


class ChatClient(SessionClient, PermissionClient, FormClient, FileClient, TerminalClient, LoginClient):
    """Shows what the agent does, and asks the user where the agent asks."""

    cancel_seconds = 1.0
    """How long leaving a turn waits for an agent that does not end it."""

    def __init__(self, agent: RemoteAgent, *, screen: Screen, command: Sequence[str]) -> None:
        super().__init__(agent)
        self.files = Files(os.getcwd())
        self.terminals = Terminals(on_output=lambda terminal, text: screen.say(text))
        self.login_command = command
        self._screen = screen
        self._session: Session

    @classmethod
    def hello(cls) -> InitializeRequest:
        """Describe this client; its capabilities follow from the methods of the class."""
        info = Implementation(name="new-project", version="0.1.0")
        return advertise(cls, InitializeRequest(protocol_version=PROTOCOL_VERSION, client_info=info))

    async def enter(self) -> None:
        """Open a session. If the agent wants a login and there is none, the program ends."""
        try:
            self._session = await self.with_login(lambda: self.open(os.getcwd()))
        except LoginError as error:
            raise SystemExit(str(error)) from error

    async def prompt(self, line: str) -> str:
        """Send a line, and show what the agent does; returns why it has ended."""
        async with self._session.prompt(line) as turn:
            async for change in turn:
                self._show(change)
        return turn.result.stop_reason

    async def cancel(self) -> None:
        """Ask the agent to stop its work."""
        await self._session.cancel()

    async def ask_permission(self, question: PermissionQuestion) -> PermissionChoice | PermissionOption:
        """Ask the user; no answer allows nothing."""
        call = self.known_tool_call(question.request.session_id, question.request.tool_call.tool_call_id)
        if isinstance(call, ToolCall):
            self._show_changes(call)
        options = question.request.options
        asked = "\n  ".join(question.lines)  # the title is text of the model: the lines below say what is allowed
        number = await self._screen.choose(
            f"The agent asks for permission. {asked}", [option.name for option in options]
        )
        return "cancel" if number is None else options[number]

    async def ask_form(self, question: FormQuestion) -> FormReply:
        """Ask the user for the values of a form."""
        about = ("The agent asks for values.", question.title, question.message, question.description)
        return await self._screen.fill_in(about, {each.name: _blank(each) for each in question.fields})

    async def choose_login(self, methods: Sequence[AuthMethod]) -> AuthMethod | None:
        """Ask the user how to log in."""
        names = [str(getattr(method, "name", "?")) for method in methods]
        number = await self._screen.choose("The agent wants you to log in.", names)
        return None if number is None else methods[number]

    def _show(self, change: TurnChange) -> None:
        match change:
            case MessageChange(entry=AgentMessage() | Thought(), text=text):
                self._screen.say(text)
            case ToolCallChange(call=call, has_ended=True):
                self._screen.note(call.title, call.status)
                self._show_changes(call)
            case ToolCallChange(call=call, is_new=True):
                self._screen.note(call.title)
            case PlanChange(plan=SessionUpdatePlan(entries=entries)):
                for entry in entries:
                    self._screen.note(f"[{entry.status}] {entry.content}")
            case _:
                pass

    def _show_changes(self, call: ToolCall) -> None:
        for each in call.content:
            if isinstance(each, ToolCallContentDiff):
                self._screen.change(each.path, each.old_text or "", each.new_text)


def _blank(field: FormField) -> Blank:
    notes = {"boolean": "yes or no", "choice": "a number", "choices": "numbers with commas", "text": field.format or ""}
    default = "" if field.default is None else f"[{field.default}]"
    label = f"{field.title}: {field.description} {notes.get(field.kind, f'({field.kind})')} {default}"
    return Blank(
        label=label,
        options=[f"{each.title} {each.description}" for each in field.options],
        read=partial(read_entry, field),
        is_needed=field.is_required and field.default is None,
    )
