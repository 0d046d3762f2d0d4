"""Check that a draft without marks is a fragment which the schema takes."""

from __future__ import annotations

from collections.abc import Mapping

from acpgen.diagnostics import Diagnostic, InputError
from acpgen.pipeline import check_composed
from acpgen.schema.compose import compose
from acpgen.schema.document import Document, parse_document
from acpgen.schema.fragment import load_fragment
from acpgen.schema.gates import Gate


def check_draft(
    text: str, *, label: str, base: Document, protocol: int, gates: Mapping[str, Gate]
) -> tuple[Diagnostic, ...]:
    """What a build with the draft `text` would say of it; `label` is how the diagnostics name the draft."""
    try:
        fragment = load_fragment(parse_document(text.encode(), label=label, origin=label))
        report = check_composed(compose(base, [fragment], protocol=protocol, gates=gates))
    except InputError as error:
        return error.diagnostics
    return tuple(report.found)
