"""Runs code with a mistake as its user would: in a module of its own, over a connection; returns what is shown."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import json
import logging
import textwrap
import traceback
import warnings
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from tests.runtime_support import acp_log, texts

FILE = "user_code.py"
ECHO = """
class Echo(Agent):
    async def initialize(self, params: InitializeRequest) -> InitializeResponse:
        return InitializeResponse(protocol_version=1)

    async def ext_method(self, method, params):
        return params

"""


@dataclass(frozen=True)
class Outcome:
    """What the log and an exception show, and the messages that the code has sent."""

    shown: str
    sent: list[Any]

    @property
    def last(self) -> str:
        """The last line that is shown."""
        return self.shown.strip().splitlines()[-1] if self.shown.strip() else ""


def run_agent(acp: ModuleType, code: str, *messages: dict[str, Any], options: Any = None) -> Outcome:
    """Serve the agent `Echo` of a module to a client that sends `initialize`, these messages, and a last request."""
    return _outcome(lambda sent: _talk_to_agent(acp, code, messages, options=options, sent=sent))


async def _talk_to_agent(
    acp: ModuleType, code: str, messages: tuple[dict[str, Any], ...], *, options: Any, sent: list[Any]
) -> None:
    ours, theirs = acp.memory_transports()
    running = asyncio.create_task(acp.serve_agent(module_of(acp, code)["Echo"], theirs, options=options))
    hello = {"id": "hello", "method": "initialize", "params": {"protocolVersion": 1}}
    for message in (hello, *messages, {"id": "end", "method": "_end"}):
        await ours.write(json.dumps({"jsonrpc": "2.0", **message}).encode())
    while not sent or sent[-1].get("id") != "end":
        sent.append(json.loads(await ours.read()))
    for _ in range(100):  # what a handler does last may take more turns than the last request
        await asyncio.sleep(0)
    await ours.close()
    await running


def run_code(acp: ModuleType, code: str, *, options: Any = None) -> Outcome:
    """Await `main(transport, options)` of a module, with an agent at the other end.

    The agent answers each request with a session ID, and then asks for permission, once.
    """
    return _outcome(lambda sent: _talk_to_client(acp, code, options, sent))


async def _talk_to_client(acp: ModuleType, code: str, options: Any, sent: list[Any]) -> None:
    ours, theirs = acp.memory_transports()
    peer = asyncio.create_task(_answer(ours, sent))
    try:
        await module_of(acp, code)["main"](theirs, options)
    finally:
        await theirs.close()
        await peer


async def _answer(transport: Any, sent: list[Any]) -> None:
    question: dict[str, Any] = {"id": "may I", "method": "session/request_permission"}
    question["params"] = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": []}
    while (line := await transport.read()) is not None:
        sent.append(message := json.loads(line))
        if "method" in message and "id" in message:
            result = {"sessionId": "s", "protocolVersion": 1, "stopReason": "end_turn"}
            if message["method"] == "session/new":
                await transport.write(json.dumps({"jsonrpc": "2.0", **question}).encode())
                sent.append(json.loads(await transport.read()))
            await transport.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


def module_of(acp: ModuleType, code: str) -> dict[str, Any]:
    """The names of a module of the user's with this code; it has imported all of the package and its helpers."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")
    names = {**{name: getattr(helpers, name) for name in helpers.__all__}, **vars(acp), "__name__": "user_code"}
    source = f"from __future__ import annotations\n{textwrap.dedent(code)}"
    exec(compile(source, FILE, "exec"), names)
    return names


def _outcome(talk: Callable[[list[Any]], Coroutine[Any, Any, None]]) -> Outcome:
    sent: list[Any] = []
    failure = ""
    gc.freeze()  # what an earlier test has left must not warn in this one
    with _kept_from_pytest(), acp_log() as records, _warnings() as warned:
        try:
            asyncio.run(asyncio.wait_for(talk(sent), 120))
        except (AttributeError, TypeError) as error:
            failure = "".join(traceback.format_exception(error))
        gc.collect()
    return Outcome("\n".join([texts(records), *warned, failure]), sent)


@contextlib.contextmanager
def _kept_from_pytest() -> Iterator[None]:
    """Keep log records from pytest, which would keep their tracebacks, and coroutines in them, until the next test."""
    logger = logging.getLogger("acp")
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True


@contextlib.contextmanager
def _warnings() -> Iterator[list[str]]:
    shown: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield shown
        shown += [str(each.message) for each in caught]
