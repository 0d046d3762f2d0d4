"""The handlers that a package loses by a build: nothing would call what a user has written for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from acpgen.config import BuildOptions
from acpgen.diagnostics import Diagnostic, InputError, Severity
from acpgen.emit.interface import handlers
from acpgen.output import LOCK_NAME
from acpgen.pipeline import Built, compile_protocol, read_interface
from acpgen.sources.inputs import File, Inputs, load_all, read_file
from acpgen.sources.revisions import built_from
from acpgen.text import cut, printable, some_of

if TYPE_CHECKING:
    from acpgen.ir import model as ir


def lost_handlers(built: Built, options: BuildOptions) -> list[Diagnostic]:
    """A warning for each handler that the package in the output folder has, and the new one has not.

    Only classes that both have are compared: other roles and folders are other options.
    """
    if built.old is None or built.plan is None:
        return []
    before, after = handlers(read_interface(options.out, built.old.files)), handlers(built.plan.files)
    kept = {each for names in after.values() for each in names}
    lost = {
        (place, name): wire
        for place, names in before.items()
        for name, wire in names.items()
        if name not in after.get(place, kept) and any(base == place[1] for _, base in after)
    }
    found = _whereabouts(options) if lost else {}
    return [_warning(base, name, wire, found.get(wire)) for ((_, base), name), wire in sorted(lost.items())]


def _warning(base: str, name: str, wire: str, where: str | None) -> Diagnostic:
    message = f"{base} has no handler {name} any more, for {printable(wire)!r}: nothing calls that of your class"
    hint = where or "neither the schema nor an extension has the method: `acpgen diff` shows what changed"
    return Diagnostic(code="handler-dropped", severity=Severity.WARNING, message=message, hint=hint)


def _whereabouts(options: BuildOptions) -> Mapping[str, str]:
    """Where the methods of the package in the output folder have gone, as far as its inputs are known."""
    from acpgen.diff.pairing import pair

    found: dict[str, str] = {}
    with suppress(InputError):
        new, _ = load_all(options.sources)
        lock = options.out / LOCK_NAME
        old = {each.protocol: each for each in built_from(read_file(lock, label=lock.as_posix()), _files(new))}
        for inputs in new:
            if inputs.protocol in old:
                before, after = (compile_protocol(each, options.types).model for each in (old[inputs.protocol], inputs))
                pairs = pair(before, after)
                for method in pairs.removed:
                    found |= _replaced(method, pairs.added, old[inputs.protocol], inputs)
                for one, other in pairs.methods:
                    if one.wire != other.wire:
                        found[one.wire] = f"it is {other.name} now, for {cut(other.wire)!r}"
    return found


def _replaced(method: ir.Method, added: Sequence[ir.Method], old: Inputs, new: Inputs) -> dict[str, str]:
    """Where a method is that another revision of its extension lacks."""
    fragment = next((each for each in old.fragments if each.origin == method.origin), None)
    later = next((each for each in new.fragments if fragment and each.id == fragment.id), None)
    if fragment is None or later is None or fragment.spec == later.spec:
        return {}
    names = [each.name for each in added if each.origin == later.origin]
    instead = f"{later.spec} has {some_of(names, _MOST_NAMED)} instead" if names else f"{later.spec} has no such method"
    return {method.wire: f'{instead}; extensions = ["{fragment.spec}"] keeps the one that you had'}


_MOST_NAMED = 5


def _files(inputs: Sequence[Inputs]) -> dict[str, File]:
    """The files of a build by digest: the package may have been built from the same."""
    sources = [each.source for one in inputs for each in one.extensions]
    files = [*(each.schema.file for each in inputs), *(each for each in sources if isinstance(each, File))]
    return {each.digest: each for each in files}
