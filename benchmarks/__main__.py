"""`python -m benchmarks`, from the root of the repository."""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import contenders
from benchmarks.lab import ROOT, SMOKE, Lab, Sizes
from benchmarks.machine import machine, versions
from benchmarks.parts import PARTS
from benchmarks.report import Results, block, provisional, update_page
from benchmarks.spawn import FailedError


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    found.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=f"of {', '.join(PARTS)}")
    found.add_argument("--rounds", type=int, metavar="N", help="how often each contender is measured")
    found.add_argument(
        "--smoke", action="store_true", help="do as little as shows that it works; the figures mean nothing"
    )
    found.add_argument("--json", type=Path, metavar="FILE", help="write all rounds there")
    found.add_argument("--charts", type=Path, metavar="FOLDER", help="draw charts there")
    found.add_argument("--page", action="store_true", help="put the table into docs/performance.md")
    found.add_argument("--load", type=Path, metavar="FILE", help="measure nothing; take what --json has written")
    return found


def run(sizes: Sizes, parts: Sequence[str], peers: contenders.Peers) -> Results:
    """Measure the parts. Raises `FailedError` where a contender fails, or does not do what it should."""
    found = []
    with tempfile.TemporaryDirectory(prefix="acpgen-bench-") as folder:
        lab = Lab(folder=Path(folder), sizes=sizes, peers=peers)
        for name in parts:
            print(f"{name} …", file=sys.stderr, flush=True)
            found += PARTS[name].measure(lab)
    return Results(
        date=datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat(),
        rounds=sizes.rounds,
        machine=machine(),
        versions=versions(peers),
        missing=peers.missing,
        measures=found,
    )


def main(arguments: Sequence[str]) -> int:
    """Measure, and show the results; the exit code is 1 where a contender failed, or is missing in CI."""
    options = parser().parse_args(arguments)
    sizes = SMOKE if options.smoke else Sizes()
    if options.rounds:
        sizes = replace(sizes, rounds=options.rounds)
    if options.load:
        results = Results.load(options.load)
    else:
        peers = contenders.find(contenders.home())
        for name, why in peers.missing.items():
            print(f"left out: {name}, which needs {why}", file=sys.stderr)
        if peers.missing and os.environ.get("CI"):
            return 1
        try:
            results = run(sizes, options.only or list(PARTS), peers)
        except FailedError as error:
            print(error, file=sys.stderr)
            return 1
    print(block(results))
    if options.json:
        results.save(options.json)
    if options.charts:
        from benchmarks.charts import draw

        draw(results, options.charts)
    if options.page:
        if warning := provisional(results):
            print(f"warning: docs/performance.md gets these figures. {warning}", file=sys.stderr)
        update_page(ROOT / "docs" / "performance.md", results)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
