"""Batches are no part of ACP: an array is one invalid request, even for a schema that has arrays of messages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from acpgen.schema.data import data_folder
from tests.runtime_support import V1, agent_of, client_of, raw_peer, run
from tests.support import Packages

pytestmark = pytest.mark.every_python

INVALID = -32600
REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "_a"}


@pytest.fixture(scope="module")
def batching(packages: Packages) -> Any:
    """The package for a schema with batches: a bundled one with one more branch in its root."""
    schema = json.loads((data_folder() / "schema" / "v1" / V1.release / "schema.json").read_text("utf-8"))
    schema["anyOf"].append({"title": "Batch", "type": "array", "items": {}, "minItems": 1})
    return packages.of(schema)


@pytest.mark.parametrize("batch", [[], [5], [REQUEST, REQUEST], [{"jsonrpc": "2.0", "method": "_n"}]], ids=repr)
def test_an_array_is_one_invalid_request(batching: Any, batch: list[Any]) -> None:
    called: list[str] = []

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        called.append(method)

    async def main() -> list[Any]:
        async with raw_peer(batching, agent_of(batching, ext_notification=ext_notification)) as peer:
            await peer.send(batch)
            return await peer.ping()

    (answer,) = run(main())
    assert (answer["id"], answer["error"]["code"]) == (None, INVALID)
    assert called == []


def test_responses_in_an_array_resolve_nothing(batching: Any) -> None:
    async def main() -> tuple[Any, Any]:
        async with raw_peer(batching, client_of(batching)) as peer:
            pending = asyncio.create_task(peer.stub.ext_method("_ask", 1))
            number = (await peer.receive())["id"]
            await peer.send([{"jsonrpc": "2.0", "id": number, "result": "in an array"}])
            refused = await peer.receive()
            await peer.answer(number, result="alone")
            return refused, await pending

    refused, result = run(main())
    assert (refused["id"], refused["error"]["code"]) == (None, INVALID)
    assert result == "alone"
