"""What libraries ask the classes of this package for: pydantic its schemas, msgspec the fields of dataclasses.

The package imports this module first of all; pydantic itself is imported when it asks.
"""

from __future__ import annotations

import sys
from typing import Any

from .._base import FieldsOfInstances, Struct, StructType

__all__ = ["WireForm"]


class WireForm:
    """Marks a field of a pydantic model whose type is a union of classes: `update: Annotated[SessionUpdate, WireForm]`.

    It is decoded as a whole, by its tag, and gives one error; without the mark, pydantic tries each class.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Called by pydantic."""
        from .pydantic_schema import schema_of_union

        return schema_of_union(source, handler)


class _SerializerOfInstances:
    """`__pydantic_serializer__` of instances: pydantic reads it where a value may be of any type, as in a field `Any`.

    So such a value is written as on the wire, too.
    """

    __slots__ = ()

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None or "pydantic_core" not in sys.modules:
            raise AttributeError(f"{owner.__name__} is no class of pydantic")
        from .pydantic_schema import serializer_of_instances

        return serializer_of_instances(owner)


def _fields_of_instance(_: object, instance: object, owner: StructType) -> Any:
    """`__dataclass_fields__` of instances, for the functions of `dataclasses`, which are Python, and for no other code.

    msgspec looks there, and would write an instance by the names of its attributes. Where it finds nothing, it asks the
    hook that its user has given. A `__getattr__` would do the same, and make all attributes slow to read before
    Python 3.12.
    """
    if instance is None or _asked_by_dataclasses() or "__dataclass_fields__" in vars(owner):
        return owner._dataclass_fields  # pyright: ignore
    raise AttributeError(f"use dataclasses.fields() for the fields of a {owner.__name__}")


def _fields_of_class(cls: StructType) -> Any:
    """The fields, for the functions of `dataclasses` alone, as of instances: other libraries ask a hook then."""
    if not _asked_by_dataclasses():
        raise AttributeError(f"use dataclasses.fields() for the fields of {cls.__name__}")
    return cls._dataclass_fields  # pyright: ignore


def _asked_by_dataclasses() -> bool:
    return sys._getframe(2).f_globals.get("__name__") == "dataclasses"  # pyright: ignore


_classes: Any = StructType
_classes.__dataclass_fields__ = _classes.__dataclass_fields__.getter(_fields_of_class)
_fields: Any = FieldsOfInstances
_fields.__get__ = _fields_of_instance
_base: Any = Struct
_base.__pydantic_serializer__ = _SerializerOfInstances()
