"""What acpgen is compared with, and where that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.interop import peers

T = TypeVar("T")

PROBE = """
import importlib.metadata as metadata, json, platform, sys
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps({"python": platform.python_version(), **found}))
"""
PACKAGES = (
    *("agent-client-protocol", "pydantic", "pydantic-core"),
    *("httpx", "httpx2", "websockets", "uvicorn", "hypercorn", "granian"),
)
SDIST = peers.PYTHON.replace("-", "_").replace("==", "-")


@dataclass(frozen=True, kw_only=True)
class Peers:
    """The contenders that are there, and why others are not.

    `python` runs all Python contenders, so that what its environment costs at the start is the same for each of them;
    `versions` are those of the packages in it. `typescript` is the command of node, and the folder of the SDK.
    """

    python: str
    versions: dict[str, str]
    typescript: tuple[tuple[str, ...], Path] | None
    generator: Path | None
    missing: dict[str, str]

    def has(self, package: str) -> bool:
        """Whether the Python contenders can import a package."""
        return package in self.versions


def probe(python: str) -> dict[str, str]:
    """The versions of an interpreter and of those packages in its environment that matter here."""
    done = subprocess.run([python, "-I", "-c", PROBE, *PACKAGES], check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def find(home: Path) -> Peers:
    """Find the contenders, or install them below `home`. Those that cannot be had are in `missing`."""
    missing: dict[str, str] = {}

    def attempt(name: str, install: Callable[[Path], T]) -> T | None:
        try:
            return install(home)
        except peers.MissingPeerError as error:
            missing[name] = str(error)
            return None

    python, versions = sys.executable, probe(sys.executable)
    wanted = peers.PYTHON.split("==")
    if versions.get(wanted[0]) != wanted[1] and (found := attempt("Python SDK", peers.python)):
        python, versions = found[0][0], probe(found[0][0])
    return Peers(
        python=python,
        versions=versions,
        typescript=attempt("TypeScript SDK", peers.typescript),
        generator=attempt("official generator", generator),
        missing=missing,
    )


def generator(home: Path) -> Path:
    """The source distribution of the Python SDK, which has the generator of its models; unpacked."""
    folder = home / "generator"
    quiet = ("--quiet", "--disable-pip-version-check", "--retries=1")
    only_source = ("--no-deps", "--no-binary", peers.PYTHON.split("==")[0])
    download = (sys.executable, "-m", "pip", "download", *quiet, *only_source, "--dest", folder, peers.PYTHON)
    peers.install(folder, peers.PYTHON, download, (sys.executable, "-m", "tarfile", "-e", f"{SDIST}.tar.gz", folder))
    return folder / SDIST


def home() -> Path:
    """Where peers are installed: where the tests have them, too, if `ACPGEN_PEERS` says so."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acpgen-peers"
    return peers.home(default)
