"""What users call a schema: a file, a bundled release, the manifest of a package, or one of these in git."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import acpgen
from acpgen.config import DEFAULT_PROTOCOL
from acpgen.diagnostics import Diagnostic, InputError, input_error
from acpgen.ir.model import Options
from acpgen.output import LOCK_NAME
from acpgen.output.manifest import is_manifest, parse_manifest
from acpgen.pipeline import Loaded
from acpgen.schema.bundled import Release, find_release, known_facts, list_releases, load_release, locate_fragment
from acpgen.schema.document import Document, parse_document, read_bytes
from acpgen.schema.fitting import choose_fragment
from acpgen.schema.fragment import Fragment, load_fragment, load_fragments
from acpgen.sources.git import read_in_revision
from acpgen.text import cut, digest

T = TypeVar("T")

_RELEASE = re.compile(r"v(\d{1,4})/([\w.-]+)")
_BUNDLED_FRAGMENT = re.compile(r"[\w-]+@[\w-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The bytes of a file, wherever it is; `label` is what the user calls it, `name` its own name."""

    label: str
    data: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """The last part of the label."""
        return re.split(r"[/\\:]", self.label)[-1]

    @property
    def digest(self) -> str:
        """The SHA-256 by which manifests know the file."""
        return digest(self.data)


