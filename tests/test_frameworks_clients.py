"""The same conversation with each agent of examples/frameworks/, by each client, gives the same kinds of updates."""

from __future__ import annotations

from typing import Any

import pytest

from tests.frameworks_clients import Sdk, Talk, scripted
from tests.frameworks_clients import Start as Connect
from tests.frameworks_conversation import CONVERSATION, MODES, REMEMBERED, TRANSCRIPT, Prompt, Restart
from tests.frameworks_support import AGENTS, NOTES, SECONDS, Start, home_of_peers, open_calls, starter
from tests.interop import peers
from tests.interop.pairs import Setup
from tests.needs import lacks
from tests.runtime_support import run
from tests.support import Packages

pytestmark = pytest.mark.full

KEPT = {
    "langgraph_agent.py": "py",
    "llama_index_agent.py": "ts",
    "openai_agents_agent.py": "py",
    "pydantic_ai_agent.py": "ts",
}
"""Each agent with one SDK, and each SDK with two agents. Our own client talks to all in `test_frameworks.py`."""
CASES = [
    pytest.param(client, name, marks=() if KEPT[name] == client else pytest.mark.deep)
    for client in ("scripted", "py", "ts")
    for name in AGENTS
]
RESTART = CONVERSATION.index(Restart())
PROMPTS = [step for step in CONVERSATION if isinstance(step, Prompt)]
CORRECTED = NOTES.replace("colour", "color")


@pytest.fixture(scope="module")
def start(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, packages: Packages) -> Start:
    """A project for an example."""
    return starter(home_of_peers(request, tmp_path_factory), tmp_path_factory, packages)


@pytest.fixture
def connect(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Connect:
    """Our scripted client, or one of an official SDK."""
    name: Any = request.param
    if name == "scripted":
        return scripted
    install = {"py": peers.python, "ts": peers.typescript}[name]
    try:
        return Sdk(Setup(name, 1, "agent"), *install(home_of_peers(request, tmp_path_factory)))
    except peers.MissingPeerError as error:
        lacks("registry", error)


@pytest.mark.parametrize(("connect", "name"), CASES, indirect=["connect"])
def test_the_same_conversation(name: str, start: Start, connect: Connect) -> None:
    """A restart replays it; the model remembers it, the mode stays, and what was always allowed is not asked again."""
    project = start(name)
    talk = Talk(project, connect)
    run(talk.play(), seconds=3 * SECONDS)
    assert dict(enumerate(talk.transcript)) == dict(enumerate(TRANSCRIPT))
    assert talk.modes == MODES
    before, replayed, after = (
        [each for each in talk.updates(steps) if "toolCallId" in each]
        for steps in (slice(RESTART), slice(RESTART, RESTART + 1), slice(RESTART + 1, None))
    )
    assert replayed == before
    assert open_calls([*before, *after]) == set()
    assert talk.text(-1) == REMEMBERED
    refused = talk.text(0)
    assert refused.startswith("I was told: ")
    assert "written" not in refused
    is_written = [step for step, notes in zip(PROMPTS, talk.notes, strict=True) if notes == CORRECTED]
    assert is_written == [PROMPTS[at] for at in (2, 3, 8, 9)]
    assert {*talk.notes} == {NOTES, CORRECTED}
    assert not project.is_served()
