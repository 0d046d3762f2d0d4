"""Mask the secrets in a trace that is read, as a recorder does in one that it writes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from acpgen.schema.document import resolve
from acpgen.trace.conversation import Seen
from acpgen.trace.lines import no_message
from acpgen.trace.values import Misfit
from acpgen.trace.writing import make_mask, trace_file

_FOUND = ", found "
_HIDDEN = "***"


class Masking:
    """Masks the messages of one connection, and what findings say about them."""

    def __init__(self) -> None:
        self._mask = make_mask()

    def hide(self, seen: Seen) -> None:
        """Mask a line."""
        entry, sender = seen.entry, seen.sender
        if entry.event is not None:
            return
        if entry.may_ask_secret:
            self._mask.hide_results()
        if entry.problem is not None:
            self._hide_text(seen)
            return
        try:
            ends = (sender.value, sender.peer.value) if sender else ("", "")
            shown = self._mask.masked(entry.message, *ends)
        except RecursionError:
            shown = _HIDDEN
        if shown != entry.message:
            seen.findings = [_masked(each, entry.message, shown) for each in seen.findings]
            seen.entry = replace(entry, message=shown)

    def _hide_text(self, seen: Seen) -> None:
        """Mask a line that has no message, but perhaps the start of one."""
        entry = seen.entry
        if not isinstance(entry.message, str):
            return
        text = entry.message.encode(errors="replace")
        kept = json.loads("{" + trace_file().payload(text, self._mask, sender="", to="") + "}")
        if "masked" in kept and "raw" in kept:
            old, new = no_message(entry.message), no_message(kept["raw"])
            seen.entry = replace(entry, message=kept["raw"], problem=new if entry.problem == old else entry.problem)
            seen.findings = [replace(each, message=new) if each.message == old else each for each in seen.findings]


def _masked(found: Misfit, message: Any, shown: Any) -> Misfit:
    """The finding without a value that was masked."""
    expected, stated, _ = found.message.partition(_FOUND)
    if not stated or _values(message, found.pointer) == _values(shown, found.pointer):
        return found
    return replace(found, message=f"{expected}{_FOUND}{_HIDDEN}")


def _values(message: Any, pointer: str) -> list[Any]:
    """The value at a pointer, if there is one."""
    try:
        return [resolve(message, pointer)]
    except LookupError:
        return []
