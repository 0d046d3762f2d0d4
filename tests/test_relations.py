"""Relations of scalar types: whether one admits every value of another."""

from __future__ import annotations

import pytest

from acpgen.ir.model import Const, InlineEnum, Primitive, Scalar
from acpgen.ir.relations import covers_scalar

TEXT, WHOLE, NUMBER = (Scalar(primitive=each) for each in (Primitive.STRING, Primitive.INTEGER, Primitive.NUMBER))
SOME, COUNT = Scalar(primitive=Primitive.STRING, min_length=1), Scalar(primitive=Primitive.INTEGER, minimum=0)
AB = InlineEnum(primitive=Primitive.STRING, values=("a", "b"), open=False)
OPEN = InlineEnum(primitive=Primitive.STRING, values=("a",), open=True)
ONE = InlineEnum(primitive=Primitive.INTEGER, values=(1,), open=False)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        (TEXT, SOME, True),
        (SOME, TEXT, False),
        (SOME, AB, True),
        (SOME, Const(""), False),
        (SOME, OPEN, False),
        (NUMBER, COUNT, True),
        (COUNT, NUMBER, False),
        (COUNT, Const(-1), False),
        (COUNT, Const(0), True),
        (COUNT, Const(True), False),
        (ONE, Const(True), False),
        (AB, Const("a"), True),
        (AB, OPEN, False),
        (OPEN, AB, True),
        (OPEN, WHOLE, False),
        (Const("a"), AB, False),
        (Const("a"), Const("a"), True),
    ],
)
def test_a_scalar_type_admits_every_value_of_another(
    wide: Scalar | Const | InlineEnum, narrow: Scalar | Const | InlineEnum, *, expected: bool
) -> None:
    assert covers_scalar(wide, narrow) is expected
