"""Runs an agent as a process: starts it, exchanges lines with it, and ends it with its process group."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, Literal

from .decorated import is_message, split_line
from .dispatch import ConnectionClosed
from .log import one_line
from .message import MessageTooLarge
from .options import ConnectionOptions
from .peer_kind import PeerKind
from .process_groups import has_members, kill_until_gone, members_of_session, signal_session
from .stream_transport import LineBuffer, StreamTransport

logger: Final = logging.getLogger("acp.agent")
"""Gets the text that an agent writes to stdout, and to stderr with `stderr="log"`."""

_KEPT_LINES: Final = 20
_KEPT_CHARACTERS: Final = 1000
_SHOWN_LINES: Final = 5
_CHUNK: Final = 2**16
_PIPE_BYTES: Final = 2**20  # the largest buffer of a pipe on Linux
_QUIET_POLLS: Final = 3
_EXIT_SECONDS: Final = 1.0
_GROUP_SECONDS: Final = 0.05
_POLL_SECONDS: Final = 0.02
_MAX_POLL_SECONDS: Final = 0.25


async def start_process(
    command: Sequence[str | os.PathLike[str]],
    *,
    env: Mapping[str, str] | None,
    cwd: str | os.PathLike[str] | None,
    stderr: Literal["inherit", "log", "discard"],
    terminate_seconds: float,
    options: ConnectionOptions,
    what: str = "agent",
) -> ProcessTransport:
    """Start a process in a group of its own; raises `OSError`. `spawn_agent` explains the parameters.

    `what` names it in errors and logs.
    """
    loop = asyncio.get_running_loop()
    try:
        control, process = await loop.subprocess_exec(
            lambda: _Process(limit=_CHUNK, loop=loop),
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,  # Ctrl-C reaches only this process, which then ends the agent
        )
    except OSError as error:
        if cwd is not None and error.strerror:
            error.strerror += _where(os.fspath(command[0]), os.path.abspath(cwd)) if cwd else " (cwd is empty)"
        raise
    return ProcessTransport(
        control, process, stderr=stderr, terminate_seconds=terminate_seconds, options=options, what=what
    )


def _where(program: str, folder: str) -> str:
    """The place where a program was looked for that cannot be started with `cwd`, for an error."""
    if not os.path.isdir(folder):
        return f" (cwd is {folder}, which is no folder)"
    if os.path.dirname(program) and not os.path.isabs(program) and sys.platform != "win32":
        return f" in {folder} (cwd)"
    return ""


class _Process(asyncio.subprocess.SubprocessStreamProtocol):
    """The streams of a process, and its exit, even if other processes keep the streams open."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=limit, loop=loop)
        self.exited: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        """Called by asyncio."""
        super().process_exited()
        self.exited.set_result(None)


class _StdinFailure(asyncio.StreamReader):
    """The reader that `StreamTransport` tells about a failure to write buffered lines."""

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self._then = then

    def set_exception(self, exc: Exception) -> None:
        """Called by `StreamTransport`."""
        super().set_exception(exc)
        self._then()


