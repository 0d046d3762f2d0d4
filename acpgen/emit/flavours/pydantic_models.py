"""Views of the flavour pydantic: classes with the wire's names as aliases, and unions that are told apart by their tag.

A known tag selects its member, so that an error is that member's own. Where the schema has members without a tag, too,
the members are tried in the order of the schema, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from acpgen.emit.classes import Classes
from acpgen.emit.source import (
    Code,
    assigned,
    condition_test,
    docstring,
    enclosed,
    identifier,
    listed,
    literal,
    value_with,
)
from acpgen.emit.source import hint as plain_hint
from acpgen.emit.types import AliasView, Attribute, alias_target, definition_text, field_text, qualified, untyped
from acpgen.ir import model as ir
from acpgen.ir import names

BASE = Code("Struct")
"""The class that has the configuration."""
OTHER_TAG = "*"
"""The label of the member for other tags: no tag of a schema is without letters and digits."""
RESERVED_ATTRIBUTES = frozenset(
    {
        *("construct", "copy", "dict", "from_orm", "json", "parse_file", "parse_obj", "parse_raw", "schema"),
        *("schema_json", "update_forward_refs", "validate", "model_computed_fields", "model_config", "model_construct"),
        *("model_copy", "model_dump", "model_dump_json", "model_extra", "model_fields", "model_fields_set"),
        *("model_json_schema", "model_parametrized_name", "model_post_init", "model_rebuild", "model_validate"),
        *("model_validate_json", "model_validate_strings"),
        *("builtins", "classmethod", "pydantic", "tag_of"),
    }
)
"""The public attributes of `pydantic.BaseModel`, and what the bodies of classes use; a field with such a name gets a
trailing underscore.
"""


def attribute_name(wire: str) -> Code:
    """The attribute for the property `wire`."""
    name = names.field_name(wire)
    return identifier(f"{name}_" if name in RESERVED_ATTRIBUTES else name)


def hint(expression: ir.TypeExpr) -> Code:
    """The annotation for a value of `expression`, with its limits."""
    match expression:
        case ir.Scalar() if expression.bounds:
            return _annotated(plain_hint(expression), _bounds(expression))
        case ir.ListOf(item=item, min_items=least):
            known = Code(f"list[{hint(item)}]")
            return _annotated(known, f"pydantic.Field(min_length={literal(least)})") if least else known
        case ir.MapOf(inner):
            return Code(f"dict[str, {hint(inner)}]")
        case ir.Nullable(inner) if not isinstance(inner, ir.AnyJson):
            return Code(f"{hint(inner)} | None")
        case _:
            return plain_hint(expression)


def _annotated(known: str, extra: str) -> Code:
    return Code(f"Annotated[{known}, {extra}]")


_BOUNDS = {"minimum": "ge", "maximum": "le", "min_length": "min_length"}
"""The arguments of `pydantic.Field` for bounds."""


def _bounds(scalar: ir.Scalar) -> Code:
    arguments = (Code(f"{_BOUNDS[name]}={literal(bound)}") for name, bound in scalar.bounds.items())
    return Code(f"pydantic.Field({listed(arguments)})")


class PydanticClass:
    """One class, for `pydantic_v2/BaseModel.jinja2`."""

    def __init__(self, struct: ir.Struct, classes: Classes) -> None:
        self._struct = struct
        self._model = classes.model
        self.attributes = [self._attribute(field) for field in classes.own_fields(struct)]
        """The attributes in schema order."""
        self.base = identifier(classes.base(struct) or BASE)
        self.doc = docstring(definition_text(struct, classes.model), 4)
        self.keeps_extra = classes.adds_extra(struct)
        self.rejects = condition_test(struct.rejects) if struct.rejects else None
        """The test for an object that the schema excludes."""

    def _attribute(self, field: ir.Field) -> Attribute:
        known = qualified(hint(field.type), {each.name for each in self._struct.fields})
        return Attribute(
            name=attribute_name(field.wire),
            annotation=Code(f"{known} | MISSING") if field.may_be_unset else known,
            default=self._default(field),
            doc=docstring(field_text(field, self._struct), 4),
        )

    def _default(self, field: ir.Field) -> Code:
        """The default and the name on the wire, after an equals sign; empty if there is neither."""
        arguments = self._default_argument(field)
        if field.wire != attribute_name(field.wire):
            arguments["alias"] = literal(field.wire)
        match arguments:
            case {"default": default, **others} if not others:
                return Code(f" = {default}")
            case {**known} if known:
                return Code(f" = pydantic.Field({', '.join(f'{name}={each}' for name, each in known.items())})")
            case _:
                return Code("")

    def _default_argument(self, field: ir.Field) -> dict[str, str]:
        if field.may_be_unset:
            return {"default": "MISSING"}
        if isinstance(field.type, ir.Const) and is_tag(self._struct, field, self._model):
            return {"default": literal(field.type.value)}
        if field.required or field.default is None:
            return {}
        known = value(field.default, self._model)
        made = {"default_factory": f"lambda: {untyped(known, field.type, self._model)}"}
        return {"default": known} if isinstance(field.default, ir.Literal) else made


def is_tag(struct: ir.Struct, field: ir.Field, model: ir.Model) -> bool:
    """True if a union that tells its members apart by `field` has the class as a member: the union checks its presence.

    Then constructors may leave it out.
    """
    unions = (each for each in model.definitions if isinstance(each, ir.TaggedUnion) and each.tag == field.wire)
    return any(is_selected(union) and struct.name in _targets(union) for union in unions)


def _targets(union: ir.TaggedUnion) -> list[str]:
    return [variant.target for variant in union.variants]


def is_selected(union: ir.TaggedUnion) -> bool:
    """True if there are several members with a tag, so that it selects one."""
    return len(union.variants) > 1 or _other_is_apart(union)


def _other_is_apart(union: ir.TaggedUnion) -> bool:
    """True if the tag also selects the member for other tags: the known tags are no values of its own."""
    known = {variant.tag for variant in union.variants}
    return union.other is not None and not union.untagged and known <= set(union.other.excluded)


def value(known: ir.Value, model: ir.Model) -> Code:
    """The expression that creates a new `known` each time it is evaluated."""

    def validated(made: ir.Construct) -> Code:
        return Code(f"{identifier(made.name)}.model_validate({_json(made, model)})")

    return value_with(known, validated)


def _json(made: ir.Construct, model: ir.Model) -> Code:
    """An instance as JSON, with the constants that its class requires."""
    fields, given = model.struct(made.name).fields, dict(made.arguments)
    constants = {
        each.wire: ir.Literal(each.type.value) for each in fields if isinstance(each.type, ir.Const) and each.required
    }
    named: dict[str, ir.Value] = {each.wire: given[each.name] for each in fields if each.name in given}
    return value_with(ir.MapValue(tuple({**constants, **named}.items())), partial(_json, model=model))


class PydanticAlias(AliasView):
    """One union, enum or alias, for `TypeAliasType.jinja2`."""

    @property
    def statement(self) -> Code:
        """The statement that defines the alias.

        The library knows a recursive one by its name, which type checkers do not understand before its definition.
        """
        if not self.quoted:
            return super().statement
        name, target = identifier(self._definition.name), literal(self.quoted[0])
        checked = assigned(f"{name}: TypeAlias", target, indent=4)
        known = enclosed(f"{name} = TypeAliasType(", [literal(name), target], ")", indent=4)
        return Code(f"if TYPE_CHECKING:\n    {checked}\nelse:\n    {known}")

    @property
    def quoted(self) -> tuple[Code, ...]:
        """The type of a recursive alias: it is evaluated later, so it is a string there."""
        return (self.target,) if self._quoted else ()

    @property
    def target(self) -> Code:
        """The type that the alias stands for, as the library reads it."""
        match self._definition:
            case ir.TaggedUnion():
                return self._tagged(self._definition)
            case ir.UntaggedUnion(members=candidates):
                return _in_order([hint(each.type) for each in candidates])
            case _:
                return Code(" | ".join(map(hint, alias_target(self._definition))))

    def _tagged(self, union: ir.TaggedUnion) -> Code:
        if _other_is_apart(union):
            return self._with_labels(union)
        known = self._selected(union) if is_selected(union) else identifier(_targets(union)[0])
        members = _in_order([known, *(hint(each.type) for each in union.fallbacks)])
        # else each member that is not the instance's own is tried, and says why it is not
        return Code(f"pydantic.SerializeAsAny[{members}]") if is_selected(union) and union.fallbacks else members

    def _selected(self, union: ir.TaggedUnion) -> Code:
        """The members with a tag, without others."""
        targets = list(dict.fromkeys(_targets(union)))
        if len(targets) < 2 or not all(self._has_constant(name, union.tag) for name in targets):
            return self._with_labels(union)
        name = literal(attribute_name(union.tag))
        return _annotated(" | ".join(map(identifier, targets)), f"pydantic.Field(discriminator={name})")

    def _has_constant(self, target: str, wire: str) -> bool:
        """True if the member is a class that has the tag itself, as the library reads it."""
        definition = self._model.by_name[target]
        fields = definition.fields if isinstance(definition, ir.Struct) else ()
        return any(isinstance(field.type, ir.Const) for field in fields if field.wire == wire)

    def _with_labels(self, union: ir.TaggedUnion) -> Code:
        """The members with a label each, and a function that reads the label from a value."""
        labels = [(variant.tag, variant.target) for variant in union.variants]
        if union.other is not None and _other_is_apart(union):
            labels.append((OTHER_TAG, union.other.target))
        members = [_annotated(identifier(target), f"pydantic.Tag({literal(label)})") for label, target in labels]
        known = listed(literal(variant.tag) for variant in union.variants)
        reader = f"tag_of({literal(union.tag)}, {literal(attribute_name(union.tag))}, [{known}])"
        return _annotated(" | ".join(members), f"pydantic.Discriminator({reader})")


def _in_order(members: Iterable[str]) -> Code:
    """A union whose members are tried in this order."""
    distinct = list(dict.fromkeys(members))
    union = " | ".join(distinct)
    return _annotated(union, 'pydantic.Field(union_mode="left_to_right")') if len(distinct) > 1 else Code(union)
