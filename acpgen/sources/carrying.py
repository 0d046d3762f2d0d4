"""Carries the extensions of a package over to the bare schema that it is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acpgen.diagnostics import Diagnostic, Severity
from acpgen.schema.bundled import bundled_fragments
from acpgen.schema.document import Document
from acpgen.schema.fitting import Fit, Verdict, best_fit, has_landed
from acpgen.schema.fragment import Fragment
from acpgen.sources.inputs import Extension, Inputs, Schema
from acpgen.text import cut


def carry_over(fragments: Sequence[Fragment], inputs: Inputs, *, spec: str) -> tuple[Inputs, list[Diagnostic]]:
    """Add to `inputs`, the schema `spec`, those of `fragments` that fit it, without those that it has already.

    A bundled extension becomes the revision that fits. Returns a note for each that is part of the schema by now, and a
    warning for each that is left out.
    """
    present = {fragment.id for fragment in inputs.fragments}
    fits = [_fit(each, fragments, inputs.schema) for each in fragments if each.id not in present]
    kept = _with_requirements([found.fragment for found in fits if found.verdict.fits], present)
    diagnostics = [found for each in fits if (found := _remark(each, inputs.base, spec, is_kept=each.fragment in kept))]
    return inputs.extended([Extension.of_fragment(each) for each in kept]), diagnostics


def _remark(found: Fit, base: Document, spec: str, *, is_kept: bool) -> Diagnostic | None:
    extension = f"the extension {found.fragment.spec} of the package"
    if found.verdict is Verdict.SUPERSEDED or (not is_kept and has_landed(found.fragment, base)):
        message = f"{extension} is part of {cut(spec)} now"
        hint = "leave it out when you build with that schema"
        return Diagnostic(code="extension-landed", severity=Severity.NOTE, message=message, hint=hint)
    if is_kept:
        return None
    why = found.reasons[0] if found.reasons else "it needs an extension that is left out"
    message = f"{extension} is left out of {cut(spec)}: {why}"
    hint = "give another revision or file for that side with --old-extension or --new-extension"
    return Diagnostic(code="extension-left-out", severity=Severity.WARNING, message=message, hint=hint)


def _fit(fragment: Fragment, others: Sequence[Fragment], schema: Schema) -> Fit:
    """The fit of a fragment, or of another revision of it if it is bundled and does not apply itself."""
    bundled = bundled_fragments(schema.protocol)
    revisions = [fragment]
    if any(each.document.digest == fragment.document.digest for each in bundled):
        revisions += [each for each in reversed(bundled) if each.id == fragment.id and each.spec != fragment.spec]
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
