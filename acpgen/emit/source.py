"""The only place that turns a value, a type or a text into Python source.

Everything that a template prints is `Code`. Text from a schema becomes `Code` here and nowhere else, so that a name,
description, default or constant can never be more than a name, a docstring or a literal.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
import textwrap
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache

from acpgen.diagnostics import internal_error
from acpgen.ir import model as ir
from acpgen.ir.conditions import And, Condition, HasKeys, KeyIs, Not, Or

LINE_LENGTH = 120
"""The longest line of generated code; black gets the same limit."""


class Code(str):
    """Python source that is safe to print as it is."""

    __slots__ = ()


def identifier(name: str) -> Code:
    """Check that `name` is a plain ASCII identifier, dotted or not. Anything else is a bug in the naming."""
    for part in name.split("."):
        if not (part.isascii() and part.isidentifier()) or keyword.iskeyword(part):
            raise internal_error(f"{name!r} is no identifier")
    return Code(name)


def literal(scalar: str | int | float | bool | None) -> Code:
    """The literal of a scalar. Invisible and control characters are escaped."""
    if isinstance(scalar, str):
        return _string(scalar)
    if scalar is None or isinstance(scalar, (bool, int)):
        return Code(repr(scalar))
    if not math.isfinite(scalar):
        raise internal_error(f"{scalar!r} is no JSON number")
    return Code(repr(scalar).replace("e+", "e"))  # as black writes it


def _string(text: str) -> Code:
    quoted = json.dumps(text, ensure_ascii=False)  # each escape that `json` writes is valid in Python
    if text.count("'") < text.count('"'):  # as black does: fewer escapes
        body = re.sub(r"\\.|'", _single_quoted, quoted[1:-1])
        quoted = f"'{body}'"
    return Code("".join(char if _is_plain(char) else _escape(char) for char in quoted))


def _single_quoted(found: re.Match[str]) -> str:
    return {'\\"': '"', "'": "\\'"}.get(found[0], found[0])


def _is_plain(char: str) -> bool:
    """True if `char` shows as itself: no control, format (bidi marks, zero width), separator or private character.

    Uses a fixed version of Unicode: every Python gives the same answer.
    """
    return char == " " or unicodedata.ucd_3_2_0.category(char)[0] not in "CZ"


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@lru_cache(maxsize=4096)
def docstring(text: str, indent: int = 4) -> Code:
    """`text` as a docstring literal, wrapped to the line length, to be printed after `indent` spaces.

    Empty for an empty text. Paragraphs and list items start new lines. The literal is escaped, never raw.
    """
    body = wrapped(text, LINE_LENGTH - indent - len('"""'))
    if not body:
        return Code("")
    if len(body) == 1:  # the closing quotes take three columns, too
        body = wrapped(text, LINE_LENGTH - indent - len('"""' * 2))
    first, *more = [_doc_line(line) for line in body]
    start = '""" ' if first.startswith('"') else '"""'
    if not more:
        return Code(f'{start}{first} """' if first.endswith('"') else f'{start}{first}"""')
    margin = " " * indent
    rest = "\n".join(margin + line if line else "" for line in more)
    return Code(f'{start}{first}\n{rest}\n{margin}"""')


def lines(*parts: str) -> Code:
    """The parts, each on a line of its own."""
    return Code("\n".join(parts))


def listed(items: Iterable[Code]) -> Code:
    """The items, separated by commas."""
    return Code(", ".join(items))


def tuple_of(items: Iterable[Code]) -> Code:
    """The tuple of `items`."""
    listed_items = [*items]
    return Code(f"({listed_items[0]},)" if len(listed_items) == 1 else f"({', '.join(listed_items)})")


def frozenset_of(texts: Iterable[str]) -> Code:
    """The frozen set of the literals of `texts`, sorted."""
    items = listed(map(literal, sorted(texts)))
    return Code(f"frozenset({{{items}}})" if items else "frozenset()")


