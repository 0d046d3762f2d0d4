"""Published agents in situations that clients meet, as a table: `nox -s peers`, or `python -m tests.peers`."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import os
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import acpgen
from tests.interop import peers
from tests.peers import agents, clients, end_situations, model, permission_situations, turn_situations
from tests.peers.situations import SITUATIONS, Found, Situation, found
from tests.peers.world import World, becomes, has_ended

HOME = Path.home() / ".cache" / "acpgen-peers"
MODULES = (permission_situations, turn_situations, end_situations)
"""The modules of the situations, in the order of the table."""
ORDER = {module.__name__: number for number, module in enumerate(MODULES)}
CHOICE = sorted(SITUATIONS, key=lambda each: ORDER[each.play.__module__])
NOTHING_LEFT = "what is left running at the end"
MARKS = {"yes": "✓", "no": "✗", "agent": "~", "-": "–"}
Table = dict[str, Found]


@contextlib.contextmanager
def _model() -> Iterator[tuple[str, set[str]]]:
    """A model that runs during the block: its URL, and what it is told."""
    server = model.serve()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.heard
    finally:
        server.shutdown()
        server.server_close()


async def _attempt(situation: Situation, world: World, keeper: Any) -> Found:
    """Play a situation in the time that it has."""
    try:
        return await asyncio.wait_for(situation.play(world, keeper), situation.seconds)
    except (asyncio.TimeoutError, TimeoutError):
        return Found("no", "it does not end in its time")
    except Exception as error:  # noqa: BLE001 - it is a row, and the others go on
        return Found("no", f"{type(error).__name__}: {error}"[:200])
    finally:
        world.at_start = None


async def _play(world: World, chosen: Sequence[Situation], table: Table) -> None:
    """All situations; after one that was not as it must be, the agent is started anew."""
    waiting = deque(chosen)
    while waiting:
        count = len(waiting)
        try:
            async with world.connected() as keeper:
                while waiting:
                    situation, start = waiting.popleft(), time.monotonic()
                    table[situation.name] = now = await _attempt(situation, world, keeper)
                    seconds = time.monotonic() - start
                    _log(f"{world.name} {situation.name}: {now.verdict}, {now.text} ({seconds:.0f} s)")
                    world.lines.clear()
                    if now.verdict == "no":
                        break
        except Exception as error:  # noqa: BLE001 - a start that fails, or an end
            _log(f"{world.name}: {type(error).__name__}: {error}"[:300])
            if len(waiting) == count:
                table[waiting.popleft().name] = Found("no", f"it does not start: {type(error).__name__}")


async def _end(world: World) -> Found:
    """End what the agent has left running."""
    await becomes(lambda: not world.processes(), 10)
    left = [pid for pid in world.processes() if not has_ended(pid)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return found(not left, f"{len(left)} processes" if left else "nothing")


async def _agent(agent: agents.Published, acp: Any, options: argparse.Namespace, table: Table) -> None:
    """Fill the table of one agent."""
    chosen = [each for each in CHOICE if not options.situation or each.name in options.situation]
    programs = await asyncio.to_thread(agents.install, agent, peers.home(HOME) / "agents")
    with (
        tempfile.TemporaryDirectory(prefix="acpgen-peers-", ignore_cleanup_errors=True) as name,
        _model() as (url, heard),
    ):
        folder = Path(name).resolve()
        home, work = folder / "home", folder / "work"
        for each in (home, work):
            each.mkdir()
        ready = agents.prepare(agent, programs, home, url)
        world = World(acp, ready, work, protocol=options.protocol, heard=heard)
        try:
            await _play(world, chosen, table)
        finally:
            table[NOTHING_LEFT] = await _end(world)


async def _all(tables: Mapping[agents.Published, Table], acp: Any, options: argparse.Namespace) -> None:
    """Fill the tables, those of several agents at once. SIGTERM ends it as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    places = asyncio.Semaphore(options.jobs)

    async def one(agent: agents.Published, table: Table) -> None:
        async with places:
            try:
                await _agent(agent, acp, options, table)
            except peers.MissingPeerError as error:
                table[NOTHING_LEFT] = Found("-", f"it needs {error}")

    await asyncio.gather(*(one(agent, table) for agent, table in tables.items()))


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _table(tables: Mapping[agents.Published, Table], options: argparse.Namespace) -> str:
    """The results as Markdown."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    titles = {each.name: each.title for each in CHOICE} | {NOTHING_LEFT: NOTHING_LEFT}
    names = [name for name in titles if any(name in table for table in tables.values())]
    rows = [["situation", *(f"{agent.name} {agent.version}" for agent in tables)], ["---"] * (len(tables) + 1)]
    for name in names:
        cells = [table.get(name, Found("-", "")) for table in tables.values()]
        rows.append([titles[name], *(f"{MARKS[cell.verdict]} {cell.text}".replace("|", "/") for cell in cells)])
    head = f"acpgen {acpgen.__version__}, protocol {options.protocol}, {today}, Python {sys.version.split()[0]}"
    legend = "✓ as it must be, ✗ not, ~ not, and no client can change it, – the agent or the client has no such thing"
    return "\n".join(
        [head, "", *(f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in rows), "", legend]
    )


def main() -> int:
    """Run what was asked for; the exit status is 1 if it was stopped. Then the table has what was found until then."""
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    names = [agent.name for agent in agents.AGENTS]
    parser.add_argument("--only", action="append", choices=names, help="an agent, and no other; may be repeated")
    parser.add_argument(
        "--situation",
        action="append",
        choices=[each.name for each in CHOICE],
        metavar="NAME",
        help="one of: %(choices)s",
    )
    parser.add_argument("--protocol", type=int, choices=(1, 2), default=1)
    parser.add_argument("--jobs", type=int, default=2, help="how many agents at once (2)")
    parser.add_argument("--out", type=Path, help="a file for the table, besides stdout")
    options = parser.parse_args()
    chosen = [agent for agent in agents.AGENTS if not options.only or agent.name in options.only]
    chosen = [agent for agent in chosen if options.protocol == 1 or agent.speaks_2]
    tables: dict[agents.Published, Table] = {agent: {} for agent in chosen}
    status = 0
    with tempfile.TemporaryDirectory(prefix="acpgen-peers-") as folder:
        acp = clients.build(Path(folder), options.protocol)
        try:
            asyncio.run(_all(tables, acp, options))
        except (KeyboardInterrupt, asyncio.CancelledError):
            status = 1
    text = _table(tables, options)
    print(text)
    if options.out:
        options.out.write_text(text + "\n", encoding="utf-8")
    return status


if __name__ == "__main__":
    raise SystemExit(main())
