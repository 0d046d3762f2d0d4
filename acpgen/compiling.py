"""The first stages of a build: load, compose, lower. Nothing of this is imported where the output is up to date."""

from __future__ import annotations

from dataclasses import dataclass, replace

from acpgen.config import Sources
from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.inputs import Inputs, find_inputs
from acpgen.ir.lower import lower
from acpgen.ir.model import Model
from acpgen.ir.options import Options
from acpgen.schema.bundled import Release, known_facts
from acpgen.schema.compose import Composed, compose
from acpgen.schema.dialect import check_dialect
from acpgen.schema.document import Document, read_document
from acpgen.schema.fragment import Fragment, load_fragments
from acpgen.schema.gates import check_gates
from acpgen.schema.negotiation import check_negotiation
from acpgen.timings import Timings


def load_model(sources: Sources, *, strict: bool = False) -> tuple[Model, tuple[Diagnostic, ...]]:
    """The model of a schema with its extensions, for commands that only show it."""
    return compile_model(find_inputs(sources), Options(), timings=Timings(), strict=strict)


def load_composed(sources: Sources, options: Options) -> tuple[Composed, Model, tuple[Diagnostic, ...]]:
    """The composed schema and its model, for commands that show both."""
    timings = Timings()
    composed, report = compose_loaded(load_inputs(find_inputs(sources), timings), timings)
    model = lower(composed, options, report)
    return composed, model, tuple(sorted(report.found, key=lambda found: found.sort_key))


def compile_model(
    inputs: Inputs, options: Options, *, timings: Timings, strict: bool
) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Load, compose and lower. Raises `InputError` where the input is unusable, or has warnings under `strict`."""
    loaded = load_inputs(inputs, timings)
    return compile_loaded(loaded, options, timings=timings, strict=strict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a model is compiled from, wherever it was read; `release` is None for a schema that is not bundled."""

    base: Document
    fragments: tuple[Fragment, ...]
    protocol: int
    release: Release | None


def load_inputs(inputs: Inputs, timings: Timings) -> Loaded:
    """The schema and the extensions that were found. Raises `InputError` for what is not one."""
    with timings.stage("load"):
        return Loaded(
            base=load_base(inputs),
            fragments=load_fragments([(each.path, each.label) for each in inputs.extensions]),
            protocol=inputs.protocol,
            release=inputs.release,
        )


def compile_loaded(
    loaded: Loaded, options: Options, *, timings: Timings | None = None, strict: bool = False
) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Compose and lower. Raises `InputError` as `compile_model` does."""
    timings = timings or Timings()
    composed, report = compose_loaded(loaded, timings)
    with timings.stage("lower"):
        model = lower(composed, options, report)
    if strict:
        _refuse_warnings(report)
    return model, tuple(sorted(report.found, key=lambda found: found.sort_key))


def compose_loaded(loaded: Loaded, timings: Timings) -> tuple[Composed, Report]:
    """Compose, with what there is to say so far. Raises `InputError` where the result is not to be lowered."""
    with timings.stage("load"):
        facts, without_gate = known_facts(loaded.base, loaded.protocol, loaded.release)
    with timings.stage("compose"):
        composed = compose(
            loaded.base,
            loaded.fragments,
            protocol=loaded.protocol,
            release=loaded.release.name if loaded.release else None,
            gates=facts.gates,
            negotiation=facts.negotiation,
        )
        report = check_composed(composed)
        if without_gate:
            _note_ungated(without_gate, report)
        return composed, report


def _note_ungated(methods: list[str], report: Report) -> None:
    report.note(
        "no-gate",
        f"these methods have no gate here, so stubs call them without a check: {', '.join(methods)}",
        at="",
        hint="the schema lacks the capabilities that open them in the bundled release; an extension can state `gates`",
    )


def load_base(inputs: Inputs) -> Document:
    """The base schema of a build."""
    return read_document(inputs.schema.path, label=inputs.schema.label, origin=inputs.origin)


def check_composed(composed: Composed) -> Report:
    """What there is to say about a composed schema before it is lowered; raises `InputError` where it cannot be."""
    report = Report(locate=composed.locate, found=list(composed.diagnostics))
    report.raise_errors()
    check_dialect(composed.root, report, composed.is_added)
    report.raise_errors()
    check_gates(composed.root, composed.gates, report)
    if composed.negotiation is not None:
        check_negotiation(composed.root, composed.negotiation, report)
    report.raise_errors()
    return report


def _refuse_warnings(report: Report) -> None:
    if warnings := [found for found in report.found if found.severity is Severity.WARNING]:
        raise InputError(
            replace(found, severity=Severity.ERROR, message=f"{found.message} (a warning without --strict)")
            for found in warnings
        )
