"""Print rows on stdout: a drawn table where a person looks on, plain columns everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence

from acpgen.printable import printable


def print_data(text: str) -> None:
    """Print `text` on stdout; a reader that has gone away (`| head`) is no error."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # or the interpreter tries once more when it ends, and complains
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print `rows` under `head`."""
    clean = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_drawn(head, clean)
    else:
        _print_plain(head, clean)


def _print_drawn(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where every word of it fits into its column, else each row in lines of its own."""
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    console, table = Console(), Table(*head)
    for row in rows:
        table.add_row(*map(Text, row))
    if Measurement.get(console, console.options.update(max_width=sys.maxsize), table).minimum <= console.width:
        console.print(table)
    else:
        print_data("\n".join(line for row in rows for line in _stacked(head, row)))


def _stacked(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    """The first cell as a title; then the others that are not empty, each with the head of its column."""
    width = max(map(len, head))
    yield row[0]
    yield from (f"  {name.ljust(width)}  {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if cell != "-")


def _print_plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    print_data("\n".join(line.rstrip() for line in padded))
