"""Check the methods of vendor extensions for mistakes that show only at run time."""

from __future__ import annotations

from collections import defaultdict

from acpgen.diagnostics import Report
from acpgen.ir import names
from acpgen.ir.methods import messages_of
from acpgen.ir.model import Method, MethodKind, Ref
from acpgen.schema.compose import Composed
from acpgen.schema.document import join

PREFIX = "_"
"""The prefix of extension methods: no release of the protocol will ever use it."""


def check_vendor_methods(methods: tuple[Method, ...], composed: Composed, report: Report) -> None:
    """Warn about vendor methods with a name that the protocol may use later, or with the sender as `x-side`."""
    vendors = {fragment.origin for fragment in composed.fragments if fragment.status == "vendor"}
    senders: defaultdict[str, set[str]] = defaultdict(set)
    for method in methods:
        for message, carried in messages_of(method):
            if isinstance(carried, Ref):
                senders[carried.name].add(message.sender)
    for method in methods:
        if method.origin in vendors:
            _check_name(method, report)
            _check_side(method, senders, report)


def _check_name(method: Method, report: Report) -> None:
    if not method.wire.startswith(PREFIX):
        report.warning(
            "vendor-name",
            f"{method.wire!r} is a vendor method, but its name does not start with `{PREFIX}`",
            at=join(method.pointer, "x-method"),
            hint=f"name it {PREFIX + method.wire!r}: a release of the protocol may give other names another meaning",
        )


def _check_side(method: Method, senders: defaultdict[str, set[str]], report: Report) -> None:
    """Compare with the gate: the side that handles a request announces it."""
    announced = senders[names.class_name(method.gate.root)] if method.gate else set()
    handlers = {role.value for role in method.handlers}
    if method.kind is MethodKind.REQUEST and announced and not announced & handlers:
        report.warning(
            "vendor-side",
            f"{method.wire!r} is handled by the {' and '.join(handlers)}, and waits for a capability that the"
            f" {' and '.join(announced)} announces",
            at=join(method.pointer, "x-side"),
            hint="`x-side` is the peer that handles the request, on both of its halves; or name another gate",
        )
