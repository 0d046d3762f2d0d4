"""Logging in: by the agent, in a terminal, or with environment variables."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ..client import Client, RemoteAgent
from ..errors import AuthenticationRequiredError
from ..types import AuthMethod, AuthMethodAgent, AuthMethodTerminal
from .login_methods import authenticate, terminal_env

__all__ = ["LoginClient", "LoginError", "LoginRestart"]

T = TypeVar("T")


class LoginError(Exception):
    """The user is not logged in: this client supports no login method of the agent, or the login has failed."""


class LoginRestart(Exception):  # no error: it tells what comes next
    """The agent has to be started again, with `env` in its environment: as `extra_env` of `spawn_agent`."""

    def __init__(self, env: Mapping[str, str]) -> None:
        super().__init__(f"start the agent again with {', '.join(env)} in its environment")
        self.env = dict(env)


class LoginClient(Client):
    """A client that logs in when the agent asks for it: `await self.with_login(lambda: agent.session_new(request))`.

    For a login in a terminal, set `login_command`, and `login_env` and `login_folder` if they are not those of this
    process, as for `spawn_agent`; and say so in `initialize`, with `offer_terminal_login`. It is for agents that run on
    this machine: one on the network gets none.
    """

    def __init__(self, agent: RemoteAgent) -> None:
        super().__init__(agent)
        self.login_command: Sequence[str] = ()
        self.login_env: Mapping[str, str] | None = None
        self.login_folder: str | None = None
        self._logging_in = asyncio.Lock()
        self._logins = 0

    async def choose_login(self, methods: Sequence[AuthMethod]) -> AuthMethod | None:
        """Let the user choose one of `methods`, all of which this client can do, or None. By default, the first."""
        return methods[0]

    async def ask_variables(self, method: AuthMethod) -> Mapping[str, str] | None:
        """Ask for the values of `method.vars`, of the extension `auth-env-var`; None if the user does not have them."""
        return None

    async def run_login(self, command: Sequence[str], env: Mapping[str, str]) -> int:
        """Run a command in a terminal of the user, and return its exit status. By default, it is that of this process.

        Raises `LoginError` if there is none.
        """
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise LoginError("a login in a terminal needs a terminal, which this process does not have")
        process = await asyncio.create_subprocess_exec(*command, env=dict(env), cwd=self.login_folder)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()

    async def with_login(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call; if the agent wants it, log in, and call once more.

        Calls that fail at the same time share a login that succeeds. Raises what the second call does; `LoginError`,
        `LoginRestart`, or the `RequestError` with which the agent refuses the login.
        """
        logins = self._logins
        try:
            return await call()
        except AuthenticationRequiredError:
            async with self._logging_in:
                if self._logins == logins:
                    await self.log_in()
                    self._logins += 1
        return await call()

    async def log_in(self) -> None:
        """Log in by a method that the user chooses. Raises as `with_login` does."""
        methods = [each for each in self.agent.negotiated.auth_methods or () if self._can(each)]
        if not methods:
            raise LoginError("the agent has no login method that this client supports")
        method = await self.choose_login(methods)
        if method is None:
            raise LoginError("the user has not logged in")
        chosen: Any = method  # which other kinds there are depends on the schema
        if isinstance(chosen, AuthMethodAgent):
            await authenticate(self.agent, chosen)
        elif isinstance(chosen, AuthMethodTerminal):
            env = {**(os.environ if self.login_env is None else self.login_env), **terminal_env(chosen)}
            status = await self.run_login([*self.login_command, *(chosen.args or ())], env)
            if status:
                raise LoginError(f"the login has failed with exit status {status}")
        else:
            variables = await self.ask_variables(method)
            if variables is None:
                raise LoginError("the user has not logged in")
            raise LoginRestart(variables)

    def _can(self, method: Any) -> bool:
        if isinstance(method, AuthMethodTerminal):
            # an agent on the network must not choose arguments and variables of a program here
            return bool(self.login_command) and self.agent.peer_kind != "network"
        can_ask = type(self).ask_variables is not LoginClient.ask_variables
        return isinstance(method, AuthMethodAgent) or (can_ask and hasattr(method, "vars"))
