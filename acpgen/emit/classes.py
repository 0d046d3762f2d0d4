"""The classes of `types.py`: their bases, and the attributes that each declares itself.

A property that most objects of a schema have, in the same form, is declared once, in a base of their classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from acpgen.ir import model as ir
from acpgen.ir import names

_FEWEST_SHARING = 10
"""The fewest classes that are worth a base."""


_Form: TypeAlias = tuple[str, str, ir.TypeExpr, ir.Leniency]
"""All of a property but its text and its place."""


class Classes:
    """The classes of a model."""

    def __init__(self, model: ir.Model) -> None:
        self.model = model
        self._structs = [each for each in model.definitions if isinstance(each, ir.Struct)]

    @cached_property
    def shared(self) -> ir.Struct | None:
        """The base with the property that more than half of the classes have; None if there is no such property."""
        forms = Counter(form for struct in self._structs for form, _ in _own_forms(struct))
        form, number = max(forms.items(), key=lambda each: each[1], default=(None, 0))
        if form is None or number < _FEWEST_SHARING or number * 2 <= len(self._structs):
            return None
        found = [field for struct in self._structs for own, field in _own_forms(struct) if own == form]
        doc = Counter(field.doc for field in found if field.doc).most_common(1)
        field = replace(found[0], doc=doc[0][0] if doc else "", origin=self.model.origin)
        return ir.Struct(
            name=self._free_name(f"With{names.pascal(field.wire)}"),
            doc=f"The base of the classes with `{field.name}`.",
            pointer=field.pointer,
            origin=self.model.origin,
            fields=(field,),
            base=None,
            keeps_extra=False,
            rejects=None,
        )

    def _free_name(self, name: str) -> str:
        taken = {names.snake(definition.name) for definition in self.model.definitions}
        return self._free_name(f"{name}Base") if names.snake(name) in taken else name

    def base(self, struct: ir.Struct) -> str | None:
        """The name of the base; None for a class that derives from `Struct` itself."""
        return self.shared.name if self.shared is not None and self._shares(struct) else struct.base

    def _shares(self, struct: ir.Struct) -> bool:
        """True if the class inherits the shared property, as it says nothing else about it."""
        if self.shared is None or struct is self.shared:
            return False
        (field,) = self.shared.fields
        own = next((each for form, each in _own_forms(struct) if form == _form(field)), None)
        return own is not None and own.doc in ("", field.doc) and own.origin == struct.origin

    def adds_nothing(self, struct: ir.Struct) -> bool:
        """True if the shared property is the only one of the class."""
        return self._shares(struct) and len(struct.fields) == 1 and not struct.keeps_extra and struct.rejects is None

    def own_fields(self, struct: ir.Struct) -> list[ir.Field]:
        """The fields that the class declares itself, in schema order."""
        shared = {field.name for field in self.shared.fields} if self.shared and self._shares(struct) else set[str]()
        return [each for each in struct.fields if not each.inherited and each.name not in shared]

    def adds_extra(self, struct: ir.Struct) -> bool:
        """True if the class keeps unnamed properties, and its base does not."""
        return struct.keeps_extra and not (struct.base is not None and self.model.struct(struct.base).keeps_extra)

    def own_attributes(self, struct: ir.Struct) -> list[tuple[str, ir.TypeExpr]]:
        """The attributes that the class declares itself, including `extra`."""
        extra: list[tuple[str, ir.TypeExpr]] = [(ir.EXTRA_FIELD, ir.MapOf(ir.AnyJson()))]
        own = [(each.name, each.type) for each in self.own_fields(struct)]
        return own + extra if self.adds_extra(struct) else own

    @property
    def definitions(self) -> list[ir.Definition]:
        """All definitions, after the shared base if there is one."""
        return [*([self.shared] if self.shared else []), *self.model.definitions]


def _own_forms(struct: ir.Struct) -> Iterator[tuple[_Form, ir.Field]]:
    """The optional properties of a class without a base."""
    if struct.base is None:
        yield from ((_form(field), field) for field in struct.fields if field.may_be_unset)


def _form(field: ir.Field) -> _Form:
    return field.wire, field.name, field.type, field.leniency
