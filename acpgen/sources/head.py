"""The start of the manifest of a build: everything that decides its output, with digests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import acpgen
from acpgen.config import BuildOptions
from acpgen.config.keys import KEYS
from acpgen.config.kinds import ValueKind
from acpgen.schema.bundled import facts_document, newest_release
from acpgen.schema.data import data_folder
from acpgen.sources.inputs import Inputs
from acpgen.text import digest


def manifest_head(inputs: Sequence[Inputs], options: BuildOptions) -> Mapping[str, object]:
    """The start of the manifest of a build. Equal heads mean equal packages.

    For several protocols, it has an array with the inputs of each.
    """
    heads = [protocol_head(each, remote="remote" in options.parts) for each in inputs]
    return {
        "acpgen": acpgen.__version__,
        "acpgen_sha256": _own_digest(),
        **(heads[0] if len(heads) == 1 else {"protocols": heads}),
        "options": {
            "roles": [role.value for role in options.roles],
            "open": options.types.open,
            "keep_unknown": options.types.keep_unknown,
            **_flags(options),
            **({"with": sorted(options.parts)} if options.flavour is None else {}),
            **({"renames": dict(options.renames)} if options.renames else {}),
            **({"flavour": options.flavour.value} if options.flavour else {}),
        },
    }


def _flags(options: BuildOptions) -> dict[str, bool]:
    """The flags that decide the output. One that is off by default is absent, as in the manifests of older versions."""
    recorded = [key for key in KEYS.values() if key.kind is ValueKind.FLAG and key.is_recorded]
    values = ((key, getattr(options, key.parameter, None)) for key in recorded)
    return {key.parameter: value for key, value in values if value or (value is not None and key.default)}


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


_SOURCES = (".py", ".jinja", ".jinja2", ".txt")


def protocol_head(inputs: Inputs, *, remote: bool) -> dict[str, object]:
    """The inputs of one protocol. Schemas that are not bundled have the facts of the newest release.

    Only a package with the part `remote` has the facts about sessions, so a change of these must not make other
    packages look out of date.
    """
    schema: dict[str, object] = {"name": inputs.schema.name, "sha256": inputs.schema.file.digest}
    known = inputs.release or newest_release(inputs.protocol)
    document = facts_document(known) if known is not None else None
    if document is not None:
        facts = dict(document.root)
        sessions = facts.pop("sessions", None)
        schema["facts_sha256"] = _json_digest(facts)
        if remote and sessions is not None:
            schema["sessions_sha256"] = _json_digest(sessions)
    return {
        "protocol": inputs.protocol,
        "schema": schema,
        "extensions": [
            {"name": each.name, "sha256": each.digest}
            for each in sorted(inputs.extensions, key=lambda each: (each.name, each.digest))
        ],
    }


def _json_digest(value: object) -> str:
    return digest(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n".encode())
