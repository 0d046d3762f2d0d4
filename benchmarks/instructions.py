"""Counts instructions of what acpgen, agents, clients and proxies do most: `python -m benchmarks.instructions`.

Each count is shown as a ratio to that of a plain counterpart, and compared with the ratio that is committed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.imports import agent_import
from benchmarks.lab import HERE, ROOT
from benchmarks.spawn import FailedError

HOME = Path("/tmp/acpgen-instructions")
FIGURES = HERE / "instructions.json"
PYTHON = str(Path(sys.executable).resolve())
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
BARE = {"PATH": os.defpath, "PYTHONHASHSEED": "0"}
PLAIN = "plain"
ROLES = {"decode": "client", "encode": "agent", "receive": "client", "prompt": "agent", "hop": "proxy"}
"""The scenarios of the worker, and the role of the package that each of them needs."""
MEANINGS = {
    "import": "import what an agent names; `import asyncio, json`",
    "decode": "decode two updates; `json.loads` of their text",
    "encode": "encode two updates; `json.dumps` of them",
    "receive": "receive a line with an update and call the handler; asyncio + json by hand",
    "prompt": "answer a prompt with ten updates; asyncio + json by hand",
    "hop": "pass an update on; asyncio + json by hand",
    "build": "build a package for agents; parse and unparse the source of asyncio with `ast`",
}
WARM, MANY = 60, 160
"""How often something is done in the two processes whose difference counts. Python specializes code in the first."""
TOLERANCE, ELSEWHERE = 0.02, 0.1
"""How far a ratio may be from the committed one: with the build of Python that it was taken with, and with another."""
UNPARSE = """
import ast, asyncio, glob, os
for path in sorted(glob.glob(os.path.join(os.path.dirname(asyncio.__file__), "*.py"))):
    with open(path, encoding="utf-8") as file:
        ast.unparse(ast.parse(file.read()))
