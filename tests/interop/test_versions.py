"""Which version the first request gets: our agent of two versions beside the router of the TypeScript SDK."""

from __future__ import annotations

import asyncio
import json
import subprocess
from dataclasses import dataclass, replace
from typing import Any

from tests.interop.gaps import DIFFERENCES
from tests.interop.pairs import HERE, Json
from tests.interop.theatre import SECONDS, Theatre
from tests.runtime_support import V1, V2, run
from tests.support import Packages
from tests.test_versions_agent import FORMS, Agents, outcome_of, serving

ABSENT, NUMBERS = "absent", ("1", "2", "9")


@dataclass(frozen=True)
class Question:
    """The params of a first request, and how the table names them."""

    asked: str
    form: str
    params: Json
    number: int | None = 0
    """The `id` of the request."""

    @property
    def message(self) -> Json:
        """The request."""
        return {"jsonrpc": "2.0", "id": self.number, "method": "initialize", "params": self.params}


def questions() -> list[Question]:
    """Every version in params of every form; params that are no object; and null as an id."""
    asked: dict[str, Json] = {json.dumps(each): {"protocolVersion": each} for each in (0, 1, 2, 9, "1", None)}
    asked[ABSENT] = {}
    found = [
        Question(name, form, {**version, **params}) for name, version in asked.items() for form, params in FORMS.items()
    ]
    found += [Question(ABSENT, "null", None), Question(ABSENT, "[]", [])]
    return found + [replace(each, form=f"{each.form}, id null", number=None) for each in found if each.asked in NUMBERS]


async def ours(acp: Any, question: Question) -> int:
    """The version that our agent chooses, or the code of its error."""
    async with serving(acp, Agents(acp).factories()) as wire:
        return outcome_of(await wire.ask(question.number, "initialize", question.params))


def routers(theatre: Theatre, asked: list[Question]) -> list[int]:
    """The same of the router."""
    command, folder = theatre.sdk("ts")
    messages = json.dumps([each.message for each in asked])
    done = subprocess.run(
        [*command, str(HERE / "ts_router.mjs"), str(folder)],
        input=messages,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    return [outcome_of(each) for each in json.loads(done.stdout)]


def test_our_agent_and_the_router_answer_the_same(packages: Packages, theatre: Theatre) -> None:
    """With `-s`, it prints the answers as a table: versions, and the codes of errors."""
    acp, asked = packages(V1, V2), questions()

    async def main() -> list[int]:
        return list(await asyncio.gather(*(ours(acp, each) for each in asked)))

    answers = list(zip(asked, run(main()), routers(theatre, asked), strict=True))
    rows = [("asked for", "params", "ours", "router"), ("---",) * 4]
    rows += [(each.asked, each.form, str(we), str(they)) for each, we, they in answers]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    print(f"\n{table}")
    found = {(each.asked, each.form, we, they) for each, we, they in answers if we != they}
    assert found == {(each.asked, each.form, each.ours, each.router) for each in DIFFERENCES}, table
