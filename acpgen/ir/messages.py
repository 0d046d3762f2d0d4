"""Which messages there are: by method, by part, and by who sends; and what each carries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from acpgen.ir.model import Kind, Method, Model, Ref, TypeExpr
from acpgen.ir.role import Role

ERRORS = "error responses"
"""What stands for a method where the error object is carried, which any request may be answered with."""


@dataclass(frozen=True, slots=True, order=True)
class Message:
    """A kind of message: the method, "request", "response" or "notification", and who sends it ("agent", …)."""

    method: str
    part: str
    sender: str

    @property
    def role(self) -> Role:
        """Who sends it."""
        return Role(self.sender)


def messages(model: Model) -> Iterator[tuple[Message, TypeExpr]]:
    """All messages with the type that each carries, in the order of the methods; error responses come last."""
    for method in model.methods:
        yield from messages_of(method)
    if model.errors.object is not None:
        for role in Role:
            yield Message(ERRORS, "response", role.value), Ref(model.errors.object)


def messages_of(method: Method) -> Iterator[tuple[Message, TypeExpr]]:
    """The messages of `method` with the type that each carries; the handler's peer sends the first."""
    for handler in method.handlers:
        yield Message(method.wire, method.kind.value, handler.peer.value), method.params
        if method.kind is Kind.REQUEST and method.result is not None:
            yield Message(method.wire, "response", handler.value), method.result
