"""A name without a revision is the newest revision that fits the schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acpgen.schema.bundled import Release, bundled_fragments, list_releases, load_facts, load_release
from acpgen.schema.fitting import FitResult, choose_fragment, fit
from tests.command_line import run_acpgen


def extension_methods(*arguments: str, cwd: Path) -> list[str]:
    """The origins of the methods that are not those of the base."""
    ran = run_acpgen("methods", "--role", "both", "--format", "json", *arguments, cwd=cwd)
    assert ran.code == 0, ran.stderr
    return sorted({row["origin"] for row in json.loads(ran.stdout) if not row["origin"].startswith("ACP")})


@pytest.mark.parametrize(
    ("release", "revision"), [("0.10.8", "2026-03-07"), ("2026-11-02", "2026-11-02")], ids=["old", "newest"]
)
def test_the_schema_decides_which_revision_is_taken(tmp_path: Path, release: str, revision: str) -> None:
    options = ("--release", release, "--extension", "auth-state")
    assert extension_methods(*options, cwd=tmp_path) == [f"auth-state, {revision}"]


def test_so_it_does_for_a_file_of_ones_own(tmp_path: Path) -> None:
    old = next(release for release in list_releases() if release.name == "0.10.8")
    (tmp_path / "own.json").write_bytes(old.schema.read_bytes())
    options = ("--schema", "own.json", "--extension", "auth-state")
    assert extension_methods(*options, cwd=tmp_path) == ["auth-state, 2026-03-07"]


def test_so_it_does_for_each_side_of_a_comparison(tmp_path: Path) -> None:
    ran = run_acpgen("diff", "v1/0.10.8", "v1/2026-11-02", "--extension", "auth-state", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    assert "auth-state, 2026-03-07" in ran.stdout
    assert "auth-state, 2026-11-02" in ran.stdout


@pytest.mark.parametrize("command", [("build", "--out", "acp"), ("methods",), ("show", "Plan")])
def test_where_none_fits_the_error_says_what_each_fits(tmp_path: Path, command: tuple[str, ...]) -> None:
    ran = run_acpgen(*command, "--release", "0.10.8", "--extension", "session-archive", cwd=tmp_path)
    assert ran.code == 2
    assert "error: no revision of the extension 'session-archive' fits ACP v1, 0.10.8" in ran.stderr
    assert "session-archive@2026-11-02 fits v1/2026-11-02" in ran.stderr


def test_an_extension_that_the_schema_has_now_is_to_be_left_out(tmp_path: Path) -> None:
    ran = run_acpgen("build", "--out", "acp", "--extension", "logout", cwd=tmp_path)
    assert ran.code == 2
    message = "error: the extension 'logout' is part of ACP v1, 2026-11-02 now, in another form [extension-landed]"
    assert ran.stderr == f"{message}\n  hint: leave it out\n"


def test_a_revision_that_is_named_is_taken_as_it_is(tmp_path: Path) -> None:
    ran = run_acpgen("methods", "--release", "0.10.8", "--extension", "auth-state@2026-11-02", cwd=tmp_path)
    assert ran.code == 2
    assert "no-fitting-revision" not in ran.stderr


@pytest.mark.parametrize("release", list_releases(), ids=lambda release: release.label)
def test_the_newest_that_applies_is_taken(release: Release) -> None:
    base, facts = load_release(release), load_facts(release)
    fragments = bundled_fragments(release.protocol)
    newest = {}
    for each in fragments:
        if fit(base, each, protocol=release.protocol, facts=facts, others=fragments).verdict is FitResult.APPLIES:
            newest[each.id] = each.spec
    assert newest
    for name, spec in newest.items():
        assert choose_fragment(name, base, protocol=release.protocol, facts=facts).spec == spec
