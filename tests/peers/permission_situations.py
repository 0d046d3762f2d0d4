"""Ten commands, five edits and two reads: what the user or a rule allows is done, once, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.peers.situations import Found, do, end_of, found, situation
from tests.peers.world import World

COMMANDS, EDITS, READS = 10, 5, 2


class Work:
    """What a session is to do, and what of it was done."""

    def __init__(self, world: World, session: Any) -> None:
        self.world, self.session, self.folder = world, session, Path(session.cwd)
        for number in range(READS):
            (self.folder / f"read{number}.txt").write_text(f"told-file{number}\n", encoding="utf-8")
        world.heard.clear()
        self.commands = [f"echo {number} >> {self.folder}/ran.txt" for number in range(COMMANDS)]
        self.runs = [{"run": command} for command in self.commands]
        self.edits = [{"write": f"{self.folder}/edit{number}.txt", "text": "text\n"} for number in range(EDITS)]
        self.reads = [{"read": f"{self.folder}/read{number}.txt"} for number in range(READS)]
        self.ends = Counter[str]()

    @property
    def steps(self) -> list[dict[str, str]]:
        """All steps, commands and edits in turn."""
        pairs = zip(self.runs[:EDITS], self.edits, strict=True)
        return [*(step for pair in pairs for step in pair), *self.runs[EDITS:], *self.reads]

    async def at_once(self, steps: Iterable[dict[str, str]]) -> None:
        """Take the steps in one turn."""
        self.ends[await end_of(self.session.prompt(do(*steps)))] += 1

    async def one_by_one(self, steps: Iterable[dict[str, str]]) -> None:
        """Take each step in a turn of its own: after a "no", some agents end the turn."""
        for step in steps:
            await self.at_once([step])

    @property
    def ran(self) -> list[str]:
        """What commands have written."""
        file = self.folder / "ran.txt"
        return file.read_text(encoding="utf-8").split() if file.exists() else []

    @property
    def done(self) -> tuple[int, int, int]:
        """How many commands, edits and reads were done; a command that ran twice counts twice."""
        edits = sum(path.read_text(encoding="utf-8") == "text\n" for path in self.folder.glob("edit*.txt"))
        return len(self.ran), edits, sum(f"told-file{number}" in self.world.heard for number in range(READS))

    @property
    def text(self) -> str:
        """What was done, in words."""
        runs, edits, reads = self.done
        ends = ", ".join(f"{count} × {end}" for end, count in self.ends.items())
        return f"{runs} commands, {edits} edits, {reads} reads; {len(self.world.user.asked)} dialogs; turns: {ends}"


async def _work(world: World, keeper: Any, answer: str, *rules: tuple[str, dict[str, str]]) -> Work:
    """A session in which the user answers so, with rules."""
    session = await world.open(keeper)
    made = [world.helpers.PermissionRule(decision, **conditions) for decision, conditions in rules]
    world.user.start(answer, world.helpers.PermissionRules(*made))
    return Work(world, session)


@situation("10 commands, 5 edits, 2 reads, the user allows each")
async def allowed(world: World, keeper: Any) -> Found:
    """All are done, once each, and the user was asked about commands and edits."""
    work = await _work(world, keeper, "allow")
    await work.at_once(work.steps)
    is_asked = len(world.user.asked) >= COMMANDS + EDITS
    return found(work.done == (COMMANDS, EDITS, READS) and is_asked, work.text)


@situation("the same, the user denies each")
async def denied(world: World, keeper: Any) -> Found:
    """No command and no edit is done."""
    work = await _work(world, keeper, "deny")
    await work.one_by_one(work.steps)
    return found(work.done[:2] == (0, 0) and world.user.asked, work.text)


@situation("`allow` by kind and folder")
async def allowed_by_kind(world: World, keeper: Any) -> Found:
    """All are done without a dialog."""
    session = await world.open(keeper)
    kinds = ("execute", {"kind": "execute"}), ("edit", {"path": session.cwd}), ("read", {"path": session.cwd})
    rules = [world.helpers.PermissionRule("allow", **{"kind": kind, **more}) for kind, more in kinds]
    world.user.start("deny", world.helpers.PermissionRules(*rules))
    work = Work(world, session)
    await work.one_by_one(work.steps)
    return found(work.done == (COMMANDS, EDITS, READS) and not world.user.asked, work.text)


@situation("`allow` by the commands")
async def allowed_by_command(world: World, keeper: Any) -> Found:
    """All commands run without a dialog."""
    work = await _work(world, keeper, "deny")
    rules = [world.helpers.PermissionRule("allow", command=command) for command in work.commands]
    world.user.rules = world.helpers.PermissionRules(*rules)
    await work.one_by_one(work.runs)
    return found(work.done[0] == COMMANDS and not world.user.asked, work.text)


@situation("`deny` by kind")
async def denied_by_kind(world: World, keeper: Any) -> Found:
    """None is done, and nobody is asked."""
    work = await _work(world, keeper, "allow", ("deny", {"kind": "execute"}), ("deny", {"kind": "edit"}))
    await work.one_by_one([*work.runs, *work.edits])
    return found(work.done[:2] == (0, 0) and not world.user.asked, work.text)


@situation("`deny` by the commands")
async def denied_by_command(world: World, keeper: Any) -> Found:
    """No command runs, and nobody is asked."""
    work = await _work(world, keeper, "allow")
    rules = [world.helpers.PermissionRule("deny", command=command) for command in work.commands]
    world.user.rules = world.helpers.PermissionRules(*rules)
    await work.one_by_one(work.runs)
    return found(work.done[0] == 0 and not world.user.asked, work.text)


@situation("`deny` by folder")
async def denied_by_path(world: World, keeper: Any) -> Found:
    """No edit is done, and nobody is asked."""
    work = await _work(world, keeper, "allow")
    rule = world.helpers.PermissionRule("deny", path=str(work.folder))
    world.user.rules = world.helpers.PermissionRules(rule)
    await work.one_by_one(work.edits)
    return found(work.done[1] == 0 and not world.user.asked, work.text)


@situation('"always" for a command that comes again')
async def always(world: World, keeper: Any) -> Found:
    """The user is asked once."""
    work = await _work(world, keeper, "allow_always")
    (work.folder / "ran.txt").touch()  # a path of the question, which is another one once it is there
    await work.one_by_one([work.runs[0]] * 3)
    return found(work.done[0] == 3 and len(world.user.asked) == 1, work.text)
