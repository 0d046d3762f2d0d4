"""An agent whose sessions are in the file `sys.argv[1]`. It says each prompt twice, and saves all the time."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import Any

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
helpers: Any = importlib.import_module(os.environ["ACP_PACKAGE"] + ".helpers")
ids = {} if acp.PROTOCOL_VERSION == 1 else {"message_id": "m"}


class Keeper(helpers.StoredAgent):  # type: ignore[name-defined, misc]
    store = helpers.SqliteStore(sys.argv[1])
    save_seconds = 0.0

    async def work(self, params: Any) -> None:
        text = params.prompt[0].text
        for part in (f"{text} ", f"{text};"):
            await self.client.session_update(helpers.agent_message(params.session_id, part, **ids))
            await asyncio.sleep(0)
        self.session(params.session_id).data = text


if __name__ == "__main__":
    acp.run_agent(Keeper)