def enclosed(start: str, items: Sequence[str], end: str, *, indent: int) -> Code:
    """A call, tuple, list or dict at `indent`, laid out as black does it; black takes about 5 ms for a long line.

    On one line if it fits; else the items of a call on one line if they fit; else one item a line.
    """
    one, margin, is_call = ", ".join(items), " " * indent, start.endswith("(") and start != "("
    if indent + len(start) + len(one) + len(end) <= LINE_LENGTH or not items:
        return Code(f"{start}{one}{end}")
    if indent + 4 + len(one) > LINE_LENGTH or not is_call:
        one = f",\n{margin}    ".join(items) + ","
    return Code(f"{start}\n{margin}    {one}\n{margin}{end}")


def assigned(target: str, expression: str, *, indent: int) -> Code:
    """An assignment at `indent`. A conditional, a union or a call that does not fit is laid out as black does it."""
    line, margin = f"{target} = {expression}", " " * indent
    if indent + len(line) <= LINE_LENGTH:
        return Code(line)
    start, parts, end = _split(expression)
    if indent + 4 + len(" ".join(parts)) <= LINE_LENGTH:
        parts = [" ".join(parts)]
    if not start or (len(parts) == 1 and indent + 4 + len(parts[0]) > LINE_LENGTH):
        return Code(line)
    rows = [f"{target} = {start}", *(f"{margin}    {part}" for part in parts), f"{margin}{end}"]
    return Code("\n".join(rows))


