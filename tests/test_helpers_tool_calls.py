"""Tool calls of agents, as a client sees them: however their block ends, and whatever happens to the connection."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from tests.runtime_support import EVERY_BASE, V1, V2, agent_of, client_of, pair, run, started
from tests.support import Packages

pytestmark = pytest.mark.every_python

Work = Callable[[Any, Callable[..., Any]], Awaitable[Any]]
"""What an agent does with the helpers, and with a function that makes a tool call with the id "c"."""


@dataclass
class Seen:
    """What a client has received, and what the work of the agent has raised."""

    updates: list[Any] = field(default_factory=list)
    questions: list[Any] = field(default_factory=list)
    error: BaseException | None = None


def helpers_of(acp: ModuleType) -> Any:
    return importlib.import_module(f"{acp.__name__}.helpers")


def watch(acp: ModuleType, work: Work, *, kinds: tuple[str, ...] = (), answers: bool = True) -> Seen:
    """Run `work`; the client answers questions with the first option of these kinds, or not at all."""
    helpers, seen = helpers_of(acp), Seen()

    async def session_update(self: Any, params: Any) -> None:
        seen.updates.append(acp.encode(params.update))

    async def session_request_permission(self: Any, params: Any) -> Any:
        seen.questions.append(acp.encode(params))
        if not answers:
            await asyncio.Event().wait()
        return helpers.select_permission(params, *kinds)

    async def ext_method(self: Any, method: str, params: Any) -> Any:
        return None

    async def main() -> None:
        client = client_of(
            acp,
            session_update=session_update,
            session_request_permission=session_request_permission,
            ext_method=ext_method,
        )
        async with pair(acp, agent_of(acp), client) as both:

            def start(title: str = "Edit", **given: Any) -> Any:
                return helpers.tool_call(both.client, "s", title, tool_call_id="c", **given)

            try:
                await work(helpers, start)
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (the tests look at it)
                seen.error = error
            await settled()
            await both.client.ext_method("_seen", None)  # answered after all updates were handled

    run(main())
    return seen


async def settled() -> None:
    """Let all tasks run until they wait for something."""
    for _ in range(20):
        await asyncio.sleep(0)


def first(sources: SchemaChoice, **given: Any) -> dict[str, Any]:
    """The update that introduces the call."""
    kind = "tool_call_update" if sources is V2 else "tool_call"
    return {"sessionUpdate": kind, "toolCallId": "c", "title": "Edit", "status": "in_progress", **given}


def then(**given: Any) -> dict[str, Any]:
    """A later update."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": "c", **given}


def shown(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}


def cancelled(sources: SchemaChoice) -> dict[str, Any]:
    return then(status="cancelled" if sources is V2 else "failed")


# --- How a block ends ------------------------------------------------------------------------------------------------


