"""What the user sees and does. It is the same in all versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from .acp import RequestError
from .terminal import Keyboard


class Session(Protocol):
    """A conversation with the agent."""

    async def prompt(self, line: str) -> str:
        """Send a line as a prompt; returns why the work on it has ended. Raises `RequestError`."""
        ...

    async def cancel(self) -> None:
        """Ask the agent to stop its work."""
        ...


class Screen:
    """Prints what the agent does, and asks the user."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._questions: set[asyncio.Task[Any] | None] = set()
        self._cancelling: asyncio.Task[None] | None = None
        self._busy: Session | None = None

    # --- What the agent does ---

    def say(self, text: str) -> None:
        """Print a part of the answer."""
        print(text, end="", flush=True)

    def note(self, *words: object) -> None:
        """Print what happens; words that are not text are left out."""
        print("\n*", *(word for word in words if isinstance(word, str)))

    async def choose(self, title: object, options: Mapping[str, str]) -> str | None:
        """Ask which of the options, names by id, the user wants; None if there is no answer."""
        question = asyncio.current_task()
        self._questions.add(question)
        try:
            return await self._ask(title if isinstance(title, str) else "", options)
        except asyncio.CancelledError:
            return None  # the user has cancelled the prompt, or the agent its question
        finally:
            self._questions.discard(question)

    async def _ask(self, title: str, options: Mapping[str, str]) -> str | None:
        print(f"\nThe agent asks for permission. {title}")
        for number, name in enumerate(options.values(), 1):
            print(f"  {number}  {name}")
        while (line := await self._keyboard.ask("number> ")) is not None:
            if line.isdecimal() and 1 <= int(line) <= len(options):
                return list(options)[int(line) - 1]
        return None

    # --- What the user does ---

    async def talk(self, session: Session) -> None:
        """Send what the user types, line by line until there are no more."""
        while (line := await self._keyboard.ask("> ")) is not None:
            if line.strip():
                self._busy = session
                try:
                    print(f"\n[{await session.prompt(line)}]")
                except RequestError as error:
                    print(f"\n[the agent refuses: {error}]")
                finally:
                    self._busy = None

    def interrupt(self) -> None:
        """Ctrl-C: cancel what the agent does; end the chat where it does nothing."""
        if self._busy is None:
            self._keyboard.end()
            return
        self._cancelling = asyncio.create_task(self._cancel(self._busy))

    async def _cancel(self, session: Session) -> None:
        await session.cancel()
        for question in self._questions:
            if question is not None:
                question.cancel()
