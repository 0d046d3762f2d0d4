"""Counts instructions of what agents, clients and proxies do most: `python -m benchmarks.instructions WHERE …`."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.spawn import FailedError

WORKER = Path(__file__).resolve().parent / "workers" / "instructions.py"
PYTHON = Path(sys.executable).resolve()
VALGRIND = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
BARE = {"PATH": os.defpath, "PYTHONHASHSEED": "0"}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What is counted, with the package of which role, and how often it is done in the two processes."""

    name: str
    role: str
    meaning: str
    counts: tuple[int, int] = (60, 160)
    layouts: int = 3


SCENARIOS = (
    Scenario(name="import", role="agent", meaning="import what an agent names", counts=(0, 1), layouts=1),
    Scenario(name="loads", role="agent", meaning="`json.loads` of two updates, for comparison"),
    Scenario(name="decode", role="agent", meaning="decode two updates"),
    Scenario(name="encode", role="agent", meaning="encode two updates"),
    Scenario(name="receive", role="client", meaning="receive a line with an update"),
    Scenario(name="prompt", role="agent", meaning="answer a prompt with ten updates"),
    Scenario(name="hop", role="proxy", meaning="pass an update on"),
)


def count(scenario: Scenario, packages: Path) -> float:
    """The instructions of one time: the least of some layouts of memory. Raises `FailedError`."""
    return min(_of_layout(scenario, packages / scenario.role, layout) for layout in range(scenario.layouts))


def _of_layout(scenario: Scenario, package: Path, layout: int) -> float:
    few, many = scenario.counts
    whole = [_of_process(scenario.name, package, number, layout) for number in (few, many)]
    return (whole[1] - whole[0]) / (many - few)


def _of_process(name: str, package: Path, number: int, layout: int) -> int:
    command: list[str | Path] = [PYTHON, "-sS", WORKER, name, package, str(number), str(layout)]
    _run(command)  # writes the bytecode
    found = re.search(r"refs: +([\d,]+)", _run([*VALGRIND, *command]))
    assert found
    return int(found[1].replace(",", ""))


def _run(command: Sequence[str | Path], *, folder: Path | None = None, environment: Mapping[str, str] = BARE) -> str:
    """What `command` says on stderr. Raises `FailedError`."""
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    if done.returncode:
        raise FailedError(f"{' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stderr


@contextmanager
def packages_of(where: Path) -> Iterator[Path]:
    """A folder with the packages of protocol 1: copied, or built by a checkout. Its path always has the same length."""
    with tempfile.TemporaryDirectory(prefix="acpgen-instructions-", dir="/tmp") as folder:
        for role in sorted({each.role for each in SCENARIOS}):
            if (where / "acpgen").is_dir():
                options = ["--no-config", "--protocol", "1", "--role", role, "--out", f"{folder}/{role}"]
                _run([sys.executable, "-m", "acpgen", "build", *options], folder=where, environment=os.environ)
            else:
                shutil.copytree(where / role, f"{folder}/{role}", ignore=shutil.ignore_patterns("__pycache__"))
        yield Path(folder)


def main(arguments: Sequence[str]) -> int:
    """Print a table: the counts of each place, and their ratios to those of the first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.instructions", description=__doc__)
    parser.add_argument("where", nargs="+", type=Path, help="a checkout, or a folder with agent/, client/ and proxy/")
    parser.add_argument("--only", nargs="+", choices=[each.name for each in SCENARIOS], metavar="SCENARIO")
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    try:
        for where in options.where:
            with packages_of(where) as packages:
                for each in SCENARIOS:
                    if not options.only or each.name in options.only:
                        found.setdefault(each.name, []).append(count(each, packages))
    except FailedError as error:
        print(error, file=sys.stderr)
        return 1
    print(table(found))
    return 0


def table(found: Mapping[str, Sequence[float]]) -> str:
    """The counts of each scenario, and the ratios to the first."""
    lines = []
    for each in SCENARIOS:
        if counts := found.get(each.name):
            ratios = (f"{number:12,.0f} {number / counts[0]:6.3f}" for number in counts[1:])
            lines.append("  ".join((f"{each.name:8}{counts[0]:12,.0f}", *ratios, each.meaning)))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
