"""Tables of faults and what happens: of descriptors, peers and agents; on pipes, on sockets, and on both at once.

Each row is a test. Other tests go deeper where one row is not enough; this is the overview.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.runtime_agents import PATIENCE, Lines, command, complaints, environment
from tests.runtime_support import client_of, run, streams
from tests.support import Packages
from tests.test_dataclasses import SOURCES

pytestmark = [
    pytest.mark.every_python,
    pytest.mark.full,
    pytest.mark.needs("posix"),
]

LIMIT = 10_000
LIMITED = {"max_message_bytes": LIMIT, "finish_seconds": 0.05, "cleanup_seconds": 0.2}


@pytest.fixture(scope="module")
def acp(packages: Packages) -> ModuleType:
    return packages(SOURCES[1])


def rows(names: str, table: list[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """A test for each row; its first cell names it."""
    cells = [pytest.param(*row[1:], id=row[0]) for row in table]
    return pytest.mark.parametrize(names, cells)


def request(number: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def prompt(number: Any, text: str) -> bytes:
    return request(number, "session/prompt", sessionId="s", prompt=[{"type": "text", "text": text}])


def env_of(acp: ModuleType, **options: Any) -> dict[str, str]:
    return environment(acp, ACP_OPTIONS=json.dumps(options))


# --- Descriptors that are closed, full, or open for something else ---------------------------------------------------

INITIALIZE = request(1, "initialize", protocolVersion=1)
CHATTER = prompt(2, "chatter")  # prints in all ways that there are

DESCRIPTORS = [
    # fault, redirections, exit code, what is on stderr, how many lines are on stdout
    ("stdin is closed", "<&-", 0, "", 0),
    ("stdout is closed", ">&-", 1, "cannot write to stdout: Bad file descriptor", 0),
    ("stderr is closed", "2>&-", 0, "", 5),
    ("stdin and stderr are closed", "<&- 2>&-", 0, "", 0),
    ("stdout and stderr are closed", ">&- 2>&-", 1, "", 0),
    ("all three are closed", "<&- >&- 2>&-", 0, "", 0),
    ("stdout is full", ">/dev/full", 1, "cannot write to stdout: No space left on device", 0),
    ("stdout and stderr are full", ">/dev/full 2>/dev/full", 120, "", 0),
    ("stdin is a folder", "</", 1, "is a directory, cannot continue", 0),
    ("stdin cannot be read", "0>/dev/null", 1, "cannot read from stdin: Bad file descriptor", 0),
    ("stdout cannot be written", "1</dev/null", 1, "cannot write to stdout: Bad file descriptor", 0),
]


@pytest.mark.needs("linux")
@rows("redirections, code, stderr, lines", DESCRIPTORS)
def test_a_descriptor(acp: ModuleType, *, redirections: str, code: int, stderr: str, lines: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *command("puppet.py")],
        input=INITIALIZE + CHATTER if lines else INITIALIZE,
        env=env_of(acp),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == code, done.stderr.decode()
    said = done.stderr.decode()
    assert stderr in said
    assert "Traceback" not in said
    assert complaints(said) == []
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(messages) == lines


class Wire:
    """A puppet, and the client's end of the wire to it: raw bytes out, lines in."""

    def __init__(self, acp: ModuleType, carrier: str, folder: Path, **options: Any) -> None:
        self.stderr = folder / "stderr"
        self.sending, self.receiving, stdin, stdout = CARRIERS[carrier](folder)
        script = ("server.py", str(stdin)) if carrier == "serve_agent" else ("puppet.py",)
        with self.stderr.open("wb") as log:
            streams: dict[str, Any] = {"stdin": stdin, "stdout": stdout}
            if carrier == "serve_agent":
                streams = {"stdin": subprocess.DEVNULL, "pass_fds": [stdin]}
            self.process = subprocess.Popen(command(*script), env=env_of(acp, **options), stderr=log, **streams)
        for descriptor in {stdin, stdout}:
            os.close(descriptor)
        self._lines = Lines(self.receiving)

    def send(self, data: bytes) -> None:
        """Send bytes while what comes back is left to be read."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.sending, rest) :]

    def read(self) -> Any:
        """The next message; None at the end."""
        line = self._lines.next()
        return None if line is None else json.loads(line)

    def shut(self) -> None:
        """Say that nothing more comes, and go on reading."""
        if self.sending != self.receiving:
            os.close(self.sending)
            self.sending = self.receiving
        else:
            with contextlib.suppress(OSError), socket.socket(fileno=os.dup(self.sending)) as wire:
                wire.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Let go of all, as a peer that dies does."""
        for descriptor in {self.sending, self.receiving} - {-1}:
            os.close(descriptor)
        self.sending = self.receiving = -1

    def end(self) -> int:
        """Wait for the end of the puppet; returns its exit code."""
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
            self.close()


