"""The processes of terminals: their output, their exit, and the end of all processes that they have started."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from ..process_groups import kill_found, kill_until_gone, members_of_session, signal_session
from ..types import TerminalExitStatus

__all__: list[str] = []

_DRAIN_SECONDS: Final = 0.1  # what was written before the exit may arrive after it
_KILL_SECONDS: Final = 5.0
_MARK: Final = "ACP_TERMINAL"
"""A variable whose value tells the processes of a terminal, whatever their session is."""


class TerminalProcess(asyncio.SubprocessProtocol):
    """A process in a session of its own, and those that it starts. `on_output` gets its decoded output.

    On Linux, all of them are found by their session, or by a variable of their environment, in whatever group they are.
    What gets away has another session *and* another environment. Elsewhere, so does what has another group.

    asyncio's own `Process.wait` waits for other processes that hold the pipe; `process_exited` does not.
    """

    def __init__(self, on_output: Callable[[str], object]) -> None:
        loop = asyncio.get_running_loop()
        self.exited: Final[asyncio.Future[TerminalExitStatus]] = loop.create_future()
        """Done when the process has ended, and what it wrote before has arrived."""
        self._closed: asyncio.Future[None] = loop.create_future()
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._transport: asyncio.SubprocessTransport | None = None
        self._is_reaped = self._is_drained = False
        self._mark = os.urandom(8).hex()

    # --- Called by asyncio -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called when the process runs."""
        self._transport = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Called with output."""
        self._add(self._decode(data))

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Called when no process has the pipe any more."""
        self._add(self._decode(b"", final=True))
        self._is_drained = True
        if self._is_reaped:
            self._end()

    def process_exited(self) -> None:
        """Called when the process has ended."""
        self._is_reaped = True
        if self._is_drained:
            self._end()
        else:
            asyncio.get_running_loop().call_later(_DRAIN_SECONDS, self._end)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called when the process has ended, and the pipe is closed."""
        self._end()
        if not self._closed.done():
            self._closed.set_result(None)

    def _add(self, text: str) -> None:
        if text:
            self._on_output(text)

    def _end(self) -> None:
        if self._transport is None or self.exited.done():
            return
        code = self._transport.get_returncode()
        if code is not None and code < 0:
            self.exited.set_result(TerminalExitStatus(exit_code=None, signal=_signal_name(-code)))
        else:
            self.exited.set_result(TerminalExitStatus(exit_code=None if code is None else code & 0xFFFFFFFF))

    # --- From start to end -------------------------------------------------------------------------------------------

    async def start(self, command: Sequence[str], *, cwd: str, env: Mapping[str, str]) -> None:
        """Start the command. Raises `OSError`, and `ValueError` for texts that are not valid on this system."""
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                lambda: self,
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                cwd=cwd,
                env={**env, _MARK: self._mark},
                start_new_session=True,
            )
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            with suppress(OSError, ValueError):
                await starting  # it takes a moment; cancelled midway, asyncio would end only the process itself
                await self.kill()
                await self.close()
            raise

    async def end(self, seconds: float) -> None:
        """End the process and all that it has started: first by SIGTERM, after `seconds` by SIGKILL."""
        if not self._is_reaped:
            if sys.platform == "win32":
                await self._end_tree()
            else:
                self._signal(signal.SIGTERM)
            await asyncio.wait([self.exited], timeout=seconds)
        await self.kill()
        await asyncio.wait([self.exited], timeout=_KILL_SECONDS)

    async def kill(self) -> None:
        """Kill the process and all that it has started, also if this is cancelled; on Windows, only the process."""
        if sys.platform != "win32":
            self._signal(signal.SIGKILL)
            kill_found(self._left())  # at once, whatever happens to the loop
            await asyncio.shield(asyncio.ensure_future(kill_until_gone(self._left)))
        elif self._transport is not None and not self._is_reaped:
            self._transport.kill()

    def _left(self) -> list[int]:
        """The processes that are left, on Linux."""
        if self._transport is None:
            return []
        pid = self._transport.get_pid()
        is_other = self._is_reaped and _is_process(pid)  # the number was given again
        return members_of_session(None if is_other else pid, f"{_MARK}={self._mark}".encode())

    async def close(self) -> None:
        """Close the pipe, which a process that got away may hold."""
        if self._transport is not None:
            self._transport.close()
            await asyncio.wait([self._closed], timeout=_KILL_SECONDS)

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process group, and the others of the session."""
        if sys.platform == "win32" or self._transport is None:
            return
        session = self._transport.get_pid()
        if self._is_reaped and _is_process(session):
            return  # the number was given again, so no process of the session is left
        with suppress(ProcessLookupError, PermissionError):  # PermissionError: macOS, if only zombies are left
            os.killpg(session, number)
        signal_session(session, number)

    async def _end_tree(self) -> None:
        assert self._transport is not None
        with suppress(OSError):
            ending = await asyncio.create_subprocess_exec(
                *("taskkill", "/T", "/F", "/PID", str(self._transport.get_pid())),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
            )
            await ending.wait()


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
