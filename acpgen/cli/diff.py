"""`acpgen diff`: the changes of a new schema, and their effects."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from acpgen.cli import completion, parameters
from acpgen.cli.console import print_data, print_diagnostics
from acpgen.cli.given import Given
from acpgen.diagnostics import InputError
from acpgen.output.folder import LOCK_NAME

if TYPE_CHECKING:
    from acpgen.config.settings import Output
    from acpgen.diff.findings import Comparison
    from acpgen.ir.options import Options
    from acpgen.sources.revisions import SideSpec, Subject


class DiffFormat(str, Enum):
    """The formats of a comparison."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


class FailOn(str, Enum):
    """The findings that make the exit code 1."""

    WIRE = "wire"
    SOURCE = "source"
    ANY = "any"


_SPEC = "a file, a folder with a package, vN/RELEASE, or REV:PATH"

_Old = Annotated[str, typer.Argument(metavar="OLD", help=f"The old schema: {_SPEC}.", show_default=False)]
_New = Annotated[
    str, typer.Argument(metavar="NEW", help="The new schema, in one of the same forms.", show_default=False)
]
_Protocol = Annotated[
    int | None,
    typer.Option(
        "--protocol",
        help="The protocol of a schema file. The default is that of the other side if it is known, or 1.",
        metavar="N",
    ),
]


def _extension_of(side: str) -> Any:
    return typer.Option(
        f"--{side.lower()}-extension",
        help=f"An extension for {side} only. Repeatable.",
        metavar="NAME|PATH",
        autocompletion=completion.extensions,
    )


_Extension = Annotated[list[str] | None, parameters.option("extensions")]
_OldExtension = Annotated[list[str] | None, _extension_of("OLD")]
_NewExtension = Annotated[list[str] | None, _extension_of("NEW")]
_Source = Annotated[
    list[str] | None,
    typer.Option(
        "--source",
        help="A file that a package was built from, if it is not bundled. It is recognised by its digest. Repeatable.",
        metavar="PATH|REV:PATH",
    ),
]
_FailOn = Annotated[
    list[FailOn] | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 if a finding breaks messages (wire), if one breaks code (source), or if there is a finding "
        "that is not only about documentation (any). Repeatable.",
    ),
]
_Form = Annotated[DiffFormat, typer.Option("--format", help="The format of the result.")]
_All = Annotated[bool, typer.Option("--all", help="Also print findings that need no action. `json` always has them.")]


def _explain(rule: str | None) -> None:
    from acpgen.diff.formats import explain

    if rule is not None:
        print_data(explain(rule))
        raise typer.Exit


_Explain = Annotated[
    str | None,
    typer.Option(
        "--explain",
        callback=_explain,
        is_eager=True,
        help="Print the meaning of a rule and the reasons for its verdicts, and exit.",
        metavar="RULE",
    ),
]


def diff_command(
    old: _Old,
    new: _New,
    protocol: _Protocol = None,
    extension: _Extension = None,
    old_extension: _OldExtension = None,
    new_extension: _NewExtension = None,
    source: _Source = None,
    fail_on: _FailOn = None,
    form: _Form = DiffFormat.TEXT,
    everything: _All = False,
    _rule: _Explain = None,
) -> None:
    """Compare two schemas: the changes, whether old and new peers understand each other, and which code has to change.

    OLD and NEW are schema files, bundled releases, packages that acpgen wrote, or one of these in a revision of git.
    The protocols of two packages with several are compared one by one; any other schema is compared with the protocol
    that it has. A side that is no package gets the extensions of the other side's package, unless it has extensions of
    its own. If `pyproject.toml` configures that package, it gets the extensions and options that a build would use.

    Each finding has two verdicts. *wire*, for each sender: **ok**, **loses** (accepted, but a part is dropped or
    misread), **breaks** (rejected). *source*, for code that is written for OLD: **ok**, **risk** (breaks some code,
    such as an exhaustive `match`), **breaks**. The rule of a finding is in brackets; `--explain` prints its meaning.

    **Examples**

    - `acpgen diff v1/0.10.8 v1/2026-11-02`
    - `acpgen diff src/editor/acp new/schema.json --fail-on source`
    - `acpgen diff main:src/editor/acp src/editor/acp --format markdown`
    - `acpgen diff --explain field-made-required`
    """
    from acpgen.diff.formats import failures, render

    sides = (old, old_extension or []), (new, new_extension or [])
    comparisons = _compared(*sides, protocol=protocol, extensions=extension or [], sources=source or [])
    print_data(render(comparisons, form.value, everything=everything))
    if reasons := failures(comparisons.values(), [each.value for each in fail_on or []]):
        print("\n".join(reasons), file=sys.stderr)
        raise typer.Exit(1)


