"""The schemas and extension fragments that come with acpgen. They do not change while it runs: each is parsed once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from acpgen.diagnostics import InputError, input_error
from acpgen.schema.data import data_folder
from acpgen.schema.document import Document, read_document
from acpgen.schema.facts import NO_FACTS, Facts, fitting_facts, read_facts, ungated
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.schema.walk import schema_map
from acpgen.text import did_you_mean

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_PROTOCOL = re.compile(r"v(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A bundled schema: the files `schema` and, if there is one, `facts`; `label` names the schema in messages."""

    protocol: int
    name: str
    schema: Path
    facts: Path

    @property
    def spec(self) -> str:
        """The release on the command line and in the manifest."""
        return f"v{self.protocol}/{self.name}"

    @property
    def label(self) -> str:
        """The name of the schema file in diagnostics: the same on every machine."""
        return f"schema/{self.spec}/schema.json"

    @property
    def facts_label(self) -> str:
        """The name of the facts file in diagnostics."""
        return self.label.replace("schema.json", "facts.json")

    @property
    def origin(self) -> str:
        """The release in docstrings and messages."""
        return f"ACP v{self.protocol}, {self.name}"


def version_key(name: str) -> tuple[Any, ...]:
    """The sort key of release and revision names by age: versions first, pre-releases before releases, then dates."""
    if _DATE.fullmatch(name):
        return (1, name)
    core, dash, pre_release = name.partition("-")
    return (0, _parts(core), not dash, _parts(pre_release), name)


def _parts(text: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in text.split("."))


def list_releases() -> tuple[Release, ...]:
    """The bundled releases by protocol, oldest first."""
    releases = [
        Release(protocol=int(match[1]), name=path.parent.name, schema=path, facts=path.parent / "facts.json")
        for path in data_folder().glob("schema/v*/*/schema.json")
        if (match := _PROTOCOL.fullmatch(path.parts[-3]))
    ]
    return tuple(sorted(releases, key=lambda release: (release.protocol, version_key(release.name))))


def find_release(protocol: int, release: str | None = None) -> Release:
    """The bundled release of that name, or the newest; raises `InputError` with the list of releases."""
    releases = list_releases()
    candidates = [known for known in releases if known.protocol == protocol]
    if not candidates:
        protocols = ", ".join(str(known) for known in sorted({known.protocol for known in releases}))
        raise input_error(
            "unknown-protocol", f"no schema of protocol {protocol} is bundled", hint=f"there are: {protocols}"
        )
    if release is None:
        return candidates[-1]
    for known in candidates:
        if known.name == release:
            return known
    raise input_error(
        "unknown-release",
        f"no release {release!r} of protocol {protocol} is bundled",
        hint=f"there are: {', '.join(known.name for known in candidates)}",
    )


@cache
def load_release(release: Release) -> Document:
    """The schema of `release`; raises `InputError` if it cannot be read."""
    return read_document(release.schema, label=release.label, origin=release.origin)


def newest_release(protocol: int) -> Release | None:
    """The newest bundled release of a protocol; None if there is none."""
    return next((known for known in reversed(list_releases()) if known.protocol == protocol), None)


@cache
def facts_document(release: Release) -> Document | None:
    """The facts file of `release`; None if it has none."""
    if not release.facts.exists():
        return None
    return read_document(release.facts, label=release.facts_label, origin=release.origin)


def load_facts(release: Release) -> Facts:
    """The facts about `release`; empty if it has no facts file."""
    document = facts_document(release)
    return NO_FACTS if document is None else read_facts(document.root)


def known_facts(base: Document, protocol: int, release: Release | None) -> tuple[Facts, list[str]]:
    """The facts about a schema, and what in it has no gate although the newest release gives it one.

    A schema that is not bundled gets the facts of the newest release of its protocol, as far as they fit.
    """
    if release is not None:
        return load_facts(release), []
    newest = newest_release(protocol)
    known = load_facts(newest) if newest is not None else NO_FACTS
    kept = fitting_facts(base.root, known)
    if newest is not None and known.nulls is not None:
        kept = replace(kept, nulls=known.nulls.union(_unknown_parts(base, load_release(newest))))
    return kept, ungated(base.root, known, kept)


