"""Run the agent on stdin and stdout."""

from .acp import run_agent
from .agent import EchoAgent


def main() -> None:
    """Run until the editor closes the connection."""
    run_agent(EchoAgent)


if __name__ == "__main__":
    main()
