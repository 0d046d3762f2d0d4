"""The files that users name: only regular ones of a limited size are read, and what is no schema is not printed."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from acpgen.diagnostics import InputError
from acpgen.files import open_file, read_file
from tests.command_line import run_acpgen

_HANGS = 60
"""Seconds after which a read counts as hanging."""
SECRET = "hunter2hunter2"

pytestmark = pytest.mark.needs("posix")


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Fails a test that waits for a writer."""

    def fail(*_: object) -> NoReturn:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(_HANGS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _socket(path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, socket.socket(socket.AF_UNIX) as server:
        patch.chdir(path.parent)  # the address of a socket is short
        server.bind(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = pytest.mark.parametrize(
    ("make", "kind"), [(Path.mkdir, "folder"), (_pipe, "named pipe"), (_socket, "socket"), (_device, "device")]
)
COMMANDS = [
    "build --schema odd --out acp",
    "build --extension ./odd --out acp",
    "check --schema odd --out acp",
    "check --config odd",
    "methods --extension ./odd",
    "build --flavour pydantic --schema odd --out models",
    "rfd extract odd --out x.json",
    "trace odd",
    "diff v1/2026-11-02 v1/2026-11-02 --source odd",
    "diff v1/2026-11-02 v1/2026-11-02 --extension ./odd",
]


@KINDS
@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_is_not_read(tmp_path: Path, make: Callable[[Path], None], kind: str, command: str) -> None:
    make(tmp_path / "odd")
    ran = run_acpgen(*command.split(), cwd=tmp_path)
    assert (ran.code, ran.stdout) == (2, "")
    assert f"odd: it is a {kind}, and no file [" in ran.stderr
    assert "hint: " in ran.stderr


@KINDS
@pytest.mark.parametrize("side", ["odd v1/2026-11-02", "v1/2026-11-02 odd"])
def test_nor_is_it_compared(tmp_path: Path, make: Callable[[Path], None], kind: str, side: str) -> None:
    make(tmp_path / "odd")
    ran = run_acpgen("diff", *side.split(), cwd=tmp_path)
    assert ran.code == 2
    assert "odd" in ran.stderr, kind


@pytest.mark.parametrize("make", [_pipe, _socket])
def test_nor_are_files_in_the_way_of_output(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "acp").mkdir()
    make(tmp_path / "acp" / "other.py")
    make(tmp_path / "acp" / "__init__.py")
    ran = run_acpgen("build", "--flavour", "typeddict", "--out", "acp", cwd=tmp_path)
    assert (ran.code, "__init__.py" in ran.stderr) == (2, True)


@pytest.mark.parametrize("text", [f"PATH=/bin\0TOKEN={SECRET}\0", f'"{SECRET}', f"123{SECRET}", f'["{SECRET}", x]'])
@pytest.mark.parametrize("command", ["check --schema odd --out acp", "check -e ./odd --out acp", "diff odd v1/0.10.8"])
def test_what_is_no_json_object_is_not_printed(tmp_path: Path, text: str, command: str) -> None:
    (tmp_path / "odd").write_text(text)
    ran = run_acpgen(*command.split(), cwd=tmp_path)
    assert ran.code == 2
    assert SECRET not in ran.stderr + ran.stdout


@pytest.mark.parametrize("command", ["check --schema odd --out acp", "check -e ./odd --out acp", "diff odd v1/0.10.8"])
def test_nor_is_another_json_object(tmp_path: Path, command: str) -> None:
    (tmp_path / "odd").write_text(json.dumps({"auths": {"example.org": {"auth": SECRET}}}))
    ran = run_acpgen(*command.split(), cwd=tmp_path)
    assert ran.code == 2
    assert SECRET not in ran.stderr + ran.stdout


def test_the_place_of_a_mistake_in_json_is_shown(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text('{\n  "$defs": nothing\n}\n')
    ran = run_acpgen("check", "--schema", "odd", "--out", "acp", cwd=tmp_path)
    assert ran.stderr.startswith('odd:2:12: error: not JSON: Expecting value [bad-json]\n  2 | "$defs": nothing\n')


def test_a_configuration_that_is_another_file_is_not_printed(tmp_path: Path) -> None:
    (tmp_path / "environment").write_text(f"PWD=/acpgen\0TOKEN={SECRET}")
    (tmp_path / "pyproject.toml").symlink_to("environment")
    ran = run_acpgen("check", cwd=tmp_path)
    assert (ran.code, SECRET in ran.stderr, "[bad-toml]" in ran.stderr) == (2, False, True)


def test_a_text_is_no_memory_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text(f"PATH=/bin\0TOKEN={SECRET}\0```json\0")
    ran = run_acpgen("rfd", "extract", "odd", "--out", "x.json", cwd=tmp_path)
    assert (ran.code, SECRET in ran.stderr, "[not-text]" in ran.stderr) == (2, False, True)


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # more than there is memory
    with pytest.raises(InputError, match="large is larger than 1 MiB"):
        read_file(path, label="large", most=1 << 20)
    ran = run_acpgen("check", "--schema", path, "--out", "acp", cwd=tmp_path)
    assert "[file-too-large]" in ran.stderr
    ran = run_acpgen("check", "--config", path, cwd=tmp_path)
    assert "[file-too-large]" in ran.stderr


def test_a_file_without_a_size_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(b"x" * 100)
    with open_file(path, label="growing") as stream:
        assert len(stream.read()) == 100
    with pytest.raises(InputError, match="growing is larger than 99 bytes"):
        read_file(path, label="growing", most=99)
