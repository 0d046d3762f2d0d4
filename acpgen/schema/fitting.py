"""Judge whether extensions fit a schema, and choose the revision for a bare name: the newest that fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from acpgen.diagnostics import InputError, input_error
from acpgen.schema.bundled import (
    bundled_fragments,
    list_releases,
    load_facts,
    load_release,
    locate_fragment,
)
from acpgen.schema.compose import Composed, compose
from acpgen.schema.document import Document
from acpgen.schema.facts import NO_FACTS, Facts
from acpgen.schema.fragment import Fragment
from acpgen.schema.walk import definition_pointer, methods_of, references, schema_map

_INCOMPLETE = frozenset({"fragment-missing", "fragment-requires"})
"""The errors about definitions and extensions that are not there; all others are conflicts."""


class FitResult(Enum):
    """The ways in which an extension fits a schema, or does not."""

    APPLIES = "applies"
    SUPERSEDED = "superseded"
    """The schema has all of it already."""
    LACKS = "lacks a definition"
    CONFLICTS = "conflicts"

    @property
    def fits(self) -> bool:
        """True if the extension can be composed with the schema."""
        return self in (FitResult.APPLIES, FitResult.SUPERSEDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The effect of a fragment on a schema. `reasons` are messages: conflicts, superseded parts, parts left out.

    `changed` are definitions of the schema, with the properties and values that they gain.
    """

    fragment: Fragment
    methods: tuple[str, ...]
    definitions: tuple[str, ...]
    changed: dict[str, list[str]]
    verdict: FitResult
    reasons: tuple[str, ...]


def fit(
    base: Document,
    fragment: Fragment,
    *,
    protocol: int,
    facts: Facts = NO_FACTS,
    others: Sequence[Fragment] = (),
) -> Fit:
    """The effect of `fragment` on `base`, together with the fragments among `others` that it requires."""
    needed = _required(fragment, others)
    composed = compose(base, [fragment, *needed], protocol=protocol, facts=facts)
    merged = composed.merged[fragment.spec]
    methods = {method for name, method in methods_of(fragment.definitions) if name in merged.definitions}
    errors, lost = merged.report.errors, _lost_references(composed, fragment)
    if any(found.code not in _INCOMPLETE for found in errors):
        verdict = FitResult.CONFLICTS
    elif lost or any(found.code == "fragment-missing" for found in errors):
        verdict = FitResult.LACKS
    else:
        verdict = FitResult.SUPERSEDED if merged.is_superseded else FitResult.APPLIES
    reasons = sorted(errors or merged.report.found, key=lambda found: found.sort_key)
    return Fit(
        fragment=fragment,
        methods=tuple(sorted(methods)),
        definitions=tuple(sorted(merged.definitions)),
        changed=dict(sorted(merged.changed.items())),
        verdict=verdict,
        reasons=(*(found.message for found in reasons), *lost),
    )


def _lost_references(composed: Composed, fragment: Fragment) -> list[str]:
    """A message for each missing definition that the additions of `fragment` refer to."""
    changes = [change for _, change in composed.merged[fragment.spec].targets()]
    added = [*fragment.definitions.values(), *(node for change in changes for node in change.added)]
    names = {name for schema in added for name in references(schema)}
    return [
        f"{fragment.origin} refers to {definition_pointer(name)}, which {composed.base.origin} does not have"
        for name in sorted(names - schema_map(composed.root, "$defs").keys())
    ]


def _required(fragment: Fragment, others: Sequence[Fragment]) -> list[Fragment]:
    """The fragments among `others` that `fragment` requires, directly or not, one revision each."""
    found: dict[str, Fragment] = {}
    names = list(fragment.requires)
    while names:
        name = names.pop()
        match = next((each for each in others if name in (each.id, each.spec)), None)
        if match is not None and match.id not in found and match.id != fragment.id:
            found[match.id] = match
            names += match.requires
    return list(found.values())


def choose_fragment(name: str, base: Document, *, protocol: int, facts: Facts) -> Fragment:
    """The newest revision of the bundled extension `name` that fits `base`.

    Raises `InputError` for a name that is not bundled, and if no revision fits.
    """
    locate_fragment(name, protocol)  # raises the error for an unknown name
    fragments = bundled_fragments(protocol)
    revisions = [each for each in reversed(fragments) if each.id == name]
    found = best_fit(revisions, base, protocol=protocol, facts=facts, others=fragments)
    if not found.verdict.fits:
        raise _none_fits(name, base, revisions, fragments)
    return found.fragment


def best_fit(
    revisions: Sequence[Fragment], base: Document, *, protocol: int, facts: Facts, others: Sequence[Fragment]
) -> Fit:
    """The fit of the first of `revisions` that applies, or else is superseded; of the first, if there is none."""
    fits = [fit(base, each, protocol=protocol, facts=facts, others=others) for each in revisions]
    best = (found for wanted in (FitResult.APPLIES, FitResult.SUPERSEDED) for found in fits if found.verdict is wanted)
    return next(best, fits[0])


def has_landed(fragment: Fragment, base: Document) -> bool:
    """Whether all definitions of `fragment` are part of a schema, maybe in another form."""
    return bool(fragment.definitions) and fragment.definitions.keys() <= schema_map(base.root, "$defs").keys()


def _none_fits(name: str, base: Document, revisions: Sequence[Fragment], others: Sequence[Fragment]) -> InputError:
    if all(has_landed(each, base) for each in revisions):
        message = f"the extension {name!r} is part of {base.origin} now, in another form"
        return input_error("extension-landed", message, hint="leave it out")
    known = ", ".join(f"{each.spec} fits {' and '.join(_releases(each, others)) or 'none'}" for each in revisions)
    return input_error(
        "no-fitting-revision",
        f"no revision of the extension {name!r} fits {base.origin}",
        hint=f"of the bundled releases, {known}; `--extension {revisions[0].spec}` shows what is in the way",
    )


def _releases(fragment: Fragment, others: Sequence[Fragment]) -> list[str]:
    """The bundled releases that `fragment` can be composed with."""
    found = []
    for release in list_releases():
        if release.protocol in fragment.protocols:
            base, facts = load_release(release), load_facts(release)
            if fit(base, fragment, protocol=release.protocol, facts=facts, others=others).verdict.fits:
                found.append(release.spec)
    return found
