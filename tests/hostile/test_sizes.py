"""Schemas of every unreasonable size: a diagnostic or a package, within bounded time and memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import REPOSITORY, deep_except, schema_of

pytestmark = [
    pytest.mark.full,
    pytest.mark.needs("linux"),
]

Node = dict[str, Any]
GIB = 1024**3
STRING: Node = {"type": "string"}


def ref(name: object) -> Node:
    return {"$ref": f"#/$defs/D{name}"}


def obj(properties: Node, **more: Any) -> Node:
    return {"type": "object", "properties": properties, **more}


def nested(depth: int, wrap: Callable[[Any], Any], innermost: Any = True) -> Any:
    for _ in range(depth):
        innermost = wrap(innermost)
    return innermost


def text_of(schema: Any) -> bytes:
    return json.dumps(schema).encode()


def _letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


def _cycle(length: int) -> bytes:
    return text_of(schema_of(**{f"D{n}": ref((n + 1) % length) for n in range(length)}))


def _conjuncts(length: int) -> bytes:
    chain: Node = {f"D{n}": {"type": "object", "allOf": [ref(n + 1)]} for n in range(length)}
    return text_of(schema_of(**chain, **{f"D{length}": obj({"a": STRING})}))


def _many(count: int) -> bytes:
    return text_of(schema_of(**{f"D{_letters(n)}": obj({"a": STRING}) for n in range(count)}))


def _wide(count: int) -> bytes:
    members = [obj({"t": {"const": f"v{_letters(n)}"}}, required=["t"]) for n in range(count)]
    return text_of(schema_of(Wide={"oneOf": members}))


def _twice(count: int) -> bytes:
    """An object of many names, the last of which stands there twice."""
    names = ",".join(f'"n{number}":1' for number in range(count))
    return f'{{"$defs":{{{names},"n{count - 1}":1}}}}'.encode()


def _thing(**keywords: Any) -> bytes:
    return text_of(schema_of(Thing=obj({"a": keywords})))


def _number(token: str) -> bytes:
    return _thing(type="integer", default="NUMBER").replace(b'"NUMBER"', token.encode())


def _letter_names(count: int) -> list[str]:
    return [_letters(number) for number in range(count)]


def _enumeration(count: int) -> bytes:
    return text_of(schema_of(Many={"enum": [f"v{letters}" for letters in _letter_names(count)]}))


def _object(count: int) -> bytes:
    return text_of(schema_of(Many=obj({f"p{letters}": STRING for letters in _letter_names(count)})))


def _alternatives(count: int) -> Node:
    """A union of members without a tag, each pair of which may have values in common."""
    names = _letter_names(count)
    return {"anyOf": [obj({f"p{name}": STRING}, required=[f"p{name}"], title=f"T{name}") for name in names]}


def _families(depth: int, width: int) -> Node:
    """Two unions of objects that lead to unions of objects, alike down to the last."""
    found: Node = {"DA": {"anyOf": [ref("X0"), ref("Y0")]}}
    for family in "XY":
        for level in range(depth):
            members = [
                {**obj({"a": ref(f"{family}{level + 1}"), f"k{n}": STRING}, required=["a"]), "title": f"T{_letters(n)}"}
                for n in range(width)
            ]
            found[f"D{family}{level}"] = {"anyOf": members}
        found[f"D{family}{depth}"] = obj({family: STRING}, required=[family])
    return found


def _doubled(depth: int) -> Node:
    """Unions that lead to one another on 2 to the power of `depth` ways."""
    chain = {f"D{n}": {"anyOf": [ref(n + 1), {"type": "array", "items": ref(n + 1)}]} for n in range(depth)}
    return {**chain, f"D{depth}": STRING}


def _paired(depth: int) -> Node:
    """Two unions on each level, both of which lead to both of the next."""
    both = [{"oneOf": [ref(f"A{n + 1}"), ref(f"B{n + 1}"), {"type": "null"}]} for n in range(depth)]
    ends = {f"DA{depth}": obj({"a": STRING}, required=["a"]), f"DB{depth}": obj({"b": STRING}, required=["b"])}
    return {f"D{letter}{n}": node for n, node in enumerate(both) for letter in "AB"} | ends


def _paired_objects(depth: int) -> Node:
    """The same, with an object between one level and the next."""
    found: Node = {f"D{letter}{depth}": STRING for letter in "AB"}
    for n in range(depth):
        members = [{**obj({"a": ref(f"{letter}{n + 1}")}, required=["a"]), "title": letter} for letter in "AB"]
        found |= {f"D{letter}{n}": {"anyOf": members} for letter in "AB"}
    return found


def _combined(depth: int, titles: str) -> Node:
    """Unions whose members combine a property of their own with the next union."""
    chain: Node = {}
    for n in range(depth):
        names = [f"k{letters}{n}" for letters in _letter_names(2)]
        members = [obj({name: STRING}, required=[name], allOf=[ref(n + 1)]) for name in names]
        chain[f"D{n}"] = {"oneOf": [{**member, "title": t} for member, t in zip(members, titles, strict=True)]}
    return {**chain, f"D{depth}": obj({"a": STRING})}


def _product(depth: int, width: int) -> Node:
    """An object in several unions at once."""
    names = _letter_names(width)
    unions = [{"oneOf": [obj({f"{k}{n}": STRING}, required=[f"{k}{n}"]) for k in names]} for n in range(depth)]
    return {"Thing": {"type": "object", "allOf": unions}}


def _crossed(depth: int) -> Node:
    """Unions on two sides, each member of which combines both unions of the next level."""
    found: Node = {f"D{side}{depth}": obj({f"z{side}": STRING}) for side in "AB"}
    for n in range(depth):
        for side in "AB":
            names = [f"{side}{k}{n}" for k in "kl"]
            both = [ref(f"A{n + 1}"), ref(f"B{n + 1}")]
            found[f"D{side}{n}"] = {"oneOf": [obj({name: STRING}, required=[name], allOf=both) for name in names]}
    return found


def _nothing(depth: int) -> Node:
    """Unions that come to null on every way."""
    chain = {f"D{n}": {"anyOf": [ref(n + 1), {"type": "null"}]} for n in range(depth)}
    return {**chain, f"D{depth}": {"type": "null"}}


def _unions_of_one(levels: int, innermost: Node) -> Node:
    """Unions of a single member, each in the one before."""
    found: Node = nested(levels, lambda inner: {"oneOf": [{**inner, "title": "T"}]}, innermost)
    return found


def _chain_of_unions(length: int, levels: int) -> Node:
    """Definitions each of which has the next one inside so many unions."""
    chain = {f"D{n}": _unions_of_one(levels, ref(n + 1)) for n in range(length)}
    return {**chain, f"D{length}": obj({"a": STRING})}


def _unions_in_one_object(count: int, levels: int) -> Node:
    """An object that is in several unions of unions at once."""
    return {"Thing": {"allOf": [_unions_of_one(levels, obj({f"p{k}": STRING})) for k in _letter_names(count)]}}


def _tower(depth: int, width: int) -> Node:
    """Classes that inherit from one another, each with properties of its own."""
    found = {
        f"D{n}": obj({f"p{n}x{letters}": STRING for letters in _letter_names(width)}, allOf=[ref(n + 1)])
        for n in range(depth)
    }
    return {**found, f"D{depth}": obj({"a": STRING})}


def _around(properties: int, members: int) -> Node:
    """A union within an object of many properties, all of which each member gets."""
    tagged = [obj({"t": {"const": f"v{letters}"}}, required=["t"]) for letters in _letter_names(members)]
    return {"Wide": obj({f"p{letters}": STRING for letters in _letter_names(properties)}, oneOf=tagged)}


def _mixed(count: int) -> Node:
    """Definitions such as a real schema has: seven classes of five attributes among ten, an enumeration, two unions."""
    return {f"D{_letters(n)}": _definition(n) for n in range(count)}


def _definition(number: int) -> Node:
    before: Node = {"$ref": f"#/$defs/D{_letters(number - 1)}"} if number else STRING
    match number % 10:
        case 7:
            return {"anyOf": [before, STRING]}
        case 8:
            return {"enum": [f"v{_letters(value)}" for value in range(5)], "description": "An enumeration."}
        case 9:
            members = [obj({"t": {"const": f"v{_letters(n)}"}, "x": STRING}, required=["t"]) for n in range(3)]
            return {"oneOf": members}
    properties = {
        "id": STRING,
        "count": {"type": ["integer", "null"]},
        "tags": {"type": "array", "items": STRING},
        "next": before,
        "flag": {"type": "boolean", "default": False},
    }
    return obj(properties, required=["id"], description="A class.")


@dataclass(frozen=True)
class Case:
    """A schema, the exit code that it must have and the code of its diagnostic, and the limits of the run."""

    make: Callable[[], bytes]
    code: int
    diagnostic: str = ""
    seconds: int = 20
    memory: int = GIB
    command: tuple[str, ...] = ("build", "--out", "out", "--no-runtime")


CASES = {
    "10,000 definitions": Case(lambda: _many(10_000), 0, seconds=60, command=("methods",)),
    "300 definitions to the end": Case(lambda: _many(300), 0),
    "200 levels of schemas": Case(
        lambda: _thing(**nested(200, lambda inner: {"type": "array", "items": inner}, STRING)), 2, "too-deep"
    ),
    "200 levels of a default": Case(lambda: _thing(default=nested(200, lambda inner: [inner])), 2, "too-deep"),
    "100,000 levels": Case(lambda: b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 2, "too-deep"),
    "levels as deep as may be": Case(lambda: _thing(default=nested(90, lambda inner: [inner])), 0),
    "arrays as deep as may be": Case(
        lambda: _thing(**nested(44, lambda inner: {"type": "array", "items": inner}, STRING)), 0
    ),
    "objects as deep as may be": Case(lambda: _thing(**nested(40, lambda inner: obj({"a": inner}), STRING)), 0),
    "100 MB": Case(lambda: b'{"$defs":{},"x":"' + b"y" * 100_000_000 + b'"}', 2, "file-too-large"),
    "a cycle of one": Case(lambda: _cycle(1), 2),
    "a cycle of two": Case(lambda: _cycle(2), 2),
    "a cycle of 1,000": Case(lambda: _cycle(1000), 2),
    "an object in itself": Case(
        lambda: text_of(schema_of(D0=obj({"a": ref(0), "b": ref(1)}), D1=obj({"a": ref(0)}))), 0
    ),
    "out of the document": Case(lambda: _thing(**{"$ref": "file:///etc/passwd"}), 2),
    "out over the network": Case(lambda: _thing(**{"$ref": "http://localhost:1/schema.json#/$defs/A"}), 2),
    "out into a neighbour": Case(lambda: _thing(**{"$ref": "other.json#/$defs/A"}), 2),
    "allOf 900 deep": Case(lambda: _conjuncts(900), 2),
    "allOf 40 deep": Case(lambda: _conjuncts(40), 0),
    "a pattern that never ends": Case(lambda: _thing(**STRING, pattern="(a+)+$", default="a" * 50 + "!"), 0),
    "an integer of 4,000 digits": Case(lambda: _number("9" * 4_000), 0),
    "an integer of 5,000 digits": Case(lambda: _number("9" * 5_000), 2, "bad-json"),
    "an integer of a million digits": Case(lambda: _number("9" * 1_000_000), 2, "bad-json"),
    "400 digits before the point": Case(lambda: _number("9" * 400 + ".0"), 2, "bad-json"),
    "an exponent out of range": Case(lambda: _number("1e999999999"), 2, "bad-json"),
    "an exponent out of range below": Case(lambda: _number("1e-999999999"), 2),
    "a duplicate among 500,000 names": Case(lambda: _twice(500_000), 2, "duplicate-name"),
    "a union of one member more": Case(lambda: _wide(201), 2, "too-many-members", seconds=5),
    "a union as wide as may be": Case(lambda: _wide(200), 0),
    "an enumeration of 10,000 values": Case(lambda: _enumeration(10_000), 0),
    "an enumeration of 100,000 values": Case(lambda: _enumeration(100_000), 2, "schema-too-large", seconds=5),
    "an object of 100,000 properties": Case(lambda: _object(100_000), 2, "schema-too-large", seconds=5),
    "100,000 definitions": Case(lambda: _many(100_000), 2, "file-too-large", seconds=5),
    "an array of a million numbers": Case(lambda: _thing(default=[1] * 1_000_000), 2, "file-too-large", seconds=5),
    "a default of 200,000 values": Case(lambda: _thing(default=["x"] * 200_000), 2, "schema-too-large", seconds=5),
    "classes that inherit much": Case(lambda: text_of(schema_of(**_tower(45, 200))), 2, "schema-too-large"),
    "members that get much": Case(lambda: text_of(schema_of(**_around(1_000, 400))), 2, "schema-too-large"),
    "a description of 1 MB in many classes": Case(
        lambda: text_of(
            schema_of(
                D=obj({"a": STRING}, description="word " * 200_000),
                **{f"C{_letters(n)}": obj({}, allOf=[{"$ref": "#/$defs/D"}]) for n in range(500)},
            )
        ),
        2,
        "schema-too-large",
    ),
    "allOf 1,000 wide": Case(
        lambda: text_of(schema_of(Thing={"allOf": [obj({f"p{name}": STRING}) for name in _letter_names(1_000)]})), 0
    ),
    "unions and arrays of them, 45 levels": Case(
        lambda: text_of(schema_of(**_doubled(45))), 2, "too-many-readings", seconds=5
    ),
    "pairs of unions, 24 levels": Case(lambda: text_of(schema_of(**_paired(24))), 2, "too-many-readings", seconds=5),
    "pairs of unions, as many levels as may be": Case(lambda: text_of(schema_of(**_paired(12))), 0),
    "pairs of unions with objects between, 40 levels": Case(lambda: text_of(schema_of(**_paired_objects(40))), 0),
    "unions of nothing but null, 45 levels": Case(lambda: text_of(schema_of(**_nothing(45))), 0),
    "10,000 references to nothing": Case(
        lambda: text_of(
            schema_of(**{f"Dsome{name}": obj({"a": ref(f"other{name}")}) for name in _letter_names(10_000)})
        ),
        2,
        "ref-not-found",
    ),
    "20,000 mistakes": Case(
        lambda: text_of(schema_of(**{f"D{name}": {"pattern": 1} for name in _letter_names(20_000)})), 2, "bad-schema"
    ),
    "10,000 warnings": Case(
        lambda: text_of(schema_of(**{f"D{name}": {**STRING, "x-foo": 1} for name in _letter_names(10_000)})),
        0,
        "unknown-x-keyword",
        command=("methods",),
    ),
    "a method of 10,000 characters": Case(
        lambda: text_of(schema_of(MNotification=obj({}, **{"x-method": "m" * 10_000, "x-side": "both"}))), 0
    ),
    "definitions of 10,000 characters": Case(
        lambda: text_of(
            schema_of(**{"M" * 10_000: STRING, "N" * 10_000: {"anyOf": [ref(""), {"type": "integer"}]}, "D": STRING})
        ),
        0,
    ),
    "tags of 10,000 characters": Case(
        lambda: text_of(schema_of(U={"oneOf": [obj({"t": {"const": tag * 10_000}}, required=["t"]) for tag in "ab"]})),
        0,
    ),
    "a chain of 10,000 references": Case(
        lambda: text_of(schema_of(**{f"D{n}": ref(n + 1) for n in range(10_000)}, D10000=STRING)), 2, "too-deep"
    ),
    "unions that multiply": Case(lambda: text_of(schema_of(**_product(20, 2))), 2, "too-many-types", seconds=5),
    "unions of one member that meet": Case(
        lambda: text_of(schema_of(**_product(300, 1))), 2, "too-many-types", seconds=5
    ),
    "unions that combine, 14 levels": Case(
        lambda: text_of(schema_of(**_combined(14, "AB"))), 2, "too-many-types", seconds=5
    ),
    "unions that combine, as many levels as may be": Case(lambda: text_of(schema_of(**_combined(5, "AB"))), 0),
    "unions that combine, with names that clash": Case(
        lambda: text_of(schema_of(**_combined(14, "AA"))), 2, "too-many-types", seconds=5
    ),
    "unions that combine crosswise, 14 levels": Case(
        lambda: text_of(schema_of(**_crossed(14))), 2, "too-many-types", seconds=5
    ),
    "unions in unions in a chain of definitions": Case(
        lambda: text_of(schema_of(**_chain_of_unions(45, 20))), 2, "too-deep", seconds=5
    ),
    "unions in unions in a chain, as many as may be": Case(lambda: text_of(schema_of(**_chain_of_unions(4, 24))), 0),
    "unions in unions that meet in one object": Case(
        lambda: text_of(schema_of(**_unions_in_one_object(40, 20))), 2, "too-many-types", seconds=5
    ),
    "unions in unions that meet in one object, as many as may be": Case(
        lambda: text_of(schema_of(**_unions_in_one_object(4, 24))), 0
    ),
    "a description of 1 MB of quotes": Case(lambda: _thing(**STRING, description='"""\\\\' * 200_000), 0),
    "a description of 250,000 paragraphs": Case(lambda: _thing(**STRING, description="a\n\n" * 250_000), 0),
    "a constant of 1 MB": Case(lambda: _thing(const="x" * 1_000_000), 0),
    "a name of 1 MB": Case(lambda: text_of(schema_of(Thing=obj({"a" * 1_000_000: STRING}))), 0, seconds=60),
}


