"""Choose the revision of a bundled extension for a bare name: the newest that fits the schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from acpgen.diagnostics import InputError, input_error
from acpgen.schema.bundled import bundled_fragments, is_bare, list_releases, load_facts, load_release, locate_fragment
from acpgen.schema.compose import summarise
from acpgen.schema.document import Document
from acpgen.schema.fragment import Fragment
from acpgen.schema.gates import Gate

_FITTING = ("applies", "superseded")
"""The statuses of a fragment that can be composed with a schema, the better one first."""


def choose_fragment(spec: str, base: Document, *, protocol: int, gates: Mapping[str, Gate]) -> tuple[Path, str]:
    """The fragment file for `spec`, and its label; for a bare name, the newest revision that fits `base`.

    Raises `InputError` for a name that is not bundled, and if no revision fits.
    """
    fragments = bundled_fragments(protocol) if is_bare(spec) else ()
    revisions = [each for each in reversed(fragments) if each.id == spec]
    if not revisions:
        return locate_fragment(spec, protocol)
    verdicts = [_verdict(each, base, protocol=protocol, gates=gates, others=fragments) for each in revisions]
    for wanted in _FITTING:
        if wanted in verdicts:
            return locate_fragment(revisions[verdicts.index(wanted)].spec, protocol)
    raise _none_fits(spec, base, revisions, fragments)


def _verdict(
    fragment: Fragment, base: Document, *, protocol: int, gates: Mapping[str, Gate], others: Sequence[Fragment]
) -> str:
    return summarise(base, fragment, protocol=protocol, gates=gates, others=others).verdict


def _none_fits(name: str, base: Document, revisions: Sequence[Fragment], others: Sequence[Fragment]) -> InputError:
    known = ", ".join(f"{each.spec} fits {' and '.join(_releases(each, others)) or 'none'}" for each in revisions)
    return input_error(
        "no-fitting-revision",
        f"no revision of the extension {name!r} fits {base.origin}",
        hint=f"of the bundled releases, {known}; `--extension {revisions[0].spec}` shows what is in the way",
    )


def _releases(fragment: Fragment, others: Sequence[Fragment]) -> list[str]:
    """The bundled releases that `fragment` can be composed with."""
    return [
        f"v{release.protocol}/{release.name}"
        for release in list_releases()
        if release.protocol in fragment.protocols
        and _verdict(
            fragment,
            load_release(release),
            protocol=release.protocol,
            gates=load_facts(release).gates,
            others=others,
        )
        in _FITTING
    ]
