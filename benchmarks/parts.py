"""The parts of the benchmark, in their order, and the measures that each of them gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import codec, generation, growth, imports, mcp_calls, models, passing, receiving, remote, stdio, stored
from benchmarks.lab import Lab
from benchmarks.rounds import Measure


@dataclass(frozen=True)
class Part:
    """`measures` are the names that the table has; what is in the JSON alone is not among them."""

    measure: Callable[[Lab], list[Measure]]
    measures: tuple[str, ...]


PARTS: Mapping[str, Part] = {
    "imports": Part(imports.measure, (imports.WITH, imports.WITHOUT)),
    "codec": Part(codec.measure, (codec.DECODE, codec.RECEIVE, codec.ENCODE, codec.SEND)),
    "models": Part(models.measure, tuple(models.MEASURES.values())),
    "receiving": Part(receiving.measure, tuple(receiving.ENTRIES)),
    "passing": Part(passing.measure, passing.MEASURES),
    "stdio": Part(
        stdio.measure,
        (
            stdio.START,
            *(stdio.PROMPTS, stdio.LATER, stdio.PROMPTS_BY_TURNS, stdio.PIPELINED),
            *(stdio.UPDATES, stdio.UPDATES_BY_TURNS),
            *(stdio.CPU, stdio.CPU_PIPELINED, stdio.CPU_BY_TURNS, stdio.MEMORY, stdio.PEAK),
        ),
    ),
    "remote": Part(remote.measure, remote.MEASURES),
    "mcp": Part(mcp_calls.measure, (mcp_calls.CALL,)),
    "stored": Part(stored.measure, stored.MEASURES),
    "generation": Part(generation.measure, (generation.BUILD, generation.SAME, generation.CHECK, generation.STAGES)),
    "growth": Part(growth.measure, (growth.BUILD, growth.IMPORT, growth.MEMORY)),
}
