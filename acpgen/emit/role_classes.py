"""Views for `agent.py` and `client.py`: methods, handlers and stubs."""

from __future__ import annotations

from collections.abc import Sequence

from acpgen.emit.imports import imported_compactly
from acpgen.emit.source import Code, docstring, identifier, listed
from acpgen.emit.versions import negotiating
from acpgen.ir import model as ir
from acpgen.ir.order import references
from acpgen.roles import RoleRecord, Side


class MethodView:
    """One method."""

    def __init__(self, method: ir.Method, model: ir.Model) -> None:
        self.method = method
        self._model = model

    @property
    def is_request(self) -> bool:
        """True for a request, false for a notification."""
        return self.method.kind is ir.MethodKind.REQUEST

    @property
    def result(self) -> ir.TypeExpr:
        """The type of the result; null for a notification."""
        return self.method.result or ir.Scalar(primitive=ir.Primitive.NULL)

    @property
    def uses_any(self) -> bool:
        """True if the parameters or the result are annotated with `Any`."""
        return ir.AnyJson() in (self.method.params, self.result)

    @property
    def negotiates(self) -> bool:
        """True for the request that negotiates the version."""
        return negotiating(self._model) is self.method

    @property
    def cancels(self) -> bool:
        """True for the notification that cancels a request."""
        cancel = self._model.envelope.cancel
        return cancel is not None and cancel.method == self.method.wire

    @property
    def doc(self) -> Code:
        """The docstring: description, capability gate and origin."""
        what = self.method.doc or f"`{self.method.wire}`, which the schema does not describe."
        return docstring("\n\n".join(filter(None, (what, self._gate_text, self._origin_text))), indent=8)

    @property
    def _gate_text(self) -> str:
        if self.method.gate is None:
            return ""
        paths = " or ".join(f"`{'.'.join(path)}`" for path in self.method.gate.paths)
        return f"Needs {paths} in `{self.method.gate.root}`."

    @property
    def _origin_text(self) -> str:
        return f"From {self.method.origin}." if self.method.origin != self._model.origin else ""


class SideView:
    """The methods of one side, and the stub that calls them."""

    def __init__(self, side: Side, model: ir.Model) -> None:
        self.methods = [MethodView(method, model) for method in model.methods if side in method.handlers]
        """The methods that the side handles."""
        self.name = identifier(side.value)
        """The attribute for the stub."""
        self.stub = identifier(side.stub)
        """The stub class."""
        self.table_name = identifier(side.methods)
        """The name of the table."""

    @property
    def stub_doc(self) -> Code:
        """The docstring of the stub."""
        return docstring(f"The {self.name} at the other end: each method sends one message through its `Peer`.")


class PassedView:
    """A method of a proxy: `target` is the stub to which it passes the message on."""

    def __init__(self, view: MethodView, side: SideView, sides: Sequence[SideView]) -> None:
        self.view = view
        self.doc = view.doc
        self.target = side.name
        (sender,) = (each.name for each in sides if each is not side)
        names = [{each.method.name for each in one.methods} for one in sides]
        is_shared = all(view.method.name in each for each in names)
        self.name = identifier(f"{view.method.name}_from_{sender}" if is_shared else view.method.name)
        """The name of the method: with the side that sends the message if both may."""


class RoleView:
    """One role: the methods that it handles, and the sides that it calls."""

    def __init__(self, role: RoleRecord, model: ir.Model) -> None:
        self._role = role
        self.template = role.template
        """The name of the template of its module."""
        self.base = identifier(role.base)
        """The class to extend."""
        self.handled = [MethodView(each, model) for each in model.methods if {*role.sides} & {*each.handlers}]
        """The methods that the role handles."""
        self.stubs = [SideView(side, model) for side in role.called]
        """The sides that the role calls."""
        self.tables = _merged(role.sides)
        """The tables of the methods that the role handles, as one."""
        self.peer_tables = _merged(role.called)
        """The same of those that it calls."""

    @property
    def module_doc(self) -> Code:
        """The docstring of the module."""
        stubs = " and ".join(f"`{each.stub}`" for each in self.stubs)
        return docstring(f"Write {self._role.noun}: extend `{self.base}`, and call the peer by {stubs}.", 0)

    @property
    def base_doc(self) -> Code:
        """The docstring of the class to extend."""
        calls = " ".join(f"`self.{each.name}` calls the {each.name}." for each in self.stubs)
        return docstring(
            f"{self._role.noun.capitalize()}: override what it supports. {calls}\n\n"
            'A request that is not overridden is answered with "method not found"; a notification is ignored.\n\n'
            f"`dispatch_request` and `dispatch_notification` pass messages of any transport to the {self._role.name}."
        )

    @property
    def parameters(self) -> Code:
        """The parameters of the constructor: the stubs."""
        return listed(Code(f"{each.name}: {each.stub}") for each in self.stubs)

    @property
    def passed(self) -> list[PassedView]:
        """The methods that the role passes on, for each side that handles them: those to the agent first."""
        return [
            PassedView(view, side, self.stubs) for side in self.stubs[::-1] for view in side.methods if not view.cancels
        ]

    @property
    def answers(self) -> bool:
        """True if the role handles requests."""
        return any(view.is_request for view in self.handled)

    @property
    def imported(self) -> Code | None:
        """The import of the names of `types` in the signatures, if there are any."""
        known = [each for view in self.handled + self._called for each in (view.method.params, view.result)]
        found = {name for each in known for name in references(each)}
        return imported_compactly(".types", found) if found else None

    @property
    def _called(self) -> list[MethodView]:
        return [view for side in self.stubs for view in side.methods]

    @property
    def uses_any(self) -> bool:
        """True if a signature contains `Any`."""
        return any(view.uses_any for view in self.handled + self._called)


def _merged(sides: Sequence[Side]) -> Code:
    first, *more = (identifier(side.methods) for side in sides)
    return Code(f"{{**{', **'.join((first, *more))}}}") if more else first
