"""The chat of `acpgen init --role client` in a terminal, with the keys that its user presses."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.command_line import run_acpgen

pytestmark = pytest.mark.needs("posix")

SECONDS = 300.0
"""How long a chat may take before it counts as hanging."""
LEADER = "import os, sys; os.open(os.ttyname(0), os.O_RDWR); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
"""Makes the terminal that of the process, so that Ctrl-C reaches it."""
CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A terminal with the chat in it."""

    def __init__(self, process: subprocess.Popen[bytes], keys: int) -> None:
        self.process = process
        self._keys = keys

    def press(self, keys: str) -> None:
        os.write(self._keys, keys.encode())

    def until(self, text: str) -> str:
        """What is shown up to a text."""
        found = ""
        while not found.endswith(text):
            try:
                byte = os.read(self._keys, 1)
            except OSError:  # that is the end of a terminal on Linux
                byte = b""
            assert byte, f"no {text!r} in {found!r}"
            found += byte.decode("ascii", "replace").replace("\r", "")
        return found

    def end(self) -> int:
        return self.process.wait(SECONDS)


@pytest.fixture(name="project", scope="module", params=[1, 2], ids=["v1", "v2"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project for one of the versions."""
    home = tmp_path_factory.mktemp("terminal")
    ran = run_acpgen("init", home / "my-client", "--role=client", f"--protocol={request.param}", cwd=home)
    assert ran.code == 0, ran.stderr
    return home / "my-client"


@contextmanager
def chat_of(project: Path, *options: str) -> Iterator[Terminal]:
    keys, screen = os.openpty()
    agent = [sys.executable, "tests/fake_agent.py", *options]
    environment = {**os.environ, "PYTHONPATH": "src", "PYTHONUTF8": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", LEADER, "-m", "my_client", *agent],
        cwd=project,
        env=environment,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    ) as process:
        os.close(screen)
        too_long = threading.Timer(SECONDS, process.kill)
        too_long.start()
        try:
            yield Terminal(process, keys)
        finally:
            too_long.cancel()
            process.kill()
            os.close(keys)


def test_the_user_logs_in_and_sees_what_the_agent_does(project: Path) -> None:
    with chat_of(project, "login") as chat:
        assert "1  The keyring" in chat.until("number> ")
        chat.press("1\n")
        chat.until("\n> ")
        chat.press("edit\n")
        assert "\n-colour\n+color\n" in chat.until("[end_turn]\n> ")
        chat.press("run\n")
        assert "from a command" in chat.until("[end_turn]\n> ")
        chat.press("Hello\n")
        assert "1  Allow once" in chat.until("number> ")
        chat.press("1\n")
        assert "Got allow_once." in chat.until("[end_turn]\n> ")
        chat.press(CTRL_D)
        assert chat.end() == 0


def test_the_user_fills_in_a_form(project: Path) -> None:
    with chat_of(project) as chat:
        chat.until("> ")
        chat.press("form\n")
        assert "\nThe agent asks for values.\n  Where to?\n  1  Answer\n  2  Decline\n" in chat.until("number> ")
        chat.press("1\n")
        assert "Port: (integer)" in chat.until("value> ")
        chat.press("10\n")
        assert "expected at most 9" in chat.until("value> ")
        chat.press("9\n")
        assert "1  here\n  2  there\n" in chat.until("value> ")
        chat.press("2\n")
        assert "'content': {'port': 9, 'place': 'there'}" in chat.until("[end_turn]\n> ")
        chat.press("form\n")
        chat.until("number> ")
        chat.press(CTRL_C)
        chat.until("\n> ")


def test_ctrl_c_cancels_once_and_leaves_at_the_second(project: Path) -> None:
    """At once where nothing goes on, and where the agent does not end its work."""
    with chat_of(project) as chat:
        chat.until("> ")
        chat.press("Hello\n")
        chat.until("number> ")
        chat.press(CTRL_C)
        assert "Stopped." in chat.until("[cancelled]\n> ")
        chat.press(CTRL_C)
        assert chat.end() == 0
    with chat_of(project) as chat:
        chat.until("> ")
        chat.press("hang\n")
        chat.until("number> ")
        chat.press(CTRL_C)
        chat.until("Stopped.")
        chat.press(CTRL_C)
        assert chat.end() == 130


PRESSED = """
import asyncio, signal, threading
from my_client.terminal import on_interrupt

def press() -> None:
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

async def main() -> None:
    pressed = asyncio.Event()
    with on_interrupt(pressed.set):
        threading.Timer(0.2, press).start()
        await pressed.wait()

asyncio.run(main())
"""


def test_a_signal_that_another_thread_gets_wakes_the_event_loop(project: Path) -> None:
    """The same happens where Ctrl-C comes just before the loop begins to wait."""
    environment = {**os.environ, "PYTHONPATH": "src"}
    subprocess.run([sys.executable, "-c", PRESSED], cwd=project, env=environment, timeout=SECONDS, check=True)
