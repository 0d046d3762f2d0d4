"""What the helpers keep of a peer does not grow with what it sends: every text of every method, in a process."""

from __future__ import annotations

import asyncio
import gc
import json
import tracemalloc
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import pytest

from tests.flooding import Case, answers, cases, marked
from tests.proxy.between import between, forwarding, package, proxy_of, unchanged
from tests.runtime_agents import PATIENCE, AgentProcess, command, environment
from tests.runtime_support import V1, V2, run
from tests.support import Packages

pytestmark = pytest.mark.needs("linux")

KIB, MIB = 2**10, 2**20
COUNT = 60
TEXT = 28 * KIB
"""Above the longest id that is kept, and below what `cwd` may have: such a message is accepted where it can be."""
GROWTH = 4 * MIB
"""What a process may take more after four times as many messages. Three times `COUNT` texts are 5 MiB."""
AGENT_KNOWS = {"cwd": "/", "additionalDirectories": [], "mcpServers": []}
CLIENT_KNOWS = {"command": "/bin/true", "args": [], "env": [], "cwd": "/"}
"""Params that must make sense, or nothing would come of the others."""
SOURCES = {"v1": V1, "v2": V2}
KEPT = {
    "v1": (
        "session/request_permission request RequestPermissionRequest",  # what is always allowed is remembered
        "session/update notification SessionUpdateAgentMessageChunk",  # the weight of a piece of text is guessed
    ),
    "v2": (
        "session/request_permission request RequestPermissionSubjectCommand",  # it is about a command of its own
        "session/update notification SessionUpdateToolCallUpdate",  # the weight of all other updates is measured
    ),
}
"""The messages to a client that are kept, and bounded, in a way of their own."""
EVERY = [pytest.param(protocol, True, id=f"{protocol}-all", marks=pytest.mark.deep) for protocol in SOURCES]


