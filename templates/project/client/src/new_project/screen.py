"""What the user sees and does. It is the same in all versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .acp import RequestError
from .terminal import Keyboard, diff, in_one_line, on_interrupt, shown


class Conversation(Protocol):
    """A session with the agent."""

    async def prompt(self, line: str) -> str:
        """Send a line, and show what the agent does; returns why it has ended. Raises `RequestError`."""
        ...

    async def cancel(self) -> None:
        """Ask the agent to stop its work."""
        ...


@dataclass(frozen=True)
class Blank:
    """A value to enter. `read` makes it of a line, and raises `ValueError` for one that does not fit."""

    label: str
    options: Sequence[str]
    read: Callable[[str], Any]
    is_needed: bool


class Screen:
    """Prints what the agent does, and asks the user."""

    def __init__(self, keyboard: Keyboard) -> None:
        self._keyboard = keyboard
        self._one_at_a_time = asyncio.Lock()
        self._is_busy = False
        self._cancelling: asyncio.Task[None] | None = None

    # --- What the agent does ---

    def say(self, text: str) -> None:
        """Print a part of the answer."""
        print(shown(text), end="", flush=True)

    def note(self, title: object, status: object = "") -> None:
        """Print a step of the work."""
        print(f"\n* {shown(str(title or ''))}{f': {status}' if status else ''}")

    def change(self, path: str, old: str, new: str) -> None:
        """Print what differs between two texts."""
        print(diff(path, old, new))

    async def choose(self, question: str, names: Sequence[str]) -> int | None:
        """Ask which of `names` the user wants; returns its index, None if there is no answer."""
        async with self._one_at_a_time:
            print(f"\n{shown(question)}")
            return await self._keyboard.choose(names)

    async def fill_in(
        self, about: Sequence[str], blanks: Mapping[str, Blank]
    ) -> dict[str, Any] | Literal["decline", "cancel"]:
        """Ask for the values of a form. An empty line leaves one out; the end of the input gives no answer."""
        async with self._one_at_a_time:
            print("\n" + "\n  ".join(in_one_line(each) for each in about if each))
            if number := await self._keyboard.choose(["Answer", "Decline"]):
                return "decline"
            values: dict[str, Any] = {}
            try:
                if number is None:
                    raise EOFError
                for name, blank in blanks.items():
                    await self._enter(name, blank, values)
            except EOFError:
                return "cancel"
            return values

    async def _enter(self, name: str, blank: Blank, values: dict[str, Any]) -> None:
        print(in_one_line(blank.label))
        for number, option in enumerate(blank.options, 1):
            print(f"  {number}  {in_one_line(option)}")
        while (line := await self._keyboard.ask("value> ")) is not None:
            try:
                if line:
                    values[name] = blank.read(line)
                elif blank.is_needed:
                    raise ValueError("a value is required")
                return
            except ValueError as error:
                print(f"  {in_one_line(str(error))}")
        raise EOFError

    # --- What the user does ---

    async def talk(self, conversation: Conversation) -> None:
        """Send what the user types, line by line until there are no more."""
        talking = asyncio.current_task()
        with on_interrupt(lambda: self._interrupt(conversation, talking)):
            while (line := await self._keyboard.ask("> ")) is not None:
                if line.strip():
                    await self._prompt(conversation, line)

    async def _prompt(self, conversation: Conversation, line: str) -> None:
        self._is_busy = True
        try:
            print(f"\n[{await conversation.prompt(line)}]")
        except RequestError as error:
            print(f"\n[the agent refuses: {error}]")
        finally:
            self._is_busy = False
            self._cancelling = None

    def _interrupt(self, conversation: Conversation, talking: asyncio.Task[Any] | None) -> None:
        """Ctrl-C: cancel what the agent does; where it does nothing, or does not stop, end the chat."""
        if self._is_busy and self._cancelling is None:
            self._cancelling = asyncio.create_task(conversation.cancel())
        elif self._is_busy and talking is not None:
            talking.cancel()
        else:
            self._keyboard.end()