@EVERY_BASE
def test_success(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start(kind="edit", content=["a"], locations=["/a"], raw_input={"x": 1}):
            pass

    seen = watch(packages(sources), work)
    assert seen.error is None
    assert seen.updates == [
        first(sources, kind="edit", content=[shown("a")], locations=[{"path": "/a"}], rawInput={"x": 1}),
        then(status="completed"),
    ]


@EVERY_BASE
def test_a_block_that_raises_fails_without_saying_why(sources: SchemaChoice, packages: Packages) -> None:
    error = ValueError("a secret")

    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start():
            raise error

    seen = watch(packages(sources), work)
    assert seen.error is error
    assert seen.updates == [first(sources), then(status="failed")]


@EVERY_BASE
def test_the_author_says_why_it_fails(sources: SchemaChoice, packages: Packages) -> None:
    error = ValueError("a secret")

    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start() as call:
            await call.fail("There is no such file.")
            raise error

    seen = watch(packages(sources), work)
    assert seen.error is error
    assert seen.updates == [first(sources), appended(sources, ["There is no such file."]), then(status="failed")]


def appended(sources: SchemaChoice, texts: list[str]) -> dict[str, Any]:
    """The update after the last of `texts` was added."""
    if sources is V2:
        return {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": shown(texts[-1])}
    return then(content=list(map(shown, texts)))


@EVERY_BASE
def test_a_block_that_is_cancelled(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async def call() -> None:
            async with start():
                await asyncio.sleep(100)

        task = asyncio.create_task(call())
        await settled()
        task.cancel()
        await task

    seen = watch(packages(sources), work)
    assert isinstance(seen.error, asyncio.CancelledError)
    assert seen.updates == [first(sources), cancelled(sources)]


@EVERY_BASE
def test_a_timeout_of_the_agent_is_a_failure(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start():
            await asyncio.wait_for(asyncio.sleep(100), 0)

    seen = watch(packages(sources), work)
    assert isinstance(seen.error, asyncio.TimeoutError)
    assert seen.updates == [first(sources), then(status="failed")]


@EVERY_BASE
def test_a_status_that_the_author_reports_is_the_last_one(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start() as call:
            await call.update(status="completed", raw_output=[1])
            raise ValueError

    seen = watch(packages(sources), work)
    assert seen.updates == [first(sources), then(status="completed", rawOutput=[1])]


@EVERY_BASE
def test_a_generator_that_is_closed(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async def steps() -> AsyncGenerator[int, None]:
            async with start():
                yield 1

        generator = steps()
        await generator.__anext__()
        await generator.aclose()

    seen = watch(packages(sources), work)
    assert seen.error is None
    assert seen.updates == [first(sources), cancelled(sources)]


@EVERY_BASE
def test_a_coroutine_that_is_closed(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        call = start()
        await call.__aenter__()

        async def block() -> None:
            try:
                await asyncio.sleep(0)
            except GeneratorExit as error:
                await call.__aexit__(GeneratorExit, error, None)
                raise

        coroutine = block()
        coroutine.send(None)
        coroutine.close()

    seen = watch(packages(sources), work)
    assert seen.error is None
    assert seen.updates == [first(sources), cancelled(sources)]


# --- Progress --------------------------------------------------------------------------------------------------------


@EVERY_BASE
def test_progress(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start(status="pending", content=["a"]) as call:
            await call.update(status="in_progress", title="Edit it", locations=["/a"])
            await call.add("b")
            await call.add()
            await call.update(content=[helpers.text("c"), helpers.terminal("t")])
            await call.add(helpers.text("d"))
            await call.update(locations=[], raw_output=None)

    seen = watch(packages(sources), work)
    terminal = {"type": "terminal", "terminalId": "t"}
    if sources is V2:
        last = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": shown("d")}
    else:
        last = then(content=[shown("c"), terminal, shown("d")])
    assert seen.updates == [
        first(sources, status="pending", content=[shown("a")]),
        then(status="in_progress", title="Edit it", locations=[{"path": "/a"}]),
        appended(sources, ["a", "b"]),
        then(content=[shown("c"), terminal]),
        last,
        then(locations=[], rawOutput=None),
        then(status="completed"),
    ]


@EVERY_BASE
def test_several_tasks_report_progress(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start() as call:
            await asyncio.gather(call.add("a"), call.add("b"), call.add("c"))

    seen = watch(packages(sources), work)
    added = [appended(sources, texts) for texts in (["a"], ["a", "b"], ["a", "b", "c"])]
    assert seen.updates == [first(sources), *added, then(status="completed")]


@EVERY_BASE
def test_each_call_has_an_id_of_its_own(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        ids = {helpers.tool_call(None, "s", "Edit").reported.tool_call_id for _ in range(100)}
        assert len(ids) == 100

    assert watch(packages(sources), work).error is None


@EVERY_BASE
def test_a_report_that_is_too_large_is_as_if_it_was_not_made(sources: SchemaChoice, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)

    async def main() -> list[Any]:
        near, far = acp.memory_transports()
        connection, agent = started(acp, agent_of(acp), near, acp.ConnectionOptions(max_message_bytes=1000))
        async with helpers.tool_call(agent.client, "s", "Edit", tool_call_id="c") as call:
            with pytest.raises(acp.MessageTooLarge):
                await call.add("x" * 1000)
            with pytest.raises(acp.MessageTooLarge):
                await call.update(status="failed", raw_output="x" * 1000)
            await call.add("a")
        messages = [json.loads(await far.read()) for _ in range(3)]
        await far.close()
        await connection.close()
        return [message["params"]["update"] for message in messages]

    assert run(main()) == [first(sources), appended(sources, ["a"]), then(status="completed")]


# --- Permission ------------------------------------------------------------------------------------------------------


def states(sources: SchemaChoice, *names: str) -> list[dict[str, Any]]:
    """The states of the session that only protocol 2 has."""
    return [{"sessionUpdate": "state_update", "state": name} for name in names] if sources is V2 else []


async def ask(helpers: Any, start: Callable[..., Any]) -> None:
    async with start(kind="edit", status="pending", content=["a"]) as call:
        if await call.permission():
            await call.add("b")


@EVERY_BASE
def test_permission_is_given(sources: SchemaChoice, packages: Packages) -> None:
    seen = watch(packages(sources), ask, kinds=("allow_once",))
    assert seen.error is None
    assert seen.updates == [
        first(sources, kind="edit", status="pending", content=[shown("a")]),
        *states(sources, "requires_action", "running"),
        then(status="in_progress"),
        appended(sources, ["a", "b"]),
        then(status="completed"),
    ]
    call = {"toolCallId": "c", "title": "Edit", "kind": "edit", "status": "pending", "content": [shown("a")]}
    about = {"title": "Edit", "subject": {"type": "tool_call", "toolCall": call}}
    options = [
        {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
        {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
    ]
    about = about if sources is V2 else {"toolCall": call}
    assert seen.questions == [{"sessionId": "s", "options": options, **about}]


@EVERY_BASE
@pytest.mark.parametrize("kinds", [("reject_once",), ()], ids=["refused", "cancelled"])
def test_permission_is_not_given(sources: SchemaChoice, kinds: tuple[str, ...], packages: Packages) -> None:
    seen = watch(packages(sources), ask, kinds=kinds)
    assert seen.error is None
    assert seen.updates == [
        first(sources, kind="edit", status="pending", content=[shown("a")]),
        *states(sources, "requires_action", "running"),
        then(status="failed"),
    ]


@EVERY_BASE
def test_the_last_answer_decides(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        async with start() as call:
            assert not await call.permission(helpers.permission_options("reject_once", "reject_always"))
            answer = await call.permission(helpers.permission_options("allow_always", "reject_once"))
            assert answer.option.kind == "allow_always"

    seen = watch(packages(sources), work, kinds=("allow_always", "reject_always"))
    assert seen.error is None
    assert seen.updates[-1] == then(status="completed")


@EVERY_BASE
def test_a_call_that_is_cancelled_while_the_user_is_asked(sources: SchemaChoice, packages: Packages) -> None:
    async def work(helpers: Any, start: Callable[..., Any]) -> None:
        task = asyncio.create_task(ask(helpers, start))
        await settled()
        task.cancel()
        await task

    seen = watch(packages(sources), work, answers=False)
    assert isinstance(seen.error, asyncio.CancelledError)
    assert len(seen.questions) == 1
    assert seen.updates == [
        first(sources, kind="edit", status="pending", content=[shown("a")]),
        *states(sources, "requires_action"),
        cancelled(sources),
    ]


# --- A peer that does not read, and one that has gone ----------------------------------------------------------------


@pytest.mark.parametrize("sources", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("reports", ["start", "end", "update"])
def test_a_report_is_not_lost_when_the_task_is_cancelled(
    sources: SchemaChoice, reports: str, packages: Packages
) -> None:
    """The transport has room for one message, so each report waits until the one before is read."""
    acp = packages(sources)
    helpers = helpers_of(acp)

    async def call(stub: Any, filler: bool) -> None:
        if filler:
            await stub.ext_notification("_filler", None)
        async with helpers.tool_call(stub, "s", "Edit", tool_call_id="c") as call:
            if reports == "update":
                await call.update(status="completed", raw_output=1)

    async def main() -> list[Any]:
        near, far = acp.memory_transports(1)
        connection, agent = started(acp, agent_of(acp), near)
        task = asyncio.create_task(call(agent.client, reports == "start"))
        await settled()
        assert not task.done()
        task.cancel()
        await settled()
        messages = [json.loads(await far.read()) for _ in range(3 if reports == "start" else 2)]
        await asyncio.wait([task])
        assert task.cancelled()
        await far.close()
        await connection.close()
        return [message["params"]["update"] for message in messages if message["method"] == "session/update"]

    end = {"start": cancelled(sources), "end": then(status="completed")}
    assert run(main()) == [first(sources), end.get(reports, then(status="completed", rawOutput=1))]


@EVERY_BASE
@pytest.mark.parametrize("error", [None, ValueError("the cause"), asyncio.CancelledError()], ids=repr)
def test_the_connection_is_lost(sources: SchemaChoice, error: BaseException | None, packages: Packages) -> None:
    """Then the end cannot be reported. That is raised, unless the block has raised something itself."""
    acp = packages(sources)
    helpers = helpers_of(acp)

    async def main() -> BaseException:
        near, far = acp.memory_transports()
        connection, agent = started(acp, agent_of(acp), near)
        try:
            async with helpers.tool_call(agent.client, "s", "Edit"):
                await far.close()
                await connection.close()
                if error is not None:
                    raise error
        except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001 (the test looks at it)
            return raised
        raise AssertionError

    raised = run(main())
    if error is None:
        assert isinstance(raised, acp.ConnectionClosed)
    else:
        assert raised is error


@EVERY_BASE
def test_a_client_that_is_gone_while_it_is_asked(sources: SchemaChoice, packages: Packages) -> None:
    acp = packages(sources)
    helpers = helpers_of(acp)

    async def main() -> None:
        near, far = acp.memory_transports()
        connection, agent = started(acp, agent_of(acp), near)

        async def call() -> None:
            async with helpers.tool_call(agent.client, "s", "Edit") as call:
                await call.permission()

        task = asyncio.create_task(call())
        await settled()
        await far.close()
        with pytest.raises(acp.ConnectionClosed):
            await task
        await connection.close()

    run(main())
