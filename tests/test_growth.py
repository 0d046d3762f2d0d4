"""The work of each command grows with its input: each part of a schema, or each message, takes as much as the others.

Work is counted in lines of acpgen that run, those of its templates and dataclasses included; a loop in one line counts
each time. What libraries do is not counted.

`anyOf` without tags is not here: each pair of members may have values in common, and each such pair is reported. So
their number is limited.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from markupsafe import Markup

from acpgen.config import SchemaChoice
from acpgen.diff.compare import compare
from acpgen.ir.model import Options
from acpgen.pipeline import compile_protocol
from acpgen.reference import html
from acpgen.sources.inputs import load
from tests.command_line import run_acpgen
from tests.diff_schemas import TEXT, message, ref, thing
from tests.needs import need
from tests.support import REPOSITORY, Packages, schema_of

Json = Any
Names = Sequence[str]
OURS = (str(REPOSITORY / "acpgen"), str(REPOSITORY / "templates"), "<string>", "<template>")
COUNTS = (20, 40, 60)
AT_MOST = 1.1
"""The work for the last 20 parts over that for the 20 before them: what all share does not count."""


class Work:
    """The lines that have run."""

    def __init__(self) -> None:
        self.lines = 0

    def call(self, frame: FrameType, _event: str, _argument: object) -> Any:
        """Follow the lines of a function of ours."""
        return self.line if frame.f_code.co_filename.startswith(OURS) else None

    def line(self, _frame: FrameType, _event: str, _argument: object) -> Any:
        """Count a line, or the end of a function."""
        self.lines += 1
        return self.line


@contextmanager
def counted() -> Iterator[Work]:
    """Count the work of the block."""
    work, before = Work(), sys.gettrace()
    sys.settrace(work.call)
    try:
        yield work
    finally:
        sys.settrace(before)


def letters(number: int) -> str:
    """A number as a part of a name, all of one length."""
    return "".join(chr(ord("a") + int(digit)) for digit in f"{number:03}")


def assert_proportional(work: Callable[[int], int], at_most: float = AT_MOST) -> None:
    """The same amount of input takes the same amount of work, wherever it stands."""
    one, two, three = map(work, COUNTS)
    assert 0 < three - two < at_most * (two - one), (one, two, three)


# --- Schemas with many parts of a kind -------------------------------------------------------------------------------


def asking(content: Json, **definitions: Json) -> Json:
    """One method whose parameters have `content`."""
    return {"AskRequest": message("ask", thing(x=content)), "AskResponse": message("ask", thing()), **definitions}


def methods(names: Names) -> Json:
    parts = ("Request", "Response")
    return {f"M{name}{part}": message(f"m/{name}", thing(a=TEXT), "both") for name in names for part in parts}


def definitions(names: Names) -> Json:
    nodes = {f"Many{name}": thing(a=TEXT, **{f"p{name}": TEXT}) for name in names}
    return asking(thing(**{f"p{name}": ref(f"Many{name}") for name in names}), **nodes)


def members(names: Names) -> Json:
    nodes = {f"T{n}": thing(("t",), t={**TEXT, "const": f"v{n}"}, a=TEXT) for n in names}
    return asking(ref("Many"), Many={"oneOf": [ref(name) for name in nodes]}, **nodes)


def properties(names: Names) -> Json:
    return asking(ref("Many"), Many=thing(**{f"p{name}": {**TEXT, "description": "A text."} for name in names}))


def values(names: Names) -> Json:
    return asking(ref("Many"), Many={"oneOf": [{**TEXT, "const": f"v{n}", "description": "It."} for n in names]})


SHAPES: Mapping[str, Callable[[Names], Json]] = {
    each.__name__: each for each in (methods, definitions, members, properties, values)
}
ONE = ("--no-config", "--schema", "schema.json")
TWO = ("--no-config", "--protocol", "1", "--protocol", "2", "--schema", "1=schema.json", "--schema", "2=schema.json")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "build": ("build", *ONE, "--role", "both", "--full", "--out", "out"),
    "build, proxy": ("build", *ONE, "--role", "proxy", "--full", "--out", "out"),
    "build, pydantic": ("build", *ONE, "--flavour", "pydantic", "--full", "--out", "out"),
    "build, typed dicts": ("build", *ONE, "--flavour", "typeddict", "--full", "--out", "out"),
    "check": ("check", *ONE, "--role", "both", "--out", "out"),
    "diff": ("diff", "schema.json", "other.json"),
    "diff, the same": ("diff", "schema.json", "schema.json"),
    "docs": ("docs", *ONE, "--out", "out"),
    "docs of two": ("docs", *TWO, "--out", "out"),
    "extensions": ("extensions", *ONE),
    "methods": ("methods", *ONE),
    "methods, proxy": ("methods", *ONE, "--role", "proxy"),
    "show": ("show", *ONE, "AskRequest"),
}
QUICK = {("build", "methods"), ("methods, proxy", "methods"), ("docs", "methods")}
QUICK |= {(command, shape) for command in ("check", "diff", "show") for shape in SHAPES}
OWN: Mapping[str, tuple[str, ...]] = {
    "build": tuple(SHAPES),  # templates for each
    "build, proxy": ("methods",),  # the other shapes are types, which are those of any package
    "build, pydantic": ("members", "properties", "values"),  # it has no methods, and no types but these
    "check": ("properties",),  # a build that is compared
    "diff": tuple(SHAPES),  # rules for each
    "docs": ("methods", "members", "properties", "values"),  # a table for each
    "extensions": ("definitions",),  # it goes by names
    "methods": ("methods",),
    "methods, proxy": ("methods",),
    "show": ("methods", "members"),  # who uses a type, and what it may be
}
"""The shapes for which a command has code that it does not share with another command or shape."""


def cases() -> Iterator[Any]:
    """Each command with each shape."""
    for command in COMMANDS:
        for shape in SHAPES:
            is_own = shape in OWN.get(command, ())
            marks = pytest.mark.deep if not is_own else () if (command, shape) in QUICK else pytest.mark.full
            yield pytest.param(command, shape, marks=marks, id=f"{command}-{shape}")


def work_of(arguments: Sequence[str], folder: Path) -> int:
    """The lines of a run; of the second, when caches are full."""
    run_acpgen(*arguments, cwd=folder)
    with counted() as work:
        ran = run_acpgen(*arguments, cwd=folder)
    assert ran.code in (0, 1), ran.stderr
    return work.lines


@pytest.mark.parametrize(("command", "shape"), list(cases()))
def test_parts_of_a_schema_take_the_same_work_each(command: str, shape: str, tmp_path: Path) -> None:
    def work(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        names = [letters(number) for number in range(count)]
        for file, prefix in (("schema.json", ""), ("other.json", "x")):
            content = SHAPES[shape]([prefix + name for name in names])
            (folder / file).write_text(json.dumps(schema_of(**{**asking(TEXT), **content})))
        if command == "check":
            run_acpgen(*COMMANDS["build"], cwd=folder)
        return work_of(COMMANDS[command], folder)

    assert_proportional(work)


# --- Other input -----------------------------------------------------------------------------------------------------


def fragment(name: str) -> Json:
    """An extension with a method."""
    parts = {f"F{name}{part}": message(f"f/{name}", thing(a=TEXT)) for part in ("Request", "Response")}
    head = {"fragment": 1, "id": f"f-{name}", "revision": "2026-01-01", "title": "F", "status": "draft"}
    return {**head, "protocols": [1], "description": "It.", "rfd": "https://example.org/f", "$defs": parts}


@pytest.mark.parametrize("command", ["build", "methods"])
def test_fragments_take_the_same_work_each(command: str, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps(schema_of(**asking(TEXT))))

    def work(count: int) -> int:
        options = []
        for name in map(letters, range(count)):
            (tmp_path / f"{name}.json").write_text(json.dumps(fragment(name)))
            options += ["--extension", f"{name}.json"]
        return work_of((*COMMANDS[command], *options), tmp_path)

    assert_proportional(work)


def exchange(number: int) -> Iterator[Json]:
    """A prompt, an update and the answer."""
    text = {"type": "text", "text": "x"}
    update = {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": text}}
    yield {"id": number, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [text]}}
    yield {"method": "session/update", "params": update}
    yield {"id": number, "result": {"stopReason": "end_turn"}}


@pytest.mark.parametrize("more", [(), ("--html", "page.html"), ("--format", "json")], ids=" ".join)
def test_recorded_messages_take_the_same_work_each(more: tuple[str, ...], tmp_path: Path) -> None:
    def work(count: int) -> int:
        messages = [{"jsonrpc": "2.0", **each} for number in range(count) for each in exchange(number)]
        (tmp_path / "a.jsonl").write_text("".join(json.dumps(each) + "\n" for each in messages))
        return work_of(("trace", "a.jsonl", "--no-config", *more), tmp_path)

    assert_proportional(work)


def test_blocks_of_an_rfd_take_the_same_work_each(tmp_path: Path) -> None:
    need("tree_sitter")

    def work(count: int) -> int:
        blocks = (json.dumps({"$defs": {f"T{letters(number)}": thing(a=TEXT)}}) for number in range(count))
        (tmp_path / "rfd.md").write_text("# A proposal\n\n" + "".join(f"```json\n{each}\n```\n\n" for each in blocks))
        return work_of(("rfd", "extract", "rfd.md", "--no-config"), tmp_path)

    assert_proportional(work)


@pytest.mark.parametrize("own", [False, True], ids=["each with another name", "each with another name and property"])
def test_renamed_members_without_tags_take_the_same_work_each(packages: Packages, own: bool) -> None:
    def schema(side: str, names: Names) -> Path:
        nodes = {side + n: thing((own_name := side + n if own else "t",), **{own_name: TEXT}) for n in names}
        union = {"anyOf": [{**ref(name), "title": name} for name in nodes]}
        return packages.write(schema_of(**asking(ref("Many"), Many=union, **nodes)))

    def work(count: int) -> int:
        names = [letters(number) for number in range(count)]
        inputs = (load(SchemaChoice(schema=schema(side, names))) for side in ("Old", "New"))
        old, new = (compile_protocol(each, Options()).model for each in inputs)
        with counted() as found:
            compare(old, new)
        return found.lines

    assert_proportional(work, 1.15)  # each member looks at what each other one requires


def test_list_items_take_the_same_characters_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that joins texts is one line, however long they are."""
    made = 0

    class Counted(Markup):
        def __new__(cls, base: object = "") -> Counted:
            nonlocal made
            made += len(str(base))
            return super().__new__(cls, base)

    def characters(items: int) -> int:
        before = made
        html.prose("- an item with `code`\n" * items, lambda _: None)
        return made - before

    monkeypatch.setattr(html, "Markup", Counted)
    assert_proportional(characters)
