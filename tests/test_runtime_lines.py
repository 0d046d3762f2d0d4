"""Lines over a stream: blank ones, their ends, and half a line before the end of the stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.runtime_support import OLD, V1, agent_of, run, started, streams, unchecked
from tests.support import Packages

pytestmark = pytest.mark.every_python

PARSE = -32700


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


def line_of(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def over_stream(packages: Packages, data: bytes) -> list[Any]:
    """What an agent answers to these bytes, followed by the end of the stream."""
    acp = packages(OLD)

    async def main() -> bytes:
        near, (reader, writer) = await streams()
        writer.write(data)
        writer.write_eof()
        await acp.serve_agent(agent_of(acp, ext_method=echo), acp.StreamTransport(*near), options=unchecked(acp))
        answers = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answers

    *lines, rest = run(main()).split(b"\n")
    assert rest == b""
    return [json.loads(line) for line in lines]


GOOD = line_of(id=1, method="_a", params="one")
MORE = line_of(id=2, method="_a", params="two")


@pytest.mark.parametrize("data", [
    GOOD + b"\n" + MORE + b"\n",
    GOOD + b"\r\n" + MORE + b"\r\n",
    b"\n\n" + GOOD + b"\n\r\n \t\n\n" + MORE + b"\n\n",
    b"  " + GOOD + b" \t\n\t" + MORE + b"\r\n",
    GOOD + b"\n" + MORE,
], ids=["LF", "CRLF", "blank lines", "space around", "no line end at the end"])  # fmt: skip
def test_lines(packages: Packages, data: bytes) -> None:
    assert [(each["id"], each["result"]) for each in over_stream(packages, data)] == [(1, "one"), (2, "two")]


@pytest.mark.parametrize("rest", [MORE[:-1], MORE[:1], b'"', b"\xff", b"\xf0\x9f"])
def test_half_a_line_at_the_end(packages: Packages, rest: bytes) -> None:
    first, second = over_stream(packages, GOOD + b"\n" + rest)
    assert first["result"] == "one"
    assert (second["id"], second["error"]["code"]) == (None, PARSE)


@pytest.mark.parametrize("data", [b"", b"\n", b" \r\n\r\n  "])
def test_nothing_but_the_end(packages: Packages, data: bytes) -> None:
    assert over_stream(packages, data) == []


def test_a_subclass_of_the_transport_sees_all_messages(packages: Packages) -> None:
    acp = packages(V1)
    seen: list[bytes] = []

    class Watched(acp.StreamTransport):  # type: ignore[misc]
        async def read(self) -> bytes | None:
            found: bytes | None = await super().read()
            seen.append(found or b"")
            return found

        async def write(self, message: bytes) -> None:
            seen.append(message)
            await super().write(message)

    async def main() -> None:
        here, (reader, writer) = await streams()
        connection, _ = started(acp, acp.Agent, Watched(*here))
        writer.write(b'{"jsonrpc":"2.0","id":1,"method":"_a"}\n{"jsonrpc":"2.0","id":2,"method":"_a"}\n')
        for _ in range(2):
            await reader.readline()
        await connection.close()
        writer.close()

    run(main())
    assert sorted(json.loads(each)["id"] for each in seen if each) == [1, 1, 2, 2]
