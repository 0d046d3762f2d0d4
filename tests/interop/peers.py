"""The official SDKs, installed once into a folder that outlives the test run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TextIO

TYPESCRIPT = "@agentclientprotocol/sdk@2.4.0"
TOOLS = "@modelcontextprotocol/server@2.4.0"  # what its MCP servers are written with
CONDUCTOR = "@thinkwell/conductor@0.5.7"
SOCKETS = "ws@8.23.0"  # for the WebSockets of the TypeScript SDK
PYTHON = "agent-client-protocol==0.12.1"
SERVER = "hypercorn==0.18.0"  # for the Python SDK's ASGI application
INSTALL_SECONDS = 900


class MissingPeerError(Exception):
    """A peer cannot be had on this machine."""


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None, None, None]:
    """Keep other workers out, which may want to install the same. Closing the file releases the lock."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        _lock(file)
        yield


def _lock(file: TextIO) -> None:
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        return
    import msvcrt

    for _ in range(INSTALL_SECONDS // 10):
        with contextlib.suppress(OSError):  # it gives up after ten seconds
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            return
    raise MissingPeerError("another process to end that installs the same")


def _run(*command: str | Path, cwd: Path) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPeerError(f"a working {command[0]}: {error}") from error
    if done.returncode:
        raise MissingPeerError(f"{command[-1]}, which cannot be installed: {done.stderr.strip()[-300:]}")


def install(folder: Path, what: str, *commands: tuple[str | Path, ...]) -> None:
    """Run `commands` in `folder`, unless `what` is in it already; what is half done is done again."""
    mark = folder / "installed"
    with _locked(folder.parent / f"{folder.name}.lock"):
        if mark.is_file() and mark.read_text(encoding="utf-8") == what:
            return
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in commands:
            _run(*command, cwd=folder)
        mark.write_text(what, encoding="utf-8")


def typescript(home: Path) -> tuple[tuple[str, ...], Path]:
    """The command that runs a script with the TypeScript SDK, and the folder in which the SDK is."""
    return _from_npm(home / "typescript", TYPESCRIPT, SOCKETS, TOOLS)


def conductor(home: Path) -> tuple[tuple[str, ...], Path]:
    """The same for the conductor in TypeScript."""
    return _from_npm(home / "conductor", CONDUCTOR)


def _from_npm(folder: Path, *wanted: str) -> tuple[tuple[str, ...], Path]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise MissingPeerError("node and npm")
    quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--loglevel=error")
    install(folder, " ".join(wanted), (npm, "install", *quiet, "--prefix", folder, *wanted))
    return (node,), folder


def python(home: Path) -> tuple[tuple[str, ...], Path]:
    """The same for the Python SDK, in an environment of its own."""
    return environment(home, "python", PYTHON.replace("==", "[http]=="), SERVER)


def environment(home: Path, name: str, *wanted: str) -> tuple[tuple[str, ...], Path]:
    """The interpreter of an environment with the packages `wanted`, and its folder. With uv, it takes a tenth."""
    folder = home / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}"
    interpreter = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    what = " ".join(wanted)
    if uv := shutil.which("uv"):
        with contextlib.suppress(MissingPeerError):  # pip may have an index that uv does not know
            make = (uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
            install(folder, what, make, (uv, "pip", "install", "--quiet", "--python", interpreter, *wanted))
    quiet = ("--quiet", "--disable-pip-version-check", "--retries=1", "--no-compile")
    pip = (interpreter, "-m", "pip", "install", *quiet, *wanted)
    install(folder, what, (sys.executable, "-m", "venv", folder / "venv"), pip)
    return (str(interpreter),), folder


def home(default: Path) -> Path:
    """Where the peers are: `ACPGEN_PEERS`, or `default`."""
    return Path(os.environ.get("ACPGEN_PEERS") or default).resolve()
