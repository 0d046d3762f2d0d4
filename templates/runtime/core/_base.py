"""Base classes: `Struct` of the classes in `types`, and `Record` of what never changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, TypeVar, cast

from .places import caller, part_module

__all__ = ["UNSET", "Struct", "UnsetType"]

T = TypeVar("T")

if TYPE_CHECKING:
    from dataclasses import Field

    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[T], T]:
        return lambda kind: kind


class UnsetType(Enum):
    """The type of `UNSET`. An enum, so that type checkers understand `value is UNSET`."""

    UNSET = object()  # no text: a JSON library that writes the values of enumerations must not write this one

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return getattr, (UnsetType, self.name)  # there is one object, also after pickling and copying

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"

    def __str__(self) -> str:
        hint = "write `value or ...`, or ask `if value is not UNSET:`; `repr` and `%r` show it"
        raise TypeError(f"str(UNSET){caller()} has no text: the peer has not sent this value: {hint}")


UNSET: Final = UnsetType.UNSET
"""The key is absent from the JSON object. `None` means that the key is there, and its value is null."""

MISFITS: Final = (AttributeError, TypeError, RecursionError)
"""What is raised where a value is not of the type that its place has, or contains itself."""

new: Final = object.__new__
"""Makes an instance without its constructor. Decoders use it, and set all attributes."""


@dataclass_transform(frozen_default=True)
class Record:
    """The base of records: the constructor takes the annotated attributes in order. Named tuples are slow to import."""

    _names: ClassVar[tuple[str, ...]] = ()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)
        cls._defaults = {name: vars(cls)[name] for name in cls._names if name in vars(cls)}

    def __init__(self, *values: Any, **named: Any) -> None:
        vars(self).update({**self._defaults, **dict(zip(self._names, values)), **named})
        if vars(self).keys() != {*self._names} or len(values) > len(self._names):
            raise TypeError(f"{type(self).__name__} has the attributes {', '.join(self._names)}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._names, self._values()))
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._names)

    def replaced(self, **changes: Any) -> Self:
        """A copy with these attributes changed."""
        return type(self)(**{**vars(self), **changes})


class Bounds(Record):
    """Limits of a value beyond its type, both inclusive; checked when it is decoded."""

    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    min_items: int | None = None


# --- Classes ---------------------------------------------------------------------------------------------------------


class _Made(Record):
    factory: Callable[[], Any]


def made(*, factory: Callable[[], T]) -> T:
    """The default of a field that must not be shared: `factory` makes one for each instance."""
    return cast("T", _Made(factory))


_Own: TypeAlias = tuple[dict[str, Any], dict[str, Any], bool]
"""The annotations and defaults that a class adds to those of its bases, and whether they come after all others."""


class _Deferred:
    """An attribute of a class that is made when it is first read, by the standard library's `dataclass`."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Any:
        kind = next(each for each in owner.__mro__ if self._name in vars(each))
        if vars(kind)[self._name] is self:
            _complete(kind)
        found = vars(kind)[self._name]
        return found.__get__(instance, owner) if hasattr(found, "__get__") else found


class FieldsOfInstances:
    """`__dataclass_fields__` of instances, as of their class.

    A JSON library in C that looks here would write an instance by the names of its attributes. It wants a dict, so it
    raises: what is on the wire comes from `encode`. A class has this in its own namespace only where it must hide that
    of another dataclass: orjson looks there alone, and gets a dict.
    """

    __slots__ = ()

    def __get__(self, instance: object, owner: StructType) -> Any:
        found: Any = owner._dataclass_fields  # pyright: ignore
        return found if "__dataclass_fields__" in vars(owner) else MappingProxyType(found)


_MADE_LATER: Final = {name: _Deferred(name) for name in ("__init__", "_dataclass_fields")}