Files = Mapping[str, File]
"""Files by digest: where manifests find what is not bundled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What a spec stands for: what to compile, and with which options, where the spec says so (a manifest does)."""

    spec: str
    loaded: Loaded
    options: Options | None

    @property
    def title(self) -> str:
        """The subject in headings: the spec, and what it comes to."""
        if not self.loaded.fragments and _RELEASE.fullmatch(self.spec):
            return self.spec
        loaded = self.loaded
        base = loaded.base.origin if loaded.release is not None else f"protocol {loaded.protocol}"
        return f"{self.spec} ({' + '.join([base, *sorted(each.origin for each in loaded.fragments)])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """A file that a package was built from, as its manifest names it."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """The part of a manifest that says what the package was built from."""

    version: str
    protocol: int
    schema: _Input
    extensions: tuple[_Input, ...]
    options: Options


@dataclass(frozen=True, slots=True, kw_only=True)
class _Manifest:
    """A manifest, read."""

    file: File
    head: _Head


Found: TypeAlias = Release | File | _Manifest
"""What a spec may lead to."""


def read_files(specs: Iterable[str]) -> Files:
    """Files that users name, each a path or `REV:PATH`, by digest; raises `InputError` for what cannot be read."""
    found = (_read(spec) for spec in specs)
    return {file.digest: file for file in found}


def is_release(spec: str) -> bool:
    """Whether a spec is written like a bundled release."""
    return _RELEASE.fullmatch(spec) is not None


def read_candidates(specs: Iterable[str]) -> Files:
    """The same for files that may be of use: those that cannot be read are left out."""
    found: dict[str, File] = {}
    for spec in specs:
        with suppress(InputError):
            file = _read(spec)
            found[file.digest] = file
    return found


def resolve_both(
    old: str,
    new: str,
    *,
    protocol: int | None = None,
    extensions: tuple[Sequence[str], Sequence[str]] = ((), ()),
    files: Files | None = None,
) -> tuple[Subject, Subject]:
    """What two specs stand for, each with its `extensions` on top.

    `protocol` is that of schemas that do not tell; without it, they are of the same as the other one. `files` are where
    manifests find what is not bundled. Raises `InputError` for what does not exist, cannot be read, or is not what it
    should be.
    """
    found = _all((lambda: _locate(old, protocol), lambda: _locate(new, protocol)))
    told = [known for each in found if (known := _protocol_of(each)) is not None]
    number = protocol or (told[0] if told else DEFAULT_PROTOCOL)
    first, second = _all(
        partial(_resolve, spec, each, protocol=number, extensions=more, files=files or {})
        for spec, each, more in zip((old, new), found, extensions, strict=True)
    )
    return first, second


def _all(calls: Iterable[Callable[[], T]]) -> list[T]:
    """What the calls give; raises `InputError` with what is wrong with any of them."""
    results: list[T] = []
    problems: list[Diagnostic] = []
    for call in calls:
        try:
            results.append(call())
        except InputError as error:
            problems += error.diagnostics
    if problems:
        raise InputError(problems)
    return results


def resolve(
    spec: str, *, protocol: int | None = None, extensions: Sequence[str] = (), files: Files | None = None
) -> Subject:
    """What one spec stands for, as `resolve_both` has it for two."""
    number = protocol or DEFAULT_PROTOCOL
    return _resolve(spec, _locate(spec, protocol), protocol=number, extensions=extensions, files=files or {})


def _protocol_of(found: Found) -> int | None:
    match found:
        case Release(protocol=protocol):
            return protocol
        case _Manifest(head=head):
            return head.protocol
        case File():
            return None


def _resolve(spec: str, found: Found, *, protocol: int, extensions: Sequence[str], files: Files) -> Subject:
    match found:
        case Release():
            loaded = Loaded(base=load_release(found), fragments=(), protocol=found.protocol, release=found)
            return _extended(Subject(spec=spec, loaded=loaded, options=None), extensions)
        case _Manifest(head=head):
            loaded = _built_from(found, files)
            return _extended(Subject(spec=spec, loaded=loaded, options=head.options), extensions)
        case File():
            base = _document(found, protocol)
            loaded = Loaded(base=base, fragments=(), protocol=protocol, release=None)
            return _extended(Subject(spec=spec, loaded=loaded, options=None), extensions)


def _document(file: File, protocol: int) -> Document:
    found = parse_document(file.data, label=file.label, origin=f"ACP v{protocol}, {file.name}")
    if "fragment" in found.root and "protocols" in found.root:
        hint = "compare two schemas, and give the extension with --extension, --old-extension or --new-extension"
        raise input_error("fragment-as-schema", f"{cut(file.label)} is an extension, not a schema", hint=hint)
    return found


def _extended(subject: Subject, extensions: Sequence[str]) -> Subject:
    """The subject with extensions on top, but for those that it has already."""
    loaded = subject.loaded
    known = {fragment.document.digest for fragment in loaded.fragments}
    gates = known_facts(loaded.base, loaded.protocol, loaded.release)[0].gates
    files = [choose_fragment(each, loaded.base, protocol=loaded.protocol, gates=gates) for each in extensions]
    given = load_fragments(files)
    added = tuple(fragment for fragment in given if fragment.document.digest not in known)
    return replace(subject, loaded=replace(loaded, fragments=(*loaded.fragments, *added)))


# --- Where things are -----------------------------------------------------------------------------------------------


def _locate(spec: str, protocol: int | None) -> Found:
    if _is_file(Path(spec)):
        return _recognised(File(label=spec, data=read_bytes(Path(spec), label=spec)))
    if _is_file(Path(spec) / LOCK_NAME):
        label = (Path(spec) / LOCK_NAME).as_posix()
        return _recognised(File(label=label, data=read_bytes(Path(label), label=label)))
    if match := _RELEASE.fullmatch(spec):
        return find_release(int(match[1]), match[2])
    if ":" in spec:
        return _recognised(_read(spec))
    named = [release for release in list_releases() if release.name == spec]
    for release in named:
        if release.protocol == (protocol or DEFAULT_PROTOCOL):
            return release
    raise _unknown(spec, protocols=[release.protocol for release in named])


def _recognised(file: File) -> Found:
    """What a file is: a manifest, the schema of a bundled release, or a schema of the user's."""
    if is_manifest(file.data):
        return _Manifest(file=file, head=_read_head(file))
    for release in list_releases():
        if read_bytes(release.schema, label=release.label) == file.data:
            return release
    return file


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _read(spec: str) -> File:
    if ":" in spec and not _is_file(Path(spec)):
        label, data = read_in_revision(spec, in_folder=LOCK_NAME)
        return File(label=label, data=data)
    return File(label=spec, data=read_bytes(Path(spec), label=spec))


