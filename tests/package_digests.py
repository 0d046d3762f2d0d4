"""Digests of every file of every package: the net under changes that must not change what acpgen writes.

    python -m tests.package_digests > before.json      # at one commit
    python -m tests.package_digests before.json        # at another: names the files that differ; exit 1 if any does

The packages are those of each bundled release and of the protocols together, over roles, `open`, `keep_unknown`,
extensions, parts and flavours.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.flavours.models import emit_models
from acpgen.emit.format import format_files
from acpgen.emit.package import emit
from acpgen.flavours import Flavour
from acpgen.ir.options import Options
from acpgen.parts import NO_PART, default_parts
from acpgen.pipeline import compile_protocol
from acpgen.roles import RoleChoice
from acpgen.schema.bundled import bundled_fragments, list_releases
from acpgen.sources.inputs import load
from tests.support import every_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The options of a package. `open` and `keep_unknown` are those of the role if they are None."""

    schemas: tuple[SchemaChoice, ...]
    role: RoleChoice
    open: bool | None = None
    keep_unknown: bool | None = None
    parts: tuple[str, ...] | None = None
    flavour: Flavour | None = None

    def __str__(self) -> str:
        parts = [f"{each.protocol}/{each.release} {' '.join(each.extensions)}".strip() for each in self.schemas]
        flags = [
            f"{name}={value}" for name, value in (("open", self.open), ("keep", self.keep_unknown)) if value is not None
        ]
        flags += [f"with {' '.join(self.parts) or NO_PART}"] if self.parts is not None else []
        flags += [self.flavour.value] if self.flavour else []
        return ", ".join([*parts, self.role.value, *flags])

    def files(self) -> Mapping[str, str]:
        """The files of the package. Raises `InputError` for options that do not go together."""
        roles = self.role.roles
        records = [each.record for each in roles]
        is_open = any(each.is_open for each in records) if self.open is None else self.open
        keeps = any(each.keeps_unknown for each in records) if self.keep_unknown is None else self.keep_unknown
        options = Options.for_roles(roles, open=is_open, keep_unknown=keeps)
        models = [compile_protocol(load(each), options).model for each in self.schemas]
        if self.flavour is not None:
            return emit_models(models[0], self.flavour).files
        parts = default_parts(roles) if self.parts is None else self.parts
        return format_files(emit(models, roles, parts=parts).files)


def variants() -> Iterator[Variant]:
    """All variants, each once."""
    newest: dict[int, SchemaChoice] = {}
    for release in list_releases():
        choice = SchemaChoice(protocol=release.protocol, release=release.name)
        newest.setdefault(release.protocol, choice)
        names = sorted({each.id for each in bundled_fragments(release.protocol)})
        for role in RoleChoice:
            plain = Variant(schemas=(choice,), role=role)
            yield from (replace(plain, open=each) for each in (None, False, True))
            yield from (replace(plain, keep_unknown=True), replace(plain, parts=("remote",)), replace(plain, parts=()))
            yield replace(plain, parts=tuple(sorted(every_part(role.roles, [release.protocol]))))
            yield from (replace(plain, schemas=(replace(choice, extensions=(each,)),)) for each in names)
        yield from (Variant(schemas=(choice,), role=RoleChoice.BOTH, flavour=each) for each in Flavour)
    for role in RoleChoice:
        together = Variant(schemas=tuple(newest[each] for each in sorted(newest)), role=role)
        yield from (together, replace(together, parts=("remote",)), replace(together, parts=()))
        yield replace(together, parts=tuple(sorted(every_part(role.roles, list(newest)))))


def digests() -> dict[str, str]:
    """The digest of each file by variant and path; of a variant that cannot be built, that of its error."""
    found: dict[str, str] = {}
    for variant in variants():
        try:
            files = variant.files()
        except InputError as error:
            files = {"error": str(error)}
        print(f"{variant}: {len(files)} files", file=sys.stderr)
        found |= {f"{variant}: {path}": hashlib.sha256(text.encode()).hexdigest()[:16] for path, text in files.items()}
    return found


def main() -> int:
    """Print all digests as JSON, or the files that differ from those in a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", nargs="?", type=Path, help="the output of an earlier run, to compare with")
    before = parser.parse_args().before
    found = digests()
    if before is None:
        json.dump(found, sys.stdout, indent=0, sort_keys=True)
        return 0
    wanted: dict[str, str] = json.loads(before.read_text(encoding="utf-8"))
    differing = sorted(key for key in wanted.keys() | found.keys() if wanted.get(key) != found.get(key))
    print("\n".join(differing) or f"{len(found)} files, no difference")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
