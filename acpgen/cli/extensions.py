"""`acpgen extensions`: what is bundled, and what each would add to the chosen schema."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated

import typer

from acpgen.cli import options
from acpgen.cli.console import print_data, print_table
from acpgen.pipeline import load_base
from acpgen.schema.bundled import bundled_fragments, known_facts
from acpgen.schema.compose import Summary, summarise
from acpgen.schema.fragment import fragment_schema
from acpgen.sources.inputs import find_inputs

COLUMNS = ("extension", "here", "title", "status", "adds")


@options.takes_schema
def extensions_command(
    asked: options.Asked,
    form: Annotated[options.DataFormat, typer.Option("--format", help="How to print.")] = options.DataFormat.TEXT,
    file_schema: Annotated[
        bool, typer.Option("--file-schema", help="Print the JSON Schema of extension files, with examples, and stop.")
    ] = False,
) -> None:
    """List the bundled extensions: revision, status, whether they apply to the schema, and what they add to it.

    **Examples**

    - `acpgen extensions`
    - `acpgen extensions --release 0.10.8`
    - `acpgen extensions --file-schema > fragment.schema.json`
    """
    if file_schema:
        print_data(json.dumps(fragment_schema(), indent=2))
        return
    inputs = find_inputs(replace(asked.sources(), extensions=()))
    protocol = inputs.protocol
    base = load_base(inputs)
    gates = known_facts(base, protocol, inputs.release)[0].gates
    fragments = bundled_fragments(protocol)
    summaries = [summarise(base, fragment, protocol=protocol, gates=gates, others=fragments) for fragment in fragments]
    if form is options.DataFormat.JSON:
        print_data(json.dumps([_as_json(summary) for summary in summaries], indent=2))
    else:
        print_table(COLUMNS, [_row(summary) for summary in summaries])


def _row(summary: Summary) -> list[str]:
    added = [*summary.methods, *(f"{name} (changed)" for name in summary.changed)]
    fragment = summary.fragment
    return [fragment.spec, summary.verdict, fragment.title, fragment.status, ", ".join(added) or "-"]


def _as_json(summary: Summary) -> dict[str, object]:
    fragment = summary.fragment
    return {
        "extension": fragment.id,
        "revision": fragment.revision,
        "title": fragment.title,
        "status": fragment.status,
        "rfd": fragment.rfd,
        "verdict": summary.verdict,
        "reasons": list(summary.reasons),
        "methods": list(summary.methods),
        "definitions": list(summary.definitions),
        "changed": list(summary.changed),
    }
