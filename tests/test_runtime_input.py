"""Bad input: it is answered with the error of JSON-RPC 2.0, or ignored; and the connection goes on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import (
    EVERY_BASE,
    V1,
    V2,
    acp_log,
    agent_of,
    raw_peer,
    run,
    texts,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
PARSE, INVALID, UNKNOWN, PARAMS = -32700, -32600, -32601, -32602
DEEP = 100_000


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


def told(packages: Packages, sources: SchemaChoice, *lines: bytes) -> list[Any]:
    """What an agent answers to these lines; good requests between and after them have to be answered, too."""

    async def main() -> list[Any]:
        acp = packages(sources)
        answers: list[Any] = []
        async with raw_peer(acp, agent_of(acp, ext_method=echo)) as peer:
            for line in lines:
                await peer.send_line(line)
                answers += await peer.ping()
        return answers

    return run(main())


def line_of(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def codes(answers: list[Any]) -> list[tuple[Any, int]]:
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


# --- No JSON --------------------------------------------------------------------------------------------------------

NO_JSON = {
    "words": b"Hello, I am not JSON",
    "invalid UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": "\xff\xfe"}',
    "overlong UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": "\xc0\xaf"}',
    "a raw surrogate": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": "\xed\xa0\x80"}',
    "UTF-16": '{"jsonrpc": "2.0", "id": 1, "method": "_a"}'.encode("utf-16-le"),
    "a byte order mark": b"\xef\xbb\xbf" + line_of(id=1, method="_a"),
    "NUL": b"\0",
    "a piece": b'{"jsonrpc": "2.0", "id": 1, "meth',
    "two documents": line_of(id=1, method="_a") * 2,
    "a trailing comma": b'{"jsonrpc": "2.0", "id": 1, "method": "_a",}',
    "single quotes": b"{'jsonrpc': '2.0', 'id': 1, 'method': '_a'}",
    "a raw line break in a string": b'{"jsonrpc": "2.0", "id": 1, "method": "_a\r"}',
    "NaN": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": NaN}',
    "Infinity": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": [Infinity]}',
    "-Infinity": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": {"a": -Infinity}}',
}


@BOTH
@pytest.mark.parametrize("line", NO_JSON.values(), ids=NO_JSON.keys())
def test_what_is_no_json_is_a_parse_error(packages: Packages, sources: SchemaChoice, line: bytes) -> None:
    answers = told(packages, sources, line)
    assert codes(answers) == [(None, PARSE)]
    assert answers[0]["jsonrpc"] == "2.0"


TOO_DEEP = {
    "open arrays": b"[" * DEEP,
    "open objects": b'{"a":' * DEEP,
    "closed arrays": b"[" * DEEP + b"]" * DEEP,
    "deep params": b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": ' + b"[" * DEEP + b"]" * DEEP + b"}",
}


@pytest.mark.parametrize("line", TOO_DEEP.values(), ids=TOO_DEEP.keys())
def test_what_is_nested_too_deep_is_an_invalid_request(packages: Packages, line: bytes) -> None:
    assert codes(told(packages, V1, line)) == [(1 if b"id" in line else None, INVALID)]


def test_a_number_with_very_many_digits(packages: Packages) -> None:
    (answer,) = told(packages, V1, b'{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": ' + b"9" * 5_000 + b"}")
    assert "result" in answer or answer["error"]["code"] == PARSE


# --- JSON, and no message -------------------------------------------------------------------------------------------

NO_MESSAGE = {
    "a string": b'"initialize"',
    "a number": b"1",
    "null": b"null",
    "true": b"true",
    "an empty array": b"[]",
    "an empty object": b"{}",
    "an id alone": b'{"jsonrpc": "2.0", "id": 1}',
    "params alone": b'{"jsonrpc": "2.0", "params": {}}',
    "an id that is a float": line_of(id=1.0, method="_a"),
    "an id with a fraction": line_of(id=1.5, method="_a"),
    "an id that is true": line_of(id=True, method="_a"),
    "an id that is false": line_of(id=False, method="_a"),
    "an id that is an object": line_of(id={"a": 1}, method="_a"),
    "an id that is an array": line_of(id=[1], method="_a"),
}


@BOTH
@pytest.mark.parametrize("line", NO_MESSAGE.values(), ids=NO_MESSAGE.keys())
def test_what_is_no_message_is_an_invalid_request(packages: Packages, sources: SchemaChoice, line: bytes) -> None:
    assert codes(told(packages, sources, line)) == [(None, INVALID)]


@BOTH
@pytest.mark.parametrize("line", [b"[1]", b"[" + line_of(id=1, method="_a") + b"]"], ids=["scalars", "a request"])
def test_arrays_are_invalid_requests_where_there_are_no_batches(
    packages: Packages, sources: SchemaChoice, line: bytes
) -> None:
    assert codes(told(packages, sources, line)) == [(None, INVALID)]


WRONG_REQUESTS = {
    "no jsonrpc": {"id": 1, "method": "_a"},
    "another jsonrpc": {"jsonrpc": "1.0", "id": 1, "method": "_a"},
    "jsonrpc is a number": {"jsonrpc": 2.0, "id": 1, "method": "_a"},
    "jsonrpc is null": {"jsonrpc": None, "id": 1, "method": "_a"},
    "method is a number": {"jsonrpc": "2.0", "id": 1, "method": 5},
    "method is null": {"jsonrpc": "2.0", "id": 1, "method": None},
    "method is an array": {"jsonrpc": "2.0", "id": 1, "method": ["_a"]},
    "method is an object": {"jsonrpc": "2.0", "id": 1, "method": {}},
}


@BOTH
@pytest.mark.parametrize("message", WRONG_REQUESTS.values(), ids=WRONG_REQUESTS.keys())
def test_a_wrong_request_is_answered_under_its_id(packages: Packages, sources: SchemaChoice, message: Any) -> None:
    assert codes(told(packages, sources, json.dumps(message).encode())) == [(1, INVALID)]


def test_null_is_an_id_in_v1(packages: Packages) -> None:
    """Several may run at a time: they are no repetition of each other."""
    acp = packages(V1)

    async def main() -> list[Any]:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            await go.wait()
            return params

        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.request(None, "_a", 1)
            await peer.request(None, "_a", 2)
            go.set()
            return [await peer.receive(), await peer.receive(), *await peer.ping()]

    answers = run(main())
    assert sorted(answer["result"] for answer in answers) == [1, 2]
    assert {answer["id"] for answer in answers} == {None}


def test_null_is_no_id_in_v2(packages: Packages) -> None:
    answers = told(packages, V2, line_of(id=None, method="_a"))
    assert codes(answers) == [(None, INVALID)]


@EVERY_BASE
@pytest.mark.parametrize(
    "number",
    [0, -5, 2**63, "", "a", "1", "é\0", "x" * 256],
    ids=lambda n: str(n)[:6].encode("ascii", "replace").decode(),
)
def test_ids_come_back_as_they_were(packages: Packages, sources: SchemaChoice, number: Any) -> None:
    (answer,) = told(packages, sources, line_of(id=number, method="_a", params=[number]))
    assert answer == {"jsonrpc": "2.0", "id": number, "result": [number]}
    assert type(answer["id"]) is type(number)


@BOTH
def test_the_id_of_a_running_request_is_refused(packages: Packages, sources: SchemaChoice) -> None:
    """The first one goes on, and is answered once; the answer to the second does not look like one to the first."""
    acp = packages(sources)

    async def main() -> tuple[list[Any], list[Any]]:
        go, calls = asyncio.Event(), []

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            if method == "_wait":
                calls.append(params)
                await go.wait()
            return params

        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.request(1, "_wait", "first")
            await peer.request(1, "_wait", "second")
            await peer.request("1", "_wait", "another")
            refused = await peer.ping()
            assert calls == ["first", "another"]
            go.set()
            answers = [await peer.receive(), await peer.receive()]
            answers.append(await peer.ask(1, "_again", "free"))
            return refused, answers

    refused, answers = run(main())
    assert codes(refused) == [(None, INVALID)]
    assert [(answer["id"], answer["result"]) for answer in answers] == [(1, "first"), ("1", "another"), (1, "free")]


# --- Methods and params ---------------------------------------------------------------------------------------------


@EVERY_BASE
@pytest.mark.parametrize(
    "method", ["session/newest", "", "$/other", "Session/new", "rpc.discover", "connection_closed"]
)
def test_unknown_methods(packages: Packages, sources: SchemaChoice, method: str) -> None:
    answers = told(packages, sources, line_of(id=1, method=method, params={}), line_of(method=method, params={}))
    assert codes(answers) == [(1, UNKNOWN)]


@EVERY_BASE
@pytest.mark.parametrize("params", [{}, {"a": [1, None]}, [1], "text", 5, False, None])
def test_extension_methods(packages: Packages, sources: SchemaChoice, params: Any) -> None:
    (answer,) = told(packages, sources, line_of(id=1, method="_vendor/x", params=params))
    assert answer["result"] == params


def test_extension_methods_without_a_handler(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp)) as peer:
            await peer.notify("_vendor/x")
            await peer.request(1, "_vendor/x")
            return [await peer.receive(), *await peer.ping()]

    assert codes(run(main())) == [(1, UNKNOWN)]


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("initialize", {}, "$.protocolVersion"),
        ("initialize", {"protocolVersion": "1"}, "$.protocolVersion"),
        ("session/prompt", {"sessionId": "s", "prompt": [{"type": "text", "text": 5}]}, "$.prompt[0].text"),
        ("session/new", [], "$"),
        ("session/new", "text", "$"),
        ("session/new", 0, "$"),
    ],
)
def test_bad_params(packages: Packages, method: str, params: Any, path: str) -> None:
    (answer,) = told(packages, V1, line_of(id=1, method=method, params=params))
    assert (answer["id"], answer["error"]["code"]) == (1, PARAMS)
    assert answer["error"]["data"]["path"] == path
    assert path in answer["error"]["message"]


def test_bad_params_of_a_notification_are_for_the_log(packages: Packages) -> None:
    with acp_log() as records:
        assert told(packages, V1, line_of(method="session/cancel", params={"sessionId": 5})) == []
    assert "$.sessionId" in texts(records)


@pytest.mark.parametrize("more", [{}, {"params": None}], ids=["absent", "null"])
def test_params_that_are_absent_or_null_are_an_empty_object(packages: Packages, more: Any) -> None:
    acp = packages(V1)
    seen: list[Any] = []

    async def session_list(self: Any, params: Any) -> Any:
        seen.append(params)
        return acp.ListSessionsResponse(sessions=[])

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp, session_list=session_list)) as peer:
            await peer.send_line(line_of(id=1, method="session/list", **more))
            return await peer.receive()

    assert run(main())["result"] == {"sessions": []}
    assert seen == [acp.ListSessionsRequest()]


def test_params_that_are_absent_and_needed(packages: Packages) -> None:
    assert codes(told(packages, V1, line_of(id=1, method="session/new"))) == [(1, PARAMS)]


# --- Text -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["\ud800", "\udfff a", "\U0001f600", "\u2028\u2029\x85", "\r\n\t\0", "é", "\x7f"])
def test_text_comes_back_as_it_was(packages: Packages, text: str) -> None:
    """Lone surrogates and everything that somebody could take for the end of a line."""
    acp = packages(V1)

    async def main() -> bytes:
        async with raw_peer(acp, agent_of(acp, ext_method=echo)) as peer:
            await peer.request(1, "_a", {text: text})
            return await peer.transport.read()

    line = run(main())
    assert json.loads(line)["result"] == {text: text}
    assert len(line.splitlines()) == len(line.decode().splitlines()) == 1


def test_text_in_utf_8_is_read(packages: Packages) -> None:
    line = '{"jsonrpc": "2.0", "id": 1, "method": "_a", "params": "é\u2028😀"}'.encode()
    assert told(packages, V1, line)[0]["result"] == "é\u2028😀"


def test_the_last_of_repeated_keys_counts(packages: Packages) -> None:
    (answer,) = told(packages, V1, b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "_a"}')
    assert answer["id"] == 2


def test_the_peer_learns_no_more_than_it_must(packages: Packages) -> None:
    for line in NO_JSON.values():
        (answer,) = told(packages, V1, line)
        assert len(json.dumps(answer)) < 400
        assert "Traceback" not in answer["error"]["message"]
