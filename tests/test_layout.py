"""The layout of a package: what follows from the schema at the top, the runtime below; and the way there from 0.2."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from acpgen.output import LOCK_NAME
from acpgen.text import digest
from tests.command_line import run_acpgen, tree
from tests.golden_cases import built
from tests.support import REPOSITORY

TOP = {
    "v1_agent": {"agent.py"},
    "v1_client": {"client.py", "known.py"},
    "v1_proxy": {"asgi_proxy.py", "bridge.py", "known.py", "network.py", "proxy.py"},
}
EACH = {"__init__.py", "_other_direction.py", "codec.py", "errors.py", "methods.py", "types.py", "py.typed", LOCK_NAME}
FOLDERS = {"_runtime", "helpers"}


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name != "__pycache__"}


@pytest.mark.parametrize("name", TOP)
def test_at_the_top_is_what_follows_from_the_schema(name: str) -> None:
    assert entries(built(name)) == EACH | TOP[name] | FOLDERS
    assert name != "v1_agent" or len(EACH | TOP[name]) <= 9


def test_a_package_of_two_versions_has_the_runtime_once() -> None:
    folder = built("v1_v2_both_remote")
    top = {"__init__.py", "asgi.py", "errors.py", "methods.py", "py.typed", "remote.py", LOCK_NAME}
    assert entries(folder) == top | {"_runtime", "v1", "v2"}
    of_version = {"__init__.py", "_other_direction.py", "agent.py", "client.py", "codec.py", "known.py", "methods.py"}
    assert entries(folder / "v1") == of_version | {"types.py", "helpers"}
    assert entries(folder / "v2") == of_version | {"types.py", "helpers"}


# --- Programs that were written for 0.2 ------------------------------------------------------------------------------

FACES = {"asgi", "asgi_proxy", "bridge", "errors", "helpers", "known", "methods", "network", "remote", "types"}
"""The modules of a package that programs import by their paths; `v1` and `v2` have some of them, too."""
PROGRAMS = [
    *REPOSITORY.glob("examples/**/*.py"),
    *REPOSITORY.glob("docs/*.md"),
    *REPOSITORY.glob("benchmarks/agents/*.py"),
    *REPOSITORY.glob("templates/project/**/*.py*"),
    *REPOSITORY.glob("schema/projects/**/*.py*"),
    *(REPOSITORY / "tests" / each for each in ("runtime_agents", "spawn", "network", "comparison")),
    REPOSITORY / "README.md",
]
"""What the tests run as users would: the examples, the documentation, new projects, agents."""
_IMPORT = re.compile(r"^\s*(?:from (\w*(?:acp|demo)\w*)\.([\w.]+) import |import (\w*(?:acp|demo)\w*)\.([\w.]+))", re.M)


def test_programs_import_by_path_what_has_stayed_there() -> None:
    files = [path for each in PROGRAMS for path in (each.rglob("*.py") if each.is_dir() else [each])]
    named = set[str]()
    for path in files:
        for package, module, other, submodule in _IMPORT.findall(path.read_text(encoding="utf-8")):
            if not re.fullmatch(r"acp|acpgen", package or other):  # the official SDK, and acpgen itself
                named.add(re.sub(r"^v\d\.?", "", module or submodule).partition(".")[0])
    assert {"asgi", "helpers", "network", "remote"} <= named
    assert named - {""} <= FACES


def test_what_programs_import_by_path_is_there() -> None:
    found = {path.stem for name in (*TOP, "v1_v2_both_remote") for path in built(name).iterdir()}
    assert found >= FACES


# --- From the layout of 0.2 ------------------------------------------------------------------------------------------

FORMER = {
    "_other_direction.py": "on_demand/codec.py",
    **{f"_runtime/{name}.py": f"on_demand/{name}.py" for name in ("mistakes", "pipes", "places", "sent")},
    "_runtime/pydantic/properties.py": "on_demand/properties.py",
    "_runtime/trace/trace.py": "on_demand/trace.py",
    "_runtime/__init__.py": "on_demand/__init__.py",
}


def former_place(path: str) -> str:
    """Where 0.2 had a file: all in one folder, but for what was imported on demand."""
    return FORMER.get(path, path.rpartition("/")[2] if path.startswith("_runtime/") else path)


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """A package as 0.2 has written it, but for the texts of its files."""
    out = tmp_path / "acp"
    lock = json.loads((built("v1_agent") / LOCK_NAME).read_bytes())
    files = {former_place(path): data for path, data in tree(built("v1_agent")).items() if path != LOCK_NAME}
    lock |= {"acpgen_sha256": "0" * 64, "names": [], "files": {path: digest(data) for path, data in files.items()}}
    for path, data in {**files, LOCK_NAME: json.dumps(lock, indent=2).encode()}.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    return out


def test_an_upgrade_from_the_former_layout_removes_its_files(former: Path) -> None:
    (former / "on_demand" / "mine.py").write_text("mine = 1\n")
    ran = run_acpgen("check", "--out", former, "--role", "agent", "--format", "json", cwd=former.parent)
    found = {(each["flaw"], each["path"]) for each in json.loads(ran.stdout)[0]["findings"]}
    assert found >= {("stale", "dispatch.py"), ("stale", "on_demand/codec.py"), ("extra", "on_demand/mine.py")}
    assert {flaw for flaw, _ in found} == {"stale", "extra"}

    ran = run_acpgen("build", "--out", former, "--role", "agent", cwd=former.parent)
    assert (ran.code, "warning" in ran.stderr) == (0, False), ran.stderr
    assert tree(former) == {**tree(built("v1_agent")), "on_demand/mine.py": b"mine = 1\n"}
    (former / "on_demand" / "mine.py").unlink()
    (former / "on_demand").rmdir()
    assert run_acpgen("check", "--out", former, "--role", "agent", cwd=former.parent).code == 0


def test_packages_of_both_layouts_can_be_compared(former: Path) -> None:
    for one, other in ((former, built("v1_agent")), (built("v1_agent"), former)):
        ran = run_acpgen("diff", one, other, "--format", "json", cwd=former.parent)
        assert (ran.code, json.loads(ran.stdout)["findings"]) == (0, []), ran.stderr
