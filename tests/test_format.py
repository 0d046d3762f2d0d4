"""Formatting gives what black gives, definition by definition, whatever was formatted before."""

from __future__ import annotations

import black
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acpgen.emit.verbatim import verbatim
from acpgen.format import format_files
from tests.support import REPOSITORY

MODE = black.Mode(target_versions={black.TargetVersion.PY310}, line_length=120)

LEFT_ALONE = '''\
@decorated(first=True)
class Known(Base):
    """What it is."""

    name: str
    """A text
    of two lines.
    """
    other: dict[str, Any] | None = None

    __slots__ = ("name", "other")

    def __init__(
        self,
        *,
        name: str,
        other: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.other = other


def known(raw: Any) -> Known:
    data: dict[str, Any] = {
        "name": raw.name,
        "other": [known(item) for item in raw.other],
    }
    if raw.name is not None:
        data["name"] = raw.name
    for key in data:
        if key in ("name", "other"):
            return first(key)

    def inner(value: Any) -> Any:
        return value

    return Known(
        name=data["name"] if "name" in data else "",
        other=inner(data["other"], 12),
    )


TABLE: dict[str, Any] = {
    "name": known,
}
'''
"""Stands as black writes it, and is what most of the cases below differ from in one thing."""

LONG = "a_name_that_is_so_long_that_three_of_it_do_not_fit_into_one_line"

HEAD = "def other(raw: Any) -> Known:\n"

CASES = {
    "the same": "def other(text: Any) -> Other:\n    return other(text)\n",
    "too long a statement": HEAD + f"    data[{LONG!r}] = {LONG}({LONG})\n    return raw\n",
    "too long an element": HEAD
    + f"    return Known(\n        name=data['x'] if {LONG} in {LONG} else {LONG},\n    )\n",
    "too long an item": HEAD + f'    data = {{\n        "name": {LONG}({LONG}, {LONG}),\n    }}\n',
    "too long a head": f"def other({LONG}: {LONG}) -> dict[str, {LONG}]:\n    return raw\n",
    "too long by wide characters": HEAD + '    data["name"] = "' + "字" * 60 + '"\n',
    "no comma at the end": HEAD + "    return Known(\n        name=raw.name,\n        other=raw.other\n    )\n",
    "a comma in one line": HEAD + "    return first(raw, raw,)\n",
    "nothing in the brackets": HEAD + "    data: dict[str, Any] = {\n    }\n    return data\n",
    "two elements a line": HEAD + "    return Known(\n        name=raw, other=raw,\n    )\n",
    "parentheses for nothing": HEAD + "    return (raw)\n",
    "single quotes": HEAD + "    return raw['name']\n",
    "an escaped quote": HEAD + '    return raw["\\""]\n',
    "capital prefix": HEAD + '    return raw[F"name"]\n',
    "numbers": HEAD + "    return first(0XFF, 1E5, 10l if raw else 0xabc)\n".replace("10l", "10"),
    "power": HEAD + "    return raw ** 2 + raw.name ** raw(1)\n",
    "no space": HEAD + "    data['name']=raw\n    return data\n",
    "space at the end": HEAD + "    return raw \n",
    "two statements a line": HEAD + "    first(raw); return raw\n",
    "a body beside its head": HEAD + "    if raw: return raw\n    return None\n",
    "no line below an inner function": HEAD
    + "    def inner(value: Any) -> Any:\n        return value\n    return inner(raw)\n",
    "a line too many": HEAD + "    first(raw)\n\n\n    return raw\n",
    "a line below the head": HEAD + "\n    first(raw)\n",
    "no line below the text of a class": 'class Other(Base):\n    """What it is."""\n    name: str\n',
    "no line below fields": "class Other(Base):\n    name: str\n    def first(self) -> None:\n        return None\n",
    "a text with space": HEAD + '    """ What it is. """\n    return raw\n',
    "a text deeper than its quotes": HEAD + '    """What\n            it is.\n    """\n    return raw\n',
    "a text less deep": HEAD + '    """What\n  it is.\n    """\n    return raw\n',
    "an empty text": HEAD + '    """"""\n    return raw\n',
    "a text that ends with a quote": HEAD + '    """Say "it" """\n    return raw\n',
    "a text of only lines": HEAD + '    """What\n\n\n    """\n    return raw\n',
    "a comment beside": HEAD + "    return raw # why\n",
    "a comment without space": HEAD + "    #why\n    return raw\n",
    "a comment for black": HEAD + "    # fmt: off\n    return  raw\n",
    "a stub": HEAD + "    ...\n",
    "overloads": "@overload\ndef other(raw: Any) -> Known: ...\n@overload\ndef other(raw: int) -> Any: ...\n",
    "indented by two": HEAD + "  return raw\n",
    "indented by tabs": HEAD + "\treturn raw\n",
    "brackets two lines deep": HEAD + "    return Known(first(\n        raw,\n    ))\n",
    "an operator outside of brackets": HEAD
    + f"    if raw in (\n        {LONG},\n    ) and {LONG} and raw:\n        return raw\n",
    "a backslash": HEAD + "    return raw + \\\n        raw\n",
}


