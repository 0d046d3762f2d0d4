"""An agent whose sessions are in the file `sys.argv[1]`, with options that may be any digit."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

acp: Any = importlib.import_module(os.environ["ACP_PACKAGE"])
helpers: Any = importlib.import_module(os.environ["ACP_PACKAGE"] + ".helpers")

OPTIONS = ("mode", "a", "b")
KEY = "id" if acp.PROTOCOL_VERSION == 1 else "config_id"
DIGITS = [acp.SessionConfigSelectOption(value=each, name=each) for each in "0123456789"]


class Chooser(helpers.StoredAgent):  # type: ignore[name-defined, misc]
    store = helpers.SqliteStore(sys.argv[1])
    save_seconds = 0.0

    async def on_open(self, session: Any, params: Any) -> None:
        session.data = session.data or dict.fromkeys(OPTIONS, "0")

    def config_options(self, session: Any) -> Sequence[Any]:
        return [
            acp.SessionConfigOptionSelect(**{KEY: name}, name=name, current_value=session.data[name], options=DIGITS)
            for name in OPTIONS
        ]

    async def work(self, params: Any) -> None:
        pass


if __name__ == "__main__":
    acp.run_agent(Chooser)
