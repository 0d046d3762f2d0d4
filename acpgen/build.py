"""The stages in their order: load, compose, lower, emit, format, plan. Applying the plan is the caller's decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
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


def build(options: BuildOptions, *, full: bool = False, parallel: bool = False) -> Built:
    """Compile, and compare with the output folder; nothing is written.

    `full` compiles even where the manifest says that nothing changed; `parallel` does so in two processes, where the
    system lets a process be copied, and it has a single thread. Raises `InputError` with all that is wrong.
    """
    built = survey(options, full=full, parallel=parallel)
    if built.plan is not None:
        built.plan.raise_problems()
    return built


def survey(options: BuildOptions, *, full: bool, parallel: bool) -> Built:
    """As `build`; but what stands in the way in the output folder is among the `problems` of the plan."""
    timings = Timings()
    with timings.stage("load"):
        inputs = find_inputs(options.sources)
        head = manifest_head(inputs, options)
        old = usable_manifest(options.out)
        is_unchanged = not full and old is not None and unchanged(options.out, head)
    if old is not None and is_unchanged and not options.strict:
        return Built(plan=None, head=head, names=old.names, diagnostics=(), timings=timings)
    from acpgen.beside import beside, here  # this and what follows takes longer than all of the above

    start = beside if parallel and not is_unchanged else here
    with start(_prepare_types, partial(_types, options)) as hand_over:
        from acpgen.compiling import compile_model

        model, diagnostics = compile_model(inputs, options.types, timings=timings, strict=options.strict)
        if old is not None and is_unchanged:  # what was to be seen is whether there are warnings: the manifest has none
            return Built(plan=None, head=head, names=old.names, diagnostics=(), timings=timings)
        names, renames = _names(model, options)
        files = _make(model, options, renames, types=hand_over(model), timings=timings)
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


def _make(
    model: Model,
    options: BuildOptions,
    renames: Mapping[str, str],
    *,
    types: Callable[[], Mapping[str, str]],
    timings: Timings,
) -> dict[str, str]:
    """Emit and format; `types` gives what is made in another process, where there is one."""
    from acpgen.emit.package import TYPES, emit
    from acpgen.emit.verbatim import verbatim
    from acpgen.format import formatting

    templates = _templates()
    with timings.stage("emit"):
        files = emit(
            model,
            options.roles,
            templates,
            runtime=options.runtime,
            renames=renames,
            is_wanted=lambda path: path != TYPES,
        )
    with formatting(verbatim(templates)) as formatted:
        with timings.stage("format"):
            files = formatted(files)
        with timings.stage("emit"):
            made = types()
        with timings.stage("format"):
            return {**files, **formatted(made)}


def _prepare_types() -> None:
    """Import what makes the types, which takes as long as to make them."""
    from acpgen.emit.types import import_generator

    import_generator()


def _types(options: BuildOptions, model: Model) -> Mapping[str, str]:
    """The file that takes as long to make as all others."""
    from acpgen.emit.package import TYPES, emit

    return emit(model, options.roles, _templates(), runtime=options.runtime, is_wanted=lambda path: path == TYPES)


def _templates() -> Path:
    return data_folder() / "templates"
