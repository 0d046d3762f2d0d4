"""The parts of a package: what not every project needs. A project names those that it wants.

A part is a folder in `schema/helpers/` or `templates/runtime/` with a line about it in `part.txt`, and its modules. A
folder on the way to a module says which packages have it: `vN` those of a protocol, names of roles (`agent`,
`agent-proxy`) those of these roles, and the name of another part those that have that part, too. `extensions` holds
modules that only extensions have the names for. `schema/helpers/shared/` is no part: its modules go where they are
imported. Nothing else lists parts, or what they need: that follows from the imports of their modules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.roles import Role
from acpgen.schema.data import data_folder
from acpgen.text import did_you_mean

NO_PART = "none"
"""The value of the option `--with` for a package without parts."""

EXTRA = "extensions"
_SHARED = "shared"
_TITLE = "part.txt"
_VERSION = re.compile(r"v([1-9][0-9]*)")
_IMPORT = re.compile(r"^ *from \.(\w+) import ", re.MULTILINE)
"""An import from a module of the same folder of a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartModule:
    """A module of a part: its file, and the packages that have it. Without `roles` or `protocol`, all have.

    One that several parts share has no `part`.
    `others` are the parts that the package must have besides. `is_extra` is true if most packages do without it.
    """

    path: Path
    part: str | None
    roles: frozenset[str]
    protocol: int | None
    others: frozenset[str]
    is_extra: bool

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.path.stem

    def fits(self, roles: Iterable[Role], protocols: Collection[int]) -> bool:
        """Whether a package for `roles` and one of the `protocols` has the module."""
        has_role = not self.roles or any(role.value in self.roles for role in roles)
        return has_role and (self.protocol is None or self.protocol in protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part: its title, and its modules. `is_helper`: they are helpers, which speak the names of the protocol."""

    name: str
    title: str
    is_helper: bool
    modules: tuple[PartModule, ...]

    def modules_for(
        self, roles: Iterable[Role], protocols: Collection[int], parts: Collection[str] = ()
    ) -> list[PartModule]:
        """The modules that a package for `roles` and `protocols` with these other `parts` has."""
        return [each for each in self.modules if each.fits(roles, protocols) and each.others <= {*parts}]

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles for which there is the part."""
        return tuple(role for role in Role if any(each.fits((role,), _protocols(each)) for each in self.usual))

    def protocols(self, roles: Iterable[Role]) -> frozenset[int] | None:
        """The protocols for which there is the part in a package for `roles`; None if it is for all."""
        found = [each.protocol for each in self.usual if each.fits(roles, _protocols(each))]
        return None if None in found else frozenset(each for each in found if each is not None)

    @property
    def usual(self) -> list[PartModule]:
        """The modules that depend neither on another part nor on an extension."""
        return [each for each in self.modules if not (each.others or each.is_extra)]


def _protocols(module: PartModule) -> tuple[int, ...]:
    return () if module.protocol is None else (module.protocol,)


@cache
def all_parts() -> Mapping[str, Part]:
    """All parts by name, sorted."""
    data = data_folder()
    homes = [(data / "schema" / "helpers", True), (data / "templates" / "runtime", False)]
    found = {path.parent: is_helper for home, is_helper in homes for path in home.glob(f"*/{_TITLE}")}
    names = {folder.name for folder in found}
    return {
        folder.name: Part(
            name=folder.name,
            title=(folder / _TITLE).read_text(encoding="utf-8").strip(),
            is_helper=is_helper,
            modules=_modules(folder, names),
        )
        for folder, is_helper in sorted(found.items(), key=lambda each: each[0].name)
    }


@cache
def shared_modules() -> tuple[PartModule, ...]:
    """The helpers that several parts import, and that are no part."""
    return _modules(data_folder() / "schema" / "helpers" / _SHARED, ())


def _modules(folder: Path, names: Collection[str]) -> tuple[PartModule, ...]:
    paths = sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")
    return tuple(_module(path, folder, names) for path in paths)


def _module(path: Path, folder: Path, names: Collection[str]) -> PartModule:
    conditions = path.relative_to(folder).parts[:-1]
    roles = {role.value for role in Role}
    versions = [int(found[1]) for each in conditions if (found := _VERSION.fullmatch(each))]
    return PartModule(
        path=path,
        part=None if folder.name == _SHARED else folder.name,
        roles=frozenset(name for each in conditions if roles >= {*each.split("-")} for name in each.split("-")),
        protocol=versions[0] if versions else None,
        others=frozenset(conditions) & {*names},
        is_extra=EXTRA in conditions,
    )


def default_parts(roles: Iterable[Role]) -> tuple[str, ...]:
    """The parts of a package for `roles` whose project names none: what the first example of each role uses."""
    return tuple(dict.fromkeys(name for role in roles for name in role.record.parts))


def with_needed(names: Collection[str], roles: tuple[Role, ...], protocols: Collection[int]) -> frozenset[str]:
    """The parts with these names, and those whose modules they import."""
    found, new = frozenset[str](), frozenset(names)
    while new:
        found |= new
        new = frozenset(need for name in new for need in needs(name, roles, protocols)) - found
    return found


def needs(name: str, roles: tuple[Role, ...], protocols: Collection[int]) -> frozenset[str]:
    """The parts whose modules the part `name` imports, directly or through shared ones."""
    owners = _owners(roles, protocols)
    shared = {each.name: each for each in shared_modules() if each.fits(roles, protocols)}
    found, seen = set[str](), set[str]()
    rest = [each.path for each in all_parts()[name].modules_for(roles, protocols)]
    while rest:
        for module in {*imported_beside(rest.pop())} - seen:
            seen.add(module)
            if module in shared:
                rest.append(shared[module].path)
            elif module in owners:
                found.add(owners[module])
    return frozenset(found - {name})


@cache
def imported_beside(path: Path) -> frozenset[str]:
    """The modules that one imports from its own folder in a package."""
    return frozenset(_IMPORT.findall(path.read_text(encoding="utf-8")))


def _owners(roles: tuple[Role, ...], protocols: Collection[int]) -> dict[str, str]:
    """The part of each helper."""
    parts = [part for part in all_parts().values() if part.is_helper]
    return {each.name: part.name for part in parts for each in part.modules_for(roles, protocols, all_parts())}


def parts_in(paths: Iterable[str]) -> frozenset[str]:
    """The parts that a package with files at `paths` has, also one of a former version of acpgen."""
    stems = {path.rpartition("/")[2].removesuffix(".py") for path in paths}
    return frozenset(part.name for part in all_parts().values() if any(each.name in stems for each in part.usual))


def check_parts(names: Iterable[str], roles: tuple[Role, ...], protocols: Collection[int], *, origin: str) -> None:
    """Raise `InputError` for each of the names that is no part, or none of such a package; `origin` is their place."""
    found = [error for name in names if (error := _flaw(name, roles, protocols, origin)) is not None]
    if found:
        raise InputError(each for error in found for each in error.diagnostics)


def _flaw(name: str, roles: tuple[Role, ...], protocols: Collection[int], origin: str) -> InputError | None:
    of_roles = [part for part in all_parts().values() if {*part.roles} & {*roles}]
    wanted = {part.name: part.protocols(roles) for part in of_roles}
    known = [part for part in of_roles if (only := wanted[part.name]) is None or only & {*protocols}]
    listed = f"the parts are {', '.join(part.name for part in known)}; `acpgen parts` says what is in each"
    part = all_parts().get(name)
    if part is None:
        near = did_you_mean(name, [each.name for each in known])
        return input_error(
            "unknown-part", f"unknown part {name!r} ({origin})", hint=f"{near} {listed}" if near else listed
        )
    if part not in of_roles:
        owners = " and ".join(f"of {role.record.noun}" for role in part.roles)
        message = f"the part {name!r} ({origin}) is for a package {owners}"
        hint = f"leave it out, or choose --role {part.roles[0].value}; {listed}"
        return input_error("part-of-another-role", message, hint=hint)
    if part not in known:
        numbers = " and ".join(map(str, sorted(wanted[name] or ())))
        message = f"the part {name!r} ({origin}) is for protocol {numbers}, which is not built"
        return input_error("part-of-another-protocol", message, hint=f"leave it out; {listed}")
    return None