def as_black(text: str) -> str:
    return black.format_str(text, mode=MODE)


def formatted(*definitions: str) -> str:
    return format_files({"module.py": "\n\n\n".join(each.strip("\n") for each in definitions) + "\n"})["module.py"]


@pytest.mark.parametrize("case", CASES)
def test_a_definition_unlike_those_before_is_formatted(case: str) -> None:
    other = CASES[case]
    assert as_black(LEFT_ALONE) == LEFT_ALONE
    assert formatted(LEFT_ALONE, other, other.replace("Known", "Third")) == as_black(
        f"{LEFT_ALONE}\n\n{other}\n\n{other.replace('Known', 'Third')}"
    )


def test_black_sees_a_layout_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    run = black.format_str

    def count(text: str, *, mode: black.Mode) -> str:
        seen.append(text)
        return run(text, mode=mode)

    monkeypatch.setattr(black, "format_str", count)
    others = [LEFT_ALONE.replace("nown", f"nown{number}").replace("TABLE", f"TABLE{number}") for number in range(50)]
    assert formatted(LEFT_ALONE, *others) == "\n\n".join([LEFT_ALONE, *others])
    assert not any("nown7" in text for text in seen)


def test_what_templates_have_word_for_word_is_laid_out_as_black_does() -> None:
    parts = verbatim(REPOSITORY / "templates")
    assert len(parts) > 100
    assert {part for part in parts if as_black(part) != part} == set()


def test_what_is_known_is_not_formatted() -> None:
    odd = "def odd( ): return  1\n"
    assert format_files({"module.py": f"{odd}\n\n{odd}"}, known={odd})["module.py"] == f"{odd}\n\n{odd}"


names = st.text("abcxyz字", min_size=1, max_size=70).filter(str.isidentifier)
lines = st.sampled_from(["{0} = {1}({2})", "{0}.{1}[{2}] = {1}", "return {0}(\n        {1}={2},\n        {2},\n    )"])
lines |= st.sampled_from(
    ["return {0} if {1} in {2} else {0}", 'if {0} in ("{1}", "{2}"):\n        raise {2}', '"""{0} {1}"""']
)
lines |= st.sampled_from(
    ["{0}: {1}[{2}] | {0} = {{\n        {0}: {1},\n    }}", "{0} = [\n        {1} for {1} in {2}\n    ]", ""]
)
statements = st.builds(str.format, lines, names, names, names)
definitions = st.builds(
    "def {}({}: {}) -> {}:\n    {}".format,
    names,
    names,
    names,
    names,
    st.lists(statements, min_size=1).map("\n    ".join),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(definitions.filter(lambda text: not text.endswith(":\n    ")), min_size=1, max_size=12))
def test_any_definitions_are_formatted_as_black_does(texts: list[str]) -> None:
    whole = [text for text in texts if text.partition(":\n")[2].strip()]
    if whole:
        assert formatted(*whole) == as_black("\n\n\n".join(whole) + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "from a import b\n\n\nOnly: Any = str\n",
        '"""What it is."""\n\n\nimport a\n\n\nOnly: Any = a\n\n\nOther: Any = b\n"""Why"""\n\n\ndef c() -> None: ...\n',
        "# one\n\n\ndef a() -> None:\n    b()\n\n\n# two\n\n\n@c\n\ndef d() -> None:\n    b()\n\n\n# three\n",
        "def a() -> None:\n    b()\n\n\nif a:\n\n\n    def c() -> None:\n        b()\n\n\nprint(c)\n",
    ],
)
def test_empty_lines_between_others_are_those_of_black(text: str) -> None:
    assert format_files({"module.py": text})["module.py"] == as_black(text)
