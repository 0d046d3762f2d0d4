"""What people read when a value does not fit: each kind of misfit once, as it is in `messages.txt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.support import Packages

FILE = Path(__file__).with_name("messages.txt")
LONG = "0123456789" * 100
BLOCK = {"type": "text", "text": "Hello!"}

CASES: dict[str, tuple[int, str, Any]] = {
    "a wrong type": (1, "PromptRequest", {"sessionId": 1, "prompt": []}),
    "null where none may be": (1, "PromptRequest", {"sessionId": None, "prompt": []}),
    "true is no number": (1, "InitializeRequest", {"protocolVersion": True}),
    "not an object at all": (1, "PromptRequest", [BLOCK]),
    "a missing property": (1, "PromptRequest", {"prompt": []}),
    "a number above its maximum": (1, "InitializeRequest", {"protocolVersion": 65536}),
    "a number below its minimum": (1, "ReadTextFileRequest", {"sessionId": "1", "path": "/", "line": -1}),
    "a number with a fraction": (1, "ReadTextFileRequest", {"sessionId": "1", "path": "/", "limit": 1.5}),
    "too few items": (2, "PromptRequest", {"sessionId": "1", "prompt": []}),
    "a constant that an enum lacks": (1, "PromptResponse", {"stopReason": "finished"}),
    "an unknown tag": (1, "ContentBlock", {"type": "video", "uri": "file:///a"}),
    "a missing tag": (1, "ContentBlock", {"text": "Hello!"}),
    "a tag that is no string": (1, "ContentBlock", {"type": 1}),
    "a tag that is excluded": (2, "ContentBlockOther", BLOCK),
    "a part of the variant of a known tag": (1, "ContentBlock", {"type": "text", "text": None}),
    "a union with a tag and a member without one": (1, "McpServer", {"type": "http", "name": "a", "url": 1}),
    "members that are told apart by their properties": (1, "EmbeddedResourceResource", {"uri": "file:///a"}),
    "members of several types": (1, "ElicitationContentValue", [True]),
    "members that are arrays": (1, "SessionConfigSelectOptions", [{"value": "a"}]),
    "a long text": (1, "PromptRequest", {"sessionId": [LONG], "prompt": []}),
    "a long array": (1, "PromptRequest", {"sessionId": [LONG] * 100, "prompt": []}),
    "a deep value": (1, "PromptRequest", {"sessionId": {"a": {"b": {"c": [[[1]]]}}}, "prompt": []}),
    "a number of many digits": (1, "InitializeRequest", {"protocolVersion": 10**5000}),
    "an item of an array": (1, "PromptRequest", {"sessionId": "1", "prompt": [BLOCK, BLOCK, {**BLOCK, "text": 1}]}),
    "a long way in": (
        1,
        "SessionNotification",
        {
            "sessionId": "1",
            "update": {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "resource", "resource": {"uri": 1, "text": "a"}},
            },
        },
    ),
    "names that need quotes": (
        1,
        "CreateElicitationRequest",
        {"mode": "form", "message": "", "sessionId": "1", "requestedSchema": {"properties": {"a b.c\n": {"type": 1}}}},
    ),
    "a long name": (
        1,
        "CreateElicitationRequest",
        {"mode": "form", "message": "", "sessionId": "1", "requestedSchema": {"properties": {LONG: 1}}},
    ),
}
"""What is wrong, and with which value: the protocol, the type, the JSON."""


def test_messages(packages: Packages, request: pytest.FixtureRequest) -> None:
    found = "\n".join(f"# {name}\n{message(packages, *case)}\n" for name, case in CASES.items())
    if request.config.getoption("--accept-goldens"):
        FILE.write_text(found, encoding="utf-8")
    assert found == FILE.read_text(encoding="utf-8"), "run pytest with --accept-goldens if that is meant"


def message(packages: Packages, protocol: int, name: str, value: Any) -> str:
    """What the `DecodeError` says."""
    acp = packages(SchemaChoice(protocol=protocol, release="2026-11-02"))
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(getattr(acp, name), value)
    return str(caught.value)


def test_reasons_say_which_member_and_where(packages: Packages) -> None:
    """The message of a union is made of errors that programs can read, too."""
    acp = packages(SchemaChoice())
    with pytest.raises(acp.DecodeError) as caught:
        acp.decode(acp.NewSessionRequest, {"cwd": "/", "mcpServers": [{"type": "http", "name": "a", "url": 1}]})
    tagged, other = caught.value.reasons
    assert (caught.value.path, tagged.path, other.path) == (("mcpServers", 0), ("url",), ())
    assert (tagged.member, other.member) == ("its tag says", "McpServerStdio")
