"""Processes that misbehave: `odd.py BEHAVIOUR`. Each writes to the diary once it is ready, if it gets that far."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from puppet import note

IGNORING = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"


def dies_at_start() -> None:
    for number in range(30):
        print(f"line {number}", file=sys.stderr)
    sys.exit("no key is set")


def ends_at_once() -> None:
    """As an agent that was told not to run: no word, exit code 0."""


def ignores_eof() -> None:
    signal.signal(signal.SIGTERM, lambda *_: (note("SIGTERM"), sys.exit(7)))
    note("ready")
    while True:
        time.sleep(600)


def ignores_everything() -> None:
    signal.signal(signal.SIGTERM, lambda *_: note("SIGTERM"))
    process = subprocess.Popen([sys.executable, "-c", IGNORING], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    note(str(process.pid))
    while True:
        time.sleep(600)


def leaves_a_daemon() -> None:
    """Ends at EOF; what it started does not, and holds on to stderr."""
    process = subprocess.Popen([sys.executable, "-c", IGNORING], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    note(str(process.pid))
    sys.stdin.read()
    os._exit(0)


_started: list[subprocess.Popen[bytes]] = []  # Python complains of those that are forgotten


def _start_child() -> int:
    """Start a process that holds on to stdin, stdout and stderr, and ends by SIGKILL alone."""
    waiting, ready = os.pipe()
    program = (
        f"import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.close({ready}); time.sleep(600)"
    )
    _started.append(subprocess.Popen([sys.executable, "-c", program], pass_fds=[ready]))
    os.close(ready)
    os.read(waiting, 1)
    return _started[-1].pid


def leaves_a_child() -> None:
    """Ends in the middle of a request; what it started lives on."""
    note(str(_start_child()))
    os.read(0, 1)
    print("no key is set", file=sys.stderr, flush=True)
    os._exit(3)


def answers_and_leaves_a_child() -> None:
    """Writes an update, waits for a message, and ends after 50 more and an answer.

    These fit in the pipe and in the buffer of the client, of 64 KiB and of 128 KiB.
    """
    number = json.loads(sys.stdin.readline())["id"]
    note(str(_start_child()))
    content = {"type": "text", "text": "x" * 3300}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    params = {"sessionId": "s", "update": update}
    for count in range(51):
        print(json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}), flush=count == 0)
        if count == 0:
            sys.stdin.readline()
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": {"stopReason": "end_turn"}}), flush=True)
    os._exit(0)


def says_goodbye() -> None:
    """As an agent that nobody keeps any more."""
    for number in range(30):
        print(f"line {number}")
    print("\x1b[1mThis agent\x1b[0m is no longer maintained: install another one", "y" * 5000)


def closes_stdout() -> None:
    os.close(1)
    note("ready")
    sys.stdin.read()
    os._exit(0)


def writes_rubbish() -> None:
    """Prints banners and broken messages around an honest answer."""
    for line in sys.stdin:
        message = json.loads(line)
        if "method" not in message:
            continue
        sys.stdout.buffer.write(b'Welcome to this agent!\n\xff\xfe\x00\n[1, 2\n{}\n{"id": 1.5}\n[]\nnull\n')
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"protocolVersion": 1}}
        print('{"jsonrpc": "2.0", "id": 1000, "result": {}}', json.dumps(answer), sep="\n", flush=True)


def reads_slowly() -> None:
    """Does not read at first, and then a little at a time."""
    time.sleep(1)
    total = 0
    while chunk := os.read(0, 2**16):
        total += len(chunk)
        time.sleep(0.0005)
    note(f"read {total}")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
