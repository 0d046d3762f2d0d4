"""Finds the input files of a build, and their digests for the manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import acpgen
from acpgen.config import BuildOptions, Sources
from acpgen.diagnostics import input_error
from acpgen.schema.bundled import Release, find_release, is_bare, is_path, known_facts, locate_fragment, newest_release
from acpgen.schema.document import read_bytes
from acpgen.text import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFile:
    """An input file. `label` is its name in diagnostics, `name` that in the manifest, `digest` its SHA-256."""

    path: Path
    label: str
    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The input files of a build. `release` is None for a schema that is not bundled.

    `facts` are those of the release; for a schema that is not bundled, those of the newest release of its protocol.
    """

    protocol: int
    release: Release | None
    schema: InputFile
    facts: InputFile | None
    extensions: tuple[InputFile, ...]

    @property
    def origin(self) -> str:
        """The name of the base schema in docstrings and messages."""
        return _origin(self.protocol, self.release, self.schema)


def _origin(protocol: int, release: Release | None, schema: InputFile) -> str:
    return release.origin if release else f"ACP v{protocol}, {schema.name}"


def find_inputs(sources: Sources) -> Inputs:
    """Find the files of `sources`. Raises `InputError` for a file that does not exist or cannot be read."""
    if sources.schema is not None and sources.release is not None:
        raise input_error(
            "usage", "--schema and --release exclude each other", hint="remove one: a release is a bundled schema"
        )
    release = find_release(sources.protocol, sources.release) if sources.schema is None else None
    if release is None:
        assert sources.schema is not None
        schema = _input(sources.schema, sources.schema.as_posix(), sources.schema.name)
    else:
        schema = _input(release.schema, release.label, f"v{release.protocol}/{release.name}")
    known = release or newest_release(sources.protocol)
    facts = None
    if known is not None and known.facts.exists():
        facts = _input(known.facts, known.facts_label, f"{schema.name} facts")
    return Inputs(
        protocol=sources.protocol,
        release=release,
        schema=schema,
        facts=facts,
        extensions=_extensions(sources, schema, release),
    )


def _extensions(sources: Sources, schema: InputFile, release: Release | None) -> tuple[InputFile, ...]:
    located = [
        (
            _locate_bare(spec, schema, sources.protocol, release)
            if is_bare(spec)
            else locate_fragment(spec, sources.protocol)
        )
        for spec in sources.extensions
    ]
    return tuple(_input(path, label, path.stem) for path, label in located)


def _locate_bare(spec: str, schema: InputFile, protocol: int, release: Release | None) -> tuple[Path, str]:
    # imported here: the search for the fitting revision composes, which is slow, and most builds do not need it
    from acpgen.schema.document import read_document
    from acpgen.schema.fitting import choose_fragment

    origin = _origin(protocol, release, schema)
    base = read_document(schema.path, label=schema.label, origin=origin)
    return choose_fragment(spec, base, protocol=protocol, facts=known_facts(base, protocol, release)[0])


def _input(path: Path, label: str, name: str) -> InputFile:
    return InputFile(path=path, label=label, name=name, digest=digest(read_bytes(path, label=label)))


def user_files(sources: Sources) -> set[Path]:
    """The files that `sources` names by path, even if they do not exist."""
    extensions = {Path(spec) for spec in sources.extensions if is_path(spec)}
    return extensions | ({sources.schema} if sources.schema is not None else set())


def manifest_head(inputs: Inputs, options: BuildOptions) -> Mapping[str, object]:
    """The start of the manifest of a build. Equal heads mean equal packages."""
    schema: dict[str, object] = {"name": inputs.schema.name, "sha256": inputs.schema.digest}
    if inputs.facts is not None:
        schema["facts_sha256"] = inputs.facts.digest
    renames = {"renames": dict(options.renames)} if options.renames else {}
    return {
        "acpgen": acpgen.__version__,
        "protocol": inputs.protocol,
        "schema": schema,
        "extensions": [
            {"name": each.name, "sha256": each.digest}
            for each in sorted(inputs.extensions, key=lambda each: (each.name, each.digest))
        ],
        "options": {
            "roles": [role.value for role in options.roles],
            "open": options.types.open,
            "keep_unknown": options.types.keep_unknown,
            "runtime": options.runtime,
            **renames,
        },
    }
