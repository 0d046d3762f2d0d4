"""Start an agent, and chat with it."""

import asyncio
import sys

from .acp import RequestError
from .chat import chat


def main() -> None:
    """Chat with the agent whose command is on the command line."""
    command = sys.argv[1:]
    if not command:
        sys.exit("usage: new-project COMMAND [ARGUMENT ...], the command that starts the agent")
    try:
        asyncio.run(chat(command))
    except OSError as error:
        # that the connection was closed is one of them
        sys.exit(str(error))
    except RequestError as error:
        sys.exit(f"the agent refuses: {error}")


if __name__ == "__main__":
    main()
