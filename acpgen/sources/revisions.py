"""Resolves OLD and NEW of a comparison: a file, a bundled release, a package, or one of these in git."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
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
from acpgen.sources.inputs import Extension, File, Inputs, Schema, find_extension, read_file
from acpgen.text import cut

_RELEASE = re.compile(r"v(\d{1,4})/([\w.-]+)")

Files = Mapping[str, File]
"""Files by digest: the inputs of packages that are not bundled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the project knows: the `files` that packages may have been built from, and the extensions of the package.

    `configured` is None if no package of the comparison is configured.
    """

    files: Files
    configured: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The meaning of a spec: the input to compile, and its options, which only the manifest of a package has.

    `parts` are those of a package. `is_subpackage`: it is one of several protocols of a package. `notes` are about the
    extensions of the other side.
    """

    spec: str
    inputs: Inputs
    options: ir.Options | None = None
    parts: frozenset[str] = frozenset()
    is_subpackage: bool = False
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """An input of a package, as in its manifest."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Package:
    """The inputs of one protocol in the manifest of a package, and its options.

    `label` is the name of the manifest in messages. `is_only`: the package has no other protocols.
    """

    label: str
    version: str
    protocol: int
    schema: _Input
    extensions: tuple[_Input, ...]
    options: ir.Options
    parts: frozenset[str]
    is_only: bool


Found: TypeAlias = Release | File | _Package
"""The possible meanings of a spec, for one protocol."""


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
    old: str,
    new: str,
    *,
    protocol: int | None,
    extensions: Sequence[str],
    own: tuple[Sequence[str], Sequence[str]],
    known: Known,
) -> Subjects:
    """Resolve two specs. Packages of several protocols make several pairs.

    Both sides get `extensions`, and each its `own`; one that is no package and has none gets those of the other side,
    or those that are configured for it. `protocol` is that of schema files; its default is the protocol of the other
    side. Raises `InputError` for what does not exist, cannot be read, or is not valid.
    """
    specs = (old, new)
    found = [_locate(spec) for spec in specs]
    stated = (each.protocol for side in found for each in side if not isinstance(each, File))
    number = protocol or next(stated, DEFAULT_PROTOCOL)
    before, after = ({number if isinstance(each, File) else each.protocol: each for each in side} for side in found)
    chosen = _common(specs, before, after)
    sides = ([pair[0] for pair in chosen.values()], [pair[1] for pair in chosen.values()])
    others = ([None if more else each for each in side] for side, more in zip(sides[::-1], own, strict=True))
    olds, news = (
        _resolve(spec, side, other, protocol=number, extensions=[*extensions, *more], known=known)
        for spec, side, other, more in zip(specs, sides, others, own, strict=True)
    )
    is_one = min(len(before), len(after)) == 1
    return Subjects(
        pairs=dict(zip(chosen, zip(olds, news, strict=True), strict=True)),
        only_old=() if is_one else sorted(before.keys() - after.keys()),
        only_new=() if is_one else sorted(after.keys() - before.keys()),
    )


def _common(
    specs: tuple[str, str], old: Mapping[int, Found], new: Mapping[int, Found]
) -> dict[int, tuple[Found, Found]]:
    """The parts of both sides by protocol. A single schema is compared with the part that has its protocol."""
    if len(old) == len(new) == 1:  # of any two protocols
        return {each: (next(iter(old.values())), part) for each, part in new.items()}
    if not (common := sorted(old.keys() & new.keys())) and min(len(old), len(new)) == 1:
        spec, side, other = (specs[0], old, new) if len(old) > 1 else (specs[1], new, old)
        message = f"{cut(spec)} has the protocols {' and '.join(map(str, side))}, and not {next(iter(other))}"
        raise input_error("no-such-protocol", message, hint="compare it with a schema of one of its protocols")
    return {each: (old[each], new[each]) for each in common}


def _resolve(
    spec: str,
    parts: Sequence[Found],
    others: Sequence[Found | None],
    *,
    protocol: int,
    extensions: Sequence[str],
    known: Known,
) -> list[Subject]:
    """The subjects of one side, each with the extensions that fit it, and those of the package among `others`."""
    inputs = [_inputs(each, protocol, known.files) for each in parts]
    fitting = _fitting(inputs, extensions)
    subjects: list[Subject] = []
    for part, other, each in zip(parts, others, inputs, strict=True):
        added = [find_extension(spec, each.schema) for spec in fitting[each.protocol]]
        subject = Subject(spec=spec, inputs=each.extended(added))
        if isinstance(part, _Package):
            subject = replace(subject, options=part.options, parts=part.parts, is_subpackage=not part.is_only)
        elif isinstance(other, _Package):
            fragments = _built_from(other, known.files).fragments
            carried, notes = carry_over(fragments, subject.inputs, spec=spec, configured=known.configured)
            subject = replace(subject, inputs=carried, notes=notes)
        subjects.append(subject)
    return subjects


def _inputs(found: Found, protocol: int, files: Files) -> Inputs:
    match found:
        case Release():
            return Inputs(schema=Schema.of_release(found))
        case _Package():
            return _built_from(found, files)
        case File():
            return Inputs(schema=_schema_in(found, protocol))


def _fitting(inputs: Sequence[Inputs], extensions: Sequence[str]) -> dict[int, list[str]]:
    """The extensions for each protocol: those that fit it, and those that fit none, so that they are reported."""
    found: dict[int, list[str]] = {each.protocol: [] for each in inputs}
    for spec in extensions:
        for each in [each for each in inputs if len(inputs) == 1 or _fits(spec, each.schema)] or inputs:
            found[each.protocol].append(spec)
    return found


def _fits(spec: str, schema: Schema) -> bool:
    with suppress(InputError):
        return schema.protocol in find_extension(spec, schema).fragment.protocols
    return False


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


def _built_from(package: _Package, files: Files) -> Inputs:
    extensions = tuple(_extension(each, package, files) for each in package.extensions)
    return Inputs(schema=_schema(package, files), extensions=extensions)


def _read_package(file: File) -> list[_Package]:
    """Parse the inputs of each protocol in a manifest, and the options. Raises `InputError` if they are not there."""
    folder = file.label.removesuffix(LOCK_NAME).rstrip("/") or "."
    manifest = parse_manifest(file.data, folder)
    try:
        return _parse_head(manifest, file.label)
    except (KeyError, TypeError, AttributeError):
        message = f"{file.label} lacks the inputs of the package"
        raise input_error("manifest-broken", message, hint="build it again") from None


def _parse_head(manifest: Manifest, label: str) -> list[_Package]:
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
        _Package(
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


def _input(raw: Mapping[str, Any]) -> _Input:
    if not (isinstance(raw["name"], str) and isinstance(raw["sha256"], str)):
        raise TypeError(raw)
    return _Input(name=raw["name"], digest=raw["sha256"])


def _schema(package: _Package, files: Files) -> Schema:
    wanted = package.schema
    key = (package.protocol, wanted.name)
    release = next((each for each in list_releases() if (each.protocol, each.spec) == key), None)
    if release is not None and (bundled := Schema.of_release(release)).file.digest == wanted.digest:
        return bundled
    if wanted.digest in files:
        return _schema_in(files[wanted.digest], package.protocol)
    raise _missing("schema", wanted, package, is_known=release is not None)


def _extension(wanted: _Input, package: _Package, files: Files) -> Extension:
    # a name from a manifest is untrusted: it is compared with those that are bundled, and becomes no path
    bundled = next((each for each in bundled_fragments(package.protocol) if each.spec == wanted.name), None)
    if bundled is not None and bundled.document.digest == wanted.digest:
        return Extension.of_fragment(bundled)
    if wanted.digest in files:
        return Extension.of_file(files[wanted.digest])
    raise _missing("extension", wanted, package, is_known=bundled is not None)


def _missing(what: str, wanted: _Input, package: _Package, *, is_known: bool) -> InputError:
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
