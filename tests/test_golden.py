"""Golden trees: the packages in `generated/`, and the cases in `tests/golden/`, are what acpgen makes."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from acpgen.output import LOCK_NAME
from acpgen.text import MARKER
from tests.command_line import build_package, tree
from tests.golden_cases import (
    CASES,
    GENERATED,
    WHOLE,
    Case,
    builds,
    cases,
    check_golden,
    committed,
    differences,
    false_copies,
    is_copy,
    replace_tree,
)
from tests.needs import need
from tests.support import deep_except, foreign_imports, import_folder

PACKAGES = sorted(builds())
ALL_CASES = cases()
CASES_WITH_PACKAGE = [case for case in ALL_CASES if case.expects_package]


@pytest.fixture
def accept(request: pytest.FixtureRequest) -> bool:
    """Whether the user asked for what is found to become what is wanted."""
    return bool(request.config.getoption("--accept-goldens"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.every_python) if name == WHOLE else name for name in PACKAGES]
)
def test_generated_packages_are_what_acpgen_builds(name: str, tmp_path: Path, *, accept: bool) -> None:
    package = tree(build_package(tmp_path / name, *builds()[name]))
    found = committed(package, whole=name == WHOLE)
    if accept:
        replace_tree(GENERATED / name, found)
    check_golden(tree(GENERATED / name), found, test=f"tests/test_golden.py::{_here(name)}")
    _check_package(package, tmp_path / f"vendored_{name}")


@pytest.mark.parametrize("case", ALL_CASES, ids=lambda case: case.name)
def test_cases(case: Case, tmp_path: Path, *, accept: bool) -> None:
    if case.name.startswith("rfd_"):
        need("tree_sitter")
    ran = case.run(tmp_path)
    assert ran.code == case.code, ran.stderr
    found = case.found(ran, tmp_path)
    if accept:
        case.accept(found)
    check_golden(case.wanted(), found, test=f"tests/test_golden.py::test_cases[{case.name}]")
    if case.expects_package:
        _check_package(tree(tmp_path / "out"), tmp_path / f"case_{case.name}")


def _here(name: str) -> str:
    return f"{test_generated_packages_are_what_acpgen_builds.__name__}[{name}]"


# --- What holds for every package ------------------------------------------------------------------------------------


def _check_package(package: dict[str, bytes], folder: Path) -> None:
    """Copies are those of their sources, the manifest is true, and the package can be imported by another name."""
    assert false_copies(package) == []
    assert _false_hashes(dict(package)) == []
    for path, data in package.items():
        if path.endswith(".py"):
            assert data.startswith(MARKER.encode()), path
            assert _foreign_libraries(data) <= LIBRARIES, path
    _check_import(package, folder)


LIBRARIES = {"fastmcp", "httpx2", "mcp", "websockets"}
"""What modules of a package may import besides the standard library."""


@cache
def _foreign_libraries(data: bytes) -> set[str]:
    return {name.partition(".")[0] for name in foreign_imports(ast.parse(data))}


def _check_import(files: Mapping[str, bytes], folder: Path) -> None:
    replace_tree(folder, files)
    before = set(sys.modules)
    package = import_folder(folder)
    assert sorted(package.__all__) == package.__all__
    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
    assert loaded - sys.stdlib_module_names == {folder.name}


def _false_hashes(files: dict[str, bytes]) -> list[str]:
    """The files that the manifest does not list, or lists with another hash."""
    recorded = json.loads(files.pop(LOCK_NAME))["files"]
    actual = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    return sorted(path for path in recorded.keys() | actual.keys() if recorded.get(path) != actual.get(path))


def test_false_hashes_are_found() -> None:
    lock = json.dumps({"files": {"a.py": "0", "gone.py": "0"}}).encode()
    assert _false_hashes({LOCK_NAME: lock, "a.py": b"x", "new.py": b""}) == ["a.py", "gone.py", "new.py"]


def test_false_copies_are_found() -> None:
    package = tree(GENERATED / WHOLE)
    assert false_copies(package) == []
    copies = [path for path in package if is_copy(path)]
    assert {path.rpartition("/")[0] for path in copies} == {"helpers", "_runtime"}
    changed = {path: package[path] + b"# more\n" for path in copies}
    assert false_copies({**package, **changed}) == copies


FOLDERS = {
    **{case.name: CASES / case.name / "expected" for case in CASES_WITH_PACKAGE},
    **{name: GENERATED / name for name in PACKAGES},
}
STATEMENTS = {"v1_v2_both_remote", *(case.name for case in CASES_WITH_PACKAGE)}
"""Each case has an idiom that no other has; one package has each module, and texts long enough to be wrapped."""


@pytest.mark.full
@pytest.mark.parametrize("home", deep_except(STATEMENTS, FOLDERS))
def test_modules_are_stable_under_black(home: Path) -> None:
    """But for copies, which the session `lint` checks at their source."""
    files = {path: data.decode() for path, data in tree(home).items() if path.endswith(".py") and not is_copy(path)}
    assert files
    assert [path for path, text in files.items() if _formatted(text) != text] == []


@cache
def _formatted(text: str) -> str:
    import black

    mode = black.Mode(target_versions={black.TargetVersion.PY310}, line_length=120)
    return black.format_str(text, mode=mode)


def test_every_folder_in_generated_is_built_by_a_test() -> None:
    folders = {path.name for path in GENERATED.iterdir() if path.is_dir()}
    assert folders == set(PACKAGES)
    assert {path.name for path in CASES.iterdir() if path.is_dir()} == {case.name for case in ALL_CASES}


# --- The comparison itself -------------------------------------------------------------------------------------------


def test_equal_trees_have_no_differences() -> None:
    assert differences({"a": b"1\n"}, {"a": b"1\n"}) == []


def test_changed_missing_and_extra_files_are_reported() -> None:
    report = differences(
        {"same": b"", "changed": b"1\n2\n", "gone": b"x"}, {"same": b"", "changed": b"1\n3\n", "new": b""}
    )
    assert report[:3] == ["missing: gone", "extra: new", "changed: changed"]
    assert {"-2", "+3", "-x"} <= set(report)


def test_an_empty_file_that_is_missing_or_extra_counts() -> None:
    assert differences({"py.typed": b""}, {}) == ["missing: py.typed"]
    assert differences({}, {"py.typed": b""}) == ["extra: py.typed"]


def test_bytes_that_no_diff_shows_count() -> None:
    assert "changed: a" in differences({"a": b"1\n"}, {"a": b"1\r\n"})
    assert "changed: a" in differences({"a": b"1\n"}, {"a": b"1"})


def test_a_long_difference_is_cut() -> None:
    report = differences({"a": b""}, {"a": b"x\n" * 1000})
    assert len(report) < 100
    assert report[-1].endswith("more lines")


def test_a_failure_names_the_command_that_accepts_it() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"pytest 'tests/x.py::t\[1\]' --accept-goldens"):
        check_golden({"a": b"1"}, {"a": b"2"}, test="tests/x.py::t[1]")


def test_accepting_makes_a_tree_exactly_what_was_found(tmp_path: Path) -> None:
    replace_tree(tmp_path, {"a/b.py": b"1", "c": b"2"})
    kept = (tmp_path / "c").stat().st_mtime_ns
    replace_tree(tmp_path, {"a/d.py": b"3", "c": b"2"})
    assert tree(tmp_path) == {"a/d.py": b"3", "c": b"2"}
    assert (tmp_path / "c").stat().st_mtime_ns == kept


def test_a_case_keeps_its_input_when_it_is_accepted(tmp_path: Path) -> None:
    original = next(case for case in ALL_CASES if case.expects_package)
    shutil.copytree(original.folder, tmp_path / "case")
    case = Case(folder=tmp_path / "case", arguments=original.arguments, code=0)
    case.accept({"stderr.txt": b"new\n", "expected/types.py": b"new\n"})
    assert {"cmd.json", "stderr.txt", "expected/types.py"} <= tree(case.folder).keys()
    assert tree(case.folder / "input") == tree(original.folder / "input")
    assert tree(case.folder / "expected") == {"types.py": b"new\n"}
    assert case.wanted() == {"stderr.txt": b"new\n", "expected/types.py": b"new\n"}
