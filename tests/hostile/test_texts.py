"""Hostile texts in every position: a diagnostic, or a package of known code that has the texts as they were."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from acpgen.config import SchemaChoice
from acpgen.diagnostics import InputError
from acpgen.emit.format import format_files
from acpgen.emit.package import emit
from acpgen.roles import RoleChoice
from tests.command_line import run_acpgen
from tests.hostile import subject
from tests.hostile.texts import SURROGATES, texts
from tests.hostile.vocabulary import strangers
from tests.support import DEEP, deep_except, import_folder, model_of, write_package

pytestmark = pytest.mark.full

HOSTILE = settings(
    max_examples=500 if DEEP else 10,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.generate,),  # to shrink takes minutes, and says little where each text has its place
    suppress_health_check=list(HealthCheck),
)
POSITIONS = {name: name for name in (*subject.TEXTS, *subject.NAMES, *subject.FRAGMENT, *subject.ADDED)}
WITH_A_FORM = {*subject.NAMES, *subject.FRAGMENT, *subject.ADDED} - {"title of the fragment", "fragment description"}
"""Where a text may be refused: other positions take what they take among others, in all positions at once."""
READ = {"description", "property", "title of the fragment", "added definition"}
"""A value and a name in a schema, and in a fragment: half of a pair is refused before it is known where it stands."""
_NUMBER = iter(range(10**9))


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="hostile-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _files(sources: SchemaChoice) -> Mapping[str, str] | None:
    """The files of the package without the runtime, into which no text goes; None where the input is refused."""
    try:
        model, _ = model_of(sources)
    except InputError:
        return None
    return emit([model], RoleChoice.BOTH.roles, runtime=False).files


@contextmanager
def _imported(files: Mapping[str, str], folder: Path) -> Iterator[ModuleType]:
    """The package from its files, which is forgotten afterwards."""
    home = folder / f"hostile_{next(_NUMBER)}"
    write_package(files, home)
    try:
        yield import_folder(home)
        assert "ACPGEN_HOSTILE_TEXT_WAS_RUN" not in os.environ
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == home.name]:
            del sys.modules[name]


def _check(at: Mapping[str, str], folder: Path, *, name: str = "schema.json") -> bool:
    """Whether the texts give a package, which then is as it should be."""
    schema, fragment = subject.write(folder, at, name=name)
    sources = SchemaChoice(schema=schema, extensions=(str(fragment),))
    files = _files(sources)
    if files is None:
        _check_refusal(schema, fragment)
        return False
    assert strangers(files) == {}
    with _imported(format_files(files) if DEEP else files, folder) as package:
        subject.check_texts(package, at)
    return True


def _check_refusal(schema: Path, fragment: Path) -> None:
    ran = run_acpgen("methods", "--schema", schema, "--extension", fragment, cwd=schema.parent)
    assert ran.code == 2, ran.stderr
    assert ran.stdout == ""
    assert all(char.isprintable() or char == "\n" for char in ran.stderr.replace(str(schema), ""))


_PREFIXES = {"definition": "D", "added definition": "F", "member": "m", "added tag": "other"}


@st.composite
def embedded(draw: st.DrawFn) -> dict[str, str]:
    """A text for every position; those that become names begin with a letter that one can be made of."""
    at = dict(subject.HARMLESS)
    for position in subject.TEXTS:
        at[position] = draw(texts())
    for position in subject.NAMES:
        at[position] = _PREFIXES.get(position, f"{position[0]}x") + draw(texts())
    for position in subject.ADDED:
        at[position] = _PREFIXES.get(position, f"new{position[-1]}") + draw(texts())
    at["capability"] = at["capability"].replace(".", "")  # which parts the names of a path
    at["title of the fragment"] = "T " + draw(texts())
    at["fragment description"] = draw(texts())
    return at


def test_texts_in_all_positions_at_once() -> None:
    verdicts: list[bool] = []

    @HOSTILE
    @given(embedded())
    def check(at: dict[str, str]) -> None:
        with _folder() as folder:
            verdicts.append(_check(at, folder))

    check()
    assert sum(verdicts) > len(verdicts) / 2
    print(f"{len(verdicts)} schemas, {sum(verdicts)} packages")


def test_harmless_texts_make_a_package(tmp_path: Path) -> None:
    assert _check(subject.HARMLESS, tmp_path)


@pytest.mark.parametrize("position", deep_except(WITH_A_FORM, POSITIONS))
def test_a_text_alone(position: str) -> None:
    """Nothing but the text, in one position: half of what becomes a name can become none."""
    verdicts: list[bool] = []

    @settings(HOSTILE, max_examples=40 if DEEP else 6)
    @given(texts())
    def check(text: str) -> None:
        with _folder() as folder:
            verdicts.append(_check({**subject.HARMLESS, position: text}, folder))

    check()
    print(f"{len(verdicts)} schemas, {sum(verdicts)} packages")
    if position in subject.TEXTS:
        assert all(verdicts), position


@pytest.mark.parametrize("position", deep_except(READ, POSITIONS))
def test_half_a_surrogate_pair_is_refused(position: str, tmp_path: Path) -> None:
    for text in SURROGATES:
        assert not _check({**subject.HARMLESS, position: f"a{text}"}, tmp_path)


@settings(HOSTILE, max_examples=60 if DEEP else 6)
@given(texts() | st.sampled_from(SURROGATES))
def test_the_name_of_a_file(text: str) -> None:
    name = text.replace("/", "").replace("\0", "")[:40] + ".json"
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        name = os.fsdecode(b"\xff\xfe.json")  # how Python shows a name that is no UTF-8
    with _folder() as folder:
        _check(subject.HARMLESS, folder, name=name)
