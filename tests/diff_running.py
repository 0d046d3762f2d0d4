"""Running `acpgen diff` on schemas that tests write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.command_line import Outcome, run_acpgen
from tests.diff_schemas import TEXT, asking, thing, with_x

SMALL, LARGER = asking(thing()), with_x(TEXT)


def write(path: Path, schema: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema), encoding="utf-8")
    return path


def diff(*arguments: str | Path, cwd: Path) -> Outcome:
    return run_acpgen("diff", *arguments, cwd=cwd)


def data(*arguments: str | Path, cwd: Path) -> Any:
    ran = diff(*arguments, "--format", "json", cwd=cwd)
    assert ran.code == 0, ran.stderr
    return json.loads(ran.stdout)


def rules(*arguments: str | Path, cwd: Path) -> set[str]:
    return {finding["rule"] for finding in data(*arguments, cwd=cwd)["findings"]}


def refused(*arguments: str | Path, cwd: Path) -> str:
    """The error for invalid arguments."""
    ran = diff(*arguments, cwd=cwd)
    assert (ran.code, ran.stdout) == (2, "")
    assert "\x1b" not in ran.stderr
    return ran.stderr
