"""The client that published agents get: made by acpgen from this checkout, with a user who answers as a test says.

What may change between releases of the helpers is in the functions at the end, a few lines each.
"""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("sessions", "permissions", "recovery")
BUILD_SECONDS = 600


def build(folder: Path, protocol: int) -> ModuleType:
    """The package of a client, built into `folder` and imported."""
    name = f"peer_acp_{protocol}"
    options = [option for part in PARTS for option in ("--with", part)]
    if protocol == 1:
        options += ["--extension", "token-usage"]
    command = [sys.executable, "-m", "acpgen", "build", "--protocol", str(protocol), "--role", "client", *options]
    subprocess.run([*command, "--out", folder / name], cwd=ROOT, check=True, capture_output=True, timeout=BUILD_SECONDS)
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    importlib.import_module(f"{name}.helpers")
    return importlib.import_module(name)


@dataclass
class User:
    """The user of a client, for all connections of it: what they answer, and what they were asked."""

    answer: str | None = "allow"
    """That of `ask_permission`; None if they leave the dialog open; "select" for a client without rules and records."""
    rules: Any = None
    """The `PermissionRules` that answer before them."""
    asked: list[list[str]] = field(default_factory=list)
    """The lines of each dialog."""
    shown: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a dialog is shown."""
    closed: int = 0
    """How many dialogs were closed from outside."""

    def start(self, answer: str | None = "select", rules: Any = None) -> None:
        """Begin a situation."""
        self.answer, self.rules, self.closed = answer, rules, 0
        self.asked.clear()
        self.shown.clear()


def client_class(acp: ModuleType, user: User) -> type[Any]:
    """The class of the clients that ask `user`."""
    helpers = importlib.import_module(f"{acp.__name__}.helpers")

    class Peer(helpers.KeptClient, helpers.PermissionClient):  # type: ignore[name-defined, misc]
        """A client whose sessions a keeper keeps."""

        @property
        def permissions(self) -> Any:
            """The rules of the situation."""
            return user.rules or self._none

        @permissions.setter
        def permissions(self, rules: Any) -> None:
            self._none = rules

        async def answer_permission(self, session: Any, request: Any) -> Any:
            """Answer without rules, where a situation is not about them."""
            if user.answer == "select":
                user.asked.append([])
                return helpers.select_permission(request, "allow_once")
            return await super().answer_permission(session, request)

        async def ask_permission(self, question: Any) -> Any:
            """Answer as the user of the situation does."""
            user.asked.append(question.lines)
            user.shown.set()
            if user.answer is not None:
                return _picked(question, user.answer)
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                user.closed += 1
                raise

    return Peer


def _picked(question: Any, answer: str) -> Any:
    """What the user picks: where several options are of one kind, as those of qwen are, the first that says so."""
    if not getattr(question, "is_choice", False):
        return answer
    kind = "allow" if answer.startswith("allow") else "reject"
    return next(option for option in question.request.options if option.kind.startswith(kind))


# --- What may change -------------------------------------------------------------------------------------------------


async def ask(session: Any, words: str, **options: Any) -> str:
    """Send a prompt, and return the answer. Since 0.4, an end that is no answer is raised; before, it is returned."""
    text: str = await session.ask(words, **options)
    return text


def mode_of(session: Any) -> tuple[str | None, list[str], str | None]:
    """The mode of a session, those that there are, and the option that stands for it."""
    state = session.state
    if modes := getattr(state, "available_modes", []):  # qwen has both, which do not agree
        return state.current_mode_id, [mode.id for mode in modes], None
    for option in state.config_options:
        if option.category == "mode" and option.type == "select":
            flat = [each for group in option.options for each in getattr(group, "options", None) or [group]]
            return option.current_value, [each.value for each in flat], getattr(option, "config_id", None) or option.id
    return None, [], None


async def set_mode(acp: Any, client: Any, session: Any, mode: str) -> None:
    """Choose a mode: by the session where it can, which 0.3 cannot."""
    if hasattr(session, "set_mode"):
        await session.set_mode(mode)
    elif option := mode_of(session)[2]:
        kind = getattr(acp, "SetSessionConfigOptionRequestValueId", None) or acp.SetSessionConfigOptionRequestId
        request = kind(session_id=session.id, config_id=option, value=mode)
        session.state.apply(await client.agent.session_set_config_option(request))
    else:
        request = acp.SetSessionModeRequest(session_id=session.id, mode_id=mode)
        await client.agent.session_set_mode(request)
        session.state.set_mode(request)


async def authenticate(acp: Any, client: Any, method: str) -> None:
    """Log in by a method."""
    if hasattr(acp, "AuthenticateRequest"):
        await client.agent.authenticate(acp.AuthenticateRequest(method_id=method))
    else:
        await client.agent.auth_login(acp.LoginAuthRequest(method_id=method))


async def restart(keeper: Any) -> bool:
    """Start the agent again while it runs; False if the keeper cannot, as in 0.3."""
    if not hasattr(keeper, "restart"):
        return False
    await keeper.restart()
    return True
