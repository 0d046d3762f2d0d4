"""What the tests of remote connections need: the libraries of the group `remote`, and a server."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.support import require


@pytest.fixture(autouse=True)
def _libraries() -> None:
    """Skip where a library is missing; in CI, fail."""
    for name in ("httpx2", "websockets", "hypercorn", "uvicorn", "granian", "fastapi"):
        require(find_spec(name), name)


@pytest.fixture(params=["http", "websocket"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both transports."""
    return str(request.param)
