"""Part `stdio`: the same agent on each SDK, from start to end."""

from __future__ import annotations

import statistics
from functools import partial

from benchmarks.conversation import Conversation
from benchmarks.lab import BARE, HERE, OURS, PYTHON_SDK, TYPESCRIPT_SDK, Lab
from benchmarks.rounds import Measure, Sample, interleave, measures

BLOCKING = "blocking"
START = "start to initialize response"
PROMPTS, PIPELINED = "prompts, updates in one turn", "prompts, several at a time"
LATER = "prompts, after thousands"
PROMPTS_BY_TURNS = "prompts, one update a turn"
UPDATES, UPDATES_BY_TURNS = "updates, all in one turn", "updates, one a turn"
CPU, MEMORY = "CPU per prompt", "memory"
UPDATES_A_PROMPT = 10


def agents(lab: Lab) -> dict[str, tuple[str, ...]]:
    """The commands of the agents that are there."""
    found = {OURS: lab.in_python("agents/agent_acpgen.py", lab.package.parent)}
    if lab.peers.has("agent-client-protocol"):
        found[PYTHON_SDK] = lab.in_python("agents/agent_python_sdk.py")
    if lab.peers.typescript:
        node, folder = lab.peers.typescript
        found[TYPESCRIPT_SDK] = (*node, str(HERE / "agents" / "agent_typescript_sdk.mjs"), str(folder))
    found[BARE] = lab.in_python("agents/agent_asyncio.py")
    found[BLOCKING] = lab.in_python("agents/agent_blocking.py")
    return found


def measure(lab: Lab) -> list[Measure]:
    """Starts first, and then conversations: one process a round, in which all else is measured."""
    commands = agents(lab)
    for command in commands.values():
        _start(lab, command)
    starts = {who: partial(_start, lab, command) for who, command in commands.items()}
    talks = {who: partial(_talk, lab, command) for who, command in commands.items()}
    units = dict.fromkeys((PROMPTS, LATER, PIPELINED, PROMPTS_BY_TURNS, UPDATES, UPDATES_BY_TURNS), "/s")
    units |= {CPU: "µs", MEMORY: "MiB"}
    found = measures("stdio", {START: "ms"}, interleave(starts, lab.sizes.rounds))
    found += measures("stdio", units, interleave(talks, lab.sizes.rounds))
    return [each for each in found if each.values]


def _start(lab: Lab, command: tuple[str, ...]) -> Sample:
    taken = []
    for _ in range(lab.sizes.starts):
        conversation = Conversation(command, lab.log)
        conversation.close()
        taken.append(conversation.start_seconds * 1000)
    return {START: statistics.median(taken)}


def _talk(lab: Lab, command: tuple[str, ...]) -> Sample:
    sizes = lab.sizes
    conversation = Conversation(command, lab.log)
    conversation.prompts(sizes.warm_up, UPDATES_A_PROMPT)
    before = conversation.cpu_seconds()
    seconds = conversation.prompts(sizes.prompts, UPDATES_A_PROMPT)
    used = conversation.cpu_seconds() - before
    side_by_side = conversation.pipelined(sizes.prompts, UPDATES_A_PROMPT, sizes.window)
    by_turns = conversation.prompts(sizes.prompts_by_turns, UPDATES_A_PROMPT, turns=True)
    memory = conversation.memory()
    flood = conversation.prompts(1, sizes.updates)
    flood_by_turns = conversation.prompts(1, sizes.updates_by_turns, turns=True)
    later = conversation.prompts(sizes.prompts_by_turns, UPDATES_A_PROMPT)
    conversation.close()
    conversation.check()
    return {
        PROMPTS: sizes.prompts / seconds,
        LATER: sizes.prompts_by_turns / later,
        PIPELINED: sizes.prompts / side_by_side,
        PROMPTS_BY_TURNS: sizes.prompts_by_turns / by_turns,
        UPDATES: sizes.updates / flood,
        UPDATES_BY_TURNS: sizes.updates_by_turns / flood_by_turns,
        CPU: used / sizes.prompts * 1e6,
        MEMORY: memory,
    }
