"""Commands that convert their plain options themselves.

Recent versions of typer have pydantic build a validator for each option of a command, given or not: more work than
all that `acpgen check` has to do. What the command line says is read by typer's parser in any case.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

from typer.core import TyperCommand


class NotPlainError(Exception):
    """A value or an option is for typer to convert, or to complain of."""


_IS_PLAIN = "acpgen.cli.command"


def command_of(function: Callable[..., None]) -> type[TyperCommand]:
    """The class of the command that calls `function`."""
    return type("PlainCommand", (_Command,), {"function": staticmethod(function)})


class _Command(TyperCommand):
    """A command of the app; what is not plain in its command line goes the way that typer has for it."""

    function: Callable[..., None]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `args` into the values of the parameters; what is left of them comes out."""
        if ctx.resilient_parsing or (not args and self.no_args_is_help):
            return super().parse_args(ctx, args)
        given, left, _ = self.make_parser(ctx).parse_args(args=list(args))
        try:
            values = self._values(given, left)
        except NotPlainError:
            return super().parse_args(ctx, args)
        ctx.params.update(values)
        ctx.meta[_IS_PLAIN] = True
        return []

    def invoke(self, ctx: Any) -> Any:
        """Call the function, with values that nobody needs to convert again if they were plain."""
        return self.function(**ctx.params) if ctx.meta.get(_IS_PLAIN) else super().invoke(ctx)

    def _values(self, given: Mapping[str, Any], left: list[str]) -> dict[str, Any]:
        """The values of all parameters by name. Raises `NotPlainError`."""
        wanted = inspect.signature(self.function, eval_str=True).parameters
        if left or not given.keys() <= wanted.keys():  # `--help` is not for the function
            raise NotPlainError
        values = {}
        for each in self.params:
            name = each.name or ""
            raw = given.get(name)
            is_absent = raw is None or raw == ()
            if name not in wanted or each.envvar or each.callback or (each.required and is_absent):
                raise NotPlainError
            values[name] = wanted[name].default if is_absent else _converted(raw, wanted[name].annotation)
        return values


def _converted(raw: object, annotation: Any) -> object:
    """`raw` as typer converts it where all is well. Raises `NotPlainError`."""
    match raw, _plain(annotation):
        case bool(), type() as kind if kind is bool:
            return raw
        case str(), type() as kind if kind is str:
            return raw
        case str(), type() as kind if kind is int and raw.isascii() and raw.isdecimal():
            return int(raw)
        case str(), type() as kind if kind is Path:
            return Path(raw)
        case str(), type() as kind if issubclass(kind, Enum):
            found = [each for each in kind if each.value == raw]
            if found:
                return found[0]
        case (list() | tuple()), kind if get_origin(kind) is list:
            return [_converted(each, get_args(kind)[0]) for each in raw]
    raise NotPlainError


def _plain(annotation: Any) -> Any:
    """The type that a value has where it is there: without what typer is told, and without None."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, UnionType):
            kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
            if len(kinds) != 1:
                return annotation
            annotation = kinds[0]
        else:
            return annotation
