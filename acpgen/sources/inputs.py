"""Reads the inputs of one protocol: a schema and its extensions. They are parsed when they are needed, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from acpgen.config import SchemaChoice
from acpgen.diagnostics import Diagnostic, InputError, Report, Severity, input_error
from acpgen.schema.bundled import Release, find_release, is_bare, is_path, known_facts, locate_fragment
from acpgen.schema.document import Document, parse_document, read_bytes
from acpgen.schema.facts import Facts
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.text import cut, digest


@dataclass(frozen=True, kw_only=True, eq=False)
class File:
    """A file on disk or in git that was read. `label` is its name in diagnostics, `name` its last part."""

    label: str
    name: str
    data: bytes = field(repr=False)

    @cached_property
    def digest(self) -> str:
        """The SHA-256."""
        return digest(self.data)


@dataclass(frozen=True, kw_only=True, eq=False)
class Schema:
    """The schema of one protocol. `release` is None for one that is not bundled; `name` is that in the manifest."""

    protocol: int
    release: Release | None
    name: str
    file: File

    @classmethod
    def of_release(cls, release: Release) -> Schema:
        """Read a bundled schema. Raises `InputError` if it cannot be read."""
        data = read_bytes(release.schema, label=release.label)
        file = File(label=release.label, name=release.schema.name, data=data)
        return cls(protocol=release.protocol, release=release, name=release.spec, file=file)

    @classmethod
    def of_file(cls, file: File, protocol: int) -> Schema:
        """The schema in a file."""
        return cls(protocol=protocol, release=None, name=file.name, file=file)

    @property
    def origin(self) -> str:
        """The name of the schema in docstrings and messages."""
        return self.release.origin if self.release else f"ACP v{self.protocol}, {self.name}"

    @cached_property
    def document(self) -> Document:
        """The parsed schema. Raises `InputError` for errors in it."""
        return parse_document(self.file.data, label=self.file.label, origin=self.origin)

    @cached_property
    def _known(self) -> tuple[Facts, list[str]]:
        return known_facts(self.document, self.protocol, self.release)

    @property
    def facts(self) -> Facts:
        """The facts about it: those of the release; for other schemas, those of the newest release that fit."""
        return self._known[0]

    @property
    def without_gate(self) -> list[str]:
        """The methods and values that have no gate, although the newest release gives them one."""
        return self._known[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Extension:
    """An extension, in a file or parsed already. `name` is that in the manifest."""

    name: str
    digest: str
    source: File | Fragment = field(repr=False)

    @classmethod
    def of_fragment(cls, fragment: Fragment) -> Extension:
        """The extension of a fragment that is parsed already."""
        document = fragment.document
        return cls(name=Path(document.label).stem, digest=document.digest, source=fragment)

    @classmethod
    def of_file(cls, file: File) -> Extension:
        """The extension in a file."""
        return cls(name=Path(file.name).stem, digest=file.digest, source=file)

    @cached_property
    def fragment(self) -> Fragment:
        """The parsed extension. Raises `InputError` for errors in it."""
        if isinstance(self.source, Fragment):
            return self.source
        file = self.source
        return load_fragment(parse_document(file.data, label=file.label, origin=file.label))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The schema of one protocol, and the extensions to compose with it."""

    schema: Schema
    extensions: tuple[Extension, ...] = ()

    @property
    def protocol(self) -> int:
        """The protocol of the schema."""
        return self.schema.protocol

    @property
    def release(self) -> Release | None:
        """The release; None for a schema that is not bundled."""
        return self.schema.release

    @property
    def base(self) -> Document:
        """The parsed schema. Raises `InputError` for errors in it."""
        return self.schema.document

    @property
    def fragments(self) -> tuple[Fragment, ...]:
        """The parsed extensions. Raises `InputError` with the errors in all of them."""
        report = Report()
        found: list[Fragment] = []
        for each in self.extensions:
            with report.collecting():
                found.append(each.fragment)
        report.raise_errors()
        return tuple(found)

    def extended(self, extensions: Sequence[Extension]) -> Inputs:
        """The inputs with further extensions, without those that are there already."""
        known = {each.digest for each in self.extensions}
        added = (each for each in extensions if each.digest not in known)
        return replace(self, extensions=(*self.extensions, *added))


