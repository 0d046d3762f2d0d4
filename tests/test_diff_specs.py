"""`acpgen diff`: the forms of OLD and NEW."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from acpgen.schema.bundled import find_release
from tests.command_line import build_package
from tests.diff_running import LARGER, SMALL, data, diff, refused, rules, write
from tests.diff_schemas import TEXT, holding, thing
from tests.project_support import negotiating_schema
from tests.support import REPOSITORY

pytestmark = pytest.mark.full


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the schemas `old.json` and `new.json`."""
    write(tmp_path / "old.json", SMALL)
    write(tmp_path / "new.json", LARGER)
    return tmp_path


# --- What OLD and NEW may be ----------------------------------------------------------------------------------------


def test_two_files(home: Path) -> None:
    assert rules("old.json", "new.json", cwd=home) == {"field-added-optional"}
    assert rules(home / "new.json", home / "old.json", cwd=REPOSITORY) == {"field-removed-optional"}


def test_bundled_releases(home: Path) -> None:
    found = data("v1/0.10.8", "v1/2026-11-02", cwd=home)
    assert (found["old"], found["new"], found["notes"]) == ("v1/0.10.8", "v1/2026-11-02", [])


def test_a_bundled_release_of_another_protocol(home: Path) -> None:
    assert rules("v2/2026-11-02", "v2/2026-11-02", cwd=home) == set()
    assert "protocol-changed" in rules("v1/2026-11-02", "v2/2026-11-02", cwd=home)


def test_the_file_of_a_bundled_release_is_that_release(home: Path) -> None:
    copied = home / "copied.json"
    shutil.copyfile(find_release(2).schema, copied)
    found = data("v2/2026-11-02", copied, cwd=home)
    assert (found["findings"], found["notes"]) == ([], [])