@dataclass_transform(kw_only_default=True, field_specifiers=(made,))
class StructType(type):
    """The type of `Struct` and its subclasses: annotations become slots, `__init__` is made when it is first called.

    A subclass with annotations gets fields with slots, and needs no decorator. One without is an ordinary class: its
    instances have a `__dict__`. A base with another metaclass, such as `abc.ABC`, does not go with it.

    With `fields_last`, the fields of a class come after those of its subclasses.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, fields_last: bool = False, **options: Any
    ) -> StructType:
        written = _annotations(namespace)
        hints = {key: hint for key, hint in written.items() if "ClassVar" not in str(hint) or _is_field(hint)}
        if hints or not bases:
            own = hints, {key: namespace.pop(key) for key in hints if key in namespace}, fields_last
            inherited = frozenset[str]().union(*[getattr(base, "_slotted", ()) for base in bases])
            slots = tuple([key for key in hints if key not in inherited])
            namespace = {
                "__slots__": slots,
                **_MADE_LATER,
                **namespace,
                "_own": own,
                "_slotted": inherited.union(slots),
            }
            if any(not isinstance(base, mcs) and hasattr(base, "__dataclass_fields__") for base in bases[:-1]):
                namespace["__dataclass_fields__"] = FieldsOfInstances()  # before those of that base
        return super().__new__(mcs, name, bases, namespace, **options)

    @property
    def __dataclass_fields__(cls) -> dict[str, Field[Any]]:
        """The fields, for `dataclasses`."""
        found: dict[str, Field[Any]] = cls._dataclass_fields  # pyright: ignore
        return found

    @__dataclass_fields__.setter
    def __dataclass_fields__(cls, fields: dict[str, Field[Any]]) -> None:
        cls._dataclass_fields = fields  # by the decorator `dataclass` on a subclass


def _annotations(namespace: dict[str, Any]) -> dict[str, Any]:
    if sys.version_info >= (3, 14) and not {"__annotate__", "__annotate_func__"}.isdisjoint(namespace):
        from annotationlib import Format, call_annotate_function, get_annotate_from_class_namespace

        annotate = get_annotate_from_class_namespace(namespace)
        return {} if annotate is None else call_annotate_function(annotate, Format.FORWARDREF)
    hints: dict[str, Any] = namespace.get("__annotations__", {})
    return hints


def _is_field(hint: object) -> bool:
    """False for the annotation of a class variable."""
    return str(hint).partition("[")[0].rpartition(".")[2] != "ClassVar"


def _complete(kind: type) -> None:
    """Have `dataclass` make what was deferred, from the annotations and defaults of `kind` and its bases."""
    from dataclasses import dataclass, field  # imported here: it is slow, and decoding does not need it

    hints: dict[str, Any] = {}
    twin: dict[str, Any] = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__annotations__": hints}
    owns: list[_Own] = [vars(each)["_own"] for each in reversed(kind.__mro__) if "_own" in vars(each)]
    for own, defaults, _ in sorted(owns, key=itemgetter(2)):  # the first base first, but for those that come last
        hints.update(own)
        for name in own:
            twin.pop(name, None)
        for name, default in defaults.items():
            twin[name] = field(default_factory=default.factory) if isinstance(default, _Made) else default
    if hasattr(kind, "__post_init__"):
        twin["__post_init__"] = None  # so that `__init__` calls that of the instance
    mixins = tuple(
        each for each in kind.__mro__ if "__dataclass_fields__" in vars(each) and type(each) is not StructType
    )
    twin_class: type = dataclass(repr=False, eq=False, kw_only=True)(type(kind.__name__, mixins, twin))
    completed = {**vars(twin_class), "_dataclass_fields": vars(twin_class)["__dataclass_fields__"]}
    for name, value in vars(kind).copy().items():
        if isinstance(value, _Deferred):
            setattr(kind, name, completed[name])


class Struct(metaclass=StructType):
    """The base of all classes in `types`: equal when class and attributes are; the repr leaves out what is `UNSET`."""

    __match_args__ = ()
    __dataclass_params__ = _Deferred("__dataclass_params__")
    if not TYPE_CHECKING:  # type checkers know the fields from `dataclass_transform`
        __dataclass_fields__ = FieldsOfInstances()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, each.name) == getattr(other, each.name) for each in _fields(self) if each.compare)

    def __repr__(self) -> str:
        known = ((each.name, getattr(self, each.name)) for each in _fields(self) if each.repr)
        shown = ", ".join(f"{name}={value!r}" for name, value in known if value is not UNSET)
        return f"{self.__class__.__name__}({shown})"

    def __replace__(self, /, **changes: Any) -> Self:
        """A copy with these attributes changed, for `copy.replace` (Python 3.13 and later)."""
        from dataclasses import replace

        return replace(self, **changes)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Called by pydantic, which then reads and writes what is on the wire, and accepts instances."""
        return part_module("pydantic", "pydantic_schema", f"{cls.__name__} in pydantic").schema_of_class(cls, handler)


def _fields(struct: Struct) -> tuple[Field[Any], ...]:
    from dataclasses import fields

    return fields(struct)
