"""To import a hostile package does what it does to import a clean one: define things."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from acpgen.config import SchemaChoice
from tests import test_hostile as corpus
from tests.hostile import auditing, subject
from tests.hostile.texts import EFFECT, PARTS
from tests.hostile.vocabulary import strangers
from tests.support import DEEP, package_files, schema_of, write_package

pytestmark = pytest.mark.full

Events = frozenset[tuple[str, str, str]]


@dataclass(frozen=True)
class Pair:
    """The files of a hostile package, and those of its twin: the same schema, but for harmless texts."""

    hostile: Mapping[str, str]
    harmless: Mapping[str, str]
    twin: str


def _schemas() -> Iterator[tuple[subject.Node, subject.Node]]:
    """The corpus, and the small schema with each hostile part in all positions at once; both with twins."""
    for make in {**corpus.TEXT_POSITIONS, **corpus.NAME_POSITIONS}.values():
        yield schema_of(**make(corpus.TEXTS)), schema_of(**make(corpus.HARMLESS))
    for part in PARTS:
        at = dict.fromkeys(subject.TEXTS, part) | {name: f"{name[0].upper()}x{part}" for name in subject.NAMES}
        yield subject.schema(at), subject.schema(subject.HARMLESS)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Pair]:
    """Every hostile package with its twin, by its name."""
    folder = tmp_path_factory.mktemp("schemas")

    def build(schema: subject.Node) -> Mapping[str, str]:
        text = json.dumps(schema)
        path = folder / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        path.write_text(text, encoding="utf-8")
        return package_files(SchemaChoice(schema=path))

    twins: list[Mapping[str, str]] = []
    found: dict[str, Pair] = {}
    for number, (schema, harmless) in enumerate(islice(_schemas(), 0, None, 1 if DEEP else 5)):
        twin = build(harmless)
        if twin not in twins:
            twins.append(twin)
        found[f"hostile{number}"] = Pair(build(schema), twin, f"twin{twins.index(twin)}")
    return found


def _events(folder: Path, *packages: str) -> dict[str, Events]:
    ran = subprocess.run(
        [sys.executable, "-I", auditing.__file__, str(folder), *packages],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    return {name: frozenset(map(tuple, events)) for name, events in zip(packages, lines, strict=True)}


def test_an_import_has_no_effect_that_a_clean_one_lacks(pairs: Mapping[str, Pair], tmp_path: Path) -> None:
    for name in ("warm", "clean"):
        write_package(package_files(SchemaChoice()), tmp_path / name)
    twins = {pair.twin: pair.harmless for pair in pairs.values()}
    for name, files in {**twins, **{name: pair.hostile for name, pair in pairs.items()}}.items():
        write_package(files, tmp_path / name)
    # the first import brings the standard library in; what comes after is what a package itself does
    events = _events(tmp_path, "warm", "clean", *twins, *pairs)
    clean = events["clean"]
    assert "PACKAGE/types.py" in {about for event, about, _ in clean if event == "open"}
    for name in twins:  # a class without a docstring has `dataclass` make one, which parses a signature
        assert {event for event, _, _ in events[name] - clean} <= {"compile"}
    strays = {name: sorted(events[name] - clean - events[pair.twin]) for name, pair in pairs.items()}
    assert {name: found for name, found in strays.items() if found} == {}


@pytest.mark.parametrize(
    ("code", "event"),
    [
        (EFFECT, "os.putenv"),
        ("open(__file__)", "open"),
        ("exec('1')", "exec"),
        ("import wave", "import"),
        ("__import__('socket').socket().close()", "socket.__new__"),
        ("__import__('subprocess').run(['true'])", "subprocess.Popen"),
    ],
)
def test_the_audit_sees_what_it_is_for(code: str, event: str, tmp_path: Path) -> None:
    files = dict(package_files(SchemaChoice()))
    for name in ("warm", "clean", "dirty"):
        write_package(
            files | ({"errors.py": f"{files['errors.py']}\n{code}\n"} if name == "dirty" else {}), tmp_path / name
        )
    events = _events(tmp_path, "warm", "clean", "dirty")
    assert event in {found for found, _, _ in events["dirty"] - events["clean"]}


def test_the_code_has_no_words_of_its_own(pairs: Mapping[str, Pair]) -> None:
    allowed = {twin: strangers(files) for twin, files in {pair.twin: pair.harmless for pair in pairs.values()}.items()}
    # a schema without an error object, the tests of a `not`, a field that hides a builtin
    assert set().union(*allowed.values()) <= {"errors.py", "codec.py", "_other_direction.py", "types.py"}
    for name, pair in pairs.items():
        for path, words in strangers(pair.hostile).items():
            assert set(words) <= set(allowed[pair.twin].get(path, ())), (name, path)


def test_strange_words_are_seen() -> None:
    files = dict(package_files(SchemaChoice()))
    for path, code, word in (
        ("types.py", "print('x')", "call of print"),
        ("codec.py", "del T", "Delete"),
        ("errors.py", "@x\nclass Y: ...", "call of x"),
        ("methods.py", "z = lambda: 0", "Lambda"),
    ):
        assert word in strangers({**files, path: f"{files[path]}\n{code}\n"})[path]
