"""What `acpgen check` notices of what a commit does to a package: the lines of docs/security.md about commits."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import py_compile
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import tree
from tests.project_support import Project, ping_schema
from tests.vendoring import hook

ONE = 'out = "acp"\nschema = "schema.json"\nruntime = false\n'
EVIL = 'print("evil")'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose package is up to date."""
    made = Project(tmp_path / "p", ONE)
    made.good("build")
    return made


def append(project: Project, name: str = "agent.py") -> None:
    with (project.path / "acp" / name).open("a", encoding="utf-8") as file:
        file.write(f"{EVIL}\n")


def forge(project: Project, **changed: object) -> None:
    """Make the manifest fit the files, as acpgen would have written it; `changed` are other things that it says."""
    lock = project.lock("acp")
    files = {path: content for path, content in tree(project.path / "acp").items() if path != "acpgen.lock"}
    lock["files"] = {path: hashlib.sha256(content).hexdigest() for path, content in sorted(files.items())}
    lock.update(changed)
    (project.path / "acp/acpgen.lock").write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")


def forged_code(project: Project) -> str:
    append(project)
    forge(project)
    return "agent.py"


def forged_without_the_marker(project: Project) -> str:
    path = project.path / "acp/agent.py"
    path.write_text(f"{EVIL}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    forge(project)
    return "agent.py"


def forged_version(project: Project) -> str:
    append(project)
    forge(project, acpgen="9.9.9")
    return "agent.py"


def forged_options(project: Project) -> str:
    forge(project, options={"roles": ["client"]})
    return "acpgen.lock"


def extra_module(project: Project) -> str:
    (project.path / "acp/extra.py").write_text(f"{EVIL}\n", encoding="utf-8")
    return "extra.py"


def recorded_extra_module(project: Project) -> str:
    extra_module(project)
    forge(project)
    return "extra.py"


def marked_extra_module(project: Project) -> str:
    first = (project.path / "acp/agent.py").read_text(encoding="utf-8").splitlines()[0]
    (project.path / "acp/extra.py").write_text(f"{first}\n{EVIL}\n", encoding="utf-8")
    forge(project)
    return "extra.py"


def deleted_module(project: Project) -> str:
    (project.path / "acp/errors.py").unlink()
    forge(project)
    return "errors.py"


def shadowing_package(project: Project) -> str:
    """Python takes the folder, not `types.py`."""
    (project.path / "acp/types").mkdir()
    (project.path / "acp/types/__init__.py").write_text(f"{EVIL}\n", encoding="utf-8")
    return "types/__init__.py"


def shadowing_library(project: Project) -> str:
    """Python takes it, and not `codec.py`."""
    (project.path / "acp/codec.abi3.so").write_bytes(b"\x7fELF")
    return "codec.abi3.so"


def bytecode_beside(project: Project) -> str:
    (project.path / "acp/extra.pyc").write_bytes(b"")
    return "extra.pyc"


def source_in_the_cache(project: Project) -> str:
    """The cache is a folder like others to Python, and can be imported from."""
    (project.path / "acp/__pycache__").mkdir(exist_ok=True)
    (project.path / "acp/__pycache__/extra.py").write_text(f"{EVIL}\n", encoding="utf-8")
    return "__pycache__/extra.py"


def bytecode_by_hash(project: Project, mode: py_compile.PycInvalidationMode) -> str:
    """Python takes what the file says, whatever is in the module."""
    module = project.path / "acp/agent.py"
    cached = Path(importlib.util.cache_from_source(str(module)))
    before = module.read_bytes()
    module.write_text(f"{EVIL}\n", encoding="utf-8")
    py_compile.compile(str(module), cfile=str(cached), invalidation_mode=mode)
    module.write_bytes(before)
    if mode is py_compile.PycInvalidationMode.CHECKED_HASH:
        code = cached.read_bytes()
        cached.write_bytes(code[:8] + importlib.util.source_hash(before) + code[16:])
    assert EVIL.encode()[7:11] in imported(project)
    return f"__pycache__/{cached.name}"


def imported(project: Project) -> bytes:
    """What an import of the package prints."""
    command = [sys.executable, "-B", "-c", "import acp.agent"]
    return subprocess.run(command, cwd=project.path, check=False, stdout=subprocess.PIPE).stdout


def checked_bytecode(project: Project) -> str:
    return bytecode_by_hash(project, py_compile.PycInvalidationMode.CHECKED_HASH)


def unchecked_bytecode(project: Project) -> str:
    return bytecode_by_hash(project, py_compile.PycInvalidationMode.UNCHECKED_HASH)


def linked_cache(project: Project) -> str:
    (project.path / "elsewhere").mkdir()
    (project.path / "acp/__pycache__").symlink_to(project.path / "elsewhere")
    return "__pycache__"


def linked_module(project: Project) -> str:
    (project.path / "acp/agent.py").rename(project.path / "agent.py")
    (project.path / "acp/agent.py").symlink_to(project.path / "agent.py")
    return "agent.py"


FORGERIES: tuple[Callable[[Project], str], ...] = (
    forged_code,
    forged_without_the_marker,
    forged_version,
    forged_options,
    extra_module,
    recorded_extra_module,
    marked_extra_module,
    deleted_module,
    shadowing_package,
    shadowing_library,
    bytecode_beside,
    source_in_the_cache,
    checked_bytecode,
    unchecked_bytecode,
    linked_cache,
    linked_module,
)


@pytest.mark.full
@pytest.mark.parametrize("forgery", FORGERIES)
def test_forgeries_are_findings(project: Project, forgery: Callable[[Project], str]) -> None:
    path = forgery(project)
    program, *entry = shlex.split(hook()["entry"])
    assert program == "acpgen"
    for arguments in (["check"], ["check", "--strict"], entry):
        ran = project.run(*arguments)
        assert ran.code == 1, ran.stderr
        assert any(line.split()[-1] == path for line in ran.stdout.splitlines()), ran.stdout


@pytest.mark.parametrize("forgery", [forged_code, forged_without_the_marker, forged_version])
def test_the_diff_shows_what_was_added(project: Project, forgery: Callable[[Project], str]) -> None:
    forgery(project)
    assert f"-{EVIL}" in project.run("check", "--diff").stdout.splitlines()


def test_line_ends_hide_nothing(project: Project) -> None:
    append(project)
    for path in (each for each in (project.path / "acp").rglob("*") if each.is_file()):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    forge(project)
    lines = project.run("check", "--diff").stdout.splitlines()
    assert [line for line in lines if line.startswith("-p")] == [f"-{EVIL}"]


def test_a_build_believes_a_forged_manifest_and_the_command_that_check_prints_does_not(project: Project) -> None:
    forged_code(project)
    before = tree(project.path)
    project.good("build")
    assert tree(project.path) == before
    last = project.run("check").stdout.splitlines()[-1]
    project.good(*shlex.split(last.partition(": acpgen ")[2]))
    assert project.good("check").stdout == "acp: up to date\n"


def test_hidden_files_and_caches_by_time_are_passed_over_and_run_nothing(project: Project) -> None:
    """The cache is one of a file that was made another time, as each is that a commit brings."""
    (project.path / "acp/.hidden.py").write_text(f"{EVIL}\n", encoding="utf-8")
    (project.path / "acp/evil.pth").write_text("import evil\n", encoding="utf-8")
    assert project.run("check").stdout.splitlines()[1:] == ["  extra   evil.pth"]
    (project.path / "acp/evil.pth").unlink()
    module = project.path / "acp/agent.py"
    before = module.read_bytes()
    module.write_bytes(f"{EVIL}\n".encode().ljust(len(before)))
    os.utime(module, (1, 1))
    py_compile.compile(str(module), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    module.write_bytes(before)
    assert imported(project) == b""
    project.good("check")


def test_what_the_configuration_says_holds(project: Project) -> None:
    """A commit that changes it, or the schema, shows as that; so does one that points it to another folder."""
    project.schema(ping_schema("Thing", "Other"))
    project.good("build")
    project.good("check")
    append(project)
    project.config(ONE.replace("acp", "other"))
    project.good("build")
    assert project.good("check").stdout == "other: up to date\n"


def test_a_manifest_gives_acpgen_no_file(project: Project) -> None:
    (project.path / "acp/settings.ini").write_text("mine\n", encoding="utf-8")
    (project.path / "acp/empty.ini").touch()
    forge(project, protocol=9)
    ran = project.good("build")
    assert (project.path / "acp/settings.ini").read_text(encoding="utf-8") == "mine\n"
    assert (project.path / "acp/empty.ini").exists()
    assert ran.stderr.count("[stale-file-kept]") == 2
    forge(project, protocol=9)
    assert project.run("check").stdout.splitlines()[-3:-1] == ["  extra   empty.ini", "  extra   settings.ini"]


GROWN = 3 * 1024**3
"""Bytes; on disk a file of zeros takes none of them."""
IN_LITTLE_MEMORY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 * 1024**3, 2 * 1024**3))
from acpgen.cli import main
main()
"""


@pytest.mark.full
@pytest.mark.needs("linux")
@pytest.mark.parametrize(
    ("name", "command", "expected"),
    [
        ("agent.py", "check --diff", (1, "edited  agent.py")),
        ("agent.py", "build", (0, "")),
        ("acpgen.lock", "check", (1, "edited  acpgen.lock")),
        ("acpgen.lock", "build", (2, "it is larger than 16 MiB [manifest-broken]")),
    ],
)
def test_files_of_any_size(project: Project, name: str, command: str, expected: tuple[int, str]) -> None:
    os.truncate(project.path / "acp" / name, GROWN)
    ran = subprocess.run(
        [sys.executable, "-c", IN_LITTLE_MEMORY, *command.split()],
        cwd=project.path,
        capture_output=True,
        check=False,
    )
    code, said = expected
    assert ran.returncode == code, ran.stderr[-2000:]
    assert said in (ran.stdout + ran.stderr).decode()
