"""An agent whose requests wait for ever: for peers that want to see how many it keeps."""

from __future__ import annotations

import asyncio
import importlib
import os
from typing import Any

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])


class Waiter(acp.Agent):  # type: ignore[misc]
    async def ext_method(self, method: str, params: Any) -> Any:
        if method == "_wait":
            await asyncio.Event().wait()


if __name__ == "__main__":
    acp.run_agent(Waiter, options=acp.ConnectionOptions(check_capabilities=False))  # there is no handshake
