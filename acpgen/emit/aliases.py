"""Aliases: old public names that a package keeps, and old names that a new package has lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.text import did_you_mean

CONFIG_TABLE = "[tool.acpgen.renames]"


def usable(renames: Iterable[tuple[str, str]], modules: Mapping[str, Collection[str]]) -> dict[str, str]:
    """The renames whose new name is public in the package; `modules` has its public names by module (".types").

    Raises `InputError` for an old name that the package already defines.
    """
    names = {name for each in modules.values() for name in each}
    found = {old: new for old, new in renames if new in names}
    if taken := sorted(found.keys() & {*names, *(module.strip(".") for module in modules)}):
        raise InputError(_refused("rename-taken", old, found[old], f"{old} is already defined") for old in taken)
    return found


def _refused(code: str, old: str, new: str, why: str, *, hint: str | None = None) -> Diagnostic:
    message = f"cannot keep {old} as an alias of {new}: {why}"
    return Diagnostic(code=code, message=message, hint=hint or f"remove {old} from {CONFIG_TABLE}")


def check_new_names(packages: Iterable[tuple[Iterable[tuple[str, str]], Collection[str]]]) -> None:
    """Raise `InputError` for renames to a name that none of the packages defines.

    `packages` has the renames and the public names of each package.
    """
    known = list(packages)
    public = {name for _, each in known for name in each}
    names = {name.rpartition(".")[2] for name in public} - {name.partition(".")[0] for name in public if "." in name}
    renames = sorted({rename for each, _ in known for rename in each})
    if missing := [(old, new) for old, new in renames if new not in names]:
        raise InputError(
            _refused("rename-unknown", old, new, f"{new} is not defined", hint=did_you_mean(new, names))
            for old, new in missing
        )


def dropped(
    old: Collection[str],
    new: Collection[str],
    renames: Mapping[str, str],
    *,
    kinds: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    other_options: bool = False,
) -> list[Diagnostic]:
    """A warning for each public name of the old package that the new one neither defines nor keeps as an alias.

    The hint suggests the most similar new name of the same kind; `kinds` are those of the old and the new names, as far
    as they are known. `other_options` is true where the old package was built with other
    options: then the name may be missing for that reason. One warning is for all names of a subpackage that is gone,
    and one for all names that have moved into subpackages.
    """
    added = sorted(set(new) - set(old))
    gone = sorted(set(old) - set(new) - renames.keys())
    below = {name.partition(".")[2] for name in added}
    moved = [name for name in gone if name in below]
    single = [name for name in gone if name not in below and ("." not in name or name.partition(".")[0] not in gone)]
    hint = "the package was built with other options before" if other_options else ""
    return [
        *([_moved(moved, added)] if moved else []),
        *(_dropped(f"the package no longer defines {name}", hint or _way_out(name, added, kinds)) for name in single),
    ]


def _dropped(message: str, hint: str) -> Diagnostic:
    return Diagnostic(code="name-dropped", severity=Severity.WARNING, message=message, hint=hint)


def _moved(names: list[str], added: list[str]) -> Diagnostic:
    """The warning about names that only subpackages have now."""
    some = f"{names[0]} and {len(names) - 1} others" if len(names) > 1 else names[0]
    where = next(each.partition(".")[0] for each in added if each.partition(".")[2] == names[0])
    return _dropped(
        f"the package no longer defines {some} at its top", f"import them from a subpackage, such as {where}"
    )


def _way_out(name: str, added: list[str], kinds: tuple[Mapping[str, str], Mapping[str, str]]) -> str:
    """The way to keep a name, by the most similar one of its kind that is new in the same place."""
    place, _, last = name.rpartition(".")
    kind = kinds[0].get(name)
    alike = [each for each in added if kind is None or kinds[1].get(each, kind) == kind]
    beside = [each.rpartition(".")[2] for each in alike if each.rpartition(".")[0] == place]
    near = get_close_matches(last, beside, n=1, cutoff=0.75)
    if near:
        return f"to keep the old name as an alias of {near[0]}: {CONFIG_TABLE} {last} = {near[0]!r}"
    return f"`acpgen diff` shows what changed in the schema; {CONFIG_TABLE} keeps an old name as an alias"