def _compared(
    old: SideSpec, new: SideSpec, *, protocol: int | None, extensions: Sequence[str], sources: Sequence[str]
) -> dict[int, Comparison]:
    """Compile the schemas of two specs, print the diagnostics, and compare the models, by protocol."""
    from acpgen.diff.compare import one_sided
    from acpgen.sources.revisions import read_files, resolve_both

    specs = old[0], new[0]
    files = read_files(sources, optional=_candidates(specs))
    output = _configured(specs)
    configured = output["extensions"] if output else None
    subjects = resolve_both(old, new, protocol=protocol, extensions=extensions, files=files, configured=configured)
    types = output.types if output else None
    found = {number: _compared_models(pair, types) for number, pair in subjects.pairs.items()}
    found |= {number: one_sided(number, specs, is_new=False) for number in subjects.only_old}
    found |= {number: one_sided(number, specs, is_new=True) for number in subjects.only_new}
    return dict(sorted(found.items()))


def _compared_models(pair: tuple[Subject, Subject], types: Options | None) -> Comparison:
    """Compare two models. A side that is no package has the options `types`, or else those of the other side."""
    from acpgen.diff.compare import compare, with_layout, with_parts
    from acpgen.ir.options import Options
    from acpgen.pipeline import compile_protocol

    before, after = (each.package for each in pair)
    print_diagnostics([*pair[0].notes, *pair[1].notes])
    fallback = types or next((each.options for each in (before, after) if each is not None), Options())
    # a package keeps its options
    old, new = (
        compile_protocol(each.inputs, each.package.options if each.package is not None else fallback) for each in pair
    )
    print_diagnostics([*old.diagnostics, *new.diagnostics], notes=False)
    found = compare(old.model, new.model, names=(pair[0].title, pair[1].title))
    if before is None or after is None:
        return found
    found = with_parts(found, before.parts, after.parts)
    return with_layout(found, new.model.protocol, before=not before.is_only, after=not after.is_only)


def _configured(specs: Sequence[str]) -> Output | None:
    """The configured output whose package one of `specs` names, in the checkout or in git. None if there is none."""
    packages = [folder for spec in specs if (folder := _folder(spec)) is not None]
    with suppress(InputError):
        for output in Given.of({}).outputs():
            if any(os.path.realpath(output["out"]) == os.path.realpath(each) for each in packages):
                return output
    return None


def _folder(spec: str) -> Path | None:
    """The folder of the package that `spec` may name."""
    path = Path(spec)
    if ":" in spec and not os.path.exists(spec):  # noqa: PTH110 - False for a name that no file can have
        inside = spec.partition(":")[2]
        tops = (each for each in (Path.cwd(), *Path.cwd().parents) if (each / ".git").exists())
        path = Path(inside) if inside.startswith(("./", "../")) else next(tops, Path.cwd()) / inside
    return path.parent if path.name == LOCK_NAME else path if "\0" not in spec else None


def _candidates(specs: Sequence[str]) -> list[str]:
    """The files of the configuration, now and in the revisions of `specs`: a package may have been built from one."""
    from acpgen.sources.revisions import is_release

    if all(map(is_release, specs)):
        return []
    paths = sorted(path.as_posix() for path in Given.of({}).input_files())
    revisions = {spec.partition(":")[0] for spec in specs if ":" in spec and not Path(spec).exists()}
    return [*paths, *(f"{revision}:./{path}" for revision in sorted(revisions) for path in paths)]
