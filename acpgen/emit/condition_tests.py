"""Conditions of the model as Python expressions."""

from __future__ import annotations

from acpgen.emit.source import Code, literal, tuple_of
from acpgen.ir.conditions import And, Condition, HasKeys, KeyIs, Not, Or


def test(condition: Condition) -> Code:
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
            return Code(f"not ({test(part)})")


def _joined(operator: str, parts: tuple[Condition, ...]) -> Code:
    if len(parts) == 1:
        return test(parts[0])
    return Code(operator.join(f"({test(part)})" for part in parts))


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
