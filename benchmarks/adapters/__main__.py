"""Plays a conversation with an adapter by the scripted client of the tests, and prints what the client is told.

python -m benchmarks.adapters PROGRAM INTERPRETER PACKAGE ...; the program is one of those beside this file, or of
examples/frameworks/. The interpreter has its framework and the packages, whose lines are counted.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.frameworks_clients import Client, Scripted, Talk
from tests.frameworks_conversation import ASK, CONVERSATION, EDIT, TRANSCRIPT, Prompt, Restart, Step
from tests.frameworks_support import EXAMPLES, Lines, Project, open_calls
from tests.runtime_support import V1
from tests.support import Packages
from tests.turns_support import helpers_of

PATIENCE = float(os.environ.get("PATIENCE", "20"))
"""The seconds for each turn, and for one to end that was cancelled."""


@asynccontextmanager
async def start(project: Project) -> AsyncGenerator[Client, None]:
    """A scripted client of a process, which is killed if it does not end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), str(Path(__file__).parent)])}
    with (project.home / "stderr").open("ab") as stderr:
        process = await asyncio.create_subprocess_exec(
            *project.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            env=environment,
            limit=2**24,
        )
    client = helpers_of(project.acp).ScriptedClient()
    client.wait_seconds = None
    try:
        async with client.connected(Lines(process)) as talking:
            yield Scripted(talking, project.acp.RequestError)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(process.wait(), PATIENCE)
    finally:
        if process.returncode is None:
            print("the process did not end")
            process.kill()
            await process.wait()


STEPS = [
    (step, told)
    for step, told in zip(CONVERSATION, TRANSCRIPT, strict=True)
    if not (isinstance(step, Prompt) and step.mode == EDIT)
]
"""The steps of the conversation of the tests in the mode that asks: the adapters have others, by other names."""


def as_played(step: Step) -> Step:
    """A tool is cancelled when it has been seen to start, as not all report what it does."""
    if isinstance(step, Restart):
        return step
    return replace(step, mode="", cancel_after=1000 if step.cancel_after else 0)


def show(talk: Talk) -> None:
    """Print each step, and what does not belong to one."""
    for (step, expected), found in zip(STEPS, talk.transcript, strict=False):
        print(f"\n## {step}\n   " + "\n   ".join(found), "" if found != expected else "(as ours)")
    calls = [each for each in talk.updates(slice(None)) if "toolCallId" in each]
    starts = Counter(each["toolCallId"] for each in calls if each["sessionUpdate"] == "tool_call")
    asked = [each["params"]["toolCall"]["toolCallId"] for told in talk.told for each in told if each["method"] == ASK]
    print(
        "\nopen tool calls:", len(open_calls(calls)), "of", len(starts), "- most starts of one:", max(starts.values())
    )
    print("questions:", len(asked), "- about calls that were reported:", sum(each in starts for each in asked))
    print("failed:", [str(each.get("content"))[:200] for each in calls if each.get("status") == "failed"])
    print("the first diff:", next((each["content"] for each in calls if "'type': 'diff'" in str(each)), None))
    print("the last text:", talk.text(-1))


def lines(paths: Sequence[Path]) -> int:
    """The lines that are neither blank nor a comment."""
    found = [line.strip() for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in found)


def files_of(interpreter: str, package: str) -> list[Path]:
    """The Python files of a package that an interpreter has."""
    code = f"import importlib.util; print(importlib.util.find_spec({package!r}).submodule_search_locations[0])"
    folder = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True, cwd=EXAMPLES).stdout
    return sorted(Path(folder.strip()).rglob("*.py"))


async def main(program: str, interpreter: str, *packages: str) -> None:
    """Play, and print."""
    print("lines of the program:", lines([Path(program)]))
    for package in packages:
        print(f"lines of {package}:", lines(files_of(interpreter, package)))
    with tempfile.TemporaryDirectory() as folder:
        (home := Path(folder, "home")).mkdir()
        (builds := Path(folder, "builds")).mkdir()
        acp: Any = Packages(builds)(V1)
        project = Project(acp, interpreter, Path(program).resolve(), home)
        talk = Talk(project, start, patience=PATIENCE)
        try:
            await talk.play([as_played(step) for step, _ in STEPS])
        finally:
            if talk.told:
                show(talk)
            print((home / "stderr").read_text()[-2000:])


asyncio.run(main(*sys.argv[1:]))