def test_a_file_is_of_the_protocol_of_the_other_side(home: Path) -> None:
    """The upstream files do not state their protocol."""
    assert "protocol-changed" not in rules("v2/2026-11-02", "new.json", cwd=home)
    assert "protocol-changed" in rules("v2/2026-11-02", "new.json", "--protocol", "1", cwd=home)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of a bundled schema with extensions."""
    folder = tmp_path_factory.mktemp("built") / "acp"
    return build_package(
        folder, "--release", "0.10.8", "--extension", "logout", "--extension", "auth-state@2026-03-07", "--no-runtime"
    )


@pytest.mark.parametrize("name", ["", "acpgen.lock"])
def test_a_package_is_what_it_was_built_from(package: Path, name: str) -> None:
    found = data("v1/0.10.8", package / name, "--old-extension", "logout", cwd=package.parent)
    added = {each["method"] for each in found["findings"] if each["rule"] == "method-added"}
    assert added == {"getAuthState"}
    assert "logout, 2026-02-02" in found["new"]
    same = ("--old-extension", "logout", "--old-extension", "auth-state@2026-03-07")
    assert data("v1/0.10.8", package / name, *same, cwd=package.parent)["findings"] == []


def test_the_extensions_of_a_package_are_those_of_the_other_side_too(package: Path) -> None:
    for specs in ((package, "v1/0.10.8"), ("v1/0.10.8", package)):
        assert data(*specs, cwd=package.parent)["findings"] == []
    ran = diff(package, "v1/2026-11-02", "--format", "json", cwd=package.parent)
    found = json.loads(ran.stdout)
    assert "auth-state, 2026-03-07" in found["new"]
    assert "method-removed" not in {each["rule"] for each in found["findings"]}
    assert "note: the extension logout@2026-02-02 of the package is part of v1/2026-11-02 now" in ran.stderr
    only = data(package, "v1/0.10.8", "--new-extension", "logout", cwd=package.parent)["findings"]
    assert {each["method"] for each in only if each["rule"] == "method-removed"} == {"getAuthState"}


def test_an_extension_that_does_not_fit_the_other_side_is_left_out(home: Path) -> None:
    fragment = {"fragment": 1, "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    change = {"Thing": {"properties": {"mine": TEXT}}}
    write(home / "mine.json", {**fragment, "id": "mine", "changes": change})
    write(home / "more.json", {**fragment, "id": "more", "requires": ["mine"], "$defs": {"More": thing(a=TEXT)}})
    write(home / "other.json", {**fragment, "id": "other", "$defs": {"Other": thing(a=TEXT)}})
    names = ("mine.json", "more.json", "other.json")
    write(home / "base.json", {**SMALL, "$defs": {**SMALL["$defs"], "Thing": thing()}})
    build_package(home / "acp", "--schema", "base.json", *(f"--extension=./{name}" for name in names), "--no-runtime")
    sources = [f"--source={name}" for name in ("base.json", *names)]
    ran = diff("acp", "old.json", *sources, cwd=home)
    assert ran.code == 0
    assert "warning: the extension mine@1 of the package is left out of old.json: mine, 1 changes" in ran.stderr
    assert "more@1 of the package is left out of old.json: it needs an extension that is left out" in ran.stderr
    assert "Other" not in ran.stdout


def test_an_extension_that_both_have_makes_no_difference(package: Path) -> None:
    assert rules(package, package, "--extension", "logout", cwd=package.parent) == set()
    assert rules("v1/0.10.8", "v1/0.10.8", "--extension", "logout", cwd=package.parent) == set()
    assert "method-added" in rules("v1/0.10.8", "v1/0.10.8", "--new-extension", "logout", cwd=package.parent)


def test_the_options_of_a_package_hold_for_the_other_side_too(home: Path) -> None:
    schema = write(
        home / "schema.json", holding({"oneOf": [thing(("k",), k={"const": "a"}), thing(("k",), k={"const": "b"})]})
    )
    build_package(home / "acp", "--schema", schema, "--open", "--keep-unknown", "--no-runtime")
    assert rules("acp", "schema.json", "--source", "schema.json", cwd=home) == set()


def test_a_package_of_a_file_needs_that_file(home: Path) -> None:
    fragment = {"fragment": 1, "id": "acme", "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    write(home / "acme.json", {**fragment, "$defs": {"Acme": thing(a=TEXT)}})
    build_package(home / "acp", "--schema", home / "old.json", "--extension", "./acme.json", "--no-runtime")
    assert "[fragment-as-schema]" in refused("acme.json", "new.json", cwd=home)
    for name in ("old.json", "acme.json"):
        sources = [other for each in ("old.json", "acme.json") if each != name for other in ("--source", each)]
        said = refused("acp", "new.json", *sources, cwd=home)
        assert sha256((home / name).read_bytes()).hexdigest() in said
        assert repr(Path(name).stem if name == "acme.json" else name) in said
        assert "[manifest-input]" in said
        assert "--source" in said
    found = rules("acp", "new.json", "--source", "old.json", "--source", "acme.json", cwd=home)
    assert found == {"field-added-optional"}
    text = '[tool.acpgen]\nout = "acp"\nschema = "old.json"\nextensions = ["./acme.json"]\n'
    (home / "pyproject.toml").write_text(text, encoding="utf-8")
    try:
        assert rules("acp", "new.json", cwd=home) == found  # the configuration names the files
        (home / "old.json").rename(home / "kept.json")
        assert rules("v1/0.10.8", "v1/0.10.8", cwd=home) == set()  # which nobody needs here
        assert "[manifest-input]" in refused("acp", "new.json", cwd=home)
        (home / "kept.json").rename(home / "old.json")
    finally:
        (home / "pyproject.toml").unlink()


def test_another_text_under_the_name_of_a_bundled_schema(package: Path, tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    lock["schema"]["sha256"] = "0" * 64
    lock["acpgen"] = "0.0.7"
    write(tmp_path / "acpgen.lock", lock)
    said = refused(tmp_path, "v1/0.10.8", cwd=tmp_path)
    assert "bundles another file under this name" in said
    assert "use acpgen 0.0.7" in said


@pytest.mark.parametrize("name", ["../../secret.json", "/etc/passwd", "x.json", "a@../b"])
def test_a_manifest_opens_no_files(package: Path, name: str, tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    lock["extensions"] = [{"name": name, "sha256": "0" * 64}]
    write(tmp_path / "acpgen.lock", lock)
    assert "[manifest-input]" in refused(tmp_path, "v1/0.10.8", cwd=tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [{"protocol": "1"}, {"schema": None}, {"schema": {"name": 1, "sha256": ""}}, {"extensions": 5}, {"options": []}],
    ids=str,
)
def test_a_manifest_that_says_nonsense(package: Path, spoil: Mapping[str, Any], tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    write(tmp_path / "acpgen.lock", {**lock, **spoil})
    assert "[manifest-broken]" in refused(tmp_path, "v1/0.10.8", cwd=tmp_path)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("missing.json", "neither a file nor a bundled release"),
        ("v1/9.9", "no release '9.9' of protocol 1"),
        ("v7/0.10.8", "no schema of protocol 7"),
        (".", "has no acpgen.lock"),
        ("x" * 5000, "neither a file nor a bundled release"),
        ("", "neither a file nor a bundled release"),
    ],
)
def test_specs_that_lead_nowhere(spec: str, expected: str, home: Path) -> None:
    assert expected in refused(spec, "new.json", cwd=home)


def test_a_release_without_its_protocol_is_hinted_at(home: Path) -> None:
    assert "v1/0.10.8" in refused("0.10.8", "new.json", cwd=home)


# --- Packages of several protocols ----------------------------------------------------------------------------------

BOTH = ("--protocol", "1", "--protocol", "2", "--no-runtime")


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with packages of one protocol and of both, of bundled schemas and of files."""
    home = tmp_path_factory.mktemp("several")
    write(home / "old.json", negotiating_schema("Kept", "Gone"))
    write(home / "new.json", negotiating_schema("Kept"))
    build_package(home / "one", "--release", "0.10.8", "--no-runtime")
    build_package(home / "both", *BOTH, "--release", "1=0.10.8")
    build_package(home / "newer", *BOTH, "--release", "1=0.10.8", "--extension", "logout")
    build_package(home / "old", *BOTH, "--schema", "1=old.json", "--schema", "2=old.json")
    build_package(home / "new", *BOTH, "--schema", "1=old.json", "--schema", "2=new.json")
    return home


