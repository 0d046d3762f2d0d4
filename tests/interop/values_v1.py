"""The exchanges of protocol 1."""

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
    asked,
    asks,
    elicitations,
    permissions,
    resetting,
    update,
)

CONFIG = [
    {"id": "model", "options": CHOICES, **SELECT},
    {"id": "grouped", **SELECT, "options": [{"group": "g", "name": "Group", "options": CHOICES}]},
    {"id": "brave", **BOOLEAN},
]
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask", "description": "Asks"}]}
SSE = {"type": "sse", "name": "events", "url": "https://example.com/sse", "headers": []}
SERVERS = [STDIO, HTTP, SSE]
WHERE = {"cwd": "/work", "mcpServers": SERVERS, "additionalDirectories": ["/more"]}
CONTENT = [
    {"type": "content", "content": TEXT},
    {"type": "diff", "path": "/a.py", "oldText": "a", "newText": "b"},
    {"type": "terminal", "terminalId": "t1"},
]
TOOL_CALL = {"toolCallId": "c1", **CALL, "content": CONTENT}

INITIALIZE = asks(
    "initialize",
    "initialize",
    {
        "protocolVersion": 1,
        "clientInfo": {"name": "client", "title": "A client", "version": "1.2"},
        "clientCapabilities": {
            "fs": {"readTextFile": True, "writeTextFile": True},
            "terminal": True,
            "elicitation": {"form": {}, "url": {}},
        },
    },
    {
        "protocolVersion": 1,
        "agentInfo": {"name": "agent", "title": "An agent", "version": "3.4"},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": True},
            "sessionCapabilities": {"list": {}, "delete": {}, "additionalDirectories": {}, "resume": {}, "close": {}},
            "auth": {"logout": {}},
        },
        "authMethods": [{"id": "key", "name": "Key", "description": "A key"}],
    },
)

OPENING = {
    **INITIALIZE.params,
    "clientCapabilities": {
        **INITIALIZE.params["clientCapabilities"],
        "session": {"compaction": {}, "configOptions": {"boolean": {}}, "notices": {}},
    },
}
"""The same with all that the exchanges need; the SDK for Python does not know these capabilities."""

_CREATE = {
    "sessionId": "s1",
    "command": "make",
    "args": ["all"],
    "env": [{"name": "A", "value": "b"}],
    "cwd": "/work",
    "outputByteLimit": 1000,
}
_LISTED = {"sessionId": "s1", "cwd": "/work", "title": "T", "updatedAt": "2026-01-02T03:04:05Z"}

EXCHANGES: tuple[Exchange, ...] = (
    asks("authentication", "authenticate", {"methodId": "key"}, {}),
    asks("authentication", "logout", {}, {}),
    asks("sessions", "session/new", WHERE, {"sessionId": "s1", "modes": MODES, "configOptions": CONFIG}),
    asks("sessions", "session/new", {"cwd": "/work", "mcpServers": []}, SESSION, name="session/new with little"),
    asks("sessions", "session/load", {**SESSION, **WHERE}, {"modes": MODES, "configOptions": CONFIG}),
    asks("sessions", "session/list", {"cwd": "/work", "cursor": "c"}, {"sessions": [_LISTED], "nextCursor": "d"}),
    asks("sessions", "session/list", {}, {"sessions": []}, name="session/list with little"),
    asks("sessions", "session/resume", {**SESSION, **WHERE}, {"modes": MODES}),
    asks("sessions", "session/close", SESSION, {}),
    asks("sessions", "session/delete", SESSION, {}),
    asks("sessions", "session/set_mode", {**SESSION, "modeId": "ask"}, {}),
    *(
        asks("prompt", "session/prompt", {**SESSION, "prompt": [block]}, {"stopReason": "end_turn"}, name=name)
        for name, block in BLOCKS.items()
    ),
    asks("prompt", "session/prompt", {**SESSION, "prompt": [*BLOCKS.values()], **META}, {"stopReason": "refusal"}),
    update("user_message_chunk", content=BLOCKS["embedded blob"], messageId="m1"),
    update("agent_message_chunk", content=BLOCKS["image"]),
    update("agent_thought_chunk", content=TEXT),
    update("tool_call", **TOOL_CALL),
    update("tool_call with little", toolCallId="c1", title="Edit"),
    update("tool_call_update", toolCallId="c1", status="failed", content=CONTENT),
    update("tool_call_update clears", toolCallId="c1", content=[], locations=[]),
    update("plan", entries=PLAN),
    update(
        "available_commands_update",
        availableCommands=[
            {"name": "web", "description": "Search", "input": {"hint": "what"}},
            {"name": "go", "description": "Go"},
        ],
    ),
    update("current_mode_update", currentModeId="ask"),
    update("config_option_update", configOptions=CONFIG),
    *resetting(),
    update("usage_update", used=10, size=200, cost={"amount": 0.25, "currency": "EUR"}),
    update("notice", severity="warning", title="Careful", description="Little is left"),
    update("compaction_update", compactionId="k1", status="completed", summary=[TEXT]),
    update("compaction_summary_chunk", compactionId="k1", content=TEXT),
    *permissions({**SESSION, "toolCall": TOOL_CALL, "options": OPTIONS}),
    asked("files", "fs/read_text_file", {**SESSION, "path": "/a", "line": 2, "limit": 3}, {"content": "é\r\n"}),
    asked("files", "fs/write_text_file", {**SESSION, "path": "/a", "content": "\u2028é\r\n"}, {}),
    asked("terminals", "terminal/create", _CREATE, {"terminalId": "t1"}),
    asked(
        "terminals",
        "terminal/output",
        TERMINAL,
        {"output": "a\x1b[0m\n", "truncated": True, "exitStatus": {"exitCode": 3}},
    ),
    asked("terminals", "terminal/wait_for_exit", TERMINAL, {"signal": "SIGTERM"}),
    asked("terminals", "terminal/kill", TERMINAL, {}),
    asked("terminals", "terminal/release", TERMINAL, {}),
    *elicitations(),
    asks(
        "config options",
        "session/set_config_option",
        {**SESSION, "configId": "model", "value": "small"},
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