def _unknown_parts(base: Document, known: Document) -> Iterator[str]:
    """The definitions that another schema has not, and those of its properties, as `Definition/property`."""
    definitions = schema_map(known.root, "$defs")
    for name, node in schema_map(base.root, "$defs").items():
        if name not in definitions:
            yield name
        for wire in schema_map(node, "properties").keys() - schema_map(definitions.get(name), "properties").keys():
            yield f"{name}/{wire}"


def _fragment_files(protocol: int) -> dict[tuple[str, str], Path]:
    """The bundled fragment files of a protocol by id and revision, in this order, oldest revision first."""
    folder = data_folder() / "schema" / "extensions" / f"v{protocol}"
    found = {(path.stem.partition("@")[0], path.stem.partition("@")[2]): path for path in folder.glob("*@*.json")}
    return {key: found[key] for key in sorted(found, key=lambda key: (key[0], version_key(key[1])))}


def fragment_specs(protocol: int | None = None) -> tuple[str, ...]:
    """The bundled fragments of a protocol, or of all, as `NAME@REVISION`."""
    protocols = {release.protocol for release in list_releases()} if protocol is None else {protocol}
    return tuple("@".join(key) for each in sorted(protocols) for key in _fragment_files(each))


@cache
def bundled_fragments(protocol: int) -> tuple[Fragment, ...]:
    """All bundled fragments of a protocol by id, oldest revision first."""
    return tuple(load_fragment(path, label=_label(path)) for path in _fragment_files(protocol).values())


def _label(path: Path) -> str:
    return Path(*path.parts[-4:]).as_posix()


def is_path(spec: str) -> bool:
    """True if `spec` is the path of a fragment file, not the name of a bundled extension."""
    return "/" in spec or "\\" in spec or spec.endswith(".json")


def is_bare(spec: str) -> bool:
    """True if `spec` is the name of a bundled extension without a revision."""
    return not is_path(spec) and "@" not in spec


def locate_fragment(spec: str, protocol: int) -> tuple[Path, str]:
    """The fragment file for `spec`, and its label: a path, or a bundled id with `@REVISION` or the newest revision.

    Raises `InputError` for an id that is not bundled, with the most similar one.
    """
    if is_path(spec):
        return Path(spec), spec
    files = _fragment_files(protocol)
    name, _, revision = spec.partition("@")
    revisions = [known for identity, known in files if identity == name]
    if not revisions:
        raise _unknown_fragment(name, protocol, names=sorted({identity for identity, _ in files}))
    wanted = revision or revisions[-1]
    if wanted not in revisions:
        raise input_error(
            "unknown-extension",
            f"the extension {name!r} has no revision {revision!r} for protocol {protocol}",
            hint=f"there are: {', '.join(revisions)}",
        )
    path = files[name, wanted]
    return path, _label(path)


def _unknown_fragment(name: str, protocol: int, *, names: list[str]) -> InputError:
    elsewhere = [
        str(known)
        for known in sorted({release.protocol for release in list_releases()} - {protocol})
        if any(identity == name for identity, _ in _fragment_files(known))
    ]
    if elsewhere:
        hint = f"it exists for protocol {', '.join(elsewhere)}"
    else:
        hint = did_you_mean(name, names) or f"there are: {', '.join(names) or 'none'}; a file is given with its path"
    return input_error("unknown-extension", f"no extension {name!r} for protocol {protocol} is bundled", hint=hint)


def revisions_of(name: str, protocol: int) -> tuple[str, ...]:
    """The bundled revisions of the extension `name`, oldest first."""
    return tuple(revision for identity, revision in _fragment_files(protocol) if identity == name)


def releases_defining(name: str, protocol: int) -> tuple[str, ...]:
    """The bundled releases of a protocol whose schema has the definition `name`, oldest first."""
    return tuple(
        release.name
        for release in list_releases()
        if release.protocol == protocol and name in schema_map(load_release(release).root, "$defs")
    )