class Flooded:
    """The side that is tested, in a process. What it asks gets answers with large texts."""

    def __init__(self, acp: Any, role: str, folder: Path) -> None:
        # each large text is a mapping of its own, which is given back when it is freed
        env = environment(acp, MALLOC_MMAP_THRESHOLD_=str(8 * KIB), PYTHONASYNCIODEBUG="")
        arguments = [each for each in command("hoarder.py", role, str(folder)) if each not in ("-X", "dev")]
        self.process = AgentProcess(arguments, env, folder / "log")
        table = acp.CLIENT_METHODS if role == "agent" else acp.AGENT_METHODS
        self._answers = answers(table, acp)
        self.held: set[str] = set()
        """The methods whose requests get no answer."""
        self.usual: dict[str, Any] = {}
        """Answers in place of those with large texts."""
        self._lock = Lock()
        self._waiting: dict[str, Event] = {}
        self._results: dict[str, Any] = {}
        self._count = 0
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Flooded:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.process.kill()
        self._reader.join()  # before its descriptor is closed, and may be that of another process
        self.process.__exit__(*error)

    def write(self, line: bytes) -> None:
        """Send a line."""
        with self._lock:
            assert self.process.process.stdin is not None
            data = memoryview(line + b"\n")
            while data:
                data = data[self.process.process.stdin.write(data) :]  # type: ignore[attr-defined]

    def call(self, method: str, params: Any) -> Any:
        """Send a request, and wait for its answer."""
        return self.call_line(lambda key: json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params}))

    def call_line(self, line: Any) -> Any:
        """Send a request whose text `line` makes of its id, and wait for its answer."""
        self._count += 1
        key = f"call-{self._count}"
        done = self._waiting[key] = Event()
        text = line(key)
        self.write(text if isinstance(text, bytes) else text.encode())
        assert done.wait(PATIENCE), self.process.stderr[-3000:]
        del self._waiting[key]
        return self._results.pop(key)

    def memory(self) -> int:
        """The memory of the process, in bytes, when it has handled all that was sent."""
        self.call("_barrier", None)
        status = Path(f"/proc/{self.process.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) * KIB

    def flood(self, case: Case, start: int, count: int, *, size: int, known: Mapping[str, Any]) -> None:
        """Send a message so many times, each with other texts."""
        for number in range(start, start + count):
            if case.is_request:
                self.call_line(lambda key, n=number: case.line(n, size, known, id=key))
            else:
                self.write(case.line(number, size, known))

    def _read(self) -> None:
        while (message := self.process.read()) is not None:
            key = message.get("id")
            if "method" not in message:
                self._results[key] = message.get("result", message.get("error"))
                self._waiting[key].set()
            elif key is not None and message["method"] not in self.held:
                self._answer(key, message["method"])

    def _answer(self, key: Any, method: str) -> None:
        self._count += 1
        found = self.usual.get(method) or marked(self._answers.get(method, {}), self._count, TEXT)
        line = json.dumps({"jsonrpc": "2.0", "id": key, "result": found}).encode()
        Thread(target=self._write_late, args=(line,), daemon=True).start()  # the process must always be read

    def _write_late(self, line: bytes) -> None:
        with suppress(OSError, ValueError):  # the test is over
            self.write(line)


def grown(side: Flooded, case: Case, *, size: int = TEXT, known: Mapping[str, Any], count: int = COUNT) -> int:
    """How much more memory the process takes after four times as many messages."""
    side.flood(case, 0, count, size=size, known=known)
    before = side.memory()
    side.flood(case, count, 3 * count, size=size, known=known)
    return side.memory() - before


def too_much(found: Mapping[str, int], bound: int = GROWTH) -> dict[str, str]:
    """Those that have grown by more."""
    return {name: f"{size / MIB:.1f} MiB" for name, size in found.items() if size > bound}


def hello(acp: Any) -> dict[str, Any]:
    """The params of `initialize`."""
    if acp.PROTOCOL_VERSION == 1:
        return {"protocolVersion": 1}
    return {"protocolVersion": 2, "info": {"name": "flood", "version": "1"}}


def an_agent(acp: Any, folder: Path) -> tuple[Flooded, str]:
    """An agent, and a session that is open there."""
    side = Flooded(acp, "agent", folder)
    side.usual["session/request_permission"] = {"outcome": {"outcome": "cancelled"}}
    side.call("initialize", hello(acp))
    return side, side.call("session/new", {"cwd": "/", "mcpServers": []})["sessionId"]


def to_client(acp: Any, protocol: str, every: bool) -> list[Case]:
    """The messages to a client: every one, or those in `KEPT`."""
    found = {each.name: each for each in cases(acp.CLIENT_METHODS, acp)}
    return [*found.values()] if every else [found[name] for name in KEPT[protocol]]


def a_client(acp: Any, folder: Path) -> Flooded:
    """A client with the session "s", in which a turn goes on that nobody reads."""
    side = Flooded(acp, "client", folder)
    side.usual |= {"session/new": {"sessionId": "s"}, "session/prompt": {"messageId": "m"}}
    side.held |= {"session/prompt"} if acp.PROTOCOL_VERSION == 1 else set()
    side.call("_do", "begin")
    return side


@pytest.mark.full
@pytest.mark.parametrize(
    ("protocol", "is_known"),
    [
        # both protocols have the same store; what differs is whether there is a session to keep something in
        pytest.param("v1", True, id="v1-known"),
        pytest.param("v2", False, id="v2-unknown"),
        pytest.param("v1", False, id="v1-unknown", marks=pytest.mark.deep),
        pytest.param("v2", True, id="v2-known", marks=pytest.mark.deep),
    ],
)
def test_every_text_of_every_method_of_an_agent(
    packages: Packages, protocol: str, tmp_path: Path, is_known: bool
) -> None:
    """In a session that is open, and in sessions that are not."""
    acp: Any = packages(SOURCES[protocol])
    side, session = an_agent(acp, tmp_path)
    with side:
        ends = ("session/close", "session/delete")
        found = {
            case.name: grown(
                side,
                case,
                known=({**AGENT_KNOWS, "sessionId": session} if is_known and case.method not in ends else {}),
            )
            for case in cases(acp.AGENT_METHODS, acp)
            if case.method != "initialize"
        }
        assert not too_much(found)


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "every"), [("v1", False), ("v2", False), *EVERY])
def test_every_text_of_every_method_of_a_client(packages: Packages, protocol: str, tmp_path: Path, every: bool) -> None:
    """In a session that is open, which is given up when it has too much: each in a process of its own."""
    acp: Any = packages(SOURCES[protocol])
    found: dict[str, int] = {}
    for at, case in enumerate(to_client(acp, protocol, every)):
        (folder := tmp_path / str(at)).mkdir()
        with a_client(acp, folder) as side:
            found[case.name] = grown(side, case, known={**CLIENT_KNOWS, "sessionId": "s"})
    assert not too_much(found)


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "every"), [("v1", False), *EVERY])  # no session: no part of a protocol
def test_texts_about_sessions_that_a_client_does_not_know(
    packages: Packages, protocol: str, tmp_path: Path, every: bool
) -> None:
    acp: Any = packages(SOURCES[protocol])
    with a_client(acp, tmp_path) as side:
        found = {
            case.name: grown(side, case, known=CLIENT_KNOWS, size=64 * KIB, count=30)
            for case in to_client(acp, protocol, every)
        }
    assert not too_much(found)  # 90 texts are 5.6 MiB


