"""The fragment format, and the fragments that come with acpgen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acpgen.diagnostics import InputError
from acpgen.schema import bundled
from acpgen.schema.data import data_folder
from acpgen.schema.document import Document, parse_document
from acpgen.schema.fragment import load_fragment
from acpgen.schema.gates import Gate
from tests.support import bundled_fragment

MINIMAL: dict[str, Any] = {
    "fragment": 1,
    "id": "wave",
    "revision": "2026-05-01",
    "title": "Waving",
    "status": "draft",
    "protocols": [1],
}


IDS_OF_2 = sorted({found.id for found in bundled.bundled_fragments(2)})


def document(root: dict[str, Any], *, label: str = "wave.json") -> Document:
    return parse_document(json.dumps(root, indent=2).encode(), label=label, origin=label)


def problems(root: dict[str, Any]) -> list[tuple[str | None, str]]:
    with pytest.raises(InputError) as caught:
        load_fragment(document(root))
    assert all(found.code == "fragment-format" and found.location for found in caught.value.diagnostics)
    return [(found.pointer, found.message) for found in caught.value.diagnostics]


def test_a_minimal_fragment_has_defaults_for_the_rest() -> None:
    fragment = load_fragment(document(MINIMAL))
    assert (fragment.id, fragment.revision, fragment.spec) == ("wave", "2026-05-01", "wave@2026-05-01")
    assert fragment.origin == fragment.document.origin == "wave, 2026-05-01"
    assert (fragment.rfd, fragment.requires) == (None, ())
    assert (fragment.definitions, fragment.changes, fragment.gates) == ({}, {}, {})


def test_a_full_fragment_is_read_as_it_stands() -> None:
    root = MINIMAL | {
        "rfd": "https://example.org/wave",
        "requires": ["hand", "arm@1.0-rc.1"],
        "$defs": {"WaveRequest": {"type": "object"}, "Anything": True},
        "changes": {
            "Gesture": {"members": [{"const": "wave"}], "properties": {"speed": {}}, "required": ["speed"]},
            "Old": {"optional": True, "replace": {"expect": {"type": "string"}, "with": {"type": "integer"}}},
        },
        "gates": {"InitializeResponse": {"wave": ["a.wave", "b"], "bow": "c"}},
    }
    fragment = load_fragment(document(root))
    assert fragment.requires == ("hand", "arm@1.0-rc.1")
    assert fragment.changes["Gesture"].members == ({"const": "wave"},)
    assert fragment.changes["Gesture"].required == ("speed",)
    assert fragment.changes["Gesture"].replacement is None
    assert [fragment.changes[name].optional for name in ("Gesture", "Old")] == [False, True]
    replacement = fragment.changes["Old"].replacement
    assert replacement is not None
    assert replacement.result == {"type": "integer"}
    assert fragment.gates["wave"] == Gate("InitializeResponse", (("a", "wave"), ("b",)))
    assert fragment.gates["bow"] == Gate("InitializeResponse", (("c",),))


def test_all_problems_are_found_at_once_and_placed() -> None:
    root = MINIMAL | {"id": "Wave", "status": "drafty", "defs": {}, "protocols": []}
    del root["title"]
    found = dict(problems(root))
    assert set(found) == {"", "/id", "/status", "/defs", "/protocols"}
    assert found[""] == "`title` is missing"


def test_a_problem_has_a_line_and_a_hint() -> None:
    with pytest.raises(InputError) as caught:
        load_fragment(document(MINIMAL | {"changes": {"X": {"proprties": {}}}}, label="x/wave.json"))
    (found,) = caught.value.diagnostics
    assert str(found.location) == "x/wave.json:12:20"
    assert found.pointer == "/changes/X/proprties"
    assert found.hint == "did you mean 'properties'?"


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"fragment": 2}, "/fragment"),
        ({"id": "wave\n"}, "/id"),
        ({"id": "-wave"}, "/id"),
        ({"revision": "2026/05"}, "/revision"),
        ({"revision": "1\n"}, "/revision"),
        ({"rfd": "javascript:alert(1)"}, "/rfd"),
        ({"rfd": "https://example.org/\n# x"}, "/rfd"),
        ({"protocols": [True]}, "/protocols/0"),
        ({"requires": ["wave"]}, "/requires/0"),
        ({"$defs": {"X": 3}}, "/$defs/X"),
        ({"changes": {"X": {}}}, "/changes/X"),
        ({"changes": {"X": {"optional": True}}}, "/changes/X"),
        ({"changes": {"X": {"optional": 1, "required": ["y"]}}}, "/changes/X/optional"),
        ({"changes": {"X": {"replace": {"expect": {}}}}}, "/changes/X/replace"),
        ({"gates": {"R": {"m": "a..b"}}}, "/gates/R/m"),
        ({"gates": {"R": {"m": []}}}, "/gates/R/m"),
        ({"gates": {"R": {"m": "a"}, "S": {"m": "a"}}}, "/gates/S/m"),
    ],
)
def test_what_is_not_a_fragment_is_refused(change: dict[str, Any], pointer: str) -> None:
    assert [found for found, _ in problems(MINIMAL | change)] == [pointer]


def test_messages_stay_short_whatever_the_file_holds() -> None:
    ((_, message),) = problems(MINIMAL | {"id": "x" * 10_000 + "!"})
    assert len(message) < 200


def test_the_fragment_format_is_itself_a_json_schema() -> None:
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

    Draft202012Validator.check_schema(json.loads((data_folder() / "schema/fragment.schema.json").read_text()))


def test_every_bundled_fragment_is_what_its_file_name_says() -> None:
    paths = sorted((data_folder() / "schema/extensions").glob("v*/*.json"))
    assert paths
    for path in paths:
        fragment = load_fragment(path)
        assert path.name == f"{fragment.spec}.json"
        assert fragment.protocols == (int(path.parent.name[1:]),)


@pytest.mark.parametrize(
    ("example", "pointer"),
    [
        ({"method": "wave"}, "/examples/0"),
        ({"method": "wave", "params": {}, "result": {}}, "/examples/0"),
        ({"params": {}, "result": {}}, "/examples/0"),
        ({"method": "wave", "parms": {}}, "/examples/0/parms"),
        ({"method": 1, "params": {}}, "/examples/0/method"),
    ],
)
def test_an_example_is_a_method_with_params_or_a_result(example: dict[str, Any], pointer: str) -> None:
    assert load_fragment(document({**MINIMAL, "examples": [{"method": "wave", "result": None}]})).id == "wave"
    assert [at for at, _ in problems({**MINIMAL, "examples": [example]})] == [pointer]


def test_a_fragment_without_a_revision_is_the_newest_one() -> None:
    assert bundled_fragment("auth-state", 1).revision == "2026-11-02"
    assert bundled_fragment("auth-state@2026-03-07", 1).revision == "2026-03-07"
    assert [found.spec for found in bundled.bundled_fragments(1)][2:4] == [
        "auth-state@2026-03-07",
        "auth-state@2026-11-02",
    ]


@pytest.mark.parametrize(
    ("spec", "protocol", "hint"),
    [
        ("logot", 1, "did you mean 'logout'?"),
        ("auth-state@2020-01-01", 1, "there are: 2026-03-07, 2026-11-02"),
        ("zzz", 2, f"there are: {', '.join(IDS_OF_2)}; a file is given with its path"),
    ],
)
def test_an_unknown_extension_is_answered_with_what_there_is(spec: str, protocol: int, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        bundled.locate_fragment(spec, protocol)
    assert [found.hint for found in caught.value.diagnostics] == [hint]


def test_an_extension_of_another_protocol_is_named_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "data_folder", lambda: tmp_path)
    for protocol in (1, 2):
        (tmp_path / f"schema/v{protocol}/1.0").mkdir(parents=True)
        (tmp_path / f"schema/v{protocol}/1.0/schema.json").write_text("{}")
    (tmp_path / "schema/extensions/v1").mkdir(parents=True)
    (tmp_path / "schema/extensions/v1/wave@2026-05-01.json").write_text(json.dumps(MINIMAL))
    with pytest.raises(InputError) as caught:
        bundled.locate_fragment("wave", 2)
    assert [found.hint for found in caught.value.diagnostics] == ["it exists for protocol 1"]


def test_a_path_is_read_as_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(MINIMAL))
    fragment = bundled_fragment(str(path), 1)
    assert (fragment.id, fragment.document.label) == ("wave", str(path))
    with pytest.raises(InputError) as caught:
        bundled_fragment("no-such-file.json", 1)
    assert [found.code for found in caught.value.diagnostics] == ["file-unreadable"]


def test_releases_are_sorted_by_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "data_folder", lambda: tmp_path)
    for name in ("2026-11-02", "0.10.8", "0.9.1", "2.0.0", "2.0.0-alpha.10", "2.0.0-alpha.3", "2026-01-31"):
        (tmp_path / "schema/v1" / name).mkdir(parents=True)
        (tmp_path / "schema/v1" / name / "schema.json").write_text('{"$defs": {}}')
    (tmp_path / "schema/v1/draft").mkdir()
    names = [release.name for release in bundled.list_releases()]
    assert names == ["0.9.1", "0.10.8", "2.0.0-alpha.3", "2.0.0-alpha.10", "2.0.0", "2026-01-31", "2026-11-02"]
    newest = bundled.find_release(1)
    assert (newest.name, newest.origin, newest.label) == (
        "2026-11-02",
        "ACP v1, 2026-11-02",
        "schema/v1/2026-11-02/schema.json",
    )
    assert bundled.load_release(newest).label == newest.label
    assert bundled.load_facts(newest).gates == {}


def test_an_unknown_release_is_answered_with_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "data_folder", lambda: tmp_path)
    (tmp_path / "schema/v1/0.1.0").mkdir(parents=True)
    (tmp_path / "schema/v1/0.1.0/schema.json").write_text("{}")
    with pytest.raises(InputError) as caught:
        bundled.find_release(1, "0.2.0")
    assert [found.hint for found in caught.value.diagnostics] == ["there are: 0.1.0"]
    with pytest.raises(InputError) as caught:
        bundled.find_release(3)
    assert [found.hint for found in caught.value.diagnostics] == ["there are: 1"]
