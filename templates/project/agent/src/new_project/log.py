"""Where the log goes: stdout is the wire, and some editors show each line of stderr to the user."""

from __future__ import annotations

import logging
import os

VARIABLE = "ACP_LOG"
"""Names the file of the log. Without it, each warning and each error is one line on stderr."""


class OneLine(logging.Formatter):
    """Says what has happened, and no traceback."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        what = f" [{type(error).__name__}; {VARIABLE}=FILE keeps the traceback]" if error else ""
        return f"{record.levelname}: {' '.join(record.getMessage().split())}{what}"


def begin() -> None:
    """Send the log to its file, or to stderr."""
    path = os.environ.get(VARIABLE)
    handler = logging.FileHandler(path, encoding="utf-8") if path else logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s") if path else OneLine())
    logging.basicConfig(handlers=[handler], level=logging.INFO if path else logging.WARNING)
