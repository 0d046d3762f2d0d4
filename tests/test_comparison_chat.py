"""The same chat with the helpers and with the official Python SDK: what its user meets, and its length."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from acpgen.ir.model import Role
from tests.documents import section
from tests.needs import need
from tests.support import REPOSITORY, package_folder
from tests.test_comparison import PAGE, imported_names, lines_of_code

PROGRAMS = REPOSITORY / "tests" / "comparison" / "chats"
OURS, OFFICIAL = "ours.py", "official.py"
EACH = pytest.mark.parametrize("program", [OURS, OFFICIAL])
SECONDS = 300.0
"""How long a chat may take before it counts as hanging."""

pytestmark = pytest.mark.needs("posix")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, with the package that ours and the agent import."""
    home = tmp_path_factory.mktemp("chats") / "programs"
    shutil.copytree(PROGRAMS, home, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        package_folder(SchemaChoice(), roles=(Role.CLIENT,)),
        home / "acp_ours",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return home


class Chat:
    """A chat that runs, as its user has it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def until(self, text: str) -> str:
        """What is printed up to a text."""
        assert self.process.stdout is not None
        found = b""
        while not found.endswith(text.encode()):
            byte = self.process.stdout.read(1)
            assert byte, f"no {text!r} in {found.decode()!r}"
            found += byte
        return found.decode()

    def turn(self, line: str, *answers: str) -> str:
        """What is printed for a prompt, up to the next one."""
        self.type(line)
        for answer in answers:
            self.until("number> ")
            self.type(answer)
        return self.until("\n> ").removesuffix("\n> ").strip()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        self.process.communicate(timeout=SECONDS)
        return self.process.returncode


@contextmanager
def chat_of(program: str, programs: Path, folder: Path) -> Iterator[Chat]:
    if program == OFFICIAL:
        need("acp")
    command = [sys.executable, str(programs / program), sys.executable, str(programs / "agent.py")]
    environment = {**os.environ, "PYTHONPATH": str(programs), "PYTHONUTF8": "1"}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        too_long = threading.Timer(SECONDS, process.kill)
        too_long.start()
        try:
            chat = Chat(process)
            chat.until("> ")
            yield chat
        finally:
            too_long.cancel()
            process.kill()


# --- What the user meets --------------------------------------------------------------------------------------------


@EACH
def test_the_user_talks_with_the_agent(program: str, programs: Path, tmp_path: Path) -> None:
    """The agent wants a login first. An error does not end the chat."""
    with chat_of(program, programs, tmp_path) as chat:
        assert chat.turn("Hello") == "You said Hello.\n[end_turn]"
        assert chat.turn("fail") == "[Not today]"
        ran = chat.turn("run")
        assert ran.splitlines()[0] == "from a command"
        assert "It wrote 'from a command', and ended with 0." in ran
        assert chat.end() == 0


@EACH
@pytest.mark.parametrize(("answer", "status"), [("0", "completed"), ("1", "failed"), ("", "failed")])
def test_the_user_sees_the_change_and_decides(
    program: str, programs: Path, tmp_path: Path, *, answer: str, status: str
) -> None:
    with chat_of(program, programs, tmp_path) as chat:
        shown = chat.turn("edit", answer)
        assert f"* Edit notes.txt: {status}\n--- notes.txt\n" in shown
        assert "\n-colour\n+color\n" in shown
        assert (tmp_path / "notes.txt").exists() == (status == "completed")


@EACH
def test_files_outside_the_folder_are_refused(program: str, programs: Path, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    with chat_of(program, programs, tmp_path / "inside") as chat:
        assert chat.turn("outside", "0").startswith("Refused.")
    assert not (tmp_path / "notes.txt").exists()


@EACH
def test_ctrl_c_cancels_once_and_leaves_at_the_second(program: str, programs: Path, tmp_path: Path) -> None:
    with chat_of(program, programs, tmp_path) as chat:
        chat.type("wait")
        chat.until("Waiting.")
        chat.interrupt()
        assert chat.until("> ") == "\n[cancelled]\n> "
        assert chat.turn("Hello") == "You said Hello.\n[end_turn]"
        chat.type("wait forever")
        chat.until("Waiting.")
        chat.interrupt()
        chat.until("Still waiting.")
        chat.interrupt()
        assert chat.end() != 0


@EACH
def test_ctrl_c_closes_the_question(program: str, programs: Path, tmp_path: Path) -> None:
    with chat_of(program, programs, tmp_path) as chat:
        chat.type("edit")
        chat.until("number> ")
        chat.interrupt()
        assert "[cancelled]" in chat.until("\n> ")


# --- What the chat with the SDK forgets -------------------------------------------------------------------------------


@pytest.mark.parametrize(("program", "shown"), [(OURS, r"\xe9"), (OFFICIAL, r"\ufffd\xe9")])
def test_a_limit_of_output_cuts_at_characters(program: str, shown: str, programs: Path, tmp_path: Path) -> None:
    with chat_of(program, programs, tmp_path) as chat:
        assert f"It wrote '{shown}', and" in chat.turn("half")


@pytest.mark.parametrize(("program", "shown"), [(OURS, r"one\u2028one\n"), (OFFICIAL, r"one\u2028")])
def test_only_line_feeds_end_lines(program: str, shown: str, programs: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("one\N{LINE SEPARATOR}one\ntwo\n", encoding="utf-8")
    with chat_of(program, programs, tmp_path) as chat:
        assert f"It is '{shown}'." in chat.turn("first line")


@pytest.mark.parametrize(("program", "is_left"), [(OURS, False), (OFFICIAL, True)])
def test_no_process_is_left(program: str, is_left: bool, programs: Path, tmp_path: Path) -> None:
    """Not even those that a command has started. With the SDK, the command counts as running until they end."""
    with chat_of(program, programs, tmp_path) as chat:
        chat.type("leave")
        process = int(chat.until("\n"))
        try:
            if is_left:
                chat.interrupt()
            chat.until("]\n> ")
            assert chat.end() == 0
            assert is_running(process) == is_left
        finally:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def is_running(process: int) -> bool:
    """A process that has ended may stay in the table until its parent asks for it."""
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(found.stdout.strip()) and not found.stdout.startswith("Z")


# --- How long they are ------------------------------------------------------------------------------------------------


def measure(program: str) -> dict[str, int]:
    source = (PROGRAMS / program).read_text(encoding="utf-8")
    return {
        "lines that are not blank": lines_of_code(source),
        "characters": len(source),
        "imported names": imported_names(source),
    }


@pytest.mark.parametrize("name", ["lines that are not blank", "characters"])
def test_ours_is_at_most_half_as_long(name: str) -> None:
    assert 2 * measure(OURS)[name] <= measure(OFFICIAL)[name]


def test_the_table_has_these_figures(request: pytest.FixtureRequest) -> None:
    ours, official = measure(OURS), measure(OFFICIAL)
    rows = [f"| {name} | {official[name]:,} | {ours[name]:,} |" for name in ours]
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^\| .* \| [\d,]+ \| [\d,]+ \|$", section(text, "The same chat, twice"), flags=re.MULTILINE)
    if request.config.getoption("--accept-goldens"):
        PAGE.write_text(text.replace("\n".join(found), "\n".join(rows)), encoding="utf-8")
        return
    assert found == rows, "accept them with --accept-goldens"


@pytest.mark.full
@pytest.mark.parametrize("program", [OURS, "agent.py"])
def test_ours_is_typed(program: str, programs: Path) -> None:
    need("mypy")
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program], cwd=programs, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
