"""Terminals: commands that agents run on the client's machine, each in a process group of its own."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from ..client import Client, RemoteAgent
from ..decision import explains
from ..dispatch import ConnectionClosed
from ..errors import InvalidParamsError, InvalidRequestError, ResourceNotFoundError
from ..types import (
    CreateTerminalRequest,
    CreateTerminalResponse,
    EnvVariable,
    KillTerminalRequest,
    KillTerminalResponse,
    ReleaseTerminalRequest,
    ReleaseTerminalResponse,
    TerminalExitStatus,
    TerminalOutputRequest,
    TerminalOutputResponse,
    WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
)
from .command_environment import terminal_environment, with_variables
from .memory import MAX_ID, memory_of
from .permission_records import PermissionSubject
from .terminal_processes import TerminalProcess

__all__ = ["ClientTerminal", "TerminalClient", "Terminals", "terminal_environment", "terminal_subject"]

_MAX_PARAMS: Final = 2**18
"""The most memory of the params of a terminal: its session and its command are kept with it."""
_CODE_STARTS: Final = ("LD_", "DYLD_", "BASH_FUNC_")
_CODE: Final = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS"})


class ClientTerminal:
    """A terminal: its command, its output, and how it has ended. It can be shown after the agent has released it."""

    def __init__(self, terminal_id: str, params: CreateTerminalRequest, limit: int, *, cwd: str = "") -> None:
        self.id: Final = terminal_id
        self.session_id: Final = params.session_id
        self.command: Final = params.command
        self.args: Final[Sequence[str]] = params.args or ()
        self.cwd: Final = cwd
        self.env: Final[Mapping[str, str]] = _variables(params)
        """The variables of the agent, which are part of the command: with them, its name may be another program."""
        self.exit_status: TerminalExitStatus | None = None
        """None while the command runs."""
        self.truncated = False
        """True if older output was dropped."""
        self.is_released = False
        self._limit = limit
        self._kept = bytearray()  # UTF-8, at most twice the limit and what arrives at once

    @property
    def output(self) -> str:
        """The output that is kept: the last bytes, from the start of a character on."""
        self._cut()
        return self._kept.decode("utf-8")

    def add(self, text: str) -> None:
        """Append output, and drop what is too old."""
        self._kept += text.encode("utf-8")
        if len(self._kept) > 2 * self._limit:  # so that each byte is moved once on average
            self._cut()
        elif len(self._kept) > self._limit:
            self.truncated = True

    def end(self, exited: asyncio.Future[TerminalExitStatus]) -> None:
        """Keep how the command has ended."""
        self.exit_status = exited.result()

    def _cut(self) -> None:
        start = len(self._kept) - self._limit
        if start <= 0:
            return
        while start < len(self._kept) and self._kept[start] & 0xC0 == 0x80:  # within a character
            start += 1
        del self._kept[:start]
        self.truncated = True


class Terminals:
    """The terminals of a connection.

    A command is a program and its arguments, without a shell; stdin is empty, stdout and stderr are one. It runs in a
    session of its own, and kill and release end what it has started: on Linux in every process group, elsewhere in the
    first. A process in a further session gets away, on Linux if it has another environment, too: there, the variable
    `ACP_TERMINAL` tells whose it is. On Windows, `taskkill` ends the tree of processes.

    `env` is the environment, to which the agent adds variables: by default `terminal_environment()`, a few variables of
    this process; pass `terminal_environment("JAVA_HOME")` for one more, `dict(os.environ)` for all, with all secrets.
    Variables of the agent that make a loader or a shell run other code are refused. All others are passed, `PATH`, too:
    they are in `ClientTerminal.env`, and in the `terminal_subject` that a permission is for.

    `max_bytes` bounds the output that is kept of each, whatever the agent asks for, and is the default. `max_terminals`
    counts those that are not released, of all sessions. `terminate_seconds` is the time between SIGTERM and SIGKILL.
    `on_output` is called with each terminal and its new text.
    """

    @explains
    def __init__(
        self,
        *,
        env: Mapping[str, str] | None = None,
        max_bytes: int = 1 << 20,
        max_terminals: int = 50,
        terminate_seconds: float = 1.0,
        on_output: Callable[[ClientTerminal, str], object] | None = None,
    ) -> None:
        self._env = env
        self._max_bytes = max_bytes
        self._max_terminals = max_terminals
        self._terminate_seconds = terminate_seconds
        self._on_output = on_output
        self._open: dict[str, tuple[ClientTerminal, TerminalProcess]] = {}  # released ones too, until they have ended
        self._released: deque[ClientTerminal] = deque(maxlen=max_terminals)
        self._starting = 0
        self._is_closed = False

    def find(self, terminal_id: str) -> ClientTerminal | None:
        """A terminal, to be shown in a tool call. The last ones that were released are found, too."""
        if terminal_id in self._open:
            return self._open[terminal_id][0]
        return next((each for each in self._released if each.id == terminal_id), None)

    async def create(self, params: CreateTerminalRequest, *, cwd: str | None = None) -> ClientTerminal:
        """Start a command, in the folder `cwd` if the agent names none.

        Raises `InvalidParamsError` for a command that cannot be started, and `InvalidRequestError` above the limit.
        """
        self._check_room()
        if len(params.session_id) > MAX_ID or memory_of(params) > _MAX_PARAMS:
            limits = f"`sessionId` may have {MAX_ID} characters, and all take {_MAX_PARAMS} bytes of memory"
            raise InvalidParamsError(f"the params of the terminal are too long: {limits}")
        folder = params.cwd or cwd or os.getcwd()
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise InvalidParamsError("`cwd` must be the absolute path of a folder")
        env = with_variables(terminal_environment() if self._env is None else self._env, _checked(params.env or ()))
        asked = params.output_byte_limit
        limit = min(asked, self._max_bytes) if isinstance(asked, int) else self._max_bytes
        shown = ClientTerminal(os.urandom(8).hex(), params, limit, cwd=folder)
        process = TerminalProcess(partial(self._add, shown))
        self._starting += 1
        try:
            await process.start([shown.command, *shown.args], cwd=folder, env=env)
        except (OSError, ValueError) as error:
            raise InvalidParamsError(_why_not_started(shown.command, error)) from error
        finally:
            self._starting -= 1
        self._open[shown.id] = shown, process
        process.exited.add_done_callback(shown.end)
        if self._is_closed:
            await self._release(shown, process)
            raise InvalidRequestError("the connection has ended")
        return shown

    def _check_room(self) -> None:
        if self._is_closed:
            raise InvalidRequestError("the connection has ended")
        if len(self._open) + self._starting >= self._max_terminals:
            raise InvalidRequestError(f"there are {self._max_terminals} terminals: release one first")

    def _add(self, shown: ClientTerminal, text: str) -> None:
        shown.add(text)
        if self._on_output is not None:
            self._on_output(shown, text)

    def output(self, session_id: str, terminal_id: str) -> ClientTerminal:
        """A terminal of a session. Raises `ResourceNotFoundError` if the session has none with this id."""
        return self._of(session_id, terminal_id)[0]

    async def wait(self, session_id: str, terminal_id: str) -> TerminalExitStatus:
        """Wait until the command has ended. Several callers can wait; a release ends the wait, too."""
        _, process = self._of(session_id, terminal_id)
        return await asyncio.shield(process.exited)

    async def kill(self, session_id: str, terminal_id: str) -> None:
        """End the command with all processes that it has started, and keep output and status."""
        _, process = self._of(session_id, terminal_id)
        await process.end(self._terminate_seconds)

    async def release(self, session_id: str, terminal_id: str) -> None:
        """End the command like `kill`, and forget the id at once."""
        await self._release(*self._of(session_id, terminal_id))

    async def release_session(self, session_id: str) -> None:
        """Release the terminals of a session: call it when the session is closed."""
        await self._release_all([each for each in self._open.values() if each[0].session_id == session_id])

    async def close(self) -> None:
        """Release all terminals, and start no more."""
        self._is_closed = True
        await self._release_all(list(self._open.values()))

    def _of(self, session_id: str, terminal_id: str) -> tuple[ClientTerminal, TerminalProcess]:
        shown, process = self._open.get(terminal_id, (None, None))
        if shown is None or process is None or shown.session_id != session_id or shown.is_released:
            raise ResourceNotFoundError("the session has no terminal with this id")
        return shown, process

    async def _release_all(self, terminals: Sequence[tuple[ClientTerminal, TerminalProcess]]) -> None:
        await asyncio.gather(*(self._release(*each) for each in terminals))

    async def _release(self, shown: ClientTerminal, process: TerminalProcess) -> None:
        shown.is_released = True
        try:
            await process.end(self._terminate_seconds)
        except asyncio.CancelledError:
            await process.kill()
            raise
        finally:
            await process.close()
            if self._open.pop(shown.id, None) is not None:
                self._released.append(shown)


class TerminalClient(Client):
    """A client whose agent runs commands. Replace `terminals` for other limits.

    Agents run what they like, with the rights of the user. To ask before each command, override `terminal_create`, and
    call it with `super()`: `terminal_subject` is what to show, and to decide by. Override `terminal_folder` if the
    client knows the folders of its sessions.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.terminals = Terminals()

    def terminal_folder(self, session_id: str) -> str | None:
        """The folder in which commands of a session start if the agent names none; None for that of this process."""
        return None

    async def terminal_create(self, params: CreateTerminalRequest) -> CreateTerminalResponse:
        """Start a command."""
        shown = await self.terminals.create(params, cwd=self.terminal_folder(params.session_id))
        return CreateTerminalResponse(terminal_id=shown.id)

    async def terminal_output(self, params: TerminalOutputRequest) -> TerminalOutputResponse:
        """Get the output so far."""
        shown = self.terminals.output(params.session_id, params.terminal_id)
        return TerminalOutputResponse(output=shown.output, truncated=shown.truncated, exit_status=shown.exit_status)

    async def terminal_wait_for_exit(self, params: WaitForTerminalExitRequest) -> WaitForTerminalExitResponse:
        """Wait for the end of the command."""
        status = await self.terminals.wait(params.session_id, params.terminal_id)
        return WaitForTerminalExitResponse(exit_code=status.exit_code, signal=status.signal)

    async def terminal_kill(self, params: KillTerminalRequest) -> KillTerminalResponse:
        """End the command."""
        await self.terminals.kill(params.session_id, params.terminal_id)
        return KillTerminalResponse()

    async def terminal_release(self, params: ReleaseTerminalRequest) -> ReleaseTerminalResponse:
        """Release the terminal."""
        await self.terminals.release(params.session_id, params.terminal_id)
        return ReleaseTerminalResponse()

    async def connection_closed(self, reason: ConnectionClosed) -> None:
        """Release all terminals."""
        await self.terminals.close()
        await super().connection_closed(reason)