def two_pipes(folder: Path) -> tuple[int, int, int, int]:
    """The ends that send and receive, stdin and stdout."""
    stdin, sending = os.pipe()
    receiving, stdout = os.pipe()
    return sending, receiving, stdin, stdout


def two_sockets(folder: Path) -> tuple[int, int, int, int]:
    one, other = socket.socketpair(), socket.socketpair()
    return one[0].detach(), other[0].detach(), one[1].detach(), other[1].detach()


def one_socket(folder: Path) -> tuple[int, int, int, int]:
    ours, its = (end.detach() for end in socket.socketpair())
    return ours, ours, its, its


def one_terminal(folder: Path) -> tuple[int, int, int, int]:
    import tty

    ours, its = os.openpty()
    tty.setraw(its)
    return ours, ours, its, its


def pipe_and_terminal(folder: Path) -> tuple[int, int, int, int]:
    (stdin, sending), (receiving, _, stdout, _) = os.pipe(), one_terminal(folder)
    return sending, receiving, stdin, stdout


CARRIERS: dict[str, Callable[[Path], tuple[int, int, int, int]]] = {
    "two pipes": two_pipes,
    "two sockets": two_sockets,
    "one socket": one_socket,
    "one terminal": one_terminal,
    "a pipe and a terminal": pipe_and_terminal,
    "serve_agent": one_socket,
}


@pytest.mark.parametrize("carrier", ["two pipes", "one socket", "one terminal", "a pipe and a terminal"])
@pytest.mark.parametrize("blocks", [True, False], ids=["that block", "that do not block"])
def test_descriptors(
    acp: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, carrier: str, blocks: bool
) -> None:
    """More is written than fits; afterwards they block, or do not, as before."""
    kept = []

    def made(folder: Path) -> tuple[int, int, int, int]:
        found = make(folder)
        for descriptor in found[2:]:
            os.set_blocking(descriptor, blocks)
            kept.append(os.dup(descriptor))
        return found

    make = CARRIERS[carrier]
    monkeypatch.setitem(CARRIERS, carrier, made)
    wire = Wire(acp, carrier, tmp_path)
    wire.send(INITIALIZE)
    assert wire.read()["id"] == 1
    wire.send(prompt(2, "stream 400000 3"))
    assert [len(wire.read()["params"]["update"]["content"]["text"]) for _ in range(3)] == [400_000] * 3
    assert wire.read()["id"] == 2
    wire.process.terminate()
    assert wire.end() == 0, wire.stderr.read_text()
    assert [os.get_blocking(descriptor) for descriptor in kept] == [blocks, blocks]
    assert wire.stderr.read_text() == ""
    for descriptor in kept:
        os.close(descriptor)


# --- Peers of an agent -----------------------------------------------------------------------------------------------

DEEP = b"[" * 200_000 + b"]" * 200_000
CALL = b'{"jsonrpc": "2.0", "id": 7, "method": "%b", "params": %b}\n'

