"""Where the benchmarks run: sizes, interpreters, and the package that is measured."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.contenders import Peers
from benchmarks.spawn import run_for_output

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
OURS = "acpgen"
PYTHON_SDK = "Python SDK"
TYPESCRIPT_SDK = "TypeScript SDK"
BARE = "asyncio + json"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is done for one number."""

    rounds: int = 15
    starts: int = 3  # of a process, of which the median is one sample
    codec_seconds: float = 0.05  # for each message and measure
    prompts: int = 2000
    warm_up: int = 500
    window: int = 16
    prompts_by_turns: int = 1000
    updates: int = 5000
    updates_by_turns: int = 2000
    remote_updates: int = 20_000
    remote_trips: int = 500
    remote_warm_up: int = 100


SMOKE = Sizes(
    rounds=1,
    starts=1,
    codec_seconds=0.0005,
    prompts=20,
    warm_up=2,
    window=4,
    prompts_by_turns=10,
    updates=50,
    updates_by_turns=20,
    remote_updates=60,
    remote_trips=5,
    remote_warm_up=2,
)


def acpgen_command() -> tuple[str, ...]:
    """How a user runs acpgen: its script where it is installed, `python -m acpgen` otherwise."""
    script = Path(sys.executable).with_name("acpgen")
    return (sys.executable, str(script)) if script.is_file() else (sys.executable, "-m", "acpgen")


def bundled_schema() -> Path:
    """The schema that `acpgen build` takes of itself: the newest of protocol 1."""
    return max((ROOT / "schema" / "v1").glob("20*/schema.json"))


@dataclass(frozen=True, kw_only=True)
class Lab:
    """What all parts share. `folder` is theirs to fill."""

    folder: Path
    sizes: Sizes
    peers: Peers

    @cached_property
    def package(self) -> Path:
        """The package for agents, generated from the bundled schema of protocol 1, with its bytecode."""
        return self._built("with_bytecode/demo", "--role", "agent", "--protocol", "1")

    @cached_property
    def package_of_both_sides(self) -> Path:
        """The package for both sides, also of remote connections, of protocol 1."""
        parts = ("--with", "turns", "--with", "sessions", "--with", "remote")
        return self._built("both_sides/demo", "--role", "both", *parts, "--protocol", "1")

    def _built(self, path: str, *options: str) -> Path:
        out = self.folder / path
        out.parent.mkdir(exist_ok=True)
        run_for_output([*acpgen_command(), "build", "--no-config", "--out", out, *options])
        run_for_output([self.peers.python, "-I", "-m", "compileall", "-q", out])
        return out

    @property
    def log(self) -> Path:
        """Where the output of contenders goes."""
        return self.folder / "log.txt"

    def in_python(self, script: str, *arguments: str | os.PathLike[str]) -> tuple[str, ...]:
        """The command that runs a script of ours in the interpreter of all Python contenders."""
        return (self.peers.python, "-I", str(HERE / script), *(os.fspath(each) for each in arguments))


def read_corpus(folder: Path = HERE / "corpus") -> dict[str, dict[str, object]]:
    """The messages that the codec is measured with, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
