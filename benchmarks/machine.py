"""On what, and with what, it was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from benchmarks.contenders import Peers

OWN = ("acpgen", "datamodel-code-generator", "black", "typer")


def machine() -> dict[str, str]:
    """Processor, cores, memory and system, as far as they can be found out."""
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(kib.split()[0]) / 2**20:.1f} GiB" if (kib := _line("/proc/meminfo", "MemTotal")) else "?",
        "system": _system(),
    }


def _system() -> str:
    """The system and the first two numbers of its version, with the name of the distribution where there is one."""
    system = f"{platform.system()} {'.'.join(platform.release().split('.')[:2])}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {system}"
    except (OSError, KeyError):
        return system


def _line(path: str, key: str) -> str | None:
    """The value of the first line of a file of the system that begins with `key`."""
    if Path(path).exists():
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return None


def versions(peers: Peers) -> dict[str, str]:
    """The versions of everything that has a part in the figures."""
    found = {"python": platform.python_version()}
    for name in OWN:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    found |= {name: version for name, version in peers.versions.items() if name != "python"}
    if peers.typescript:
        (node, *_), _ = peers.typescript
        found["node"] = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout.strip()
        from tests.interop.peers import TYPESCRIPT

        found["@agentclientprotocol/sdk"] = TYPESCRIPT.rsplit("@", 1)[1]
    return found