def without_protocol(package: Path, number: int, folder: Path, *, instead: int) -> Path:
    """The manifest of a package that has another protocol in the place of `number`."""
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    for each in lock["protocols"]:
        each["protocol"] = instead if each["protocol"] == number else each["protocol"]
    write(folder / "acpgen.lock", lock)
    return folder


@pytest.mark.parametrize(("single", "protocol"), [("v1/0.10.8", 1), ("v2/2026-11-02", 2), ("old.json", 1)])
def test_a_single_schema_is_compared_with_its_protocol(several: Path, single: str, protocol: int) -> None:
    for specs in ((single, "both"), ("both", single)):
        found = data(*specs, cwd=several)
        assert "protocols" not in found
        assert "protocol-changed" not in {each["rule"] for each in found["findings"]}
        assert f"(ACP v{protocol}, " in found["new" if specs[0] == single else "old"]


def test_the_protocol_of_a_file_can_be_chosen(several: Path) -> None:
    assert "(ACP v2, " in data("both", "old.json", "--protocol", "2", cwd=several)["old"]


def test_a_protocol_that_the_package_does_not_have(several: Path) -> None:
    for specs in (("both", "old.json"), ("old.json", "both")):
        said = refused(*specs, "--protocol", "3", cwd=several)
        assert "error: both has the protocols 1 and 2, and not 3 [no-such-protocol]" in said


def test_each_protocol_is_compared_with_its_counterpart(several: Path) -> None:
    found = data("old", "new", "--source", "old.json", "--source", "new.json", cwd=several)
    assert [*found] == ["protocols"]
    first, second = found["protocols"]
    assert [*first] == ["protocol", "format", "old", "new", "notes", "summary", "findings"]
    assert (first["protocol"], first["findings"]) == (1, [])
    assert (second["protocol"], {each["rule"] for each in second["findings"]}) == (2, {"type-removed"})


@pytest.mark.parametrize(("number", "other"), [(1, 2), (2, 1)])
def test_findings_of_all_protocols_fail(several: Path, number: int, other: int, tmp_path: Path) -> None:
    changed = without_protocol(several / "both", number, tmp_path, instead=7)
    ran = diff("both", changed, "--format", "json", "--fail-on", "source", "--fail-on", "any", cwd=several)
    assert ran.code == 1
    assert "1 finding break code (--fail-on source)\n2 findings in all" in ran.stderr
    found = {each["protocol"]: each for each in json.loads(ran.stdout)["protocols"]}
    assert [*found] == sorted((number, other, 7))
    assert found[other]["findings"] == []
    (gone,), (new,) = found[number]["findings"], found[7]["findings"]
    assert (gone["rule"], gone["message"]) == ("protocol-removed", f"protocol {number}: only in OLD")
    assert (gone["source"]["verdict"], gone["wire"]) == ("breaks", [])
    assert (new["rule"], new["message"]) == ("protocol-added", "protocol 7: only in NEW")
    assert (new["source"]["verdict"], new["wire"]) == ("ok", [])


def test_packages_without_a_common_protocol(several: Path, tmp_path: Path) -> None:
    other = without_protocol(several / "both", 1, tmp_path / "a", instead=7)
    other = without_protocol(other, 2, tmp_path / "b", instead=8)
    assert [each["protocol"] for each in data("both", other, cwd=several)["protocols"]] == [1, 2, 7, 8]


