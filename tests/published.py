"""The published schemas: from the npm packages of the official SDK, or from `../shared` where no registry has them."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.interop import peers
from tests.needs import lacks

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared"
RECORDED = SHARED / "acp-schemas"
"""The schemas that no registry has; absent in a public checkout."""

RELEASES = {
    1: ["0.10.8", "0.12.2", "0.13.6", "1.16.0", "1.21.0", "2026-11-02"],
    2: ["0.14.0", "2.0.0-alpha.1", "2.0.0-alpha.3", "2026-11-02"],
}
FILES = [
    "v1/0.4.9/schema.json",
    "v1/0.6.3/schema.json",
    *(
        f"v{protocol}/{release}/{kind}.json"
        for protocol, releases in RELEASES.items()
        for release in releases
        for kind in ("schema", "schema.unstable")
    ),
]
"""All published schemas that the tests know: protocol, release and kind."""
PAGES = (
    "auth-methods-2026-01-14.txt",
    "auth-state-2026-03-07.txt",
    "authentication-v2-page.txt",
    "logout-2026-02-02.txt",
    "schema-v1-page-2025.txt",
    "streamable-http-websocket-transport.mdx",
)
"""The RFDs and pages of the documentation that the tests know, in `rfd`."""


class MissingSchemaError(Exception):
    """A published schema cannot be had on this machine."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A file in an npm package that is pinned by its digest."""

    package: str
    integrity: str
    path: str


def _origins() -> dict[str, Origin]:
    pins = json.loads((HERE / "published.json").read_text(encoding="utf-8"))
    return {name: Origin(pin["package"], pin["integrity"], path) for pin in pins for name, path in pin["files"].items()}


ORIGINS = _origins()
"""The files that are on npm. Earlier releases of the SDK have the unstable schema alone."""


def published(name: str) -> Path:
    """A file of `FILES`; skips the test where it cannot be had. In CI, a file that is on npm must be there."""
    try:
        return find(name)
    except MissingSchemaError as error:
        lacks("registry" if name in ORIGINS else "recorded", error)


def find(name: str) -> Path:
    """A file of `FILES`; raises `MissingSchemaError`."""
    origin, recorded = ORIGINS.get(name), RECORDED / name
    try:
        if origin is not None:
            return from_npm(name, origin)
    except MissingSchemaError:
        if not recorded.is_file():
            raise
    if recorded.is_file():
        return recorded
    raise MissingSchemaError(f"{name}, which no registry has, in {RECORDED}")


def available() -> list[Path]:
    """The files of `FILES` that can be had, in their order."""
    found: list[Path] = []
    for name in FILES:
        with suppress(MissingSchemaError):
            found.append(find(name))
    return found


def shared(path: str) -> Path:
    """A file or folder that no registry has; skips the test where it is absent. What else is there has no effect."""
    found = SHARED / path
    if not found.exists():
        lacks("recorded", found)
    return found


def _home() -> Path:
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return peers.home(cache_folder / "acpgen-peers") / "schemas"


def from_npm(name: str, origin: Origin) -> Path:
    """The file of a package, extracted as `name`; raises `MissingSchemaError`."""
    archive = _archive(origin.package)
    if isinstance(archive, str):
        raise MissingSchemaError(archive)
    target = archive.parent.parent / f"files-{_short(origin.integrity)}" / name
    if not target.is_file():
        check(archive, origin.integrity)
        _extract(archive, f"package/{origin.path}", target)
    return target


@cache
def _archive(package: str) -> Path | str:
    """The downloaded package, or the reason why it cannot be had: a process asks the registry once.

    All that have files in `ORIGINS` are downloaded together, as most of the time goes into the start of npm.
    """
    npm = shutil.which("npm")
    if npm is None:
        return f"npm, to get {package}"
    pinned = {origin.package: None for origin in ORIGINS.values()}
    packages = [*pinned] if package in pinned else [package]
    folder = _home() / _short(" ".join(packages))
    quiet = ("--ignore-scripts", "--fetch-retries=1", "--fetch-timeout=30000", "--loglevel=error")
    try:
        peers.install(folder, " ".join(packages), (npm, "pack", *quiet, *packages))
    except peers.MissingPeerError as error:
        return str(error)
    return folder / f"{package.lstrip('@').replace('/', '-').replace('@', '-')}.tgz"


def check(archive: Path, integrity: str) -> None:
    """Fail where a download has another content than the one that is pinned."""
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert f"sha512-{found}" == integrity, f"{archive} is not what is pinned: delete it, or look into it"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _extract(archive: Path, member: str, target: Path) -> None:
    """Write one file of an archive; other processes see all of it or nothing."""
    with tarfile.open(archive) as opened:
        content = opened.extractfile(member)
        assert content is not None, f"{archive} has no file {member}"
        data = content.read()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(temporary).replace(target)
