"""Proxies between processes and the network: their package, an agent in lines of JSON, and a server as a process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from acpgen.emit.package import emit
from acpgen.roles import RoleChoice
from tests import package_cache
from tests.runtime_agents import PATIENCE
from tests.runtime_support import V1, V2
from tests.support import model_of

HERE = Path(__file__).resolve().parent
NAME = "acp_proxy"


@cache
def proxy_folder() -> Path:
    """The folder in which the package for proxies of both versions is `acp_proxy`."""

    def build() -> Mapping[str, str]:
        return emit([model_of(each)[0] for each in (V1, V2)], RoleChoice.PROXY.roles, parts=("remote",)).files

    folder = package_cache.folder("remote, both versions, proxy", build)
    with contextlib.suppress(FileExistsError):  # another process may be faster
        (folder.parent / NAME).symlink_to(folder, target_is_directory=True)
    return folder.parent


def environment(**more: str) -> dict[str, str]:
    """The environment of programs that import the package; without a token."""
    inherited = {name: value for name, value in os.environ.items() if name != "ACP_TOKEN"}
    paths = os.pathsep.join([str(proxy_folder()), str(HERE)])
    return {**inherited, "PYTHONPATH": paths, "PYTHONUNBUFFERED": "1", **more}


def raw_agent(*arguments: str) -> list[str]:
    """The command of an agent that answers with the text that it got: see `raw_agent.py`."""
    return [sys.executable, str(HERE / "raw_agent.py"), *arguments]


class Lines:
    """A process that talks in lines, as an editor has it. It ends with the block."""

    def __init__(self, *command: str, env: Mapping[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8", env=env or environment()
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def write(self, line: str) -> None:
        """Send a line."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def read(self) -> str:
        """The next line; an empty one at the end."""
        return self._output.readline().rstrip("\n")

    def ask(self, number: int, method: str, params: Any) -> Any:
        """Send a request; returns the next message."""
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        return json.loads(self.read())

    def initialize(self) -> Any:
        """Send the first request; returns its response."""
        return self.ask(0, "initialize", {"protocolVersion": 1})

    def ended(self) -> tuple[int, str]:
        """Close stdin, and wait for the end: the exit code, and what was written to stderr."""
        _, stderr = self._process.communicate(timeout=PATIENCE)
        return self._process.returncode, stderr

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._process.send_signal(number)

    def ends(self) -> int:
        """Wait for the end with stdin open; returns the exit code."""
        return self._process.wait(PATIENCE)


def bridge(url: str, *options: str, **env: str) -> Lines:
    """A bridge to a URL."""
    return Lines(sys.executable, "-m", f"{NAME}.bridge", url, *options, env=environment(**env))


class ProxyServer:
    """A server of `proxy_server.py`, which offers a command on the network."""

    def __init__(self, kind: str, log: Path, command: list[str], token: str) -> None:
        self.log = log
        with socket.create_server(("127.0.0.1", 0)) as listener, log.open("ab") as output:
            self.port: int = listener.getsockname()[1]
            script = [sys.executable, str(HERE / "proxy_server.py"), kind, str(listener.fileno()), *command]
            self.process = subprocess.Popen(
                script,
                pass_fds=[listener.fileno()],
                stdout=output,
                stderr=output,
                env=environment(TOKEN_OF_THE_TEST=token),
                start_new_session=True,
            )

    def url(self, scheme: str) -> str:
        """The URL with a scheme."""
        return f"{scheme}://127.0.0.1:{self.port}/acp"

    def kill(self) -> None:
        """End the server, and the agents that it has started, at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def agents(self) -> int:
        """The number of agents that run."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return len(children.read_text(encoding="ascii").split())

    def has_no_agents(self) -> bool:
        """Wait until no agent runs any more; returns whether that happens."""
        deadline = time.monotonic() + PATIENCE
        while self.agents() and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.agents()


@contextlib.contextmanager
def serving(kind: str, folder: Path, command: list[str] | None = None, *, token: str = "") -> Iterator[ProxyServer]:
    """A server during the block, which wants `token` if it is given."""
    server = ProxyServer(kind, folder / "server.log", command or raw_agent(), token)
    try:
        yield server
    finally:
        server.kill()
