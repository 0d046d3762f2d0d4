"""The stages of a build: load, compose, lower, emit, format and plan, with the time of each.

Every command uses these functions. Nothing is written here; `output.apply` does that.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from acpgen.config import BuildOptions, Sources
from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.emit.aliases import dropped, usable
from acpgen.ir.lower import lower
from acpgen.ir.model import Model, Options
from acpgen.output import Plan, plan, unchanged, usable_manifest
from acpgen.schema.bundled import Release, known_facts
from acpgen.schema.compose import Composed, compose
from acpgen.schema.data import data_folder
from acpgen.schema.dialect import check_dialect
from acpgen.schema.document import Document, read_document
from acpgen.schema.facts import check_negotiation
from acpgen.schema.fragment import Fragment, load_fragments
from acpgen.schema.gates import check_gates
from acpgen.sources.inputs import Inputs, find_inputs, manifest_head


@dataclass(slots=True)
class Timings:
    """The seconds of each stage, in order."""

    stages: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to the stage `name`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + time.perf_counter() - start


def load_model(sources: Sources) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Compile a schema with its extensions, for commands that only show the model."""
    return compile_model(find_inputs(sources), Options(), timings=Timings(), strict=False)


def load_composed(sources: Sources, options: Options) -> tuple[Composed, Model, tuple[Diagnostic, ...]]:
    """Compose and lower a schema with its extensions, for commands that show both results."""
    timings = Timings()
    composed, report = compose_loaded(load_inputs(find_inputs(sources), timings), timings)
    model = lower(composed, options, report)
    return composed, model, report.in_order


def compile_model(
    inputs: Inputs, options: Options, *, timings: Timings, strict: bool
) -> tuple[Model, tuple[Diagnostic, ...]]:
    """Load, compose and lower. Raises `InputError` for errors in the input, and for warnings if `strict`."""
    loaded = load_inputs(inputs, timings)
    return compile_loaded(loaded, options, timings=timings, strict=strict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The input of a model, from files or from git. `release` is None for a schema that is not bundled."""

    base: Document
    fragments: tuple[Fragment, ...]
    protocol: int
    release: Release | None


def load_inputs(inputs: Inputs, timings: Timings) -> Loaded:
    """Read and parse the schema and the extensions. Raises `InputError` for errors in them."""
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
    return model, report.in_order


def compose_loaded(loaded: Loaded, timings: Timings) -> tuple[Composed, Report]:
    """Compose, and check the result. Raises `InputError` if it cannot be lowered."""
    with timings.stage("load"):
        facts, without_gate = known_facts(loaded.base, loaded.protocol, loaded.release)
    with timings.stage("compose"):
        composed = compose(
            loaded.base,
            loaded.fragments,
            protocol=loaded.protocol,
            release=loaded.release.name if loaded.release else None,
            facts=facts,
        )
        report = check_composed(composed)
        if without_gate:
            _note_ungated(without_gate, report)
        return composed, report


def _note_ungated(methods: list[str], report: Report) -> None:
    report.note(
        "no-gate",
        f"these methods have no gate, so stubs call them without a check: {', '.join(methods)}",
        at="",
        hint="the schema does not define the capabilities of the bundled gates; add `gates` in an extension",
    )


def load_base(inputs: Inputs) -> Document:
    """Read the base schema of a build."""
    return read_document(inputs.schema.path, label=inputs.schema.label, origin=inputs.origin)


def check_composed(composed: Composed) -> Report:
    """Check a composed schema. Raises `InputError` if it cannot be lowered."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The result of a build. `plan` is None if the manifest shows that the output is up to date.

    `head` is the start of the manifest: the inputs and options. `names` are the public names of the package, without
    aliases for former names.
    """

    plan: Plan | None
    head: Mapping[str, object]
    names: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    timings: Timings


def build(options: BuildOptions, *, full: bool = False) -> Built:
    """Compile, and compare with the output folder. Nothing is written.

    `full` compiles even if the manifest shows no change. Raises `InputError` with all errors.
    """
    built = survey(options, full=full)
    if built.plan is not None:
        built.plan.raise_problems()
    return built


def survey(options: BuildOptions, *, full: bool) -> Built:
    """Do the same as `build`, but return errors in the output folder as `problems` of the plan."""
    timings = Timings()
    with timings.stage("load"):
        inputs = find_inputs(options.sources)
        head = manifest_head(inputs, options)
        old = usable_manifest(options.out)
        is_unchanged = not full and old is not None and unchanged(options.out, head)
    if old is not None and is_unchanged and not options.strict:
        return Built(plan=None, head=head, names=old.names, diagnostics=(), timings=timings)
    model, diagnostics = compile_model(inputs, options.types, timings=timings, strict=options.strict)
    if old is not None and is_unchanged:  # compiled only to refuse warnings: the manifest does not record them
        return Built(plan=None, head=head, names=old.names, diagnostics=(), timings=timings)
    names, renames = _names(model, options)
    files = _make(model, options, renames, timings=timings)
    with timings.stage("plan"):
        planned = plan(files, folder=options.out, head=head, names=names)
    gone = dropped(
        old.names if old else (),
        names,
        renames,
        other_options=old is not None and _built_with(old.head) != _built_with(head),
    )
    found = (*diagnostics, *planned.notes, *gone)
    return Built(plan=planned, head=head, names=tuple(names), diagnostics=found, timings=timings)


def _built_with(head: Mapping[str, object]) -> object:
    """The options in the head of a manifest, without renames."""
    options = head.get("options")
    return {key: value for key, value in options.items() if key != "renames"} if isinstance(options, dict) else options


def _names(model: Model, options: BuildOptions) -> tuple[list[str], Mapping[str, str]]:
    """The public names of the package, and the former names that are kept."""
    # imported here: an unchanged build needs no templates, and jinja2 is slow to import
    from acpgen.emit.package import exports, public_names

    modules = exports(model, options.roles, runtime=options.runtime)
    return public_names(modules), usable(options.renames, modules)


def _make(model: Model, options: BuildOptions, renames: Mapping[str, str], *, timings: Timings) -> dict[str, str]:
    """Emit and format the files of the package."""
    from acpgen.emit.format import format_files
    from acpgen.emit.package import emit

    with timings.stage("emit"):
        files = emit(model, options.roles, data_folder() / "templates", runtime=options.runtime, renames=renames)
    with timings.stage("format"):
        return format_files(files)
