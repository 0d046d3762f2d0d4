"""The stages of a build, in the order in which they run: load, compose, lower, emit, format and plan.

Load, compose and lower make a model of the inputs of one protocol; emit and format make files of models. Nothing is
written here; `output.apply` does that. Each function imports its stages itself: an unchanged build needs none of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acpgen.config import BuildOptions
from acpgen.diagnostics import Diagnostic, InputError, Report, Severity
from acpgen.output.manifest import Manifest, unchanged, usable_manifest
from acpgen.parts import parts_in, with_needed
from acpgen.sources.head import manifest_head
from acpgen.sources.inputs import Inputs, load_all

if TYPE_CHECKING:
    from acpgen.emit.package import Package
    from acpgen.ir import model as ir
    from acpgen.ir.options import Options
    from acpgen.output import OutputPlan
    from acpgen.schema.compose import Composed


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """One protocol: the composed schema, its model, and the diagnostics about both by place."""

    composed: Composed
    model: ir.Model
    diagnostics: tuple[Diagnostic, ...]


def compile_protocol(inputs: Inputs, options: Options) -> Compiled:
    """Compose the inputs of one protocol, and lower the result. Raises `InputError` for errors in them."""
    from acpgen.ir.lower import lower
    from acpgen.schema.compose import compose

    schema = inputs.schema
    release = schema.release.name if schema.release else None
    composed = compose(inputs.base, inputs.fragments, protocol=schema.protocol, release=release, facts=schema.facts)
    report = check_composed(composed)
    if schema.without_gate:
        _note_ungated(schema.without_gate, report)
    model = lower(composed, options, report)
    return Compiled(composed=composed, model=model, diagnostics=report.in_order)


def check_composed(composed: Composed) -> Report:
    """Check a composed schema. Raises `InputError` if it cannot be lowered."""
    from acpgen.schema.dialect import check_dialect
    from acpgen.schema.facts import check_facts

    report = Report(locate=composed.locate, found=list(composed.diagnostics))
    report.raise_errors()
    check_dialect(composed.root, report, composed.is_added)
    report.raise_errors()
    check_facts(composed.root, composed.facts, report)
    report.raise_errors()
    return report


def _note_ungated(names: list[str], report: Report) -> None:
    report.note(
        "no-gate",
        f"these methods and values have no gate, so they are sent without a check: {', '.join(names)}",
        at="",
        hint="the schema lacks the capabilities of the bundled gates; add `gates` and `values` in an extension",
    )


def make_package(models: Sequence[ir.Model], options: BuildOptions) -> Package:
    """Emit and format the files of a package. Raises `InputError` for renames that clash with its names."""
    from acpgen.emit.flavours.models import emit_models
    from acpgen.emit.format import format_files
    from acpgen.emit.package import emit

    if options.flavour is not None:
        return emit_models(models[0], options.flavour, options.renames)
    package = emit(models, options.roles, runtime=options.runtime, parts=options.parts, renames=options.renames)
    return replace(package, files=format_files(package.files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The result of a build. `plan` is None if the manifest shows that the output is up to date.

    `old` is the manifest before the build, and `head` the start of the new one: the inputs and options. `names` are the
    public names of the package.
    """

    plan: OutputPlan | None
    old: Manifest | None
    head: Mapping[str, object]
    names: frozenset[str]
    diagnostics: tuple[Diagnostic, ...]


def build(options: BuildOptions, *, full: bool = False) -> Built:
    """Compile, and compare with the output folder. Nothing is written. Errors in the folder are `problems` of the plan.

    `full` compiles even if the manifest shows no change. Raises `InputError` with all errors in the input, and with
    the warnings if the options are strict.
    """
    inputs, notes = load_all(options.sources)
    head = manifest_head(inputs, options)
    old = usable_manifest(options.out)
    up_to_date = old if not full and unchanged(options.out, head) else None
    if up_to_date is not None and not options.strict:
        return _up_to_date(up_to_date, options, head=head)
    compiled = [compile_protocol(each, options.types) for each in inputs]
    diagnostics = [*notes, *(found for each in compiled for found in each.diagnostics)]
    if options.strict:
        _refuse_warnings(diagnostics)
    if up_to_date is not None:  # compiled only to refuse warnings: the manifest does not record them
        return _up_to_date(up_to_date, options, head=head)
    package = make_package([each.model for each in compiled], options)
    plan, public, dropped_names = _planned(package, options, old=old, head=head)
    found = (*diagnostics, *package.notes, *plan.notes, *dropped_names)
    return Built(plan=plan, old=old, head=head, names=public, diagnostics=found)


