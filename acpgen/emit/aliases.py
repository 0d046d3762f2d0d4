"""Public names that come and go: what a new package lacks that the old one had, and old names that are kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.text import did_you_mean

CONFIG_TABLE = "[tool.acpgen.renames]"


def usable(renames: Iterable[tuple[str, str]], modules: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The pairs of an old and a new name whose new name is public in a package; `modules` has its names by module.

    Raises `InputError` for an old name that the package has: it would stand for two things.
    """
    names = {name for each in modules.values() for name in each}
    found = {old: new for old, new in renames if new in names}
    if taken := sorted(found.keys() & {*names, *modules}):
        raise InputError([_taken(old, found[old]) for old in taken])
    return found


def _taken(old: str, new: str) -> Diagnostic:
    return Diagnostic(
        code="rename-taken",
        severity=Severity.ERROR,
        message=f"{old} cannot be another word for {new}: the package has that name, too",
        hint=f"remove {old} from {CONFIG_TABLE}",
    )


def check_new_names(packages: Iterable[tuple[Iterable[tuple[str, str]], Collection[str]]]) -> None:
    """Raise `InputError` for renames to names that no package has; one may have what another one lacks.

    `packages` has the renames and the public names of each.
    """
    known = list(packages)
    names = {name for _, each in known for name in each}
    if found := unusable(sorted({rename for renames, _ in known for rename in renames}), names):
        raise InputError(found)


def unusable(renames: Iterable[tuple[str, str]], names: Collection[str]) -> list[Diagnostic]:
    """An error for each pair whose new name no package has; `names` are those of all packages together."""
    return [
        Diagnostic(
            code="rename-unknown",
            severity=Severity.ERROR,
            message=f"{old} cannot be another word for {new}: no package has the name {new}",
            hint=did_you_mean(new, names) or f"remove {old} from {CONFIG_TABLE}",
        )
        for old, new in renames
        if new not in names
    ]


def dropped(
    old: Collection[str], new: Collection[str], renames: Mapping[str, str], *, other_options: bool = False
) -> list[Diagnostic]:
    """A warning for each public name of the old package that the new one has neither itself nor among `renames`.

    Which name took its place is a guess by likeness, among the names that are new. `other_options` says that the two
    were not built alike, so that nothing need have taken its place.
    """
    added = sorted(set(new) - set(old))
    gone = sorted(set(old) - set(new) - renames.keys())
    return [
        Diagnostic(
            code="name-dropped",
            severity=Severity.WARNING,
            message=f"{name}, which the package had, is gone",
            hint="the package was built with other options before" if other_options else _way_out(name, added),
        )
        for name in gone
    ]


def _way_out(name: str, added: list[str]) -> str:
    near = get_close_matches(name, added, n=1, cutoff=0.75)
    if near:
        return f"if {near[0]} took its place, keep the old name: {CONFIG_TABLE} {name} = {near[0]!r}"
    return f"`acpgen diff` tells of changes in the schema; where another name took its place, {CONFIG_TABLE} keeps it"