def test_texts_that_would_be_kept_are_seen(packages: Packages, tmp_path: Path) -> None:
    """A few of the messages, in the quick tests: those for which something is kept."""
    acp: Any = packages(V1)
    for each in ("agent", "client"):
        (tmp_path / each).mkdir()
    chosen = {"session/new request NewSessionRequest", "terminal/create request CreateTerminalRequest"}
    chosen.add("session/update notification SessionUpdateToolCall")
    size, count = 64 * KIB, 20
    side, _ = an_agent(acp, tmp_path / "agent")
    with side:
        found = {
            case.name: grown(side, case, known={}, size=size, count=count)
            for case in cases(acp.AGENT_METHODS, acp)
            if case.name in chosen
        }
    side = a_client(acp, tmp_path / "client")
    with side:
        for case in cases(acp.CLIENT_METHODS, acp):
            if case.name in chosen:
                known = {**CLIENT_KNOWS, **({"sessionId": "s"} if case.method == "session/update" else {})}
                found[case.name] = grown(side, case, known=known, size=size, count=count)
    assert found.keys() == chosen
    assert not too_much(found, 3 * MIB)  # 60 texts are 3.8 MiB


@pytest.mark.full
@pytest.mark.parametrize(("protocol", "every"), [("v1", False), *EVERY])  # no session: no part of a protocol
def test_updates_before_a_session_is_known(packages: Packages, protocol: str, tmp_path: Path, every: bool) -> None:
    """While `session/new` is not answered: those of any session, up to 8 MiB."""
    acp: Any = packages(SOURCES[protocol])
    found: dict[str, int] = {}
    updates = [case for case in to_client(acp, protocol, every) if case.method == "session/update"]
    # they wait together, whatever they say
    for at, case in enumerate(updates if every else updates[:1]):
        (folder := tmp_path / str(at)).mkdir()
        side = Flooded(acp, "client", folder)
        side.held.add("session/new")
        side.call("_do", "begin")
        with side:
            found[case.name] = grown(side, case, known={}, size=256 * KIB, count=24)
    assert not too_much(found, GROWTH + 8 * MIB)  # 72 texts are 18 MiB


@pytest.mark.full
@pytest.mark.parametrize("protocol", ["v1", pytest.param("v2", marks=pytest.mark.deep)])  # v2 has one opening less
def test_answers_of_an_agent(packages: Packages, protocol: str, tmp_path: Path) -> None:
    """To all that opens, lists and logs in."""
    acp: Any = packages(SOURCES[protocol])
    side = Flooded(acp, "client", tmp_path)
    with side:

        def ask(count: int) -> int:
            for _ in range(count):
                side.call("_do", "open_and_list")
            return side.memory()

        before = ask(COUNT)
        assert ask(3 * COUNT) - before < GROWTH


