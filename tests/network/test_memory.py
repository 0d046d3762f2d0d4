"""The memory of a server whose limits are used up together, by one client over many connections."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.network.hostile import MIB, attack
from tests.network.processes import serving
from tests.test_runtime_memory import peak

pytestmark = pytest.mark.needs("linux")

SECONDS = 25.0
"""How long attacks that the server lets wait go on."""


async def attacked(kind: str, transport: str, folder: Path, *, connections: int, **settings: Any) -> int:
    """The most memory that a server had while so many connections were used for an attack, in bytes."""
    with serving(kind, folder, **settings) as server:
        await server.state()
        names = map(str, range(connections))
        attacks = [asyncio.create_task(attack(transport, server.port, name, 4)) for name in names]
        await asyncio.wait(attacks, timeout=SECONDS)
        used = peak(Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii"))
        for each in attacks:
            each.cancel()
        await asyncio.gather(*attacks, return_exceptions=True)
        assert server.process.poll() is None
        # hypercorn fails for data on a stream of HTTP/2 that it has closed, and says so for each
        assert kind == "hypercorn" or "Traceback" not in server.output, server.output
        print(f"{kind}, {transport}: at most {used // 1024} MiB")
        return used * 1024


LIMITS = {"http": 640 * MIB, "websocket": 1024 * MIB}
"""What `docs/security.md` states."""
SETTINGS: dict[str, dict[str, Any]] = {"hypercorn": {}, "uvicorn": {"ws_max_queue": 1}}


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "transport"),
    [
        ("hypercorn", "http"),
        # the limits are ours, whichever server is in front of them
        pytest.param("hypercorn", "websocket", marks=pytest.mark.deep),
        ("uvicorn", "websocket"),
    ],
)
def test_one_client_that_uses_up_all_limits(kind: str, transport: str, tmp_path: Path) -> None:
    used = asyncio.run(attacked(kind, transport, tmp_path, connections=64, server=SETTINGS[kind]))
    assert used < LIMITS[transport]