_STRUCTURE = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\[({})\]]| (?=if |else |\| )""")
_COMPREHENSION = re.compile(r"\{\w+: \w+ for ")


def _split(expression: str) -> tuple[str, list[str], str]:
    """What the first line of a long expression ends with, the parts that are indented, and the last line.

    The operands of a conditional or a union are in brackets, each with its operator; a call is split at its brackets.
    """
    depth, breaks, opening = 0, [-1], 0
    for found in _STRUCTURE.finditer(expression):
        if found[0] in "([{":
            opening = opening if depth else found.end()
            depth += 1
        elif found[0] in ")]}":
            depth -= 1
        elif found[0] == " " and depth == 0:
            breaks.append(found.start())
    if len(breaks) > 1:
        return "(", [expression[start + 1 : end] for start, end in zip(breaks, [*breaks[1:], None], strict=True)], ")"
    if opening > 1 or _COMPREHENSION.match(expression):
        return expression[:opening], [expression[opening:-1]], expression[-1]
    return "", [expression], ""


def function_header(name: str, parameter: str, result: str) -> Code:
    """The first line of a function with one parameter; three lines if it does not fit."""
    line = f"def {name}({parameter}) -> {result}:"
    return Code(line if len(line) <= LINE_LENGTH else f"def {name}(\n    {parameter},\n) -> {result}:")


def _doc_line(line: str) -> str:
    escaped = line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.isascii() and escaped.isprintable():
        return escaped
    return "".join(char if _is_plain(char) else _escape(char) for char in escaped)


def wrapped(text: str, width: int) -> list[str]:
    """Wrap `text`: paragraphs are separated by an empty line, list items keep their lines."""
    normal = unicodedata.ucd_3_2_0.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    for paragraph in normal.split("\n\n"):
        block = [line for part in _items(paragraph) for line in _wrap(part, width)]
        if block:
            lines += ["", *block] if lines else block
    return lines


def _items(paragraph: str) -> list[str]:
    """Split a paragraph: list items stay apart, lines of prose are joined."""
    items: list[str] = []
    for line in paragraph.split("\n"):
        stripped = line.strip()
        if items and not stripped.startswith(("- ", "* ")) and stripped:
            items[-1] += " " + stripped
        elif stripped:
            items.append(stripped)
    return items


def _wrap(text: str, width: int) -> list[str]:
    indent = "  " if text.startswith(("- ", "* ")) else ""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


SCALARS = {
    ir.Primitive.STRING: "str",
    ir.Primitive.INTEGER: "int",
    ir.Primitive.NUMBER: "float",
    ir.Primitive.BOOLEAN: "bool",
    ir.Primitive.NULL: "None",
}


def hint(expression: ir.TypeExpr, *, module: str = "", quoted: Collection[str] = ()) -> Code:
    """The annotation for a value of `expression`; `module` is the prefix of definitions ("types.").

    Items of arrays and maps that are of the types `quoted`, which are not defined yet, are strings.
    """
    match expression:
        case ir.Ref(name):
            return identifier(module + name)
        case ir.Scalar(primitive=primitive):
            return Code(SCALARS[primitive])
        case ir.Const(only):
            return Code(f"Literal[{literal(only)}]")
        case ir.InlineEnum(primitive=primitive, values=constants, open=is_open):
            rest = f" | {SCALARS[primitive]}" if is_open else ""
            return Code(f"Literal[{listed(map(literal, constants))}]{rest}")
        case ir.ListOf(item=item):
            return Code(f"list[{_item_hint(item, module, quoted)}]")
        case ir.MapOf(inner):
            return Code(f"dict[str, {_item_hint(inner, module, quoted)}]")
        case ir.Nullable(ir.AnyJson()) | ir.AnyJson():
            return Code("Any")
        case ir.Nullable(inner):
            return Code(f"{hint(inner, module=module)} | None")


def _item_hint(item: ir.TypeExpr, module: str, quoted: Collection[str]) -> Code:
    """The annotation for items of an array or a map; a string if they are of a type in `quoted`."""
    bare = item.inner if isinstance(item, ir.Nullable) else item
    if isinstance(bare, ir.Ref) and bare.name in quoted:
        return literal(str(hint(item, module=module)))
    return hint(item, module=module, quoted=quoted)


def field_hint(field: ir.Field, *, module: str = "") -> Code:
    """The annotation for the attribute; it includes `UnsetType` if the key may be absent."""
    known = hint(field.type, module=module)
    return Code(f"{known} | UnsetType") if field.may_be_unset else known


def value(known: ir.Value, *, module: str = "") -> Code:
    """The expression that creates a new `known` each time it is evaluated."""

    def constructed(made: ir.Construct) -> Code:
        passed = (Code(f"{identifier(key)}={value(item, module=module)}") for key, item in made.arguments)
        return Code(f"{identifier(module + made.name)}({listed(passed)})")

    return value_with(known, constructed)


def value_with(known: ir.Value, constructed: Callable[[ir.Construct], Code]) -> Code:
    """The expression that creates a new `known`; `constructed` gives those for instances."""
    match known:
        case ir.Literal(scalar):
            return literal(scalar)
        case ir.ListValue(items):
            return Code(f"[{listed(value_with(item, constructed) for item in items)}]")
        case ir.MapValue(items):
            members = (Code(f"{literal(key)}: {value_with(item, constructed)}") for key, item in items)
            return Code("{" + listed(members) + "}")
        case ir.Construct():
            return constructed(known)


def condition_test(condition: Condition) -> Code:
    """The expression that tests whether the object `data` meets `condition`."""
    match condition:
        case HasKeys(keys):
            return Code(" and ".join(f"{literal(key)} in data" for key in keys) or "True")
        case KeyIs(key=key, value=value):
            return Code(f"data.get({literal(key)}, {literal(value)}) == {literal(value)}")
        case Or(parts):
            return _any(parts)
        case And((HasKeys((present,)), KeyIs(key=key, value=value))) if present == key:
            return Code(f"data.get({literal(key)}) == {literal(value)}")
        case And(parts):
            return _joined(" and ", parts)
        case Not(part):
            return Code(f"not ({condition_test(part)})")


def _joined(operator: str, parts: tuple[Condition, ...]) -> Code:
    if len(parts) == 1:
        return condition_test(parts[0])
    return Code(operator.join(f"({condition_test(part)})" for part in parts))


def _any(parts: tuple[Condition, ...]) -> Code:
    keys, values = set(), []
    for part in parts:
        match part:
            case And((HasKeys((present,)), KeyIs(key=key, value=str(value)))) if present == key:
                keys.add(key)
                values.append(literal(value))
            case _:
                return _joined(" or ", parts)
    if len(keys) != 1:
        return _joined(" or ", parts)
    return Code(f"data.get({literal(keys.pop())}) in {tuple_of(values)}")


def first_line(node: ast.stmt) -> int:
    """The first line of a statement, including decorators."""
    decorators = node.decorator_list if isinstance(node, ast.ClassDef) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])
