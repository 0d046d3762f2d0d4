"""Resolves OLD and NEW of a comparison: a file, a bundled release, a package, or one of these in git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import acpgen
from acpgen.config import DEFAULT_PROTOCOL
from acpgen.diagnostics import Diagnostic, InputError, input_error
from acpgen.ir import model as ir
from acpgen.output import LOCK_NAME
from acpgen.output.manifest import Manifest, is_manifest, parse_manifest
from acpgen.parts import parts_in
from acpgen.roles import Role
from acpgen.schema.bundled import Release, bundled_fragments, find_release, list_releases
from acpgen.schema.document import read_bytes
from acpgen.sources.carrying import carry_over
from acpgen.sources.git import read_in_revision
from acpgen.sources.inputs import Extension, File, Inputs, Schema, fitting_extensions, read_file
from acpgen.text import cut

_RELEASE = re.compile(r"v(\d{1,4})/([\w.-]+)")

Files = Mapping[str, File]
"""Files by digest: the inputs of packages that are not bundled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestInput:
    """An input of a package, as in its manifest."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPackage:
    """The inputs of one protocol in the manifest of a package, and its options.

    `label` is the name of the manifest in messages. `is_only`: the package has no other protocols.
    """

    label: str
    version: str
    protocol: int
    schema: ManifestInput
    extensions: tuple[ManifestInput, ...]
    options: ir.Options
    parts: frozenset[str]
    is_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The meaning of a spec: the input to compile. `notes` are about the extensions of the other side."""

    spec: str
    inputs: Inputs
    package: BuiltPackage | None = None
    notes: Sequence[Diagnostic] = ()

    @property
    def title(self) -> str:
        """The heading of the subject: the spec, and the schema that it stands for."""
        inputs = self.inputs
        if not inputs.extensions and is_release(self.spec):
            return self.spec
        base = inputs.schema.origin if inputs.release is not None else f"protocol {inputs.protocol}"
        return f"{self.spec} ({' + '.join([base, *sorted(each.origin for each in inputs.fragments)])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """The subjects to compare by protocol, and the protocols that only one side has."""

    pairs: Mapping[int, tuple[Subject, Subject]]
    only_old: Sequence[int] = ()
    only_new: Sequence[int] = ()


Found: TypeAlias = Release | File | BuiltPackage
"""The possible meanings of a spec, for one protocol."""
SideSpec: TypeAlias = tuple[str, Sequence[str]]
"""What the user names as OLD or NEW, and the extensions for that alone."""


def read_files(specs: Iterable[str], *, optional: Iterable[str] = ()) -> Files:
    """Read files, each given as a path or `REV:PATH`.

    Raises `InputError` for one that cannot be read; of `optional`, such files are left out.
    """
    found = []
    for spec in optional:
        with suppress(InputError):
            found.append(_read(spec))
    found += map(_read, specs)
    return {file.digest: file for file in found}


def is_release(spec: str) -> bool:
    """Whether a spec has the form of a bundled release, `vN/NAME`."""
    return _RELEASE.fullmatch(spec) is not None


def resolve_both(
    old: SideSpec,
    new: SideSpec,
    *,
    protocol: int | None,
    extensions: Sequence[str],
    files: Files,
    configured: Sequence[str] | None,
) -> Subjects:
    """Resolve both sides. Packages of several protocols make several pairs.

    Both sides get `extensions`. One that is no package and has none of its own gets those of the other side, or those
    that are `configured` for that. `protocol` is that of schema files; its default is the protocol of the other side.
    Packages may have been built from `files`. Raises `InputError` for what does not exist, cannot be read, or is not
    valid.
    """
    found = [_locate(spec) for spec, _ in (old, new)]
    stated = (each.protocol for side in found for each in side if not isinstance(each, File))
    number = protocol or next(stated, DEFAULT_PROTOCOL)
    before, after = ({number if isinstance(each, File) else each.protocol: each for each in side} for side in found)
    common = _common((old[0], new[0]), before, after)
    olds, news = (
        _subjects(spec, parts, protocol=number, extensions=[*extensions, *own], files=files)
        for (spec, own), parts in ((old, [each for each, _ in common]), (new, [each for _, each in common]))
    )
    carry = partial(_carried, files=files, configured=configured)
    pairs = [
        (one if old[1] else carry(other.package, one), other if new[1] else carry(one.package, other))
        for one, other in zip(olds, news, strict=True)
    ]
    is_one = min(len(before), len(after)) == 1
    return Subjects(
        pairs={other.inputs.protocol: (one, other) for one, other in pairs},
        only_old=() if is_one else sorted(before.keys() - after.keys()),
        only_new=() if is_one else sorted(after.keys() - before.keys()),
    )


def _common(specs: tuple[str, str], old: Mapping[int, Found], new: Mapping[int, Found]) -> list[tuple[Found, Found]]:
    """The parts of both sides to compare. A single schema is compared with the part that has its protocol."""
    if len(old) == len(new) == 1:  # of any two protocols
        return list(zip(old.values(), new.values(), strict=True))
    if not (common := sorted(old.keys() & new.keys())) and min(len(old), len(new)) == 1:
        spec, side, other = (specs[0], old, new) if len(old) > 1 else (specs[1], new, old)
        message = f"{cut(spec)} has the protocols {' and '.join(map(str, side))}, and not {next(iter(other))}"
        raise input_error("no-such-protocol", message, hint="compare it with a schema of one of its protocols")
    return [(old[each], new[each]) for each in common]


def _subjects(
    spec: str, parts: Sequence[Found], *, protocol: int, extensions: Sequence[str], files: Files
) -> list[Subject]:
    """The subjects of one side, each with the extensions that fit it."""
    inputs = [_inputs(each, protocol, files) for each in parts]
    fitting = [fitting_extensions(each, [known.schema for known in inputs]) for each in extensions]
    return [
        Subject(
            spec=spec,
            inputs=each.extended([found[each.protocol] for found in fitting if each.protocol in found]),
            package=part if isinstance(part, BuiltPackage) else None,
        )
        for part, each in zip(parts, inputs, strict=True)
    ]


def _carried(
    package: BuiltPackage | None, subject: Subject, *, files: Files, configured: Sequence[str] | None
) -> Subject:
    """A subject that is no package with the extensions of the package that it is compared with."""
    if package is None or subject.package is not None:
        return subject
    fragments = _built_from(package, files).fragments
    inputs, notes = carry_over(fragments, subject.inputs, spec=subject.spec, configured=configured)
    return replace(subject, inputs=inputs, notes=notes)


def _inputs(found: Found, protocol: int, files: Files) -> Inputs:
    match found:
        case Release():
            return Inputs(schema=Schema.of_release(found))
        case BuiltPackage():
            return _built_from(found, files)
        case File():
            return Inputs(schema=_schema_in(found, protocol))


def _schema_in(file: File, protocol: int) -> Schema:
    found = Schema.of_file(file, protocol)
    if "fragment" in found.document.root and "protocols" in found.document.root:
        hint = "compare two schemas, and give the extension with --extension, --old-extension or --new-extension"
        raise input_error("fragment-as-schema", f"{cut(file.label)} is an extension, not a schema", hint=hint)
    return found


# --- Specs -----------------------------------------------------------------------------------------------------------


def _locate(spec: str) -> Sequence[Found]:
    for path in (Path(spec), Path(spec) / LOCK_NAME):
        if os.path.isfile(path):  # noqa: PTH113 - False for a name that no file can have
            return _recognised(read_file(path, label=spec if path == Path(spec) else path.as_posix()))
    if match := _RELEASE.fullmatch(spec):
        return [find_release(int(match[1]), match[2])]
    if ":" in spec:
        return _recognised(_read(spec))
    raise _unknown(spec)


def _recognised(file: File) -> Sequence[Found]:
    """Recognise a file: a manifest with its protocols, the schema of a bundled release, or another schema."""
    if is_manifest(file.data):
        return _read_package(file)
    for release in list_releases():
        if read_bytes(release.schema, label=release.label) == file.data:
            return [release]
    return [file]


def _read(spec: str) -> File:
    if ":" in spec and not os.path.isfile(spec):  # noqa: PTH113 - as above
        label, data = read_in_revision(spec, in_folder=LOCK_NAME)
        return File(label=label, name=re.split(r"[/\\:]", label)[-1], data=data)
    return read_file(Path(spec), label=spec)


def _unknown(spec: str) -> InputError:
    """The error for a spec without a meaning."""
    if os.path.isdir(spec):  # noqa: PTH112 - False for a name that no folder can have
        return input_error(
            "no-manifest", f"the folder {spec} has no {LOCK_NAME}", hint="give the folder of a package, or a file"
        )
    releases = ", ".join(release.spec for release in list_releases())
    hint = f"the bundled releases are {releases}; write REV:PATH for a file in git"
    return input_error("unknown-schema", f"{cut(spec)!r} is neither a file nor a bundled release", hint=hint)


# --- Manifests ------------------------------------------------------------------------------------------------------


def built_from(lock: File, files: Files) -> list[Inputs]:
    """The inputs of each protocol of a package, by its manifest. Raises `InputError` if they are not known."""
    return [_built_from(each, files) for each in _read_package(lock)]


def _built_from(package: BuiltPackage, files: Files) -> Inputs:
    extensions = tuple(_extension(each, package, files) for each in package.extensions)
    return Inputs(schema=_schema(package, files), extensions=extensions)


def _read_package(file: File) -> list[BuiltPackage]:
    """Parse the inputs of each protocol in a manifest, and the options. Raises `InputError` if they are not there."""
    folder = file.label.removesuffix(LOCK_NAME).rstrip("/") or "."
    manifest = parse_manifest(file.data, folder)
    try:
        return _parse_head(manifest, file.label)
    except (KeyError, TypeError, AttributeError):
        message = f"{file.label} lacks the inputs of the package"
        raise input_error("manifest-broken", message, hint="build it again") from None


def _parse_head(manifest: Manifest, label: str) -> list[BuiltPackage]:
    """Parse a head. Raises `KeyError`, `TypeError` or `AttributeError` for one that acpgen did not write."""
    head: Mapping[str, Any] = manifest.head
    parts = head.get("protocols", [head])
    if not (parts and all(isinstance(each["protocol"], int) for each in parts)):
        raise TypeError(parts)
    chosen = head.get("options", {})
    roles = chosen.get("roles", [])
    options = ir.Options.for_roles(
        tuple(role for role in Role if role.value in roles),
        open=chosen.get("open") is True,
        keep_unknown=chosen.get("keep_unknown") is True,
    )
    return [
        BuiltPackage(
            label=label,
            version=str(head.get("acpgen", "")),
            protocol=each["protocol"],
            schema=_input(each["schema"]),
            extensions=tuple(map(_input, each["extensions"])),
            options=options,
            parts=parts_in(manifest.files),
            is_only=len(parts) == 1,
        )
        for each in parts
    ]


def _input(raw: Mapping[str, Any]) -> ManifestInput:
    if not (isinstance(raw["name"], str) and isinstance(raw["sha256"], str)):
        raise TypeError(raw)
    return ManifestInput(name=raw["name"], digest=raw["sha256"])


def _schema(package: BuiltPackage, files: Files) -> Schema:
    wanted = package.schema
    key = (package.protocol, wanted.name)
    release = next((each for each in list_releases() if (each.protocol, each.spec) == key), None)
    if release is not None and (bundled := Schema.of_release(release)).file.digest == wanted.digest:
        return bundled
    if wanted.digest in files:
        return _schema_in(files[wanted.digest], package.protocol)
    raise _missing("schema", wanted, package, is_known=release is not None)


def _extension(wanted: ManifestInput, package: BuiltPackage, files: Files) -> Extension:
    # a name from a manifest is untrusted: it is compared with those that are bundled, and becomes no path
    bundled = next((each for each in bundled_fragments(package.protocol) if each.spec == wanted.name), None)
    if bundled is not None and bundled.document.digest == wanted.digest:
        return Extension.of_fragment(bundled)
    if wanted.digest in files:
        return Extension.of_file(files[wanted.digest])
    raise _missing("extension", wanted, package, is_known=bundled is not None)


def _missing(what: str, wanted: ManifestInput, package: BuiltPackage, *, is_known: bool) -> InputError:
    why, way_out = "it is not bundled", ""
    if is_known:
        why = f"acpgen {acpgen.__version__} bundles another file under this name"
        way_out = f", compare with {wanted.name} itself" if what == "schema" else ""
        way_out += f", or use acpgen {package.version}" if package.version != acpgen.__version__ else ""
    return input_error(
        "manifest-input",
        f"{package.label} was built from the {what} {wanted.name!r} with the SHA-256 {wanted.digest}; {why}",
        hint=f"give that file with --source PATH, or with --source REV:PATH from git{way_out}",
    )
