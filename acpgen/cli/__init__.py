"""The command line. Results go to stdout, diagnostics to stderr."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from acpgen.cli.app import make_app
from acpgen.cli.console import print_diagnostics
from acpgen.diagnostics import AcpgenError, input_error, internal_error
from acpgen.text import printable

_STDOUT = 1


def main() -> None:
    """Run the command line and exit: 0 fine, 1 findings, 2 usage or input, 3 a bug in acpgen."""
    _open_closed_streams()
    try:
        try:
            make_app()()
        finally:
            sys.stdout.flush()
    except AcpgenError as error:
        _refuse(error)
    except OSError as error:
        if error.filename is not None:
            _report_bug(error)
        # without a file name, the error comes from a standard stream
        os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)  # else Python fails to write it again, and exits with 120
        _refuse(input_error("stdout-unwritable", f"cannot write to stdout: {error.strerror or error}"))
    except Exception as error:  # noqa: BLE001 - any other exception is a bug, and the user gets a report to send
        _report_bug(error)


def _refuse(error: AcpgenError) -> NoReturn:
    print_diagnostics(error.diagnostics)
    sys.exit(error.exit_code)


def _report_bug(error: Exception) -> NoReturn:
    for line in "".join(traceback.format_exception(error)).splitlines():
        print(printable(line), file=sys.stderr)
    _refuse(internal_error(f"{type(error).__name__}: {error}"))


def _open_closed_streams() -> None:
    """Replace standard streams that were closed when the program started: Python has None for them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