def _up_to_date(old: Manifest, options: BuildOptions, *, head: Mapping[str, object]) -> Built:
    from acpgen.emit.interface import names

    found = names(read_interface(options.out, (path for path in old.files if path.endswith("__init__.py"))))
    return Built(plan=None, old=old, head=head, names=found, diagnostics=())


def _refuse_warnings(diagnostics: Sequence[Diagnostic]) -> None:
    if warnings := [found for found in diagnostics if found.severity is Severity.WARNING]:
        raise InputError(
            replace(found, severity=Severity.ERROR, message=f"{found.message} (a warning without --strict)")
            for found in warnings
        )


def read_interface(folder: Path, paths: Iterable[str]) -> Mapping[str, str]:
    """The texts of those files of a package in `folder` that define its names and handlers, as far as there are any."""
    from acpgen.emit.interface import is_read
    from acpgen.output.folder import read_below

    found: dict[str, str] = {}
    for path in filter(is_read, paths):
        with suppress(InputError):
            found[path] = (read_below(folder, path) or b"").decode(errors="replace")
    return found


def _planned(
    package: Package, options: BuildOptions, *, old: Manifest | None, head: Mapping[str, object]
) -> tuple[OutputPlan, frozenset[str], list[Diagnostic]]:
    """The plan, the public names, and a warning for each that the old package has and the new one has not."""
    from acpgen.emit.aliases import dropped
    from acpgen.emit.interface import kinds, names
    from acpgen.emit.runtime import names_of_parts
    from acpgen.output import plan

    planned, after = plan(package.files, folder=options.out, head=head), names(package.files)
    before = read_interface(options.out, old.files) if old is not None else {}
    gone = parts_in(old.files) - parts_in(planned.files) if old and not options.flavour else frozenset[str]()
    parts_lost = [_lost_parts(sorted(gone), options)] if gone else []
    if old is None or names(before) <= after:
        return planned, after, parts_lost
    known = (kinds(before), kinds(planned.files))
    is_other = _built_with(old.head) != _built_with(head) and not old.in_conflict
    known_parts = {name for name, part in names_of_parts(options.roles).items() if part in gone}
    names_before = {name for name in names(before) if name.rpartition(".")[2] not in known_parts}
    lost = dropped(names_before, after, package.renames, kinds=known, other_options=is_other)
    return planned, after, [*parts_lost, *lost]


def _lost_parts(names: Sequence[str], options: BuildOptions) -> Diagnostic:
    """The warning about parts that the package had."""
    protocols = [each.protocol for each in options.sources]
    all_names = dict.fromkeys((*options.parts, *names))
    needed = (name for name in all_names if name in with_needed({*all_names} - {name}, options.roles, protocols))
    kept = json.dumps([name for name in all_names if name not in {*needed}])
    return Diagnostic(
        code="part-dropped",
        severity=Severity.WARNING,
        message=f"the package no longer has the part{'s' if len(names) > 1 else ''} {', '.join(names)}",
        hint=f"to keep what your code imports: with = {kept}; `acpgen parts` says what is in each",
    )


def _built_with(head: Mapping[str, object]) -> object:
    """The options in the head of a manifest without renames and parts, and the protocols, if there are several."""
    options, protocols = head.get("options"), head.get("protocols")
    if isinstance(options, dict):
        options = {key: value for key, value in options.items() if key not in ("renames", "with")}
    if isinstance(protocols, list):
        protocols = [each.get("protocol") for each in protocols if isinstance(each, dict)]
    return options, protocols
