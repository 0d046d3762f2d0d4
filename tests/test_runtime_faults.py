"""Handlers that fail: what the peer gets, and what is logged."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_agents import environment
from tests.runtime_support import (
    EVERY_BASE,
    V1,
    V2,
    acp_log,
    agent_of,
    client_of,
    pair,
    raw_peer,
    run,
    started,
    texts,
    unchecked,
)
from tests.support import Packages

pytestmark = pytest.mark.every_python

BOTH = pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
INTERNAL = -32603
SECRET = "the password is hunter2"


def codes(answers: list[Any]) -> list[tuple[Any, int]]:
    return [(answer["id"], answer["error"]["code"]) for answer in answers]


class Unprintable:
    """Neither JSON nor a type of the protocol."""

    def __repr__(self) -> str:
        return "Unprintable()"


FAULTS = {
    "an exception": ValueError(SECRET),
    "an exception without text": KeyError(),
    "a failed assertion": AssertionError(SECRET),
    "no more memory": MemoryError(SECRET),
    "a timeout": asyncio.TimeoutError(SECRET),
    "a lost connection elsewhere": ConnectionResetError(SECRET),
    "too deep": RecursionError(SECRET),
    "the end of an iterator": StopAsyncIteration(SECRET),
}


@BOTH
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_an_exception_is_an_internal_error(packages: Packages, sources: SchemaChoice, fault: Exception) -> None:
    """The peer learns nothing, and the log everything."""
    acp = packages(sources)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_fail":
            raise fault
        return params

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            return [await peer.ask(1, "_fail"), *await peer.ping()]

    with acp_log() as records:
        answers = run(main())
    assert answers == [{"jsonrpc": "2.0", "id": 1, "error": {"code": INTERNAL, "message": "Internal error"}}]
    log = texts(records)
    assert "_fail" in log
    assert "Traceback" in log
    assert "raise fault" in log
    assert str(fault) in log


def test_a_connection_that_closed_elsewhere_is_an_internal_error_too(packages: Packages) -> None:
    """An agent may be the client of another one, whose end is not the end of this connection."""
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_fail":
            raise acp.ConnectionClosed(SECRET)
        return params

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.notify("_n")
            return [await peer.ask(1, "_fail"), *await peer.ping()]

    assert codes(run(main())) == [(1, INTERNAL)]


@EVERY_BASE
def test_errors_of_every_class_travel(packages: Packages, sources: SchemaChoice) -> None:
    acp = packages(sources)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        kind = acp.errors.ERROR_CLASSES.get(params, acp.RequestError)
        raise kind(f"message {params}", code=params, data={"why": [params, None]})

    async def main() -> None:
        async with pair(acp, agent_of(acp, ext_method=ext_method), client_of(acp)) as both:
            for code in (*acp.errors.ERROR_CLASSES, -1, 0, 12345):
                with pytest.raises(acp.RequestError) as caught:
                    await both.agent.ext_method("_fail", code)
                kind = acp.errors.ERROR_CLASSES.get(code, acp.RequestError)
                assert type(caught.value) is kind
                assert (caught.value.code, caught.value.message) == (code, kind(f"message {code}").message)
                assert caught.value.data == {"why": [code, None]}

    run(main())


WRONG_RESULTS = {
    "no JSON": Unprintable(),
    "a set": {1},
    "bytes": b"x",
    "not a number": float("nan"),
    "infinity": {"a": [float("inf")]},
    "a key that is an object": {Unprintable(): 1},
    "a function": print,
}


@pytest.mark.parametrize("result", WRONG_RESULTS.values(), ids=WRONG_RESULTS.keys())
@pytest.mark.parametrize("as_data", [False, True], ids=["result", "data of an error"])
def test_what_is_no_json_is_an_internal_error(packages: Packages, result: Any, *, as_data: bool) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if as_data:
            raise acp.InvalidParamsError(data=result)
        return result

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            answer = await peer.ask(1, "_fail")
            assert [each["id"] for each in [await peer.ask(2, "session/nothing")]] == [2]
            return [answer]

    with acp_log() as records:
        (answer,) = run(main())
    assert answer["error"]["code"] in (INTERNAL, -32602)
    assert "Unprintable" not in json.dumps(answer)
    if answer["error"]["code"] == INTERNAL:
        assert "Traceback" in texts(records)


def test_a_result_without_end_is_an_internal_error(packages: Packages) -> None:
    acp = packages(V1)
    loop: list[Any] = []
    loop.append(loop)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return loop

    async def main() -> Any:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            return await peer.ask(1, "_fail")

    assert codes([run(main())]) == [(1, INTERNAL)]


@pytest.mark.parametrize("result", [None, 5, "end", {"stopReason": "end_turn"}, Unprintable()], ids=repr)
def test_a_result_of_another_type_is_an_internal_error(packages: Packages, result: Any) -> None:
    acp = packages(V1)

    async def session_prompt(self: Any, params: Any) -> Any:
        return result

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, session_prompt=session_prompt)) as peer:
            return [await peer.ask(1, "session/prompt", {"sessionId": "s", "prompt": []}), *await peer.ping()]

    with acp_log() as records:
        answers = run(main())
    assert codes(answers) == [(1, INTERNAL)]
    assert "session/prompt" in texts(records)


def test_params_that_are_no_json_are_the_callers_mistake(packages: Packages) -> None:
    acp = packages(V1)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            for params in (Unprintable(), {1}, float("nan")):
                with pytest.raises((TypeError, ValueError)):
                    await peer.stub.ext_method("_a", params)
                with pytest.raises((TypeError, ValueError)):
                    await peer.stub.ext_notification("_a", params)
            return await peer.ping()

    assert run(main()) == []


@BOTH
def test_a_handler_that_raises_cancelled_of_itself(packages: Packages, sources: SchemaChoice) -> None:
    """Such as one that awaits a task that somebody cancelled."""
    acp = packages(sources)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_fail":
            task = asyncio.create_task(asyncio.Event().wait())
            asyncio.get_running_loop().call_soon(task.cancel)
            await task

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            return [await peer.ask(1, "_fail"), *await peer.ping()]

    with acp_log() as records:
        assert codes(run(main())) == [(1, -32800)]
    assert "the handler of '_fail' was cancelled, and not by the peer" in texts(records)


@BOTH
@pytest.mark.parametrize("fault", [ValueError(SECRET), asyncio.CancelledError(SECRET)], ids=["error", "cancelled"])
@pytest.mark.parametrize("pause", [False, True])
def test_a_notification_handler_that_fails(
    packages: Packages, sources: SchemaChoice, fault: Any, *, pause: bool
) -> None:
    acp = packages(sources)

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        if pause:
            await asyncio.sleep(0)
        raise fault

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            await peer.notify("_first")
            await peer.notify("_second")
            return await peer.ping()

    with acp_log() as records:
        assert run(main()) == []
    log = texts(records)
    assert "_first" in log
    assert "_second" in log
    assert isinstance(fault, asyncio.CancelledError) or SECRET in log


# --- Exceptions that are no `Exception` -----------------------------------------------------------------------------


class Stop(BaseException):
    """As pytest's `Failed` and trio's `Cancelled` are."""


BASE_FAULTS = {
    "a class of its own": Stop(SECRET),
    "the end of a generator": GeneratorExit(SECRET),
    "pytest": pytest.fail.Exception(SECRET),
}
EVERY_FAULT = pytest.mark.parametrize("fault", BASE_FAULTS.values(), ids=BASE_FAULTS.keys())


@EVERY_FAULT
@pytest.mark.parametrize("pause", [False, True])
def test_a_base_exception_is_an_internal_error(packages: Packages, fault: BaseException, *, pause: bool) -> None:
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        if method == "_fail":
            if pause:
                await asyncio.sleep(0)
            raise fault
        return params

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            return [await peer.ask(1, "_fail"), *await peer.ping()]

    with acp_log() as records:
        assert codes(run(main())) == [(1, INTERNAL)]
    assert SECRET in texts(records, logging.ERROR)
    assert "_fail" in texts(records, logging.ERROR)


@EVERY_FAULT
@pytest.mark.parametrize("pause", [False, True])
def test_a_base_exception_in_a_notification(packages: Packages, fault: BaseException, *, pause: bool) -> None:
    acp = packages(V1)

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        if pause:
            await asyncio.sleep(0)
        raise fault

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_notification=ext_notification)) as peer:
            await peer.notify("_first")
            await peer.notify("_second")
            return await peer.ping()

    with acp_log() as records:
        assert run(main()) == []
    log = texts(records, logging.ERROR)
    assert "_first" in log
    assert "_second" in log
    assert SECRET in log


@EVERY_FAULT
@pytest.mark.parametrize("hook", ["on_message", "on_drop", "loads", "dumps", "connection_closed"])
def test_a_base_exception_in_a_hook(packages: Packages, fault: BaseException, hook: str) -> None:
    """It fails the first time that it is called, and the connection goes on."""
    acp = packages(V1)
    calls: list[Any] = []

    def failing(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise fault
        return {"loads": json.loads, "dumps": lambda message: json.dumps(message).encode()}.get(hook, print)(
            *arguments[:1]
        )

    async def connection_closed(self: Any, reason: Any) -> None:
        failing()

    async def initialize(self: Any, params: Any) -> Any:
        return acp.InitializeResponse(protocol_version=1)

    async def main() -> list[Any]:
        options = unchecked(acp, **({} if hook == "connection_closed" else {hook: failing}))
        more = {"connection_closed": connection_closed} if hook == "connection_closed" else {}
        async with raw_peer(acp, agent_of(acp, initialize=initialize, **more), options=options) as peer:
            await peer.request(1, "initialize", {"protocolVersion": 1, "clientCapabilities": "none"})
            return [await peer.receive(), *await peer.ping()]

    with acp_log() as records:
        (answer,) = run(main())
    assert calls
    expected = {"loads": -32700, "dumps": INTERNAL, "on_drop": INTERNAL}
    assert answer.get("error", {}).get("code") == expected.get(hook)
    assert hook == "loads" or SECRET in texts(records)


@pytest.mark.parametrize("fault", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("method", ["_request", "_notification"])
def test_the_end_of_the_program_is_not_caught(packages: Packages, fault: type[BaseException], method: str) -> None:
    acp = packages(V1)

    async def end(self: Any, name: str, params: Any) -> None:
        raise fault

    async def main() -> None:
        near, far = acp.memory_transports()
        connection, _ = started(acp, agent_of(acp, ext_method=end, ext_notification=end), near)
        number = {"id": 1} if method == "_request" else {}
        await far.write(json.dumps({"jsonrpc": "2.0", "method": method, **number}).encode())
        await connection.wait_closed()

    with pytest.raises(fault):
        asyncio.run(asyncio.wait_for(main(), 60))


def test_the_end_of_the_program_in_a_request_is_no_fault_of_a_notification(packages: Packages) -> None:
    """Its loop cancels all tasks, the one that reads among them."""
    acp = packages(V1)

    async def ext_method(self: Any, method: str, params: Any) -> None:
        raise SystemExit(3)

    async def ext_notification(self: Any, method: str, params: Any) -> None:
        pass

    async def main() -> None:
        near, far = acp.memory_transports()
        connection, _ = started(acp, agent_of(acp, ext_method=ext_method, ext_notification=ext_notification), near)
        await far.write(b'{"jsonrpc": "2.0", "method": "_before"}')
        await far.write(b'{"jsonrpc": "2.0", "id": 1, "method": "_exit"}')
        await connection.wait_closed()

    with acp_log() as records, pytest.raises(SystemExit):
        asyncio.run(main())
    assert "cancelled" not in texts(records)


THROWN_AWAY = """
import asyncio, importlib, os
acp = importlib.import_module(os.environ["ACP_PACKAGE"])

