"""What the tests of remote connections need: the libraries of the group `remote`, and a server."""

from __future__ import annotations

import pytest

from tests.needs import need


@pytest.fixture(autouse=True)
def _libraries() -> None:
    """Skip where a library is missing; in CI, fail."""
    for name in ("httpx2", "websockets", "hypercorn", "uvicorn", "granian", "fastapi"):
        need(name)


@pytest.fixture(params=["http", "websocket"])
def transport(request: pytest.FixtureRequest) -> str:
    """Both transports."""
    return str(request.param)
