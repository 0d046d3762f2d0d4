"""Run the proxy on stdin and stdout, with the agent whose command it gets."""

import sys

from .acp import run_proxy
from .guard import Guard


def main() -> None:
    """Run until the client closes the connection. Without a command, the proxy waits for a conductor, which has one."""
    run_proxy(Guard, sys.argv[1:] or None)


if __name__ == "__main__":
    main()
