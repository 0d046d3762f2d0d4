"""Talk to an agent over pipes, with as little between it and the clock as Python allows, and check afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.spawn import FailedError, environment

CHUNK = 2**16
ANSWERED = b'"stopReason"'  # is in each answer to a prompt, and nowhere else
INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}
NEW = {"cwd": "/", "mcpServers": []}


def request(number: int, method: str, params: Any) -> bytes:
    """A request as it is on the wire."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def prompt(number: int, updates: int, *, turns: bool = False) -> bytes:
    """A prompt that is answered after so many updates, which have its number in them.

    With `turns` the agent gives up its event loop before each update, as one that streams tokens would.
    """
    text = {"type": "text", "text": f"p{number} {updates}{' turns' if turns else ''}"}
    return request(number, "session/prompt", {"sessionId": "session-1", "prompt": [text]})


class Conversation:
    """An agent in a process of its own. All that it has sent is in `received`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = command
        self._log = log
        self.received: list[bytes] = []
        self._asked: dict[int, int] = {}
        with log.open("wb") as stderr:
            start = time.perf_counter()
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, bufsize=0, env=environment()
            )
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
            self._call(request(0, "initialize", INITIALIZE))
            self.start_seconds = time.perf_counter() - start
        self._call(request(1, "session/new", NEW))

    def _read(self) -> bytes:
        data = os.read(self._out, CHUNK)
        if not data:
            self._process.wait()
            raise FailedError(f"{self._command}\n{self._log.read_text(encoding='utf-8', errors='replace')[-2000:]}")
        self.received.append(data)
        return data

    def _call(self, line: bytes) -> None:
        os.write(self._in, line)
        while not self._read().endswith(b"\n"):
            pass

    def prompts(self, count: int, updates: int, *, turns: bool = False) -> float:
        """The seconds that `count` prompts take, each sent when the one before it has been answered."""
        lines = self._prepare(count, updates, turns=turns)
        start = time.perf_counter()
        for line in lines:
            os.write(self._in, line)
            missing = updates + 1
            while missing:
                missing -= self._read().count(b"\n")
        return time.perf_counter() - start

    def pipelined(self, count: int, updates: int, window: int, *, turns: bool = False) -> float:
        """The seconds that `count` prompts take, of which `window` wait for their answers at any time."""
        lines = self._prepare(count, updates, turns=turns)
        start = time.perf_counter()
        os.write(self._in, b"".join(lines[:window]))
        sent, answered, tail = min(window, count), 0, b""
        while answered < count:
            data = tail + self._read()
            # what may be the beginning of the mark is looked at again, and is too short to hold all of it
            end = data.rfind(b"\n") + 1
            tail = data[end:]
            answered += data.count(ANSWERED, 0, end)
            wanted = min(count, answered + window)
            if sent < wanted:
                os.write(self._in, b"".join(lines[sent:wanted]))
                sent = wanted
        return time.perf_counter() - start

    def _prepare(self, count: int, updates: int, *, turns: bool) -> list[bytes]:
        first = len(self._asked) + 2
        self._asked.update(dict.fromkeys(range(first, first + count), updates))
        return [prompt(number, updates, turns=turns) for number in range(first, first + count)]

    def cpu_seconds(self) -> float:
        """What the agent has used of processors so far. Linux knows that to the nanosecond, for each thread."""
        threads = [path.read_text() for path in Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")]
        return sum(int(text.split()[0]) for text in threads) / 1e9

    def memory(self) -> float:
        """The resident memory of the agent in MiB."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS:"))

    def close(self) -> None:
        """End the agent, which has to end of itself when its stdin does."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self.received.append(self._process.stdout.read())
        self._process.stdout.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise FailedError(f"{self._command} does not end") from None

    def messages(self) -> list[Any]:
        """All that the agent has sent."""
        return [json.loads(line) for line in b"".join(self.received).splitlines()]

    def check(self) -> None:
        """Raise `FailedError` unless each prompt got its updates, in order, and then its answer."""
        messages = self.messages()
        told: dict[str, int] = {}
        answered: set[int] = set()
        for message in messages[2:]:
            if "method" in message:
                expect(message, update(*_label(message, told)))
            else:
                number = message["id"]
                answered.add(number)
                expect(message, {"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}})
                expect(told.get(f"p{number}", 0), self._asked[number])
        expect(answered, set(self._asked))
        expect(len(messages), 2 + sum(self._asked.values()) + len(self._asked))
        expect(messages[0]["result"]["protocolVersion"], 1)
        expect(messages[1]["result"], {"sessionId": "session-1"})


def _label(message: Any, told: dict[str, int]) -> tuple[str, int]:
    label = message["params"]["update"]["content"]["text"].partition(":")[0]
    told[label] = told.get(label, 0) + 1
    return label, told[label] - 1


def update(label: str, at: int) -> Any:
    """The update that each agent has to send."""
    content = {"type": "text", "text": f"{label}: piece {at} of what the agent has to say about it. "}
    params = {"sessionId": "session-1", "update": {"sessionUpdate": "agent_message_chunk", "content": content}}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def expect(found: Any, wanted: Any) -> None:
    """Raise `FailedError` unless the two are equal."""
    if found != wanted:
        raise FailedError(f"the agent sent {found!r} instead of {wanted!r}")