@explains
def terminal_subject(params: CreateTerminalRequest, *, cwd: str | None = None) -> PermissionSubject:
    """A command as the subject of a permission: with arguments, folder and the variables of the agent.

    The folder is `cwd` if the agent names none, as in `Terminals.create`.
    """
    folder = params.cwd or cwd or os.getcwd()
    return PermissionSubject(
        kind="execute",
        paths=(folder,),
        command=params.command,
        args=tuple(params.args or ()),
        folder=folder,
        env=tuple(sorted(_variables(params).items())),
    )


def _variables(params: CreateTerminalRequest) -> dict[str, str]:
    return {each.name: each.value for each in params.env or ()}


def _why_not_started(command: str, error: OSError | ValueError) -> str:
    reason = (isinstance(error, OSError) and error.strerror) or "it is not valid on this system"
    shown = command[:200].encode("utf-8", "replace").decode()
    return f"{shown} cannot be started: {reason}. A command is a program and its `args`; there is no shell"


def _checked(variables: Sequence[EnvVariable]) -> dict[str, str]:
    """The variables of the agent. Raises `InvalidParamsError` for those that make other programs run code."""
    for each in variables:
        if not each.name or "=" in each.name or "\0" in each.name + each.value:
            raise InvalidParamsError("a variable of `env` has no valid name or value")
        if each.name.upper() in _CODE or each.name.upper().startswith(_CODE_STARTS):
            raise InvalidParamsError(f"{each.name[:100]} must not be set: programs run other code with it")
    return {each.name: each.value for each in variables}
