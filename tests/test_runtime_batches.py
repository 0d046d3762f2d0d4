"""Batches, for bases whose messages may be arrays: split, and answered as one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.config import Sources
from acpgen.schema.data import data_folder
from tests.runtime_support import V1, agent_of, client_of, raw_peer, run
from tests.support import Packages

INVALID, UNKNOWN, PARAMS = -32600, -32601, -32602


async def echo(self: Any, method: str, params: Any) -> Any:
    return params


@pytest.fixture(scope="module")
def batching(packages: Packages, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The package for a base that has batches: one branch more in the root of a bundled schema."""
    schema = json.loads((data_folder() / "schema" / "v1" / V1.release / "schema.json").read_text("utf-8"))
    schema["anyOf"].append({"title": "Batch", "type": "array", "items": {}, "minItems": 1})
    path: Path = tmp_path_factory.mktemp("batches") / "schema.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    return packages(Sources(protocol=1, schema=path))


def batched(acp: Any, *messages: Any, kind: Any = None) -> list[Any]:
    """What is answered to these messages in one batch, up to the answer to a request after them."""

    async def main() -> list[Any]:
        async with raw_peer(acp, kind or agent_of(acp, ext_method=echo)) as peer:
            await peer.send(list(messages))
            answers = [await peer.receive()]
            await peer.request("last", "_last")
            answers.append(await peer.receive())
            assert answers[-1]["id"] == "last"
            return answers[:-1]

    return run(main())


def message(**more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **more}


def test_a_batch_is_answered_as_a_batch(batching: Any) -> None:
    (answers,) = batched(
        batching,
        message(id=1, method="_a", params="one"),
        message(method="_n"),
        message(id="two", method="no/such"),
        5,
        [],
        {"jsonrpc": "1.0", "id": 3, "method": "_a"},
        message(id=4, result="to nothing"),
        message(id=5, method="initialize", params={}),
    )
    found = {str(answer["id"]): answer.get("result") or answer["error"]["code"] for answer in answers}
    assert found == {"1": "one", "two": UNKNOWN, "None": INVALID, "3": INVALID, "5": PARAMS}
    assert len(answers) == 6


def test_an_empty_batch_is_one_invalid_request(batching: Any) -> None:
    ((answer),) = batched(batching)
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID)


def test_a_batch_of_notifications_is_not_answered(batching: Any) -> None:
    seen: list[Any] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        await asyncio.sleep(0)
        seen.append(params)

    async def main() -> list[Any]:
        async with raw_peer(batching, agent_of(batching, ext_notification=ext_notification)) as peer:
            await peer.send([message(method="_n", params=number) for number in range(5)])
            await peer.send([message(id=9, result=None)])
            return await peer.ping()

    assert run(main()) == []
    assert seen == list(range(5))


def test_the_requests_of_a_batch_run_side_by_side_and_the_rest_goes_on(batching: Any) -> None:
    async def main() -> tuple[Any, Any]:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            if method == "_go":
                go.set()
            elif method == "_wait":
                await go.wait()
            return params

        async with raw_peer(batching, agent_of(batching, ext_method=ext_method)) as peer:
            await peer.send([message(id=number, method="_wait", params=number) for number in range(3)])
            assert await peer.ping() == []
            both = [await peer.ask("go", "_go"), await peer.receive()]
            both.sort(key=lambda each: isinstance(each, list))
            return both[0], both[1]

    single, answers = run(main())
    assert single["id"] == "go"
    assert sorted(answer["result"] for answer in answers) == [0, 1, 2]


def test_one_answer_of_a_batch_that_is_no_json_does_not_spoil_the_others(batching: Any) -> None:
    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return object() if method == "_bad" else "good"

    kind = agent_of(batching, ext_method=ext_method)
    (answers,) = batched(batching, message(id=1, method="_bad"), message(id=2, method="_good"), kind=kind)
    assert {answer["id"]: answer.get("result", "failed") for answer in answers} == {1: "failed", 2: "good"}


def test_the_end_in_the_middle_of_a_batch(batching: Any) -> None:
    async def ext_method(self: Any, method: str, params: Any) -> Any:
        await asyncio.Event().wait()

    async def main() -> None:
        options = batching.ConnectionOptions(finish_seconds=0.01)
        async with raw_peer(batching, agent_of(batching, ext_method=ext_method), options=options) as peer:
            await peer.send([message(id=1, method="_wait"), message(id=2, method="_wait")])
            await peer.transport.close()
            await peer.connection.wait_closed()

    run(main())


def test_a_batch_of_answers_reaches_who_asked(batching: Any) -> None:
    async def main() -> list[Any]:
        async with raw_peer(batching, client_of(batching)) as peer:
            waiters = [asyncio.create_task(peer.stub.ext_method("_ask", n)) for n in range(3)]
            asked = [await peer.receive() for _ in waiters]
            await peer.send([message(id=each["id"], result=each["params"]) for each in reversed(asked)])
            return await asyncio.gather(*waiters)

    assert run(main()) == [0, 1, 2]


def test_a_batch_counts_once_against_the_limit_on_memory(batching: Any) -> None:
    """As long as the last request in it is not answered."""
    acp = batching

    async def main() -> None:
        go = asyncio.Event()

        async def ext_method(self: Any, method: str, params: Any) -> Any:
            await go.wait()

        options = acp.ConnectionOptions(max_in_flight_bytes=100_000)
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method), options=options) as peer:
            batch = [message(id=number, method="_wait", params="x" * 5_000) for number in range(10)]
            await peer.send(batch)
            await peer.send(batch)
            refused = await peer.receive()
            assert (refused["id"], refused["error"]["code"]) == (None, -32603)
            go.set()
            assert len(await peer.receive()) == 10
            await peer.send(batch)
            assert len(await peer.receive()) == 10

    run(main())