class ProcessTransport:
    """Lines over the stdin and stdout of a process."""

    peer_kind: PeerKind = "process"

    def __init__(
        self,
        control: asyncio.SubprocessTransport,
        process: _Process,
        *,
        stderr: Literal["inherit", "log", "discard"],
        terminate_seconds: float,
        options: ConnectionOptions,
        what: str = "agent",
    ) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self._what = what
        self._control = control
        self._exited = process.exited
        self._stdin, self._stdout = process.stdin, process.stdout
        self._terminate_seconds = terminate_seconds
        self._writing = StreamTransport(
            _StdinFailure(self._end_reading), process.stdin, max_write_buffer_bytes=options.max_write_buffer_bytes
        )
        self.flush = self._writing.flush
        self._lines = LineBuffer(options.max_message_bytes)
        self._messages: deque[bytes | MessageTooLarge] = deque()  # sorted out of the stream, not yet returned
        self._read_lock = asyncio.Lock()
        self._read_count = 0
        self._at_end = False
        self._printed: deque[str] = deque(maxlen=_KEPT_LINES)  # on stdout
        self._printed_count = 0
        self._last_lines: deque[str] = deque(maxlen=_KEPT_LINES)  # on stderr
        self._stderr = asyncio.create_task(self._read_stderr(process.stderr, stderr))
        self._stdout_end: asyncio.Task[None] | None = None
        self._group_end: asyncio.Task[None] | None = None
        # its number is that of the process, and may belong to others once it has ended; what is left survived SIGKILL
        self._group: Literal["running", "ended", "left"] = "running"
        self._exited.add_done_callback(lambda _: self._on_exit())

    @property
    def pid(self) -> int:
        """The ID of the process and of its group."""
        return self._control.get_pid()

    @property
    def returncode(self) -> int | None:
        """The exit code; None while it runs."""
        return self._control.get_returncode()

    # --- Lines ---------------------------------------------------------------------------------------------------

    async def read(self) -> bytes | None:
        """Read the next message. Raises `ConnectionClosed` with all that is known about the end of the process."""
        while not self._messages:
            if self._at_end:
                raise await self._end_reason()
            await self._read_some()
        return self.ready()

    def ready(self) -> bytes | None:
        """The next message if it has arrived. Raises `MessageTooLarge`."""
        message = self._messages.popleft() if self._messages else None
        if isinstance(message, MessageTooLarge):
            raise message
        return message

    async def _read_some(self) -> None:
        """Read a chunk, and separate messages from text."""
        async with self._read_lock:
            if self._at_end:
                return
            try:
                chunk = await self._stdout.read(_CHUNK)
            except OSError:
                chunk = b""
            self._read_count += len(chunk)
            if chunk:
                self._lines.feed(chunk)
            else:
                self._at_end = True
                self._lines.end()
            self._sort_lines()

    def _sort_lines(self) -> None:
        while True:
            try:
                line = self._lines.next_line()
            except MessageTooLarge as error:
                self._messages.append(error)
                continue
            if line is None:
                return
            message = line if is_message(line) else self.extract(line)
            if message is None:
                self._note_printed(line)
            else:
                self._messages.append(message)

    def extract(self, line: bytes) -> bytes | None:
        """The message at the end of a line that is no JSON, if there is one; what came before it is logged."""
        if (found := split_line(line)) is None:
            return None
        before, message, _ = found
        if before.strip():
            self._note_printed(before)
        return message

    def _note_printed(self, line: bytes) -> None:
        """Keep and log a line of text; the first lines are warnings."""
        text = line[: 4 * _KEPT_CHARACTERS].decode(errors="replace").strip()[:_KEPT_CHARACTERS]
        self._printed.append(text)
        self._printed_count += 1
        level = logging.WARNING if self._printed_count <= _KEPT_LINES else logging.DEBUG
        if logger.isEnabledFor(level):
            logger.log(level, "the %s printed on stdout: %s", self._what, one_line(text))

    async def write(self, message: bytes) -> None:
        """Send a message. Raises `ConnectionClosed` with all that is known about the end of the process."""
        if self._control.get_returncode() is not None:
            raise await self._end_reason()
        try:
            await self._writing.write(message)
        except Exception as error:  # other event loops raise other exceptions for a closed stream
            if not (isinstance(error, OSError) or self._stdin.is_closing()):
                raise
            raise await self._end_reason() from error

    async def close(self) -> None:
        """Close the stdin of the process, so that it ends."""
        self.flush()
        self._stdin.close()

    # --- The end -------------------------------------------------------------------------------------------------

    def _on_exit(self) -> None:
        """Close the streams, even if other processes keep them open, and end the rest of the group."""
        with contextlib.suppress(RuntimeError):  # other event loops raise it for a closed stream
            if not self._stdin.is_closing() or self._stdin.transport.get_write_buffer_size():
                self._stdin.transport.abort()
        self._end_reading()
        self._group_end = self._group_end or asyncio.create_task(self._end_group())

    def _end_reading(self) -> None:
        """End stdout soon, after the exit of the process or a failure of stdin."""
        if self._stdout_end is None:
            self._stdout_end = asyncio.create_task(self._end_stdout())

    async def _end_stdout(self) -> None:
        """Close stdout when it is read and nothing arrives, or more has arrived than the process can have written."""
        await asyncio.wait([self._exited], timeout=_EXIT_SECONDS)
        first = seen = self._read_count
        quiet = 0
        while quiet < _QUIET_POLLS and seen - first <= _PIPE_BYTES and not self._at_end:
            await asyncio.sleep(_POLL_SECONDS)
            quiet = quiet + 1 if self._read_lock.locked() and self._read_count == seen else 0
            seen = self._read_count
        stdout = self._control.get_pipe_transport(1)
        if stdout is not None:
            stdout.close()

    async def _end_reason(self) -> ConnectionClosed:
        """The reason for the end of stdout: usually the exit of the process."""
        await asyncio.wait([self._exited], timeout=_EXIT_SECONDS)
        code = self.returncode
        if code is None:
            how = "has closed its stdin or stdout"
        else:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._read_rest(), _EXIT_SECONDS)
            is_over = await self._ends_in(_GROUP_SECONDS)
            await asyncio.wait([self._stderr], timeout=_EXIT_SECONDS)
            how = f"was ended by signal {-code}" if code < 0 else f"has ended with exit code {code}"
            how += "" if is_over else ", and has left processes behind"
        stdout, stderr = tuple(self._printed), tuple(self._last_lines)
        said = "\n".join(_quoted(name, lines) for name, lines in (("stdout", stdout), ("stderr", stderr)) if lines)
        message = f"the {self._what} {how}; {said}" if said else f"the {self._what} {how}"
        return ConnectionClosed(message, exit_code=code, stderr=stderr, stdout=stdout)

    async def _read_rest(self) -> None:
        while not self._at_end:
            await self._read_some()

    async def end_process(self) -> None:
        """End the process and its group, and wait for that. If this is cancelled, they are killed at once."""
        unread = asyncio.create_task(self._skip_stdout())
        self._group_end = self._group_end or asyncio.create_task(self._end_group())
        try:
            await asyncio.shield(self._group_end)
        except asyncio.CancelledError:
            self._group_end.cancel()
            await self._kill()
            await self._ends_in(_EXIT_SECONDS)
            raise
        finally:
            await asyncio.wait([self._stderr], timeout=_EXIT_SECONDS)
            self._control.close()  # other processes may keep the other ends open
            tasks = [self._stderr, unread, *([self._stdout_end] if self._stdout_end is not None else [])]
            await asyncio.wait(tasks, timeout=_EXIT_SECONDS)

    async def _skip_stdout(self) -> None:
        """Read on: a process that cannot write does not end."""
        async with self._read_lock:
            with contextlib.suppress(OSError):
                while await self._stdout.read(_CHUNK):
                    pass
            self._at_end = True

    async def _end_group(self) -> None:
        """End the process and its group.

        This starts at the exit of the process at the latest, and polls until the group is gone: from then on its number
        may belong to other processes, and is not used any more.
        """
        end = partial(self._signal, "SIGTERM")
        steps: tuple[Callable[[], Awaitable[None] | None], ...] = (self._stdin.close, end, self._kill)
        for step in steps:
            if (waiting := step()) is not None:
                await waiting
            if await self._ends_in(self._terminate_seconds):
                return
        self._group = "left"

    async def _kill(self) -> None:
        """Kill the whole group, and all other processes of the session."""
        self._signal("SIGKILL")
        if self._group == "running":
            await kill_until_gone(self._others)

    async def _ends_in(self, seconds: float) -> bool:
        """Wait for the exit of the process, and then poll for the end of its group."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        await asyncio.wait([self._exited], timeout=seconds)
        pause = _POLL_SECONDS
        while not self._is_over() and (left := deadline - loop.time()) > 0:
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, _MAX_POLL_SECONDS)
        return self._is_over()

    def _is_over(self) -> bool:
        """True if the process and its group have ended."""
        if self._group == "running" and self._exited.done() and not has_members(self.pid) and not self._others():
            self._group = "ended"
        return self._group == "ended"

    def _others(self) -> list[int]:
        """The processes of other groups of the session, as of a shell with job control; on Linux."""
        return [] if sys.platform != "linux" else members_of_session(self.pid)

    def _signal(self, name: Literal["SIGTERM", "SIGKILL"]) -> None:
        """Signal the whole group, which may outlive the process, and the other groups of the session."""
        if self._is_over() or self._group == "left":
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._control.kill()
            else:
                os.killpg(self.pid, signal.Signals[name])
        if sys.platform == "linux":
            signal_session(self.pid, signal.Signals[name])

    async def _read_stderr(self, stream: asyncio.StreamReader, policy: Literal["inherit", "log", "discard"]) -> None:
        lines = LineBuffer(_CHUNK)
        while chunk := await stream.read(_CHUNK):
            lines.feed(chunk)
            self._pass_on(lines, policy)
        lines.end()
        self._pass_on(lines, policy)

    def _pass_on(self, lines: LineBuffer, policy: Literal["inherit", "log", "discard"]) -> None:
        while (line := _next_text(lines)) is not None:
            self._last_lines.append(line)
            if policy == "log":
                logger.info("%s", one_line(line, _KEPT_CHARACTERS))
            elif policy == "inherit" and sys.stderr is not None:
                # the agent must not block if this text cannot be written
                with contextlib.suppress(OSError, ValueError):
                    print(line, file=sys.stderr)


def _next_text(lines: LineBuffer) -> str | None:
    try:
        line = lines.next_line()
    except MessageTooLarge:
        return "(a very long line)"
    return None if line is None else line.decode(errors="replace").rstrip()


def _quoted(stream: str, lines: tuple[str, ...]) -> str:
    return f"its last lines on {stream}:" + "".join(f"\n  {one_line(line)}" for line in lines[-_SHOWN_LINES:])
