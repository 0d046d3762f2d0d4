"""Branches that change the same package, merged with git: a build resolves the conflicts in its own files."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command_line import Outcome, run_acpgen, tree
from tests.needs import need

FIRST, SECOND = "auth-state", "logout"


class Checkout:
    """A git repository with a package. `writes_attributes`: git does not merge the package, as `init` says."""

    def __init__(self, path: Path, *, writes_attributes: bool) -> None:
        need("git")
        self.path, self.package = path, path / "src" / "acp"
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        if writes_attributes:
            (path / ".gitattributes").write_text("src/acp/** linguist-generated -merge\n")
        self.branch([])

    def git(self, *words: str) -> subprocess.CompletedProcess[str]:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *identity, *words], cwd=self.path, capture_output=True, text=True, check=False, timeout=60
        )

    def configure(self, extensions: list[str]) -> None:
        text = f'[tool.acpgen]\nout = "src/acp"\nrelease = "0.10.8"\nextensions = {extensions}\n'.replace("'", '"')
        (self.path / "pyproject.toml").write_text(text)

    def build(self) -> Outcome:
        return run_acpgen("build", cwd=self.path)

    def branch(self, extensions: list[str]) -> None:
        """Commit a package with these extensions."""
        self.configure(extensions)
        ran = self.build()
        assert ran.code == 0, ran.stderr
        self.git("add", "--all")
        assert self.git("commit", "--quiet", "--message", "x").returncode == 0

    def merge(self) -> list[str]:
        """Merge two branches, each of which has added an extension. Returns the files in conflict."""
        self.git("switch", "--quiet", "--create", "other")
        self.branch([FIRST])
        self.git("switch", "--quiet", "main")
        self.branch([SECOND])
        assert self.git("merge", "other").returncode == 1
        return self.git("diff", "--name-only", "--diff-filter=U").stdout.splitlines()


@pytest.mark.parametrize("writes_attributes", [False, True])
def test_a_build_resolves_the_conflicts(tmp_path: Path, *, writes_attributes: bool) -> None:
    checkout = Checkout(tmp_path / "merged", writes_attributes=writes_attributes)
    conflicts = checkout.merge()
    assert {"pyproject.toml", "src/acp/acpgen.lock", "src/acp/types.py"} <= set(conflicts)
    refused = checkout.build()
    assert (refused.code, "[bad-toml]" in refused.stderr) == (2, True)
    assert "hint: resolve the conflict of the merge in this file, and build again" in refused.stderr

    checkout.configure([FIRST, SECOND])
    assert run_acpgen("check", cwd=checkout.path).code == 1
    ran = checkout.build()
    assert ran.code == 0, ran.stderr
    assert ("[merge-resolved]" in ran.stderr) is not writes_attributes
    assert "warning" not in ran.stderr
    assert run_acpgen("check", cwd=checkout.path).code == 0
    fresh = tmp_path / "fresh" / "acp"
    words = ("--release", "0.10.8", "--extension", FIRST, "--extension", SECOND)
    assert run_acpgen("build", "--no-config", "--out", fresh, *words, cwd=tmp_path).code == 0
    assert tree(checkout.package) == tree(fresh)


@pytest.mark.parametrize(
    ("ignored", "is_noted"), [("src/acp/\n", True), ("acp\n", True), ("*.lock\n", False), ("", False)]
)
def test_a_package_that_git_ignores(tmp_path: Path, ignored: str, *, is_noted: bool) -> None:
    checkout = Checkout(tmp_path / "merged", writes_attributes=False)
    checkout.git("rm", "-r", "--quiet", "src")
    (checkout.path / ".gitignore").write_text(ignored)
    for program in ("core.fsmonitor", "core.hooksPath", "core.pager"):
        checkout.git("config", program, str(checkout.path / "no-such-program"))
    ran = checkout.build()
    assert ran.code == 0, ran.stderr
    assert ("git ignores src/acp: the package is in no commit [output-ignored]" in ran.stderr) is is_noted
    assert "output-ignored" not in checkout.build().stderr  # once


def test_a_package_that_git_has_is_not_ignored(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "merged", writes_attributes=False)
    (checkout.path / ".gitignore").write_text("src/\n")
    checkout.configure([SECOND])
    assert "output-ignored" not in checkout.build().stderr


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = Checkout(tmp_path / "merged", writes_attributes=False)
    (checkout.path / ".gitignore").write_text("src/\n")
    shutil.rmtree(checkout.package)
    monkeypatch.setenv("PATH", str(tmp_path))
    ran = checkout.build()
    assert (ran.code, "note" in ran.stderr) == (0, False)


def test_a_file_that_begins_with_a_conflict(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "merged", writes_attributes=False)
    types = checkout.package / "types.py"
    text = types.read_text()
    types.write_text(f"<<<<<<< HEAD\n{text}=======\n{text}x = 1\n>>>>>>> other\n")
    ran = checkout.build()
    assert ran.code == 0, ran.stderr
    assert types.read_text() == text
    types.write_text("<<<<<<< HEAD\nmine\n=======\n>>>>>>> other\n")
    assert "[foreign-file]" in checkout.build().stderr