MESSAGES = [
    # fault, what the peer sends, codes of the errors that it is answered
    ("text", b"Hello!\n", [-32700]),
    ("no UTF-8", b'"\xff\xfe"\n', [-32700]),
    ("zeros", b"\0\0\n", [-32700]),
    ("half an object", b'{"jsonrpc": "2.0",\n', [-32700]),
    ("blank lines", b"\n \t\r\n\n", []),
    ("what is no object", b'null\n7\n"x"\n[]\n', [-32600] * 4),
    ("an empty object", b"{}\n", [-32600]),
    ("nested too deep", DEEP[: LIMIT // 2 - 2] + DEEP[-LIMIT // 2 :] + b"\n", [-32600]),
    ("nested params", CALL % (b"initialize", b"[" * 199 + b"]" * 199), [-32602]),
    ("a large message", CALL % (b"_x", b'"%b"' % (b"x" * 10 * LIMIT)), [-32600]),
    ("no method of that name", CALL % (b"no/such", b"{}"), [-32601]),
    ("a long name of a method", CALL % (b"n" * (LIMIT - 100), b"{}"), [-32601]),
    ("params that do not fit", CALL % (b"session/prompt", b'{"prompt": 5}'), [-32602]),
    ("an id that is none", b'{"jsonrpc": "2.0", "id": {}, "method": "_x"}\n', [-32600]),
    ("no version", b'{"id": 7, "method": "_x"}\n', [-32600]),
    ("an answer to nobody", b'{"jsonrpc": "2.0", "id": 99, "result": [[[]]]}\n', []),
    ("an error to nobody", b'{"jsonrpc": "2.0", "id": null, "error": 5}\n', []),
    ("a handler that raises", prompt(7, "fail"), [-32603]),
    ("a handler that does not exist", prompt(7, "nonsense"), [-32603]),
    ("a flood, of which the first hundred lines are answered", b"x\n" * 3000, [-32700] * 100),
]
ALIKE = ("two pipes", "two sockets", "one socket", "serve_agent")


@pytest.fixture(scope="module", params=ALIKE)
def wire(acp: ModuleType, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """One agent that has to bear all messages."""
    wire = Wire(acp, request.param, tmp_path_factory.mktemp("wire"), **LIMITED)
    yield wire
    wire.shut()
    assert wire.end() == 0
    assert complaints(wire.stderr.read_text()) == []


@rows("sent, codes", MESSAGES)
def test_a_message(wire: Wire, sent: bytes, codes: list[int]) -> None:
    sending = threading.Thread(target=wire.send, args=[sent + INITIALIZE])
    sending.start()
    found = []
    while (message := wire.read()).get("id") != 1:
        found.append(message["error"]["code"])
    sending.join()
    assert found == codes
    assert message["result"]["protocolVersion"] == 1


def in_the_middle(wire: Wire) -> None:
    wire.send(b'{"jsonrpc": "2.0", "id": 1, "meth')
    wire.shut()


def while_a_prompt_hangs(wire: Wire) -> None:
    wire.send(prompt(1, "hang"))
    wire.read()
    wire.shut()


def while_a_prompt_streams(wire: Wire) -> None:
    wire.send(prompt(1, "stream 1000 1000000"))
    wire.read()
    wire.close()


def never_reads(wire: Wire) -> None:
    wire.send(prompt(1, "stream 1000 1000000"))
    wire.shut()


def leaves_answers(wire: Wire) -> None:
    """A socket is reset then."""
    wire.send(INITIALIZE * 100)
    wire.read()
    wire.close()


def gone_before(wire: Wire) -> None:
    wire.send(prompt(1, "hang"))
    wire.close()


PEERS = [
    # fault, what the peer does; the agent ends in good order, whatever it is
    ("ends in the middle of a line", in_the_middle),
    ("ends while a prompt hangs", while_a_prompt_hangs),
    ("dies while a prompt streams", while_a_prompt_streams),
    ("never reads", never_reads),
    ("leaves answers unread", leaves_answers),
    ("dies before it is answered", gone_before),
]


@pytest.mark.parametrize("carrier", ALIKE)
@rows("does", PEERS)
def test_a_peer(acp: ModuleType, tmp_path: Path, carrier: str, does: Callable[[Wire], None]) -> None:
    wire = Wire(acp, carrier, tmp_path, **LIMITED)
    does(wire)
    assert wire.end() == 0
    said = wire.stderr.read_text()
    assert complaints(said) == []
    assert "Traceback" not in said


@pytest.mark.parametrize("carrier", ["two pipes", "one socket", "one terminal"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal(acp: ModuleType, tmp_path: Path, carrier: str, number: signal.Signals) -> None:
    wire = Wire(acp, carrier, tmp_path, **LIMITED)
    wire.send(prompt(1, "stream 1000 1000000"))
    wire.read()
    wire.process.send_signal(number)
    assert wire.end() == 0
    assert complaints(wire.stderr.read_text()) == []


# --- Agents of a client ----------------------------------------------------------------------------------------------

ANSWER = b'{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1}}\n'

AGENTS = [
    # fault, what the agent sends as an answer before it ends, what comes of it
    ("says nothing", b"", "ConnectionClosed"),
    ("prints text first", b"Welcome!\n[INFO] ready\n" + ANSWER, "answered"),
    ("prints much text first", b"Welcome!\n" * 2000 + ANSWER, "answered"),
    ("prints no UTF-8 first", b"\xff\xfe\0\n" + ANSWER, "answered"),
    ("sends half an object first", b"{\n" + ANSWER, "answered"),
    ("sends what is no message first", b"null\n{}\n[1]\n" + ANSWER, "answered"),
    ("answers somebody else", ANSWER.replace(b"0, ", b"1, "), "ConnectionClosed"),
    ("answers twice", ANSWER * 2, "answered"),
    ("answers half", ANSWER[:30], "ConnectionClosed"),
    ("answers without the end of the line", ANSWER[:-1], "answered"),
    ("answers with another type", ANSWER.replace(b"1}}", b'"1"}}'), "DecodeError"),
    ("answers with a result and an error", ANSWER[:-2] + b', "error": {}}\n', "InternalError"),
    (
        "answers with an error",
        b'{"jsonrpc": "2.0", "id": 0, "error": {"code": -32603, "message": ""}}\n',
        "InternalError",
    ),
    ("answers with what is no error", ANSWER[:27] + b'"error": 5}\n', "InternalError"),
    ("answers too deep", ANSWER.replace(b"1}}", DEEP + b"}}"), "InternalError"),
    ("answers too large", ANSWER.replace(b"1}}", b"1%b}}" % (b"0" * 2 * LIMIT)), "InternalError"),
]


async def outcome(acp: ModuleType, block: Any) -> str:
    async with block as agent:
        try:
            await agent.initialize(acp.InitializeRequest(protocol_version=1))
        except Exception as error:  # noqa: BLE001 (whatever it is)
            return type(error).__name__
        return "answered"


@pytest.mark.parametrize("carrier", ["spawn_agent", "connect"])
@rows("sent, expected", AGENTS)
def test_an_agent(acp: ModuleType, tmp_path: Path, *, carrier: str, sent: bytes, expected: str) -> None:
    path = tmp_path / "sent"
    path.write_bytes(sent)
    options = acp.ConnectionOptions(max_message_bytes=100 * LIMIT if b"[[" in sent else LIMIT)

    async def on_a_socket() -> str:
        (reader, writer), (its_reader, its_writer) = await streams()
        transport = acp.StreamTransport(reader, writer, max_message_bytes=options.max_message_bytes)

        async def answer() -> None:
            await its_reader.readline()
            its_writer.write(sent)
            await its_writer.drain()
            its_writer.write_eof()
            await its_reader.read()
            its_writer.close()

        agent = asyncio.create_task(answer())
        found = await outcome(acp, acp.connect(client_of(acp), transport, options=options))
        await agent
        return found

    async def as_a_process() -> str:
        script = ["sh", "-c", 'read line; cat "$0"; exec >&-; exec cat >&2', str(path)]
        return await outcome(acp, acp.spawn_agent(client_of(acp), script, options=options))

    assert run(on_a_socket() if carrier == "connect" else as_a_process()) == expected
