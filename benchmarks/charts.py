"""A few charts of the results, as SVG files that are the same each time they are drawn from the same results."""

from __future__ import annotations

from pathlib import Path

from benchmarks import codec, imports, remote, stdio
from benchmarks.lab import BARE, OURS, PYTHON_SDK, TYPESCRIPT_SDK
from benchmarks.report import Results, number
from benchmarks.rounds import Measure

COLOURS = {OURS: "#1f6f8b", PYTHON_SDK: "#b5651d", TYPESCRIPT_SDK: "#8a7f3c"}
OTHERS = "#9a9a9a"
WIDTH, ROW, MARGIN = 7.2, 0.3, 0.75  # inches
CHARTS = {
    "start": ("Start-up (ms, less is better)", [("imports", imports.WITH), ("stdio", stdio.START)]),
    "throughput": (
        "Throughput (a second, more is better)",
        [("stdio", name) for name in (stdio.PROMPTS, stdio.PROMPTS_BY_TURNS, stdio.PIPELINED, stdio.UPDATES)],
    ),
    "codec": (
        "Codec, twelve messages (µs, less is better)",
        [("codec", name) for name in (codec.DECODE, codec.RECEIVE, codec.ENCODE, codec.SEND)],
    ),
    "remote": (
        "Updates over the network (a second, more is better)",
        [("remote", way.named(remote.UPDATES)) for way in remote.WAYS],
    ),
    "memory": ("Memory of an agent (MiB, less is better)", [("stdio", stdio.MEMORY)]),
}
ORDER = (OURS, PYTHON_SDK, TYPESCRIPT_SDK, BARE)
SHORT = {"start"}
"""The charts with three bars a panel, the first of `ORDER`: the README shows them. The table has the others."""


def draw(results: Results, folder: Path) -> list[Path]:
    """Draw what was measured; the files that were written."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "acpgen", "svg.fonttype": "path", "font.size": 9})
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, (title, wanted) in CHARTS.items():
        if found := [measure for key in wanted if (measure := results.find(*key))]:
            written.append(folder / f"{name}.svg")
            shown = [_contenders(measure, is_short=name in SHORT) for measure in found]
            _draw(title, list(zip(found, shown, strict=True)), written[-1])
    return written


def _contenders(measure: Measure, *, is_short: bool) -> list[str]:
    """The contenders of a measure that a chart shows, in the order of the bars."""
    known = [who for who in ORDER if who in measure.values]
    return known[:3] if is_short else [*known, *(who for who in measure.values if who not in ORDER)]


def _draw(title: str, found: list[tuple[Measure, list[str]]], path: Path) -> None:
    """One panel a measure, one below the other, each with a bar a contender."""
    from matplotlib import pyplot

    bars = [len(names) for _, names in found]
    height = sum(bars) * ROW + MARGIN * len(bars)
    figure, panels = pyplot.subplots(
        len(found), 1, figsize=(WIDTH, height), squeeze=False, height_ratios=bars, layout="constrained"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for panel, (measure, names) in zip(panels[:, 0], found, strict=True):
        values = [measure.median(who) for who in names]
        shown = panel.barh(
            [who.replace("`", "") for who in names],
            values,
            color=[COLOURS.get(who, OTHERS) for who in names],
            height=0.7,
        )
        panel.bar_label(shown, [number(value) for value in values], padding=3)
        panel.invert_yaxis()
        panel.set_title(measure.name.replace("`", ""), loc="left", fontsize=9)
        panel.set_xlim(0, max(values) * 1.12)
        panel.xaxis.set_visible(False)
        panel.spines[["top", "right", "bottom"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
    figure.savefig(path, metadata={"Date": None, "Creator": None}, transparent=False, facecolor="white")
    pyplot.close(figure)