def _unknown(spec: str, *, protocols: list[int]) -> InputError:
    if os.path.isdir(spec):  # noqa: PTH112 - of names that no folder can have, it says no
        return input_error(
            "no-manifest", f"the folder {spec} has no {LOCK_NAME}", hint="name a folder that acpgen wrote, or a file"
        )
    if protocols:
        hint = f"it is one of protocol {protocols[0]}: v{protocols[0]}/{spec}"
    else:
        releases = ", ".join(f"v{release.protocol}/{release.name}" for release in list_releases())
        hint = f"these releases are bundled: {releases}; files in git are written REV:PATH"
    return input_error("unknown-schema", f"{cut(spec)!r} is neither a file nor a bundled release", hint=hint)


# --- Manifests ------------------------------------------------------------------------------------------------------


def _built_from(manifest: _Manifest, files: Files) -> Loaded:
    head, where = manifest.head, manifest.file.label
    base, release = _schema(head, where, files)
    fragments = tuple(_fragment(each, head, where=where, files=files) for each in head.extensions)
    return Loaded(base=base, fragments=fragments, protocol=head.protocol, release=release)


def _read_head(file: File) -> _Head:
    """What a manifest was built from; raises `InputError` where it does not say so."""
    folder = file.label.removesuffix(LOCK_NAME).rstrip("/") or "."
    head = parse_manifest(file.data, folder).head
    try:
        return _parse_head(head)
    except (KeyError, TypeError, AttributeError):
        message = f"{file.label} does not say what the package was built from"
        raise input_error("manifest-broken", message, hint="build it again") from None


def _parse_head(head: Mapping[str, Any]) -> _Head:
    """Raises `KeyError`, `TypeError` or `AttributeError` for a head that acpgen did not write."""
    if not isinstance(head["protocol"], int):
        raise TypeError(head["protocol"])
    chosen = head.get("options", {})
    return _Head(
        version=str(head.get("acpgen", "")),
        protocol=head["protocol"],
        schema=_input(head["schema"]),
        extensions=tuple(map(_input, head["extensions"])),
        options=Options(open=chosen.get("open") is True, keep_unknown=chosen.get("keep_unknown") is True),
    )


def _input(raw: Mapping[str, Any]) -> _Input:
    if not (isinstance(raw["name"], str) and isinstance(raw["sha256"], str)):
        raise TypeError(raw)
    return _Input(name=raw["name"], digest=raw["sha256"])


def _schema(head: _Head, where: str, files: Files) -> tuple[Document, Release | None]:
    is_known = False
    for release in list_releases():
        if f"v{release.protocol}/{release.name}" == head.schema.name and release.protocol == head.protocol:
            bundled = load_release(release)
            is_known = True
            if bundled.digest == head.schema.digest:
                return bundled, release
    if head.schema.digest in files:
        return _document(files[head.schema.digest], head.protocol), None
    raise _missing("schema", head.schema, head, where=where, is_known=is_known)


def _fragment(wanted: _Input, head: _Head, *, where: str, files: Files) -> Fragment:
    is_known = False
    # a name from a manifest is not to be trusted with a path
    if _BUNDLED_FRAGMENT.fullmatch(wanted.name):
        try:
            path, label = locate_fragment(wanted.name, head.protocol)
        except InputError:
            pass
        else:
            is_known = True
            if digest(read_bytes(path, label=label)) == wanted.digest:
                return load_fragment(path, label=label)
    if wanted.digest in files:
        file = files[wanted.digest]
        return load_fragment(parse_document(file.data, label=file.label, origin=file.label), label=file.label)
    raise _missing("extension", wanted, head, where=where, is_known=is_known)


def _missing(what: str, wanted: _Input, head: _Head, *, where: str, is_known: bool) -> InputError:
    if is_known:
        why = f"the one that is bundled with acpgen {acpgen.__version__} under this name is another"
        instead = f", compare with {wanted.name} itself" if what == "schema" else ""
        way_out = f"{instead}, or use acpgen {head.version}" if head.version != acpgen.__version__ else instead
    else:
        why, way_out = "it is not bundled", ""
    return input_error(
        "manifest-input",
        f"{where} was built from the {what} {wanted.name!r} with the SHA-256 {wanted.digest}; {why}",
        hint=f"give that file with --source PATH, or --source REV:PATH as it is in git{way_out}",
    )
