"""Lines of a trace that are no message alone: what is around one is told, and what is too large is skipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.test_trace_recording import run

MESSAGE = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": 's "x" {"jsonrpc":'}}
LINE = json.dumps(MESSAGE).encode()
DECORATED = {
    "a title": (b"\x1b]0;agent\x07", b""),
    "colours": (b"\x1b[32m", b"\x1b[0m"),
    "text": (b"loading...", b""),
    "text with braces": (b'{agent} {"a": 1} {"b": [{', b""),
    "a message that is cut": (LINE[:-4], b""),
    "half an object": (b'{"a":', b""),
    "quotes": (b'"it\'s \\"', b""),
    "no UTF-8": (b"\xff\xfe", b""),
    "a byte order mark": (b"\xef\xbb\xbf", b""),
}


def checked(path: Path) -> list[Any]:
    found: list[Any] = json.loads(run_acpgen("trace", path, "--format", "json", cwd=path.parent).stderr)
    return found


@pytest.mark.parametrize(("before", "after"), DECORATED.values(), ids=list(DECORATED))
def test_a_message_with_text_around(tmp_path: Path, before: bytes, after: bytes) -> None:
    """The recorder and the check take the message, and say what it came with."""
    line = before + LINE + after + b"\n"
    (path := tmp_path / "log").write_bytes(LINE + b"\n" + line)
    found = [each for each in checked(path) if each["code"] in ("text-around", "no-message", "envelope")]
    assert [(each["code"], each["line"]) for each in found] == [("text-around", 2)]
    assert run(tmp_path / "out", "import sys\nsys.stdin.read()", line).returncode == 0
    (recorded,) = [each for each in map(json.loads, (tmp_path / "out").read_text().splitlines()) if "from" in each]
    assert recorded["msg"] == MESSAGE
    assert recorded["before"] == before.decode(errors="replace")
    assert recorded.get("after", "") == after.decode(errors="replace")
    assert [each["message"] for each in checked(tmp_path / "out") if each["code"] == "text-around"]


@pytest.mark.parametrize("before", ["12:00:01 [info] -> ", "\t", "<< "])
def test_a_prefix_of_a_log_is_no_finding(tmp_path: Path, before: str) -> None:
    (path := tmp_path / "log").write_bytes(b"\xef\xbb\xbf" + LINE + b"\n" + before.encode() + LINE)
    assert "text-around" not in {each["code"] for each in checked(path)}


def test_text_without_end_takes_no_time(tmp_path: Path) -> None:
    """Each brace may begin a message: the work is in proportion to the line all the same."""
    lines = [b'{"a":[' * 900 + b'{"a":' * 300_000, b'{"' * 500_000, b'{"a":1}' * 200_000, b'{"a":"' + b'\\"' * 10**6]
    (path := tmp_path / "log").write_bytes(b"\n".join([*lines, LINE]))
    assert {each["line"] for each in checked(path)} <= {1, 2, 3, 4, 5}


def test_a_line_that_is_too_large_is_skipped(tmp_path: Path) -> None:
    """It is not parsed, and what comes after it has its own number."""
    values = b'{"jsonrpc":"2.0","method":"a","params":{"a":[' + b"[]," * 600_000 + b"1]}}\n"
    prose = json.dumps({"jsonrpc": "2.0", "method": "_a", "params": {"text": ',:"' * 400_000}}).encode() + b"\n"
    with (path := tmp_path / "log").open("wb") as file:
        file.write(LINE + b"\n" + values)
        for _ in range(65 * 2):
            file.write(b"x{" * 2**18)
        file.write(b"\n" + prose + b'{"jsonrpc":"2.0","method":"unknown/one"}\n')
    found = {each["line"]: each for each in checked(path) if each["code"] in ("no-message", "unknown-method")}
    assert "more than 500,000 values" in found[2]["message"]
    assert "the line has 68,157,441 bytes" in found[3]["message"]
    codes = [(line, each["code"]) for line, each in sorted(found.items())]
    assert codes == [(2, "no-message"), (3, "no-message"), (4, "unknown-method"), (5, "unknown-method")]
