"""Start an agent, and chat with it."""

import asyncio
import sys

from .acp import CapabilityError, RequestError
from .chat import chat


def main() -> None:
    """Chat with the agent whose command is on the command line."""
    command = sys.argv[1:]
    if not command:
        sys.exit("usage: new-project COMMAND [ARGUMENT ...], the command that starts the agent")
    try:
        asyncio.run(chat(command))
    except KeyboardInterrupt:
        sys.exit(130)
    except RequestError as error:
        sys.exit(f"the agent refuses: {error}")
    except (CapabilityError, OSError) as error:
        # one of the latter is that the agent has ended
        sys.exit(str(error))


if __name__ == "__main__":
    main()
