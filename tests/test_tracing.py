"""The class of docs/testing.md that makes spans, between a client and an agent: one trace, whatever a peer sends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.documents import blocks
from tests.needs import need
from tests.support import REPOSITORY, Packages


def tracing() -> Any:
    """The class of the page."""
    text = (REPOSITORY / "docs" / "testing.md").read_text(encoding="utf-8")
    (block,) = (each for each in blocks(text) if each.name == "tracing.py")
    names: dict[str, Any] = {}
    exec(block.text, names)
    return names["Tracing"]


class Spans:
    """A tracer that keeps its spans."""

    def __init__(self) -> None:
        need("opentelemetry.sdk")
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = provider.get_tracer("tests")

    @property
    def finished(self) -> Any:
        return self._exporter.get_finished_spans()


HELLO = {"protocolVersion": 1, "clientCapabilities": {}}


def test_the_spans_of_client_and_agent_share_a_trace(packages: Packages) -> None:
    acp = packages(SchemaChoice())
    spans = Spans()

    class Agent(acp.Agent):  # type: ignore[name-defined, misc]
        async def initialize(self, params: Any) -> Any:
            assert set(params.meta) == {"kept", "traceparent"}
            return acp.InitializeResponse(protocol_version=1)

        async def session_new(self, params: Any) -> Any:
            raise acp.InvalidParamsError("not now")

    async def talk() -> None:
        here, there = acp.memory_transports()
        both = [tracing()(spans.tracer) for _ in range(2)]
        options, of_agent = (acp.ConnectionOptions(dumps=each.dumps, on_message=each.on_message) for each in both)
        running = asyncio.create_task(acp.serve_agent(Agent, there, options=of_agent))
        async with acp.connect(acp.Client, here, options=options) as agent:
            with spans.tracer.start_as_current_span("chat"):
                await agent.initialize(acp.InitializeRequest(protocol_version=1, meta={"kept": 1}))
                with pytest.raises(acp.InvalidParamsError):
                    await agent.session_new(acp.NewSessionRequest(cwd="/", mcp_servers=[]))
        await running
        assert [each.spans for each in both] == [{}, {}]

    asyncio.run(talk())
    assert len({span.context.trace_id for span in spans.finished}) == 1
    found = {(span.name, span.kind.name): span for span in spans.finished}
    assert found.keys() == {
        ("chat", "INTERNAL"),
        *((method, kind) for method in ("initialize", "session/new") for kind in ("CLIENT", "SERVER")),
    }
    for method, is_ok in (("initialize", True), ("session/new", False)):
        client, server = found[method, "CLIENT"], found[method, "SERVER"]
        assert server.parent.span_id == client.context.span_id
        assert client.parent.span_id == found["chat", "INTERNAL"].context.span_id
        assert [span.status.status_code.name for span in (client, server)] == 2 * ["UNSET" if is_ok else "ERROR"]


@pytest.mark.parametrize(
    "meta", [None, 1, [], {}, {"traceparent": 1}, {"traceparent": "x"}, {"traceparent": "00-0-0-0"}]
)
def test_a_request_without_a_usable_parent_begins_a_trace(meta: Any) -> None:
    spans = Spans()
    agent = tracing()(spans.tracer)
    for message in ({"method": "initialize", "params": {**HELLO, "_meta": meta}}, {"result": {}}):
        line = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
        agent.on_message("in" if "method" in message else "out", line)
    (span,) = spans.finished
    assert (span.name, span.parent) == ("initialize", None)
