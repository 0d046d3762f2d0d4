"""The stages in their order: load, compose, lower, emit, format, plan. Applying the plan is the caller's decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acpgen.config import BuildOptions
from acpgen.diagnostics import Diagnostic
from acpgen.inputs import find_inputs, manifest_head
from acpgen.output import Plan, plan, unchanged, usable_manifest
from acpgen.renames import dropped, usable
from acpgen.schema.data import data_folder
from acpgen.timings import Timings

if TYPE_CHECKING:
    from acpgen.ir.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What a build came to: `plan` is None where the output is up to date by its manifest.

    `names` are the public names of the package, without those that are only kept for old code. `head` is what the
    manifest says about the build.
    """

    plan: Plan | None
    head: Mapping[str, object]
    names: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]
    timings: Timings


def build(options: BuildOptions, *, full: bool = False) -> Built:
    """Compile, and compare with the output folder; nothing is written.

    `full` compiles even where the manifest says that nothing changed. Raises `InputError` with all that is wrong.
    """
    built = survey(options, full=full)
    if built.plan is not None:
        built.plan.raise_problems()
    return built


def survey(options: BuildOptions, *, full: bool) -> Built:
    """As `build`; but what stands in the way in the output folder is among the `problems` of the plan."""
    timings = Timings()
    with timings.stage("load"):
        inputs = find_inputs(options.sources)
        head = manifest_head(inputs, options)
        old = usable_manifest(options.out)
        is_unchanged = not full and old is not None and unchanged(options.out, head)
    if old is not None and is_unchanged and not options.strict:
        return Built(plan=None, head=head, names=old.names, diagnostics=(), timings=timings)
    from acpgen.compiling import compile_model  # this import and what follows takes longer than all of the above

    model, diagnostics = compile_model(inputs, options.types, timings=timings, strict=options.strict)
    if old is not None and is_unchanged:  # compiled for warnings alone, which the manifest does not have
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
    """The options in what a manifest says, but for the names that are kept."""
    options = head.get("options")
    return {key: value for key, value in options.items() if key != "renames"} if isinstance(options, dict) else options


def _names(model: Model, options: BuildOptions) -> tuple[list[str], Mapping[str, str]]:
    """The public names of the package, and the earlier ones that are kept."""
    from acpgen.emit.package import exports, public_names

    modules = exports(model, options.roles, runtime=options.runtime)
    return public_names(modules), usable(options.renames, modules)


def _make(model: Model, options: BuildOptions, renames: Mapping[str, str], *, timings: Timings) -> dict[str, str]:
    """The formatted files of the package."""
    from acpgen.emit.package import emit
    from acpgen.format import format_files

    with timings.stage("emit"):
        files = emit(model, options.roles, data_folder() / "templates", runtime=options.runtime, renames=renames)
    with timings.stage("format"):
        return format_files(files)
