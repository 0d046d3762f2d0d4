"""Carries the extensions of a package over to the bare schema that it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.schema.bundled import bundled_fragments, is_bare, is_path
from acpgen.schema.document import Document
from acpgen.schema.fitting import Fit, FitResult, best_fit, has_landed
from acpgen.schema.fragment import Fragment
from acpgen.sources.inputs import Extension, Inputs, Schema, find_extension
from acpgen.text import cut


def carry_over(
    fragments: Sequence[Fragment], inputs: Inputs, *, spec: str, configured: Sequence[str] | None = None
) -> tuple[Inputs, list[Diagnostic]]:
    """Add to `inputs`, the schema `spec`, those of `fragments` that fit it, without those that it has already.

    A bundled extension becomes the revision that fits. If the package is configured, its `configured` extensions take
    the place of `fragments`, as in a build: a bare name is the newest revision that fits. Returns a note for each that
    is part of the schema by now, and a warning for each that is left out.
    """
    present = {fragment.id for fragment in inputs.fragments}
    newest = frozenset(configured or ()) & {each.id for each in bundled_fragments(inputs.protocol)}
    if configured is not None:
        fragments = list(_configured(configured, fragments, inputs.schema))
    fits = [_fit(each, fragments, inputs.schema, newest) for each in fragments if each.id not in present]
    kept = _with_requirements([found.fragment for found in fits if found.verdict.fits], present)
    diagnostics = [found for each in fits if (found := _remark(each, inputs.base, spec, is_kept=each.fragment in kept))]
    return inputs.extended([Extension.of_fragment(each) for each in kept]), diagnostics


def _configured(specs: Sequence[str], fragments: Sequence[Fragment], schema: Schema) -> Iterator[Fragment]:
    """The extensions that a build would look for. Raises `InputError` for a file that is not there."""
    for spec in specs:
        known = [*fragments, *reversed(bundled_fragments(schema.protocol))] if is_bare(spec) else []
        named = next((each for each in known if each.id == spec), None)
        if named is not None:
            yield named
        elif is_path(spec):
            fragment = find_extension(spec, schema).fragment
            yield from [fragment] if schema.protocol in fragment.protocols else []
        else:
            with suppress(InputError):  # it may be for another protocol of the package
                yield find_extension(spec, schema).fragment


def _remark(found: Fit, base: Document, spec: str, *, is_kept: bool) -> Diagnostic | None:
    extension = f"the extension {found.fragment.spec} of the package"
    if found.verdict is FitResult.SUPERSEDED or (not is_kept and has_landed(found.fragment, base)):
        message = f"{extension} is part of {cut(spec)} now"
        hint = "leave it out when you build with that schema"
        return Diagnostic(code="extension-landed", severity=Severity.NOTE, message=message, hint=hint)
    if is_kept:
        return None
    why = found.reasons[0] if found.reasons else "it needs an extension that is left out"
    message = f"{extension} is left out of {cut(spec)}: {why}"
    hint = "give another revision or file for that side with --old-extension or --new-extension"
    return Diagnostic(code="extension-left-out", severity=Severity.WARNING, message=message, hint=hint)


def _fit(fragment: Fragment, others: Sequence[Fragment], schema: Schema, newest: frozenset[str]) -> Fit:
    """The fit of a fragment, or of another revision of it if it is bundled and does not apply itself.

    Of the extensions `newest`, the newest revision that applies has precedence.
    """
    bundled = bundled_fragments(schema.protocol)
    revisions = [fragment]
    if any(each.document.digest == fragment.document.digest for each in bundled):
        revisions += [each for each in reversed(bundled) if each.id == fragment.id and each.spec != fragment.spec]
        if fragment.id in newest:
            revisions = [each for each in reversed(bundled) if each.id == fragment.id]
    others = [*others, *bundled]
    return best_fit(revisions, schema.document, protocol=schema.protocol, facts=schema.facts, others=others)


def _with_requirements(fragments: Sequence[Fragment], present: Iterable[str]) -> list[Fragment]:
    """Those of `fragments` whose requirements are among them or `present`."""
    kept = list(fragments)
    while True:
        names = {*present, *(name for each in kept for name in (each.id, each.spec))}
        fulfilled = [each for each in kept if names.issuperset(each.requires)]
        if len(fulfilled) == len(kept):
            return kept
        kept = fulfilled
