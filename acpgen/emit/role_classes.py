"""Views for `agent.py` and `client.py`: methods, handlers and stubs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from acpgen.emit.imports import imported_compactly
from acpgen.emit.source import Code, docstring, identifier, listed, literal
from acpgen.ir import model as ir
from acpgen.ir.order import references
from acpgen.roles import RoleRecord, Side


class MethodView:
    """One method."""

    def __init__(self, method: ir.Method, model: ir.Model) -> None:
        self.method = method
        self.is_request = method.kind is ir.MethodKind.REQUEST
        self.result = method.result or ir.Scalar(primitive=ir.Primitive.NULL)
        """The type of the result; null for a notification."""
        self.uses_any = ir.AnyJson() in (method.params, self.result)
        """True if the parameters or the result are annotated with `Any`."""
        self.negotiates = model.negotiating is method
        self.decides = _is_one_of_several(self.result, model)
        """True if the result is one of several answers, as of a question to the user."""
        cancel = model.envelope.cancel
        self.cancels = cancel is not None and cancel.method == method.wire
        """True for the notification that cancels a request."""
        self.doc = docstring(_text(method, model), indent=8)


def _is_one_of_several(result: ir.TypeExpr, model: ir.Model) -> bool:
    """True for a tagged union, and for an object whose only required property is one."""
    found = model.definition(result)
    if isinstance(found, ir.Struct):
        required = [field.type for field in found.fields if field.required]
        found = model.definition(required[0]) if len(required) == 1 else None
    return isinstance(found, ir.TaggedUnion)


def _text(method: ir.Method, model: ir.Model) -> str:
    parts = [method.doc or f"`{method.wire}`, which the schema does not describe."]
    if method.gate is not None:
        paths = " or ".join(f"`{'.'.join(path)}`" for path in method.gate.paths)
        others = f" (other than {' and '.join(f'`{tag}`' for tag in method.gate.but)})" if method.gate.but else ""
        parts.append(f"Needs {paths}{others} in `{method.gate.root}`.")
    if method.origin != model.origin:
        parts.append(f"From {method.origin}.")
    return "\n\n".join(parts)


class SaidView:
    """A property of a stub: how the peer introduced itself in the request that negotiates the version."""

    def __init__(self, name: str, field: ir.Field, text: str) -> None:
        self.name = identifier(name)
        self.wire = literal(field.wire)
        self.type = field.type.inner if isinstance(field.type, ir.Nullable) else field.type
        self.doc = docstring(text, indent=8)


def _said(side: Side, model: ir.Model) -> list[SaidView]:
    capabilities, info = model.introduction(side)
    method = model.negotiating.wire if model.negotiating else ""
    found = []
    if capabilities is not None:
        text = f"What the {side.value} can do: its `{capabilities.wire}`, as received. None before `{method}`."
        found.append(SaidView("capabilities", capabilities, text))
    if info is not None:
        text = f"Which program the {side.value} is: its `{info.wire}`. None before `{method}`, and if it does not say."
        found.append(SaidView("info", info, text))
    return found


class SideView:
    """The methods of one side, and the stub that calls them."""

    def __init__(self, side: Side, model: ir.Model) -> None:
        self.said = _said(side, model)
        self.methods = [MethodView(method, model) for method in model.methods if side in method.handlers]
        self.name = identifier(side.value)
        """The attribute for the stub."""
        self.stub = identifier(side.stub)
        self.stub_doc = docstring(
            f"The {self.name} at the other end: each method sends one message through its `Peer`."
        )
        self.table_name = identifier(side.methods)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedView:
    """A method of a proxy: `target` is the stub to which it passes the message on."""

    view: MethodView
    target: Code
    name: Code
    """The name of the method: with the side that sends the message if both may."""


def _passed(sides: Sequence[SideView]) -> list[PassedView]:
    """The methods that a proxy passes on, for each side that handles them: those to the agent first."""
    shared = set[str].intersection(*({view.method.name for view in side.methods} for side in sides))
    found = []
    for side, sender in zip(sides[::-1], sides, strict=True):
        for view in side.methods:
            if not view.cancels:
                name = view.method.name
                own = identifier(f"{name}_from_{sender.name}" if name in shared else name)
                found.append(PassedView(view=view, target=side.name, name=own))
    return found


class RoleView:
    """One role: the methods that it handles, and the sides that it calls."""

    def __init__(self, role: RoleRecord, model: ir.Model) -> None:
        self.template = role.template
        self.base = identifier(role.base)
        self.handled = [MethodView(each, model) for each in model.methods if {*role.sides} & {*each.handlers}]
        self.answers = any(view.is_request for view in self.handled)
        self.stubs = [SideView(side, model) for side in role.called]
        self.passed = _passed(self.stubs) if role.passes else []
        self.tables = _merged(role.sides)
        """The tables of the methods that the role handles, as one."""
        self.peer_tables = _merged(role.called)
        """The same of those that it calls."""
        self.parameters = listed(Code(f"{each.name}: {each.stub}") for each in self.stubs)
        """The parameters of the constructor: the stubs."""
        views = [*self.handled, *(view for side in self.stubs for view in side.methods)]
        types = [each.type for side in self.stubs for each in side.said]
        types += [each for view in views for each in (view.method.params, view.result)]
        used = set(references(*types))
        self.imported = imported_compactly(".types", used) if used else None
        """The import of the names of `types` in the signatures, if there are any."""
        self.uses_any = any(view.uses_any for view in views)
        self.decides = any(view.decides for side in self.stubs for view in side.methods)
        """True if a stub has a method whose result is one of several answers."""
        stubs = " and ".join(f"`{each.stub}`" for each in self.stubs)
        self.module_doc = docstring(f"Write {role.noun}: extend `{self.base}`, and call the peer by {stubs}.", 0)
        self.base_doc = docstring(self._base_text(role))

    def _base_text(self, role: RoleRecord) -> str:
        calls = " ".join(f"`self.{each.name}` calls the {each.name}." for each in self.stubs)
        return (
            f"{role.noun.capitalize()}: override what it supports. {calls}\n\n"
            'A request that is not overridden is answered with "method not found"; a notification is ignored.\n\n'
            f"`dispatch_request` and `dispatch_notification` pass messages of any transport to the {role.name}."
        )


def _merged(sides: Sequence[Side]) -> Code:
    first, *more = (identifier(side.methods) for side in sides)
    return Code(f"{{**{', **'.join((first, *more))}}}") if more else first
