"""What users rely on holds for each implementation of an endpoint: tests of other modules, with `DirectEndpoint`."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.direct_endpoint import DirectEndpoint, ends
from tests.support import runtime_module
from tests.test_runtime_cancel import *  # noqa: F403
from tests.test_runtime_capabilities import *  # noqa: F403
from tests.test_runtime_fallback import *  # noqa: F403
from tests.test_runtime_order import *  # noqa: F403

del test_a_request_begins_before_what_follows_it_is_refused  # noqa: F821 - it sends what is no JSON
del test_a_request_that_was_answered_is_not_cancelled_at_the_peer  # noqa: F821 - it sees lines by `on_message`

pytestmark = pytest.mark.every_python


@pytest.fixture
def packages(packages: Callable[..., ModuleType], monkeypatch: pytest.MonkeyPatch) -> Callable[..., ModuleType]:
    """The packages, whose connections go over `DirectEndpoint`."""

    def without_transport(*args: Any, **more: Any) -> ModuleType:
        acp = packages(*args, **more)
        monkeypatch.setattr(runtime_module(acp, "connection"), "Endpoint", DirectEndpoint)
        monkeypatch.setattr(runtime_module(acp, "connection"), "opened_for", lambda end, options, peer: end)
        monkeypatch.setattr(acp, "memory_transports", lambda *_: ends(acp))
        return acp

    return without_transport