@pytest.mark.full
def test_prompts_that_run_are_bounded(packages: Packages, tmp_path: Path) -> None:
    """In protocol 2 they are answered while their turns run: 128 MiB of them, and the next one is refused."""
    acp: Any = packages(V2)
    side = Flooded(acp, "waiting", tmp_path)
    with side:
        side.call("initialize", hello(acp))
        prompt = [{"type": "text", "text": "x" * 4 * MIB}]
        ends = [side.call("session/prompt", {"sessionId": f"s{at}", "prompt": prompt}) for at in range(60)]
        refused = [each for each in ends if "code" in each]
        assert 25 < len(refused) < 35
        assert "the prompts of all turns" in refused[0]["message"]
        side.call("_cancel", None)
        assert "messageId" in side.call("session/prompt", {"sessionId": "s", "prompt": prompt})


async def _relay(end: Any, found: Mapping[str, Any]) -> None:
    """Answer each request with large texts."""
    count = 0
    while (line := await end.read()) is not None:
        message = json.loads(line)
        if "id" in message and "method" in message:
            count += 1
            result = marked(found.get(message["method"], {}), count, TEXT)
            await end.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode())


async def _passed_on(end: Any, case: Case, numbers: range) -> tuple[int, int]:
    """The memory of this process after so many messages have gone through a proxy, and the size of each."""
    size = 0
    for number in numbers:
        line = case.line(number, TEXT, {}, **({"id": number} if case.is_request else {}))
        await end.write(line)
        if not case.is_request:
            await end.write(b'{"jsonrpc":"2.0","id":"barrier","method":"_barrier"}')
        size = len(line) + len(await end.read())
    gc.collect()
    return tracemalloc.get_traced_memory()[0], size


def kept_by(acp: Any, proxy: Any, *methods: str) -> dict[str, str]:
    """Of which messages a proxy keeps more than a few, from each of its sides, when four times as many have passed."""
    tables = acp.Proxy.FROM_CLIENT, acp.Proxy.FROM_AGENT

    async def main() -> dict[str, str]:
        found: dict[str, str] = {}
        async with between(acp, [proxy]) as stage:
            ends = stage.client.transport, stage.agent.transport
            for sender, table in enumerate(tables):
                answering = asyncio.ensure_future(_relay(ends[1 - sender], answers(table, acp)))
                for case in cases(table, acp):
                    if not methods or case.method in methods:
                        before, _ = await _passed_on(ends[sender], case, range(4))
                        after, size = await _passed_on(ends[sender], case, range(4, 16))
                        if after - before > 2 * size:  # one may still be in a buffer
                            found[case.name] = f"{(after - before) / size:.1f} of 12"
                answering.cancel()
        return found

    tracemalloc.start()
    try:
        return run(main())
    finally:
        tracemalloc.stop()


@pytest.mark.full
@pytest.mark.parametrize(
    ("protocol", "kind"),
    [
        # one that decodes what it passes on does all that the other one does; `proxy/test_proxy_engine.py` has that
        pytest.param(2, unchanged, id="2-typed"),
        pytest.param(1, forwarding, id="1-raw", marks=pytest.mark.deep),
        pytest.param(1, unchanged, id="1-typed", marks=pytest.mark.deep),
        pytest.param(2, forwarding, id="2-raw", marks=pytest.mark.deep),
    ],
)
def test_every_text_of_every_method_through_a_proxy(packages: Packages, protocol: int, kind: Any) -> None:
    acp: Any = package(packages, protocol)
    assert not kept_by(acp, kind(acp))


@pytest.mark.full
def test_texts_that_a_proxy_keeps_are_seen(packages: Packages) -> None:
    acp: Any = package(packages)
    kept: list[Any] = []

    async def from_client(self: Any, call: Any) -> Any:
        kept.append(call.params)
        return await call.forward()

    assert kept_by(acp, proxy_of(acp, from_client=from_client), "session/new")
