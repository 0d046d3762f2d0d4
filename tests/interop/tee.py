"""Runs a command, and writes the lines on its stdin and stdout to a trace: python tee.py TRACE COMMAND ..."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any


def main() -> None:
    """Copy lines both ways until each side has closed its end."""
    with Path(sys.argv[1]).open("w", encoding="utf-8") as trace:
        process = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        lock = threading.Lock()

        def copy(sender: str, source: IO[bytes], target: IO[bytes]) -> None:
            for line in iter(source.readline, b""):
                record: dict[str, Any] = {"t": time.monotonic(), "from": sender, "msg": json.loads(line)}
                with lock:
                    trace.write(json.dumps(record) + "\n")
                target.write(line)
                target.flush()
            target.close()

        assert process.stdin is not None
        assert process.stdout is not None
        threading.Thread(target=copy, args=("client", sys.stdin.buffer, process.stdin)).start()
        copy("agent", process.stdout, sys.stdout.buffer)
        code = process.wait()
    sys.exit(code)


if __name__ == "__main__":
    main()
