"""A proxy that overrides nothing; at its end it prints the CPU time of its process to stderr, in seconds.

Usage: python proxy_acpgen.py FOLDER_OF_THE_PACKAGE COMMAND_OF_THE_AGENT...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Run until the agent has ended."""
    folder = Path(sys.argv[1])
    sys.path.insert(0, str(folder.parent))
    acp: Any = __import__(folder.name)
    acp.run_proxy(acp.Proxy, sys.argv[2:])
    print(time.process_time(), file=sys.stderr)


main()
