"""Finds the input files of a build, and their digests for the manifest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import acpgen
from acpgen.config import BuildOptions, SchemaChoice
from acpgen.diagnostics import Diagnostic, InputError, Severity, input_error
from acpgen.schema.bundled import Release, find_release, is_bare, is_path, known_facts, locate_fragment, newest_release
from acpgen.schema.data import data_folder
from acpgen.schema.document import read_bytes, read_document
from acpgen.text import cut, digest


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
    The digest of `facts` leaves out the facts about sessions, which have their own: `sessions_digest`.
    """

    protocol: int
    release: Release | None
    schema: InputFile
    facts: InputFile | None
    sessions_digest: str | None
    extensions: tuple[InputFile, ...]

    @property
    def origin(self) -> str:
        """The name of the base schema in docstrings and messages."""
        return _origin(self.protocol, self.release, self.schema)


def _origin(protocol: int, release: Release | None, schema: InputFile) -> str:
    return release.origin if release else f"ACP v{protocol}, {schema.name}"


def find_all_inputs(sources: Sequence[SchemaChoice]) -> tuple[list[Inputs], list[Diagnostic]]:
    """Find the files for each of several protocols, with the extensions that fit it.

    Returns a note for each extension that does not fit all of them. Raises `InputError` as `find_inputs` does, and for
    an extension that fits none.
    """
    if len(sources) == 1:
        return [find_inputs(sources[0])], []
    fits = {spec: _fits(spec, sources) for spec in dict.fromkeys(spec for each in sources for spec in each.extensions)}
    found = [
        find_inputs(replace(each, extensions=tuple(spec for spec in each.extensions if each.protocol in fits[spec])))
        for each in sources
    ]
    return found, [_partial(spec, protocols) for spec, protocols in fits.items() if len(protocols) < len(sources)]


def _fits(spec: str, sources: Sequence[SchemaChoice]) -> list[int]:
    """The protocols that an extension fits. Raises `InputError` if there is none."""
    found, errors = list[int](), list[Diagnostic]()
    for each in sources:
        try:
            inputs = find_inputs(replace(each, extensions=(spec,)))
            if not is_path(spec) or each.protocol in _protocols_of(inputs.extensions[0]):
                found.append(each.protocol)
        except InputError as error:
            errors += error.diagnostics
    if not found:
        protocols = " and ".join(str(each.protocol) for each in sources)
        message = f"the extension {cut(spec)!r} fits none of the protocols {protocols}"
        nothing = input_error("unknown-extension", message, hint=_FILE_HINT)
        raise InputError(dict.fromkeys(errors or nothing.diagnostics))
    return found


def _protocols_of(file: InputFile) -> tuple[int, ...]:
    from acpgen.schema.fragment import load_fragment

    return load_fragment(file.path, label=file.label).protocols


_FILE_HINT = "the file names the protocols that it extends: `protocols`"


def _partial(spec: str, protocols: Sequence[int]) -> Diagnostic:
    return Diagnostic(
        code="extension-partial",
        severity=Severity.NOTE,
        message=f"the extension {cut(spec)!r} is composed with protocol {' and '.join(map(str, protocols))} alone",
        hint=_FILE_HINT if is_path(spec) else "the others have no revision that fits",
    )


def find_inputs(sources: SchemaChoice) -> Inputs:
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
        schema = _input(release.schema, release.label, release.spec)
    known = release or newest_release(sources.protocol)
    facts, sessions_digest = None, None
    if known is not None and known.facts.exists():
        facts, sessions_digest = _facts(known, f"{schema.name} facts")
    return Inputs(
        protocol=sources.protocol,
        release=release,
        schema=schema,
        facts=facts,
        sessions_digest=sessions_digest,
        extensions=_extensions(sources, schema, release),
    )


def _facts(release: Release, name: str) -> tuple[InputFile, str | None]:
    """The facts file, and the digest of its part about sessions.

    Only a build with `remote` reads that part, so a change of it must not make other packages look out of date.
    """
    label = release.facts_label
    facts = dict(read_document(release.facts, label=label, origin=release.origin).root)
    sessions = facts.pop("sessions", None)
    found = InputFile(path=release.facts, label=label, name=name, digest=_json_digest(facts))
    return found, None if sessions is None else _json_digest(sessions)


def _json_digest(value: object) -> str:
    return digest(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode())


def _extensions(sources: SchemaChoice, schema: InputFile, release: Release | None) -> tuple[InputFile, ...]:
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
    from acpgen.schema.fitting import choose_fragment

    origin = _origin(protocol, release, schema)
    base = read_document(schema.path, label=schema.label, origin=origin)
    return choose_fragment(spec, base, protocol=protocol, facts=known_facts(base, protocol, release)[0])


def _input(path: Path, label: str, name: str) -> InputFile:
    return InputFile(path=path, label=label, name=name, digest=digest(read_bytes(path, label=label)))


def user_files(sources: SchemaChoice) -> set[Path]:
    """The files that `sources` names by path, even if they do not exist."""
    extensions = {Path(spec) for spec in sources.extensions if is_path(spec)}
    return extensions | ({sources.schema} if sources.schema is not None else set())


def manifest_head(inputs: Sequence[Inputs], options: BuildOptions) -> Mapping[str, object]:
    """The start of the manifest of a build. Equal heads mean equal packages.

    For several protocols, it has an array with the inputs of each.
    """
    renames = {"renames": dict(options.renames)} if options.renames else {}
    heads = [_head(each, remote=options.remote) for each in inputs]
    remote = {"remote": True} if options.remote else {}  # absent, as in the manifests of older versions
    flavour = {"flavour": options.flavour.value} if options.flavour else {}
    return {
        "acpgen": acpgen.__version__,
        "acpgen_sha256": _own_digest(),
        **(heads[0] if len(heads) == 1 else {"protocols": heads}),
        "options": {
            "roles": [role.value for role in options.roles],
            "open": options.types.open,
            "keep_unknown": options.types.keep_unknown,
            "runtime": options.runtime,
            **remote,
            **renames,
            **flavour,
        },
    }


@cache
def _own_digest() -> str:
    """The digest of acpgen's modules and templates, which change more often than its version.

    It is the same in a checkout and in a wheel, where the data are below the package.
    """
    package, data = Path(acpgen.__file__).parent, data_folder()
    parts = {"acpgen": package, "templates": data / "templates", "helpers": data / "schema" / "helpers"}
    found: dict[str, str] = {}
    for part, top in parts.items():
        for folder, below, names in os.walk(top):
            below[:] = [name for name in below if Path(folder, name) != data]
            for path in (Path(folder, name) for name in names if name.endswith(_SOURCES)):
                found[f"{part}/{path.relative_to(top).as_posix()}"] = digest(path.read_bytes())
    return digest(json.dumps(found, sort_keys=True).encode())


_SOURCES = (".py", ".jinja", ".jinja2")


def _head(inputs: Inputs, *, remote: bool) -> dict[str, object]:
    schema: dict[str, object] = {"name": inputs.schema.name, "sha256": inputs.schema.digest}
    if inputs.facts is not None:
        schema["facts_sha256"] = inputs.facts.digest
    if remote and inputs.sessions_digest is not None:
        schema["sessions_sha256"] = inputs.sessions_digest
    return {
        "protocol": inputs.protocol,
        "schema": schema,
        "extensions": [
            {"name": each.name, "sha256": each.digest}
            for each in sorted(inputs.extensions, key=lambda each: (each.name, each.digest))
        ],
    }
