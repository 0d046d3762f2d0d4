"""Expressions that encode: from a type to the call of the function that writes it, if one is needed."""

from __future__ import annotations

from acpgen.emit.literals import Code
from acpgen.emit.reading import encoder
from acpgen.ir.model import (
    Alias,
    Definition,
    Enum,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Ref,
    Struct,
    TaggedUnion,
    TypeExpr,
    UntaggedUnion,
)
from acpgen.ir.order import members


class Writing:
    """Builds encode expressions for the types of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._plain: dict[str, bool] = {}

    def write(self, expression: TypeExpr, source: str) -> Code:
        """The expression that encodes `source`; the same object where its JSON is itself."""
        if self.is_plain(expression):
            return Code(source)
        match expression:
            case Ref(name):
                return self._write_definition(self._model.by_name[name], source)
            case ListOf(item=item):
                return Code(f"[{self.write(item, 'item')} for item in {source}]")
            case MapOf(inner):
                return Code(f"{{name: {self.write(inner, 'item')} for name, item in {source}.items()}}")
            case Nullable(inner):
                return Code(f"None if {source} is None else {self.write(inner, source)}")
            case _:
                return Code(source)

    def _write_definition(self, definition: Definition, source: str) -> Code:
        match definition:
            case Struct():
                return Code(f"{encoder(definition.name)}({source})")
            case Alias():
                return self.write(definition.type, source)
            case _ if self.is_object(definition):
                return Code(f"_ENCODERS[{source}.__class__]({source})")
            case _:
                return Code(f"encode({source})")

    def is_plain(self, expression: TypeExpr) -> bool:
        """Whether values of the type are JSON as they are."""
        match expression:
            case Ref(name):
                if name not in self._plain:  # memoised: the number of paths is exponential
                    self._plain[name] = self._is_plain_definition(self._model.by_name[name])
                return self._plain[name]
            case ListOf(item=inner) | MapOf(inner) | Nullable(inner):
                return self.is_plain(inner)
            case _:
                return True

    def is_object(self, definition: Definition) -> bool:
        """Whether every value is an instance of a class."""
        if isinstance(definition, UntaggedUnion):
            found = [self._model.by_name[each.name] for each in members(definition) if isinstance(each, Ref)]
            return len(found) == len(members(definition)) and all(map(self.is_object, found))
        return isinstance(definition, (Struct, TaggedUnion))

    def _is_plain_definition(self, definition: Definition) -> bool:
        match definition:
            case Alias(type=target):
                return self.is_plain(target)
            case Enum():
                return True
            case Struct():
                return False
            case _:
                return all(self.is_plain(member) for member in members(definition))
