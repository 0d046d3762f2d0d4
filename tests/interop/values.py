"""What the two sides say to each other: exchanges of both protocol versions, as they are on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Json = Any
Side = Literal["agent", "client"]


@dataclass(frozen=True)
class Exchange:
    """One message of `caller`, and the result that the other side answers; None for a notification."""

    flow: str
    name: str
    caller: Side
    method: str
    params: Json
    result: Json = None

    def __str__(self) -> str:
        return f"{self.flow}: {self.name}"


def asks(flow: str, method: str, params: Json, result: Json, *, name: str = "") -> Exchange:
    """A request of the client."""
    return Exchange(flow, name or method, "client", method, params, result)


def asked(flow: str, method: str, params: Json, result: Json, *, name: str = "") -> Exchange:
    """A request of the agent."""
    return Exchange(flow, name or method, "agent", method, params, result)


def told(flow: str, name: str, method: str, params: Json) -> Exchange:
    """A notification of the agent."""
    return Exchange(flow, name, "agent", method, params)


def update(name: str, **members: Json) -> Exchange:
    """A `session/update` with the tag `name`, up to a space."""
    content = {"sessionUpdate": name.split(maxsplit=1)[0], **members}
    return told("session/update", name, "session/update", {"sessionId": "s1", "update": content})


META = {"_meta": {"vendor.example/trace": ["a", 1, None]}}
ANNOTATIONS = {"audience": ["assistant", "user"], "lastModified": "2026-01-02T03:04:05Z", "priority": 0.5}
TEXT = {"type": "text", "text": 'Grüße, 世界 🌍 \u2028 \n\t"\\'}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png", "uri": "file:///a.png", "annotations": ANNOTATIONS}
AUDIO = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}
LINK = {
    "type": "resource_link",
    "name": "a.py",
    "uri": "file:///a.py",
    "title": "A",
    "description": "Some code",
    "mimeType": "text/x-python",
    "size": 12,
}
EMBEDDED = {"type": "resource", "resource": {"uri": "file:///a.py", "text": "a = 1\n", "mimeType": "text/x-python"}}
BLOB = {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAE="}, "annotations": {"priority": 1}}
BLOCKS = {"text": TEXT, "image": IMAGE, "audio": AUDIO, "link": LINK, "embedded text": EMBEDDED, "embedded blob": BLOB}

SELECT = {"name": "Model", "type": "select", "category": "model", "currentValue": "big"}
CHOICES = [{"value": "big", "name": "Big", "description": "Slow"}, {"value": "small", "name": "Small"}]
BOOLEAN = {"name": "Brave", "type": "boolean", "description": "Ask less", "currentValue": True}
PLAN = [
    {"content": "Read", "priority": "high", "status": "completed"},
    {"content": "Write", "priority": "low", "status": "in_progress"},
]
FORM = {
    "type": "object",
    "title": "Release",
    "properties": {
        "name": {"type": "string", "title": "Name", "minLength": 1, "default": "x"},
        "colour": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]},
        "share": {"type": "number", "minimum": 0.5, "maximum": 1.5},
        "count": {"type": "integer", "minimum": 1, "default": 3},
        "sure": {"type": "boolean", "default": False},
        "many": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
    },
    "required": ["name"],
}
FILLED = {"name": "n", "colour": "r", "share": 0.75, "count": 4, "sure": True, "many": ["a", "b"]}
SESSION = {"sessionId": "s1"}
STDIO = {"name": "files", "command": "/bin/files", "args": ["-v"], "env": [{"name": "A", "value": "b"}]}
HTTP = {"type": "http", "name": "web", "url": "https://example.com/mcp", "headers": [{"name": "H", "value": "v"}]}
OPTIONS = [
    {"optionId": "y", "name": "Yes", "kind": "allow_once"},
    {"optionId": "n", "name": "Never", "kind": "reject_always"},
]
TERMINAL = {"sessionId": "s1", "terminalId": "t1"}
CALL = {
    "title": "Edit",
    "kind": "edit",
    "status": "pending",
    "locations": [{"path": "/a.py", "line": 3}, {"path": "/b.py"}],
    "rawInput": {"any": [1, None, {"x": "y"}]},
    "rawOutput": ["text", 2.5],
}


def elicitations() -> tuple[Exchange, ...]:
    """The same in both versions."""
    form = {"sessionId": "s1", "toolCallId": "c1", "mode": "form", "message": "Which?", "requestedSchema": FORM}
    early = {"requestId": 5, "mode": "form", "message": "Which?", "requestedSchema": FORM}
    url = {"sessionId": "s1", "mode": "url", "message": "Log in", "url": "https://example.com/", "elicitationId": "e1"}
    create = "elicitation/create"
    return (
        asked("elicitation", create, form, {"action": "accept", "content": FILLED}, name="form, accepted"),
        asked("elicitation", create, form, {"action": "decline"}, name="form, declined"),
        asked("elicitation", create, early, {"action": "accept", "content": {"name": ""}}, name="form of a request"),
        asked("elicitation", create, url, {"action": "cancel"}, name="url, cancelled"),
        told("elicitation", "complete", "elicitation/complete", {"elicitationId": "e1"}),
    )


def permissions(params: Json) -> tuple[Exchange, ...]:
    """Both outcomes of the same question."""
    selected, cancelled = {"outcome": "selected", "optionId": "y"}, {"outcome": "cancelled"}
    ask = "session/request_permission"
    return (
        asked("permission", ask, params, {"outcome": selected}, name="selected"),
        asked("permission", ask, params, {"outcome": cancelled}, name="cancelled"),
    )


def resetting() -> tuple[Exchange, ...]:
    """Null clears, and absent leaves as it is: the two are not the same."""
    return (
        update("session_info_update sets", title="T", updatedAt="2026-01-02T03:04:05Z"),
        update("session_info_update clears", title=None, updatedAt=None),
        update("session_info_update leaves", updatedAt="2026-01-02T03:04:05Z"),
    )
