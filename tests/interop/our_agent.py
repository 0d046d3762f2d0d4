"""Our agent, for clients of others: `python -X dev our_agent.py FOLDER PACKAGE ANSWERS`."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from puppet import Puppet


def main(folder: str, package: str, answers: str) -> None:
    sys.path.insert(0, folder)
    acp = importlib.import_module(package)
    puppet = Puppet(acp, "agent", json.loads(Path(answers).read_text(encoding="utf-8")))

    def factory(client: Any) -> Any:
        print("our agent has begun")  # if this got on the wire, no client would go on
        return puppet.factory(client)

    acp.run_agent(factory, options=puppet.options())


if __name__ == "__main__":
    main(*sys.argv[1:])
