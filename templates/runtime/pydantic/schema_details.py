"""Details of properties beyond their types: names on the wire, limits, and descriptions, read from the source.

Only JSON Schemas for other libraries need them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from .._base import Struct
from .properties import LIMITS, NAMES


class Details(NamedTuple):
    """The properties of a class, by attribute: their names, keywords of JSON Schema, and descriptions."""

    names: dict[str, str]
    limits: dict[str, dict[str, Any]]
    texts: dict[str, str]


def details_of(kind: type[Struct]) -> Details:
    """The details of all properties, inherited ones among them."""
    from dataclasses import fields

    known = [each for each in kind.__mro__ if issubclass(each, Struct) and is_known(each)]
    version = import_module(f"{known[0].__module__.rpartition('.')[0]}.methods").PROTOCOL_VERSION
    names, limits, texts = dict[str, str](), dict[str, dict[str, Any]](), dict[str, str]()
    none = dict[str, Any]()
    for field in fields(kind):
        places = [f"{each.__name__}.{field.name}" for each in known]
        keys = [place for place in places if place in NAMES[version]]
        names[field.name] = NAMES[version].get(keys[0] if keys else field.name, _camel(field.name))
        limits[field.name] = next((LIMITS[version][place] for place in places if place in LIMITS[version]), none)
        texts[field.name] = next((text for each in known if (text := _texts(each).get(field.name))), "")
    return Details(names, limits, texts)


def known_class(kind: type[Struct]) -> type[Struct]:
    """The class of `types` that `kind` is, or the nearest one among its bases."""
    return next(each for each in kind.__mro__ if is_known(each))


def is_known(kind: type) -> bool:
    """True for a class of this package, false for one that a user has derived."""
    home = __name__.rpartition("._runtime.")[0]
    module = sys.modules.get(kind.__module__)
    return kind.__module__.startswith(f"{home}.") and getattr(module, kind.__name__, None) is kind


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _texts(kind: type) -> dict[str, str]:
    return _texts_of_module(kind.__module__).get(kind.__name__, {})


@cache
def _texts_of_module(name: str) -> dict[str, dict[str, str]]:
    """The strings after the attributes of each class; none if there is no source text, as in a frozen program."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (KeyError, OSError):
        return {}
    return {each.name: _texts_of_class(each) for each in tree.body if isinstance(each, ast.ClassDef)}


def _texts_of_class(tree: ast.ClassDef) -> dict[str, str]:
    found = dict[str, str]()
    for each in zip(tree.body, tree.body[1:]):
        match each:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                found[name] = inspect.cleandoc(text)
            case _:
                pass
    return found
