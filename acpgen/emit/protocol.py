"""Views for the protocol record in `methods.py`."""

from __future__ import annotations

from dataclasses import dataclass

from acpgen.emit.source import Code, identifier, literal, value
from acpgen.ir.least import least_members
from acpgen.ir.model import Model


@dataclass(frozen=True, slots=True)
class CancellationView:
    """The notification that cancels requests, as literals."""

    method: Code
    key: Code


@dataclass(frozen=True, slots=True)
class NegotiationView:
    """The request that negotiates the version, as expressions."""

    method: Code
    version: Code
    least: Code
    unsupported: Code | None


class ProtocolView:
    """The rules of a protocol."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def version(self) -> Code:
        """The version of the protocol."""
        return literal(self._model.protocol)

    @property
    def null_ids(self) -> Code:
        """True if a request id may be null, as a literal."""
        return literal(self._model.envelope.null_ids)

    @property
    def cancellation(self) -> CancellationView | None:
        """The cancellation of requests, if the protocol has one."""
        cancel = self._model.envelope.cancel
        return CancellationView(literal(cancel.method), literal(cancel.key)) if cancel else None

    @property
    def negotiation(self) -> NegotiationView | None:
        """The negotiation of the version, if the protocol has one."""
        found = self._model.negotiation
        if found is None:
            return None
        least = value(least_members(self._model, found.method, found.version))
        error = found.unsupported
        properties = error and f"requested={literal(error.requested)}, supported={literal(error.supported)}"
        return NegotiationView(
            literal(found.method),
            literal(found.version),
            least,
            Code(f"Unsupported(code={literal(error.code)}, {properties})") if error else None,
        )

    @property
    def records(self) -> Code:
        """The record classes that `methods.py` imports, sorted."""
        gated = any(method.gate is not None and method.handlers for method in self._model.methods)
        return Code("Gate, Method" if gated else "Method")
