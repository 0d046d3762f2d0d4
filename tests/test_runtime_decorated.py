"""What agents print around their messages: a client takes the message of a line, and logs the rest."""

from __future__ import annotations

import json
import logging
import sys
import time
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.proxy.between import conducted, package
from tests.runtime_support import run
from tests.support import Packages, runtime_module
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.needs("posix"),
]

MESSAGE = '{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "_meta": {"text": "a \\"}{\\" \\\\"}}}'
BEFORE = {
    "a title": "\x1b]0;agent\x07",
    "a title, ended otherwise": "\x1b]2;agent\x1b\\",
    "a byte order mark": "\ufeff",
    "no line end": "loading...",
    "a bar that was drawn over": "10 %\r20 %\r",
    "a colour": "\x1b[32mready\x1b[0m ",
    "a quote": 'don"t panic: ',
    "a brace": "{loading} ",
    "what is no object": "{'a': 1} ",
    "a log line": '{"level": "info", "text": "ready"}',
    "a list": "[INFO] ",
    "a backslash": 'C:\\agent\\" ',
    "another message": '{"jsonrpc": "2.0", "method": "_x", "params": {"a": "{"}} ',
    "half a message": '{"jsonrpc": "2.0", "method": "_x", "params": {"a": "',
}
BEHIND = {
    "": "",
    "a colour": "\x1b[0m",
    "a title": "\x1b]0;\x07",
    "a carriage return": "\r",
    "a query of the terminal": "\x1bP$qm\x1b\\",
    "an image": "\x1b_Gi=1;AAAA\x1b\\",
    "a bell": " \x07",
    "a mark": "\ufeff",
}


@pytest.fixture
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


def split(acp: ModuleType) -> Any:
    return runtime_module(acp, "decorated").split_line


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("before", BEFORE)
def test_a_line_is_split(acp: ModuleType, before: str, behind: str) -> None:
    line = (BEFORE[before] + MESSAGE + BEHIND[behind]).encode()
    assert split(acp)(line) == tuple(each.encode() for each in (BEFORE[before], MESSAGE, BEHIND[behind]))


TEXTS = [
    "loading...",
    "{}",
    "a {} b",
    '{"jsonrpc": "2.0", "id": 0',
    '"jsonrpc": "2.0"}',
    'got {"id": 1, "error": {"code": 5}}',
    f"got {MESSAGE}, and went on",
    '{"level": "info", "message": {"jsonrpc": "2.0", "id": 1}}',
    "got [" + MESSAGE + "]",
    '{"a": "' + MESSAGE.replace('"', '\\"') + '"}',
    "x {'jsonrpc': '2.0'}",
    'x {"jsonrpc": "2.0", }',
]


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_text(acp: ModuleType, text: str) -> None:
    assert split(acp)(text.encode()) is None


@settings(max_examples=50)
@given(
    before=st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=40),
    value=st.recursive(
        st.none() | st.text(max_size=10) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    ),
    at_end=st.booleans(),
)
def test_any_message_is_found(packages: Packages, before: str, value: Any, *, at_end: bool) -> None:
    rest = {"id": 1, "result": value}
    message = json.dumps({**rest, "jsonrpc": "2.0"} if at_end else {"jsonrpc": "2.0", **rest}).encode()
    assert split(packages(SOURCES[1]))(before.encode() + message) == (before.encode(), message, b"")


def test_a_large_message_is_found(acp: ModuleType) -> None:
    large = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"data": "x" * 5_000_000, "list": [{}] * 1000}}).encode()
    assert split(acp)(b"loading..." + large + b"\x1b[0m") == (b"loading...", large, b"\x1b[0m")


HOSTILE = {
    "open braces": b"{" * 4_000_000 + b"}",
    "closed braces": b"}" * 4_000_000,
    "quotes": b'"' * 4_000_000 + b"}",
    "starts": b'{"jsonrpc":' * 400_000 + b"}",
    "nested": b'x{"jsonrpc":{' * 400_000 + b"}}" * 400_000,
    "backslashes": b"\\" * 4_000_000 + b'"}',
    "escapes": b"}" + b"\x1b[0m" * 1_000_000 + b"x",
    "open titles": b"}" + b"\x1b]" * 2_000_000,
    "queries": b"}" + b"\x1bP \x07" * 250 + b"x",
    "blanks": b"}" + b" " * 4_000_000 + b"x",
    "large text": b'x{"a":"' + b'jsonrpc" ' * 400_000 + b'"}',
}
CPU_SECONDS = 5
"""Each takes a fraction of it; a scan for each brace would take hours."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_line_takes_time_in_proportion(acp: ModuleType, kind: str) -> None:
    start = time.process_time()
    assert split(acp)(HOSTILE[kind]) is None
    assert time.process_time() - start < CPU_SECONDS


AGENT = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    before, behind = {wrapped}
    meta = {{"_meta": {{"params": message.get("params")}}}}
    answer = {{"jsonrpc": "2.0", "id": message["id"], "result": {{"protocolVersion": 1, **meta}}}}
    update = {{"sessionUpdate": "agent_message_chunk", "content": {{"type": "text", "text": "x"}}}}
    note = {{"jsonrpc": "2.0", "method": "session/update", "params": {{"sessionId": "s", "update": update}}}}
    for each in (note, answer):
        sys.stdout.buffer.write((before + json.dumps(each) + behind + "\\n").encode())
    sys.stdout.flush()
"""
WRAPPED = {
    "a title": ("\x1b]0;agent\x07", ""),
    "a mark": ("\ufeff", "\x1b[0m"),
    "no line end": ("loading...", "\r"),
    "a log line": ('{"level": "info"}', ""),
    "behind alone": ("", "\x1b[0m"),
}


def program(how: str) -> list[str]:
    return [sys.executable, "-c", AGENT.format(wrapped=repr(WRAPPED[how]))]


@pytest.mark.parametrize("how", WRAPPED)
def test_a_client_understands_a_decorated_agent(acp: ModuleType, caplog: pytest.LogCaptureFixture, how: str) -> None:
    seen: list[str] = []

    class Seeing(acp.Client):  # type: ignore[misc, name-defined]
        async def session_update(self, params: Any) -> None:
            seen.append(params.session_id)

    async def main() -> None:
        async with acp.spawn_agent(Seeing, program(how)) as agent:
            for number in (1, 2, 3):
                assert (await agent.initialize(acp.InitializeRequest(protocol_version=1))).protocol_version == 1
                assert len(seen) == number  # in order

    run(main())
    before = WRAPPED[how][0]
    printed = [each.getMessage() for each in caplog.records if "printed on stdout" in each.getMessage()]
    assert len(printed) == (6 if before else 0)
    assert not [each for each in caplog.records if each.name == "acp" and each.levelno >= logging.WARNING]


@pytest.mark.parametrize("how", ["a title", "a log line"])
def test_a_proxy_understands_a_decorated_agent(packages: Packages, how: str) -> None:
    acp = package(packages)

    async def main() -> None:
        async with conducted(acp, [acp.Proxy], program(how)) as client:
            for _ in range(2):
                number = await client.request("initialize", {"protocolVersion": 1, "x": 1.0})
                assert (await client.receive())["method"] == "session/update"
                answer = await client.receive()
                assert (answer["id"], answer["result"]["_meta"]) == (
                    number,
                    {"params": {"protocolVersion": 1, "x": 1.0}},
                )

    run(main())
