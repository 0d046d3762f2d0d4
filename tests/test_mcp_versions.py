"""The helpers for MCP with the oldest version of `mcp` that they say they work with, and with one before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import lacks, need
from tests.support import REPOSITORY

pytestmark = pytest.mark.full

OLDEST, TOO_OLD = "2.2.0", "2.1.1"


def with_version(version: str, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python with another version of `mcp` before the one that is installed."""
    for library in ("mcp", "pip"):
        need(library)
    wanted = (f"mcp=={version}", f"mcp-types=={version}")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *wanted]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False, timeout=300)
    if installed.returncode:
        lacks("registry", f"mcp {version}: {installed.stderr[-300:]}")
    environment = {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"}
    return subprocess.run(
        [sys.executable, *command], cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False
    )


def test_the_oldest(tmp_path: Path) -> None:
    """The quick tests of the helpers pass with it."""
    modules = [f"tests/test_mcp_{name}.py" for name in ("over_acp", "at_urls")]
    ran = with_version(OLDEST, tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not full", *modules)
    assert ran.returncode == 0, ran.stdout[-5000:]
    assert " passed" in ran.stdout


def test_one_that_is_too_old(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(
        (REPOSITORY / "schema/helpers/mcp/mcp_library.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    ran = with_version(TOO_OLD, tmp_path, "-c", "import library")
    assert ran.returncode == 1
    assert f"need the package mcp, 2.2 or later and below 3: {TOO_OLD} is installed" in ran.stderr