def load(choice: SchemaChoice) -> Inputs:
    """Read a schema and its extensions. Raises `InputError` for a file that does not exist or cannot be read."""
    (inputs,), _ = load_all([choice])
    return inputs


def load_all(choices: Sequence[SchemaChoice]) -> tuple[list[Inputs], list[Diagnostic]]:
    """Read the schema of each of several protocols, with the extensions that fit it.

    Returns a note for each extension that does not fit all of them. Raises `InputError` for a file that does not exist
    or cannot be read, and for an extension that fits none.
    """
    schemas = [load_schema(each) for each in choices]
    specs = dict.fromkeys(spec for each in choices for spec in each.extensions)
    fitting = {spec: fitting_extensions(spec, schemas) for spec in specs}
    found = []
    for choice, schema in zip(choices, schemas, strict=True):
        fits = (fitting[spec].get(schema.protocol) for spec in choice.extensions)
        found.append(Inputs(schema=schema, extensions=tuple(each for each in fits if each is not None)))
    return found, [_partial(spec, list(fits)) for spec, fits in fitting.items() if len(fits) < len(choices)]


def load_schema(choice: SchemaChoice) -> Schema:
    """Read a schema. Raises `InputError` if it does not exist or cannot be read."""
    if choice.schema is None:
        return Schema.of_release(find_release(choice.protocol, choice.release))
    if choice.release is not None:
        raise input_error(
            "usage", "--schema and --release exclude each other", hint="remove one: a release is a bundled schema"
        )
    return Schema.of_file(read_file(choice.schema, label=choice.schema.as_posix()), choice.protocol)


def read_file(path: Path, *, label: str) -> File:
    """Read a file. Raises `InputError` if it cannot be read."""
    return File(label=label, name=path.name, data=read_bytes(path, label=label))


def find_extension(spec: str, schema: Schema) -> Extension:
    """Read the extension `spec`; for a bare name, that revision that fits the schema best.

    Raises `InputError` for an extension that is not there, and if no revision fits.
    """
    if not is_bare(spec):
        path, label = locate_fragment(spec, schema.protocol)
        return Extension.of_file(read_file(path, label=label))
    # imported here: the search for the fitting revision composes, which is slow, and most builds do not need it
    from acpgen.schema.fitting import choose_fragment

    return Extension.of_fragment(choose_fragment(spec, schema.document, protocol=schema.protocol, facts=schema.facts))


def fitting_extensions(spec: str, schemas: Sequence[Schema]) -> Mapping[int, Extension]:
    """The extension for each protocol that it fits. Raises `InputError` if there is none.

    That an extension does not fit a single schema is told when they are composed.
    """
    if len(schemas) <= 1:
        return {each.protocol: find_extension(spec, each) for each in schemas}
    found, errors = dict[int, Extension](), list[Diagnostic]()
    for schema in schemas:
        try:
            extension = find_extension(spec, schema)
            if not is_path(spec) or schema.protocol in extension.fragment.protocols:  # a file may be for others
                found[schema.protocol] = extension
        except InputError as error:
            errors += error.diagnostics
    if not found:
        protocols = " and ".join(str(each.protocol) for each in schemas)
        message = f"the extension {cut(spec)!r} fits none of the protocols {protocols}"
        nothing = input_error("unknown-extension", message, hint=_FILE_HINT)
        raise InputError(dict.fromkeys(errors or nothing.diagnostics))
    return found


_FILE_HINT = "the file names the protocols that it extends: `protocols`"


def _partial(spec: str, protocols: Sequence[int]) -> Diagnostic:
    return Diagnostic(
        code="extension-partial",
        severity=Severity.NOTE,
        message=f"the extension {cut(spec)!r} is composed with protocol {' and '.join(map(str, protocols))} alone",
        hint=_FILE_HINT if is_path(spec) else "the others have no revision that fits",
    )


def user_files(choice: SchemaChoice) -> set[Path]:
    """The files that a choice names by path, even if they do not exist."""
    extensions = {Path(spec) for spec in choice.extensions if is_path(spec)}
    return extensions | ({choice.schema} if choice.schema is not None else set())
