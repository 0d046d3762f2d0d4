"""The parts of the benchmark, in their order, and the measures that each of them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import codec, generation, imports, remote, stdio
from benchmarks.lab import Lab
from benchmarks.rounds import Measure


@dataclass(frozen=True)
class Part:
    """`measures` are the names of its rows in the table."""

    measure: Callable[[Lab], list[Measure]]
    measures: tuple[str, ...]


PARTS: Mapping[str, Part] = {
    "imports": Part(imports.measure, (imports.WITH,)),
    "codec": Part(codec.measure, (codec.DECODE, codec.RECEIVE, codec.ENCODE, codec.SEND)),
    "stdio": Part(
        stdio.measure,
        (
            stdio.START,
            *(stdio.PROMPTS, stdio.LATER, stdio.PROMPTS_BY_TURNS, stdio.PIPELINED),
            *(stdio.UPDATES, stdio.UPDATES_BY_TURNS),
            *(stdio.CPU, stdio.MEMORY),
        ),
    ),
    "remote": Part(remote.measure, remote.MEASURES),
    "generation": Part(generation.measure, (generation.BUILD, generation.SAME, generation.CHECK)),
}
