"""Connects a client that starts agents as processes with an agent on the network: `python -m PACKAGE.bridge URL`.

The other way round, an ASGI application offers an agent that speaks through pipes on the network. With this in
`served.py`, `hypercorn served:app` starts it, and so does `uvicorn served:app`:

    from PACKAGE.asgi_proxy import proxy_app

    app = proxy_app([], ["my-agent"])

All messages go on as the text that came.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ._runtime.proxy.conductor import run_conductor
from .network import NetworkAgent

__all__ = ["main"]

_TOKEN: Final = "ACP_TOKEN"
_AUTHORIZATION: Final = "authorization"
_DESCRIPTION: Final = """\
Connect stdin and stdout with an agent on the network, for clients that start agents as processes."""
_EPILOG: Final = f"""\
A token is sent as "Authorization: Bearer TOKEN". Without --token-file, it is that of the environment variable
{_TOKEN}, if there is one; a header Authorization takes precedence. It is no argument, as all users of a machine
can see those.

The exit code is 0 after the client has closed stdin, 1 if the agent cannot be reached, refuses or is lost, and 2 for
wrong arguments. Why is said in a line on stderr."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the bridge until the client or the agent closes the connection. Raises `SystemExit` with what has failed."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        headers = _headers(given.header, _token(given.token_file))
        agent = NetworkAgent(given.url, headers=headers)
    except (OSError, UnicodeError, ValueError) as error:
        parser.error(str(error))
    if _AUTHORIZATION in map(str.lower, headers) and not _is_private(given.url):
        print(f"{parser.prog}: warning: the token is sent without encryption: use wss or https", file=sys.stderr)
    try:
        run_conductor([], agent)
    except (ImportError, SystemExit) as error:
        if isinstance(error, ImportError) or isinstance(error.code, str):
            sys.exit(f"{parser.prog}: {error}")
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__package__}.bridge",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("url", metavar="URL", help="ws:// or wss:// for WebSocket, http:// or https:// for either")
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="a header of each request; may be repeated. Not for secrets",
    )
    parser.add_argument("--token-file", metavar="FILE", type=Path, help="a file with the token and nothing else")
    return parser


def _headers(lines: Sequence[str], token: str | None) -> dict[str, str]:
    """The headers of the command line, and that for the token. Raises `ValueError`, without what may be secret."""
    headers = dict[str, str]()
    for line in lines:
        name, sign, value = line.partition(":")
        if not (sign and name and _is_header(name) and " " not in name and _is_header(value)):
            raise ValueError("a header must have the form 'NAME: VALUE', in printable ASCII")
        headers[name] = value.strip()
    if token is None or _AUTHORIZATION in map(str.lower, headers):
        return headers
    return {**headers, _AUTHORIZATION: f"Bearer {token}"}


def _token(file: Path | None) -> str | None:
    """The token of the file or the environment; None if there is none. Raises `OSError` and `ValueError`."""
    token = os.environ.get(_TOKEN) if file is None else file.read_text(encoding="utf-8")
    if token is None:
        return None
    token = token.strip()
    if not token or not _is_header(token):
        raise ValueError(f"the token in {_TOKEN if file is None else file} is empty, or not one line of ASCII")
    return token


def _is_header(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_private(url: str) -> bool:
    """True if nobody can read what is sent: over TLS, and within this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        return parts.scheme in ("wss", "https") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


if __name__ == "__main__":
    main()
