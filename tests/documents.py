"""Documentation as tests read it: fenced blocks, which can be run again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r'^(?:<!-- not run: (.+?) -->\n)?```(\w+)(?: title="(\S+)")?\n(.*?)^```$', flags=re.DOTALL | re.MULTILINE
)
_PROMPT = "$ "
_COMMANDS = """\
set -e
start=$PWD
{}
[ "$PWD" = "$start" ] || {{ echo "these commands end in $PWD, where the next ones would run"; exit 1; }}
"""
"""Commands of a page: a reader types all blocks into one shell, so each block ends where it has begun."""


@dataclass(frozen=True)
class Block:
    """A fenced block: commands, or the text of a file, whose name is its title."""

    not_run: str
    """The reason why tests leave it out; usually empty."""
    language: str
    name: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The commands of a transcript."""
        return [line.removeprefix(_PROMPT) for line in self.text.splitlines() if line.startswith(_PROMPT)]


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a text in Markdown."""
    return [Block(*found) for found in _BLOCK.findall(text)]


def section(text: str, title: str) -> str:
    """The part of a text in Markdown that has this heading of the second level."""
    (found,) = (part for part in re.split(r"^(?=## )", text, flags=re.MULTILINE) if part.startswith(f"## {title}\n"))
    return found


@dataclass(frozen=True)
class Ran:
    """A transcript, and its text as it is now."""

    block: Block
    text: str


def play(found: Iterable[Block], folder: Path, environment: Mapping[str, str]) -> list[Ran]:
    """Write the files among the blocks, and run programs, commands and transcripts, one after the other."""
    played: list[Ran] = []
    for block in found:
        if block.not_run:
            continue
        if block.name:
            path = folder / block.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        if block.language == "console":
            played.append(_transcript(block, folder, environment))
        elif block.language in ("python", "sh"):
            _run(f"python {block.name}" if block.name else _COMMANDS.format(block.text), folder, environment)
    return played


def _transcript(block: Block, folder: Path, environment: Mapping[str, str]) -> Ran:
    text = "".join(f"{_PROMPT}{command}\n{_run(command, folder, environment)}" for command in block.commands)
    return Ran(block, text)


def _run(command: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The output of a command of the shell, which must succeed."""
    ran = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout}"
    return ran.stdout


def environment_with_acpgen(folder: Path) -> dict[str, str]:
    """An environment in which `acpgen` and `python` are those that run the tests, and in which git can commit."""
    folder.mkdir()
    for name, arguments in (("acpgen", "-m acpgen"), ("python", "")):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n', encoding="utf-8")
        program.chmod(0o755)
    paths = [path for path in (os.environ.get("PYTHONPATH"), str(Path(__file__).parent.parent)) if path]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}
    return {
        **inherited,
        **who_commits(),
        "PATH": os.pathsep.join([str(folder), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "100",
    }


def who_commits() -> dict[str, str]:
    """The variables with which git commits without the configuration of this machine."""
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in _WHO.items()}
    return {**who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


_WHO = {"NAME": "A", "EMAIL": "a@example.org"}
