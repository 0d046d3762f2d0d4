"""The exchanges of protocol 2."""

from __future__ import annotations

from tests.interop.values import (
    BLOCKS,
    BOOLEAN,
    CALL,
    CHOICES,
    HTTP,
    META,
    OPTIONS,
    PLAN,
    SELECT,
    SESSION,
    STDIO,
    TERMINAL,
    TEXT,
    Exchange,
    asks,
    elicitations,
    permissions,
    resetting,
    update,
)

CONFIG = [
    {"configId": "model", "options": CHOICES, **SELECT},
    {"configId": "grouped", **SELECT, "options": [{"groupId": "g", "name": "Group", "options": CHOICES}]},
    {"configId": "brave", **BOOLEAN},
]
COMMANDS = [
    {"type": "command", "name": "web", "description": "Search", "input": {"type": "text", "hint": "what"}},
    {"type": "command", "name": "go", "description": "Go"},
]
WHERE = {"cwd": "/work", "mcpServers": [{"type": "stdio", **STDIO}, HTTP], "additionalDirectories": ["/more"]}
ICON = {"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
OWN = {"type": "_vendor", "value": [1, None]}
V2_BLOCKS = {**BLOCKS, "link with icons": {**BLOCKS["link"], "icons": [ICON]}, "unknown": OWN}
CONTENT = [
    {"type": "content", "content": TEXT},
    {
        "type": "diff",
        "changes": [
            {"operation": "add", "path": "/a.py", "fileType": "text", "mimeType": "text/x-python"},
            {"operation": "delete", "path": "/b.py"},
            {"operation": "modify", "path": "/c.py"},
            {"operation": "move", "oldPath": "/d.py", "path": "/e.py"},
            {"operation": "copy", "oldPath": "/d.py", "path": "/f.py"},
        ],
        "patch": {"format": "git_patch", "text": "--- a\n+++ b\n"},
    },
    {"type": "terminal", "terminalId": "t1"},
    OWN,
]
TOOL_CALL = {"toolCallId": "c1", **CALL, "content": CONTENT, "capabilities": {"cancel": {}}}
BACKGROUND = [{"type": "terminal", "terminalId": "t1"}, {"type": "tool_call", "toolCallId": "c1"}]

INITIALIZE = asks(
    "initialize",
    "initialize",
    {
        "protocolVersion": 2,
        "info": {"name": "client", "title": "A client", "version": "1.2"},
        "capabilities": {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}},
    },
    {
        "protocolVersion": 2,
        "info": {"name": "agent", "title": "An agent", "version": "3.4"},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "audio": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            },
            "auth": {},
        },
        "authMethods": [{"type": "agent", "methodId": "key", "name": "Key", "description": "A key"}],
    },
)

OPENING = INITIALIZE.params
"""The params with all that the exchanges need."""

_LISTED = {"sessionId": "s1", "cwd": "/work", "title": "T", "updatedAt": "2026-01-02T03:04:05Z"}
_STARTED = {"configOptions": CONFIG, "availableCommands": COMMANDS}


def _message(name: str) -> tuple[Exchange, ...]:
    """A message of one kind: in parts, as a whole, cleared."""
    return (
        update(f"{name}_chunk", messageId="m1", content=BLOCKS["image"]),
        update(name, messageId="m1", content=[*V2_BLOCKS.values()]),
        update(f"{name} clears", messageId="m1", content=None),
        update(f"{name} leaves", messageId="m1"),
    )


def _idle(reason: str) -> Exchange:
    return update(f"state_update idle: {reason}", state="idle", stopReason=reason)


EXCHANGES: tuple[Exchange, ...] = (
    asks("authentication", "auth/login", {"methodId": "key"}, {}),
    asks("authentication", "auth/logout", {}, {}),
    asks("sessions", "session/new", WHERE, {**SESSION, **_STARTED}),
    asks("sessions", "session/new", {"cwd": "/work"}, SESSION, name="session/new with little"),
    asks("sessions", "session/list", {"cwd": "/work", "cursor": "c"}, {"sessions": [_LISTED], "nextCursor": "d"}),
    asks("sessions", "session/list", {}, {"sessions": []}, name="session/list with little"),
    asks("sessions", "session/resume", {**SESSION, **WHERE, "replayFrom": {"type": "start"}}, _STARTED),
    asks("sessions", "session/close", SESSION, {}),
    asks("sessions", "session/delete", SESSION, {}),
    *(
        asks("prompt", "session/prompt", {**SESSION, "prompt": [block]}, {"messageId": "m1"}, name=name)
        for name, block in V2_BLOCKS.items()
    ),
    asks("prompt", "session/prompt", {**SESSION, "prompt": [*V2_BLOCKS.values()], **META}, {"messageId": "m1"}),
    asks("tool_call/cancel", "tool_call/cancel", {**SESSION, "toolCallId": "c1"}, {}),
    asks("terminals", "terminal/cancel", TERMINAL, {}),
    *_message("user_message"),
    *_message("agent_message"),
    *_message("agent_thought"),
    update("state_update running", state="running", background=BACKGROUND),
    update("state_update requires_action", state="requires_action"),
    update("state_update idle", state="idle"),
    *map(_idle, ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "_vendor")),
    update(
        "state_update idle: error",
        state="idle",
        stopReason="error",
        error={"code": -32603, "message": "Oh", "data": {"a": 1}},
    ),
    update("tool_call_content_chunk", toolCallId="c1", content=CONTENT[1]),
    update("tool_call_update", **TOOL_CALL),
    update("tool_call_update clears", toolCallId="c1", title=None, content=None, locations=None),
    update(
        "terminal_update",
        terminalId="t1",
        command="make",
        cwd="/work",
        output={"data": "aGk="},
        exitStatus={"exitCode": 0},
        size={"cols": 80, "rows": 25},
        capabilities={"cancel": {}},
    ),
    update("terminal_output_chunk", terminalId="t1", data="aGk="),
    update("plan_update", plan={"type": "items", "planId": "p1", "entries": PLAN}),
    update("available_commands_update", availableCommands=COMMANDS),
    update("config_option_update", configOptions=CONFIG),
    *resetting(),
    update("usage_update", used=10, size=200, cost={"amount": 0.25, "currency": "EUR"}),
    update("notice", severity="warning", title="Careful", description="Little is left"),
    update("compaction_update", compactionId="k1", status="completed", summary=[TEXT]),
    update("compaction_summary_chunk", compactionId="k1", content=TEXT),
    update("_vendor", text="an update of their own", more={"a": None}),
    *permissions(
        {
            **SESSION,
            "title": "May I?",
            "description": "It changes files",
            "subject": {"type": "tool_call", "toolCall": TOOL_CALL},
            "options": OPTIONS,
        }
    ),
    *permissions(
        {
            **SESSION,
            "title": "Run?",
            "subject": {"type": "command", "command": "make", "cwd": "/work", "terminalId": "t1"},
            "options": OPTIONS,
        }
    )[:1],
    *elicitations(),
    asks(
        "config options",
        "session/set_config_option",
        {**SESSION, "configId": "model", "type": "id", "value": "small"},
        {"configOptions": CONFIG},
        name="a value of a list",
    ),
    asks(
        "config options",
        "session/set_config_option",
        {**SESSION, "configId": "brave", "type": "boolean", "value": False},
        {"configOptions": [CONFIG[2]]},
        name="a boolean",
    ),
)