class Waiting(acp.Agent):
    async def ext_method(self, method, params):
        await asyncio.Event().wait()

    ext_notification = ext_method

async def main():
    near, far = acp.memory_transports()
    connection = acp.Connection(near, acp.ConnectionOptions(check_capabilities=False))
    connection.start(Waiting(acp.RemoteClient(connection)))
    await far.write(b'{"jsonrpc": "2.0", "id": 1, "method": "_wait"}')
    await far.write(b'{"jsonrpc": "2.0", "method": "_wait"}')
    for _ in range(10):
        await asyncio.sleep(0)

loop = asyncio.new_event_loop()
loop.set_exception_handler(lambda *_: None)
loop.run_until_complete(main())
loop.close()
"""


def test_a_loop_that_is_thrown_away_is_no_failure_of_a_handler(packages: Packages) -> None:
    """Its coroutines are closed unfinished, which raises `GeneratorExit` in handlers."""
    done = subprocess.run(
        [sys.executable, "-c", THROWN_AWAY], env=environment(packages(V1)), capture_output=True, text=True, check=True
    )
    assert "failed" not in done.stderr
    assert "could not be handled" not in done.stderr


def test_a_log_that_fails_ends_the_connection_visibly(packages: Packages) -> None:
    """Nothing is left to read on and to say so: but calls must not wait for ever."""
    acp = packages(V1)

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING and "cannot be handled" in record.getMessage():
                raise OSError("the disk is full")

    async def main() -> None:
        async with raw_peer(acp, agent_of(acp)) as peer:
            waiter = asyncio.create_task(peer.stub.ext_method("_ask", None))
            await peer.receive()
            await peer.send_line(b"no JSON")
            with pytest.raises(acp.ConnectionClosed):
                await waiter

    handler = Broken()
    logging.getLogger("acp").addHandler(handler)
    try:
        run(main())
    finally:
        logging.getLogger("acp").removeHandler(handler)


def test_a_message_that_cannot_be_refused_is_one_message(packages: Packages) -> None:
    acp = packages(V1)

    def dumps(message: Any) -> bytes:
        if message.get("error", {}).get("code") == -32600:
            raise TypeError("cannot write this")
        return json.dumps(message).encode()

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp), options=acp.ConnectionOptions(dumps=dumps)) as peer:
            await peer.send({"jsonrpc": "1.0", "id": 5, "method": "_a"})
            await peer.send([])
            return await peer.ping()

    with acp_log() as records:
        assert codes(run(main())) == [(5, INTERNAL)]
    assert texts(records).count("TypeError: cannot write this") == 2


def test_an_error_that_cannot_be_made_into_json_is_an_internal_one(packages: Packages) -> None:
    acp = packages(V1)

    class Odd(acp.RequestError):  # type: ignore[misc, name-defined]
        """Has none of the attributes that the constructor of its base sets."""

        def __init__(self) -> None:
            pass

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        raise Odd

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp, ext_method=ext_method)) as peer:
            await peer.send({"jsonrpc": "2.0", "id": 5, "method": "_a"})
            return await peer.ping()

    with acp_log():
        assert codes(run(main())) == [(5, INTERNAL)]


def test_a_result_that_does_not_fit_names_the_call_that_got_it(packages: Packages) -> None:
    acp = packages(V1)

    async def ask_user(client: Any) -> Any:
        request = acp.RequestPermissionRequest(
            session_id="s", tool_call=acp.ToolCallUpdate(tool_call_id="t"), options=[]
        )
        return await asyncio.wait_for(client.session_request_permission(request), 60.0)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return await ask_user(self.client)

    class Asking(acp.Agent):  # type: ignore[misc, name-defined]
        def __init__(self, client: Any) -> None:
            self.client = client

    Asking.ext_method = ext_method

    async def main() -> None:
        async with raw_peer(acp, Asking, options=acp.ConnectionOptions(check_capabilities=False)) as peer:
            await peer.request(5, "_ask")
            await peer.answer((await peer.receive())["id"], result={"outcome": "yes"})
            assert (await peer.receive())["error"]["code"] == INTERNAL

    with acp_log() as records:
        run(main())
    assert "an error from the peer made the handler of '_ask' fail in " in texts(records)
    assert "ask_user in line " in texts(records)


@BOTH
def test_initialize_to_a_side_without_it_is_an_unknown_method(packages: Packages, sources: SchemaChoice) -> None:
    """Such as the client's own request, from a peer that echoes all that it reads."""
    acp = packages(sources)

    async def main() -> list[Any]:
        async with raw_peer(acp, client_of(acp)) as peer:
            return [await peer.ask(1, "initialize", {"protocolVersion": 1}), *await peer.ping()]

    with acp_log() as records:
        assert codes(run(main())) == [(1, -32601)]
    assert texts(records) == ""


def test_an_id_that_cannot_be_written_is_null(packages: Packages) -> None:
    """As with a JSON library that refuses lone surrogates."""
    acp = packages(V1)

    def dumps(message: Any) -> bytes:
        return json.dumps(message, ensure_ascii=False).encode()

    async def main() -> list[Any]:
        async with raw_peer(acp, agent_of(acp), options=acp.ConnectionOptions(dumps=dumps)) as peer:
            await peer.send_line(b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "_a"}')
            return await peer.ping()

    with acp_log():
        assert [number for number, _ in codes(run(main()))] == [None]
