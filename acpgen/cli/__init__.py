"""The command line: one module a command; diagnostics go to stderr, data to stdout."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from acpgen.cli.app import make_app
from acpgen.cli.printing import print_diagnostics
from acpgen.diagnostics import AcpgenError, internal_error
from acpgen.printable import printable

_BETWEEN_COLLECTIONS = 50_000
"""Objects; a compiler makes many that stay, and Python looks through them all for garbage every 700 by itself."""


def main() -> None:
    """Run the command line and exit: 0 fine, 1 findings, 2 usage or input, 3 a bug in acpgen."""
    try:
        with _collecting_seldom():
            make_app(sys.argv[1:])()
    except AcpgenError as error:
        print_diagnostics(error.diagnostics)
        sys.exit(error.exit_code)
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a report to send
        for line in traceback.format_exc().splitlines():
            print(printable(line), file=sys.stderr)
        found = internal_error(f"{type(error).__name__}: {error}")
        print_diagnostics(found.diagnostics)
        sys.exit(found.exit_code)


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    atexit.register(gc.freeze)  # what is left then ends with the process, and need not be looked through once more
    before = gc.get_threshold()
    gc.set_threshold(_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
