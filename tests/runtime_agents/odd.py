"""What is hardly an agent: `odd.py BEHAVIOUR`. It writes to the diary once it is ready, if it gets that far."""

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
        sys.stdout.buffer.write(b"Welcome to this agent!\n\xff\xfe\x00\n[1, 2\n{}\n[]\nnull\n")
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
