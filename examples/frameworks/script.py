"""What the scripted models of the examples say: the same in each framework, without a network.

A model answers the last prompt, after the results of the tools that it has called for it. An answer is thoughts, text,
and calls of tools. Put a real model in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """A call of a tool. Like other models, this one uses its ids again in each answer to a prompt."""

    id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One response of a model, in the pieces in which it is streamed."""

    thoughts: Sequence[str] = ()
    text: Sequence[str] = ()
    calls: Sequence[Call] = ()


STEPS = ["Read the notes", "Correct them"]


def answer(prompts: Sequence[str], results: Sequence[str]) -> Answer:
    """The next response, from all prompts of the session and the results of tools since the last one."""
    last = prompts[-1]
    match last.split(), len(results):
        case ["correct"], 0:
            return Answer(["Let me ", "look."], calls=[Call("1", "write_todos", {"steps": STEPS, "done": 0})])
        case ["correct"], 1:
            return Answer(calls=[Call("2", "read_file", {"path": "notes.txt"})])
        case ["correct"], 2:
            better = results[1].replace("colour", "color")
            return Answer(calls=[Call("3", "write_file", {"path": "notes.txt", "text": better})])
        case ["correct"], 3:
            return Answer(calls=[Call("4", "write_todos", {"steps": STEPS, "done": 2})])
        case ["correct"], _:
            return Answer(text=["I was told: ", results[2]])
        case ["count", number], 0:
            return Answer(calls=[Call("1", "count", {"to": int(number)})])
        case ["call", tool], 0:
            return Answer(calls=[Call("1", tool, {})])
        case ["remember"], _:
            return Answer(text=["You said: ", ", ".join(prompts[:-1])])
        case _:
            return Answer(text=["The tool says: ", results[-1]] if results else ["You said: ", last])