"""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """The ratios by scenario, and the build of Python that they were taken with."""

    python: str
    ratios: dict[str, float]


@dataclass(frozen=True, kw_only=True)
class Count:
    """The instructions of one time, by acpgen and by the plain counterpart."""

    ours: float
    plain: float

    @property
    def ratio(self) -> float:
        """What acpgen takes, in units of the counterpart."""
        return self.ours / self.plain


def this_python() -> str:
    """The build of the interpreter, as far as counts depend on it."""
    return f"{platform.python_version()}, {platform.python_compiler()}, {platform.machine()}"


def count_all(home: Path) -> dict[str, Count]:
    """All scenarios, with packages that are built below `home`. Raises `FailedError`."""
    for role in sorted(set(ROLES.values())):
        _run(_build(home / role / "demo", role))
    shutil.copy(HERE / "workers" / "instructions.py", home)
    shutil.copytree(HERE / "corpus", home / "corpus")
    empty, plain = (_count_of_process([PYTHON, "-sS", "-c", code]) for code in ("pass", "import asyncio, json"))
    there = f"import sys; sys.path.insert(0, {str(home / 'agent')!r})"
    ours = _count_of_process([PYTHON, "-sS", "-c", f"{there}; {agent_import()}"])
    found = {"import": Count(ours=ours - empty, plain=plain - empty)}
    by_role = {role: _count_of_role(home, role) for role in (PLAIN, *dict.fromkeys(ROLES.values()))}
    found |= {name: Count(ours=by_role[role][name], plain=by_role[PLAIN][name]) for name, role in ROLES.items()}
    unparsing = _count_of_process([PYTHON, "-sS", "-c", UNPARSE])
    found["build"] = Count(ours=_count_of_process(_build(home / "new", "agent", "--full")), plain=unparsing)
    return found


def _build(out: Path, role: str, *options: str) -> list[str]:
    """The command for a package of protocol 1."""
    command = ["build", "--no-config", "--protocol", "1", "--role", role, "--out", str(out), *options]
    return [sys.executable, "-m", "acpgen", *command]


def _count_of_role(home: Path, role: str) -> dict[str, float]:
    """The scenarios of a role, or all plain ones: a process that warms all up, and one more for each of them."""
    names = [name for name, wanted in ROLES.items() if role in {PLAIN, wanted}]
    worker = [PYTHON, "-sS", str(home / "instructions.py"), PLAIN if role == PLAIN else str(home / role / "demo")]

    def process(more: str | None) -> int:
        return _count_of_process([*worker, *(f"{name}={MANY if name == more else WARM}" for name in names)])

    warm = process(None)
    return {name: (process(name) - warm) / (MANY - WARM) for name in names}


def _count_of_process(command: Sequence[str]) -> int:
    """The instructions of a process, which has its bytecode from a run before."""
    _run(command)
    found = re.search(r"refs: +([\d,]+)", _run([*VALGRIND, *command]))
    assert found
    return int(found[1].replace(",", ""))


def _run(command: Sequence[str]) -> str:
    """What `command` says on stderr. Raises `FailedError`."""
    done = subprocess.run(command, cwd=ROOT, env=BARE, check=False, capture_output=True, text=True)
    if done.returncode:
        raise FailedError(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    return done.stderr


@contextmanager
def home_folder() -> Iterator[Path]:
    """A temporary folder that always has the same path: the text of a path, as a key of hash tables, changes counts.

    What a run that was killed has left is deleted. Raises `FailedError` while another run has the folder.
    """
    with HOME.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FailedError(f"another run uses {HOME}") from None
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir(mode=0o700)
        try:
            yield HOME
        finally:
            shutil.rmtree(HOME)


def differences(found: Mapping[str, float], known: Figures | None, python: str) -> list[str]:
    """What is wrong with ratios, a line each; nothing if they are what is committed."""
    if known is None:
        return [f"{FIGURES.name} has no figures for this version of Python"]
    tolerance = TOLERANCE if known.python == python else ELSEWHERE
    wrong = []
    for name, ratio in found.items():
        change = ratio / known.ratios[name] - 1 if name in known.ratios else float("inf")
        if abs(change) > tolerance:
            verdict = "more" if change > 0 else "fewer"
            wrong.append(f"{name}: {abs(change):.1%} {verdict} instructions than is committed (± {tolerance:.0%})")
    return wrong


def table(found: Mapping[str, Count], known: Figures | None) -> str:
    """A line for each scenario."""
    lines = [f"{'':8}{'acpgen':>15}{'plain':>15}{'ratio':>9}{'committed':>11}"]
    for name, count in found.items():
        committed = known.ratios.get(name) if known else None
        numbers = f"{count.ours:15,.0f}{count.plain:15,.0f}{count.ratio:9.4g}{committed or '':>11}"
        lines.append(f"{name:8}{numbers}  {MEANINGS[name]}")
    return "\n".join(lines)


def load() -> dict[str, Figures]:
    """The committed figures by minor version of Python."""
    return {minor: Figures(**each) for minor, each in json.loads(FIGURES.read_text(encoding="utf-8")).items()}


def accept(found: Mapping[str, Count], minor: str) -> None:
    """Commit the ratios of a minor version of Python."""
    ratios = {name: float(f"{count.ratio:.4g}") for name, count in found.items()}
    figures = {**load(), minor: Figures(python=this_python(), ratios=ratios)}
    text = json.dumps({key: asdict(figures[key]) for key in sorted(figures)}, indent=2)
    FIGURES.write_text(text + "\n", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Print the counts; the exit code is 1 where one is not as committed, or where CI lacks valgrind."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("--accept", action="store_true", help=f"write the ratios to {FIGURES.name}")
    options = parser.parse_args(arguments)
    if shutil.which("valgrind", path=os.defpath) is None:
        lacks = "CI lacks valgrind" if os.environ.get("CI") else "skipped: this needs valgrind on Linux"
        print(lacks, file=sys.stderr)
        return int(bool(os.environ.get("CI")))
    minor = ".".join(platform.python_version_tuple()[:2])
    known = load().get(minor)
    try:
        with home_folder() as home:
            found = count_all(home)
    except FailedError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(found, known))
    if options.accept:
        accept(found, minor)
        return 0
    wrong = differences({name: count.ratio for name, count in found.items()}, known, this_python())
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("If it is meant: `nox -s instructions -- --accept`, and commit the figures.", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
