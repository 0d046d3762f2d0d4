"""The stages in their order: load, compose, lower, emit, format, plan. Applying the plan is the caller's decision."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from acpgen.config import BuildOptions, Sources
from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.inputs import Inputs, find_inputs, manifest_head
from acpgen.ir.lower import lower
from acpgen.ir.model import Model
from acpgen.ir.options import Options
from acpgen.output import Manifest, Plan, plan, read_manifest, unchanged
from acpgen.renames import dropped, usable
from acpgen.schema.bundled import Release, load_gates
from acpgen.schema.compose import Composed, compose
from acpgen.schema.data import data_folder
from acpgen.schema.dialect import check_dialect
from acpgen.schema.document import Document, read_document
from acpgen.schema.fragment import Fragment, load_fragments
from acpgen.schema.gates import check_gates


@dataclass(slots=True)
class Timings:
    """The seconds that each stage took, in order."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time until the end of the block as the stage `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build came to: `plan` is None where the output is up to date by its manifest.

    `names` are the public names of the package, without those that are only kept for old code.
    """

    plan: Plan | None
    names: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    timings: Timings


def build(options: BuildOptions, *, full: bool = False) -> Built:
    """Compile, and compare with the output folder; nothing is written.

    `full` compiles even where the manifest says that nothing changed. Raises `InputError` with all that is wrong.
    """
    timings = Timings()
    with timings.stage("load"):
        inputs = find_inputs(options.sources)
        head = manifest_head(inputs, options)
        old = _old_manifest(options.out)
        is_unchanged = not full and old is not None and unchanged(options.out, head)
    if old is not None and is_unchanged:
        if options.strict:  # warnings are not in the manifest
            compile_model(inputs, options.types, timings=timings, strict=True)
        return Built(plan=None, names=old.names, diagnostics=(), timings=timings)
    model, diagnostics = compile_model(inputs, options.types, timings=timings, strict=options.strict)
    with timings.stage("emit"):
        from acpgen.emit.package import emit, exports, public_names

        modules = exports(model, options.roles, runtime=options.runtime)
        names = public_names(modules)
        renames = usable(options.renames, modules)
        files = emit(model, options.roles, data_folder() / "templates", runtime=options.runtime, renames=renames)
    with timings.stage("format"):
        from acpgen.format import format_files

        files = format_files(files)
    with timings.stage("plan"):
        planned = plan(files, folder=options.out, head=head, names=names)
    gone = dropped(old.names if old else (), names, renames)
    return Built(plan=planned, names=tuple(names), diagnostics=(*diagnostics, *planned.notes, *gone), timings=timings)


def _old_manifest(folder: Path) -> Manifest | None:
    """The manifest of the package that is there; None for one that cannot be used, of which the plan will tell."""
    try:
        return read_manifest(folder)
    except InputError:
        return None


def load_model(sources: Sources, *, strict: bool = False) -> tuple[Model, tuple[Diagnostic, ...]]:
    """The model of a schema with its extensions, for whoever only wants to look at it."""
    return compile_model(find_inputs(sources), Options(), timings=Timings(), strict=strict)


def load_composed(sources: Sources, options: Options) -> tuple[Composed, Model, tuple[Diagnostic, ...]]:
    """The composed schema, too, for whoever looks at what stands behind the model."""
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
        gates = load_gates(loaded.release) if loaded.release else {}
    with timings.stage("compose"):
        composed = compose(
            loaded.base,
            loaded.fragments,
            protocol=loaded.protocol,
            release=loaded.release.name if loaded.release else None,
            gates=gates,
        )
        return composed, check_composed(composed)


def load_base(inputs: Inputs) -> Document:
    """The base schema of a build."""
    return read_document(inputs.schema.path, label=inputs.schema.label, origin=inputs.origin)


def check_composed(composed: Composed) -> Report:
    """What there is to say about a composed schema before it is lowered; raises `InputError` where it cannot be."""
    report = Report(locate=composed.locate, found=list(composed.diagnostics))
    report.raise_errors()
    check_dialect(composed.root, report)
    report.raise_errors()
    check_gates(composed.root, composed.gates, report)
    report.raise_errors()
    return report


def _refuse_warnings(report: Report) -> None:
    if warnings := [found for found in report.found if found.severity is Severity.WARNING]:
        raise InputError(
            replace(found, severity=Severity.ERROR, message=f"{found.message} (a warning without --strict)")
            for found in warnings
        )