def _run(case: Case, folder: Path) -> tuple[int, str, float, int]:
    """The exit code, what was said, the seconds and the peak of the memory in bytes."""
    (folder / "schema.json").write_bytes(case.make())
    command = [sys.executable, "-m", "acpgen", case.command[0], "--schema", "schema.json", *case.command[1:]]
    start = time.monotonic()
    with (folder / "stderr").open("wb") as err, (folder / "stdout").open("wb") as out:
        process = os.posix_spawn(
            "/usr/bin/env",
            ["env", f"--chdir={folder}", f"PYTHONPATH={REPOSITORY}", *command],
            dict(os.environ),
            file_actions=[(os.POSIX_SPAWN_DUP2, err.fileno(), 2), (os.POSIX_SPAWN_DUP2, out.fileno(), 1)],
        )
        resource.prlimit(process, resource.RLIMIT_CPU, (case.seconds, case.seconds))
        resource.prlimit(process, resource.RLIMIT_AS, (case.memory, case.memory))
        watchdog = threading.Timer(60 + 20 * case.seconds, os.kill, (process, 9))
        watchdog.start()
        _, status, usage = os.wait4(process, 0)
        watchdog.cancel()
    said = (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    print(f"{time.monotonic() - start:.1f} s, CPU {usage.ru_utime:.1f} s, {usage.ru_maxrss // 1024} MiB")
    return os.waitstatus_to_exitcode(status), said, usage.ru_utime, usage.ru_maxrss * 1024


DEEP_CASES = {
    "a union of 5,000 members": Case(lambda: _wide(5_000), 2, "too-many-members"),
    "2,000 definitions to the end": Case(lambda: _many(2_000), 0, seconds=60),
    "31 MiB of brackets": Case(
        lambda: b'{"a":[' + b"[]," * (31 * 1024**2 // 3) + b"1]}", 2, "file-too-large", memory=3 * GIB
    ),
    "unions that compare in 20**12 ways": Case(lambda: text_of(schema_of(**_families(14, 20))), 0),
    "an object of 2,000 properties": Case(lambda: _object(2_000), 0),
    "a default of 20,000 values": Case(lambda: _thing(default={f"k{n}": [n] for n in range(10_000)}), 0, seconds=60),
    "a description of 10 MB": Case(lambda: _thing(**STRING, description="word " * 2_000_000), 0, seconds=60),
    "an object of 10,000 properties": Case(lambda: _object(10_000), 0, seconds=60),
    "1,000 methods": Case(
        lambda: text_of(
            schema_of(
                **{
                    f"M{name}{part}": obj({"a": STRING}, **{"x-method": f"m{name}", "x-side": "both"})
                    for name in _letter_names(1_000)
                    for part in ("Request", "Response")
                }
            )
        ),
        0,
        seconds=60,
    ),
    "a chain of 2,000 classes": Case(
        lambda: text_of(
            schema_of(
                **{f"D{n}": obj({"a": ref(n + 1)}, required=["a"]) for n in range(2_000)}, D2000=obj({"a": STRING})
            )
        ),
        0,
        seconds=60,
    ),
    "allOf 5,000 wide": Case(
        lambda: text_of(schema_of(Thing={"allOf": [obj({f"p{name}": STRING}) for name in _letter_names(5_000)]})),
        0,
        seconds=40,
    ),
    "two wide unions in one": Case(
        lambda: text_of(schema_of(DA={"anyOf": [ref("X"), ref("Y")]}, DX=_alternatives(200), DY=_alternatives(200))),
        0,
        "",
        seconds=40,
    ),
    "10,000 definitions to the end": Case(
        lambda: text_of(schema_of(**_mixed(10_000))), 0, seconds=600, memory=2 * GIB, command=("build", "--out", "out")
    ),
}
"""What takes long, minutes at the most."""


LIMITS = {
    # what is read: its levels, bytes, values and digits
    *("100,000 levels", "100 MB", "an array of a million numbers", "an integer of 5,000 digits"),
    *("400 digits before the point", "an exponent out of range below"),
    # references: out, in a circle, one after the other
    *("out over the network", "a cycle of 1,000", "a chain of 10,000 references", "allOf 900 deep"),
    # what is said, and what is made: values, copies of texts, members, readings, types
    *("20,000 mistakes", "a default of 200,000 values", "a description of 1 MB in many classes"),
    *("a union of one member more", "unions and arrays of them, 45 levels", "unions that multiply"),
    *("unions that combine crosswise, 14 levels", "unions in unions in a chain of definitions"),
    "unions in unions that meet in one object",
}
"""Each is refused by a limit, or on a way to one, that no other case reaches first."""
LARGEST = {
    *("300 definitions to the end", "allOf 1,000 wide", "a union as wide as may be", "a pattern that never ends"),
    # nothing in these is nested in the same way: each is a recursion of its own
    *("levels as deep as may be", "arrays as deep as may be", "objects as deep as may be"),
    *("pairs of unions, as many levels as may be", "pairs of unions with objects between, 40 levels"),
    "unions that combine, as many levels as may be",
    # texts that become names, and one that is escaped
    *("definitions of 10,000 characters", "a description of 1 MB of quotes"),
}
"""What is accepted, just below a limit or where there is none."""


@pytest.mark.parametrize("case", deep_except(LIMITS | LARGEST, {**CASES, **DEEP_CASES}))
def test_size(case: Case, tmp_path: Path) -> None:
    code, said, _, _ = _run(case, tmp_path)
    assert "Traceback" not in said
    assert "MemoryError" not in said
    assert code == case.code, said[:2000]
    assert f"[{case.diagnostic}]" in said if case.diagnostic else True
    assert len(said) < 20_000
    assert (tmp_path / "out").exists() is (code == 0 and "--out" in case.command)
