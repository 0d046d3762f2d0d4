"""Our agent, for clients of others: `python -X dev our_agent.py FOLDER PACKAGE ANSWERS [VERSION]`.

With a version, the package has several, and the client is to choose this one.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

from puppet import Puppet


def main(folder: str, package: str, answers: str, version: str = "") -> None:
    sys.path.insert(0, folder)
    acp = importlib.import_module(package)
    part = getattr(acp, f"v{version}") if version else acp
    puppet = Puppet(part, "agent", json.loads(Path(answers).read_text(encoding="utf-8")))

    def factory(client: Any) -> Any:
        print("our agent has begun")  # if this got on the wire, no client would go on
        return puppet.factory(client)

    def unwanted(client: Any) -> Any:
        raise RuntimeError("the client has chosen another version")

    served = {**dict.fromkeys((1, 2), unwanted), int(version): factory} if version else factory
    acp.run_agent(served, options=puppet.options(acp))


if __name__ == "__main__":
    main(*sys.argv[1:])