def test_the_names_of_a_package_move_into_a_subpackage(several: Path) -> None:
    for old, new, rule in (("one", "both", "subpackage-added"), ("both", "one", "subpackage-removed")):
        (found,) = data(old, new, cwd=several)["findings"]
        assert (found["rule"], found["source"]) == (rule, {"verdict": "breaks", "uses": ["import"]})
    assert (
        "the names of protocol 1 are now in the subpackage v1 [subpackage-added]"
        in diff("one", "both", cwd=several).stdout
    )
    assert rules("v1/0.10.8", "both", cwd=several) == set()  # a schema has no subpackages


def test_an_extension_for_one_of_the_protocols(several: Path) -> None:
    found = data("both", "both", "--new-extension", "logout", cwd=several)["protocols"]
    assert [{"method-added"} <= {each["rule"] for each in half["findings"]} for half in found] == [True, False]
    assert [half["new"].count("logout") for half in data("both", "newer", cwd=several)["protocols"]] == [1, 0]
    assert "[unknown-extension]" in refused("both", "both", "--extension", "nothing", cwd=several)
    assert "[file-unreadable]" in refused("both", "both", "--extension", "./nothing.json", cwd=several)


@pytest.mark.parametrize("spoil", [[], {}, 5, "1", [5], [{"protocol": 1}], {"protocol": 1}, None], ids=str)
def test_a_manifest_with_protocols_that_are_none(several: Path, spoil: object, tmp_path: Path) -> None:
    lock = json.loads((several / "both" / "acpgen.lock").read_text(encoding="utf-8"))
    write(tmp_path / "acpgen.lock", {**lock, "protocols": spoil})
    assert "[manifest-broken]" in refused(tmp_path, "v1/0.10.8", cwd=tmp_path)


# --- git ------------------------------------------------------------------------------------------------------------


def git(*arguments: str, cwd: Path) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository with a schema and a package in its first commit, and others in the second."""
    home = tmp_path_factory.mktemp("repository")
    with patch.dict(os.environ, {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}):
        schema = write(home / "sub" / "schema.json", SMALL)
        write(home / "new.json", LARGER)
        build_package(home / "acp", "--schema", schema, "--no-runtime")
        git("init", "-q", cwd=home)
        git("add", ".", cwd=home)
        git("commit", "-qm", "first", cwd=home)
        git("tag", "first", cwd=home)
        write(schema, LARGER)
        build_package(home / "acp", "--schema", schema, "--no-runtime")
        git("commit", "-qam", "second", cwd=home)
        yield home


def test_files_in_git(repository: Path) -> None:
    assert rules("first:sub/schema.json", "HEAD:sub/schema.json", cwd=repository) == {"field-added-optional"}
    assert rules("HEAD~1:./schema.json", "schema.json", cwd=repository / "sub") == {"field-added-optional"}


@pytest.mark.parametrize("old", ["first:acp", "first:acp/", "first:acp/acpgen.lock"])
def test_packages_in_git(old: str, repository: Path) -> None:
    sources = ("--source", "first:sub/schema.json", "--source", "sub/schema.json")
    assert rules(old, "acp", *sources, cwd=repository) == {"field-added-optional"}
    assert "--source REV:PATH" in refused(old, "acp", cwd=repository)
    (repository / "pyproject.toml").write_text('[tool.acpgen]\nout = "acp"\nschema = "sub/schema.json"\n')
    try:  # the file that is configured, as it was then and as it is now
        assert rules(old, "acp", cwd=repository) == {"field-added-optional"}
    finally:
        (repository / "pyproject.toml").unlink()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nowhere:old.json", "unknown revision 'nowhere'"),
        ("HEAD:missing.json", "has no 'missing.json'"),
        ("HEAD:sub", "has no 'sub/acpgen.lock'"),
        (":old.json", "does not start with a revision"),
        ("--output=x:old.json", "does not start with a revision"),
        ("HEAD:old\x1b.json", "does not start with a revision"),
        ("HEAD:../../etc/passwd", "has no '../../etc/passwd'"),
    ],
)
def test_what_git_does_not_have(spec: str, expected: str, repository: Path) -> None:
    assert expected in refused("--", spec, "new.json", cwd=repository)
    assert not (repository / "x").exists()


def test_no_repository_at_all(home: Path) -> None:
    with patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": str(home.parent)}):
        assert "[no-repository]" in refused("HEAD:old.json", "new.json", cwd=home)


def test_no_git_at_all(home: Path) -> None:
    with patch.dict(os.environ, {"PATH": str(home)}):
        assert "[no-git]" in refused("HEAD:old.json", "new.json", cwd=home)


def test_a_file_with_a_colon_is_a_file(home: Path) -> None:
    write(home / "a:b.json", SMALL)
    assert rules("a:b.json", "new.json", cwd=home) == {"field-added-optional"}
