"""The examples in bundled extensions: they decode, reach their handlers, and come back as they were."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from acpgen.config import SchemaChoice
from acpgen.schema.bundled import bundled_fragments, find_release, list_releases
from acpgen.schema.fragment import Fragment
from tests.support import Packages, fitting_fragments
from tests.test_dispatch import Silence
from tests.test_probes import contains

FITTING = [
    (SchemaChoice(protocol=release.protocol, release=release.name, extensions=(fragment.spec,)), fragment)
    for release in list_releases()
    for fragment in bundled_fragments(release.protocol)
    if fragment.spec in fitting_fragments(release) and "examples" in fragment.document.root
]
"""Each release with an extension that fits it, and has examples."""

NEWEST = {(protocol, find_release(protocol).name) for protocol in (1, 2)}
"""An extension that fits several releases has the same examples in each."""

CASES = [
    pytest.param(
        sources,
        example,
        id=f"v{sources.protocol}/{sources.release}-{fragment.id}-{index}",
        marks=() if (sources.protocol, sources.release) in NEWEST else pytest.mark.deep,
    )
    for sources, fragment in FITTING
    for index, example in enumerate(fragment.document.root["examples"])
]


@pytest.mark.full
@pytest.mark.parametrize(("sources", "example"), CASES)
def test_an_example_is_a_message(packages: Packages, sources: SchemaChoice, example: dict[str, Any]) -> None:
    acp = packages(sources)
    method = (acp.AGENT_METHODS | acp.CLIENT_METHODS)[example["method"]]
    half = "params" if "params" in example else "result"
    value = acp.decode(getattr(method, half), example[half])
    assert contains(acp.encode(value), example[half])
    if half == "params" and example["method"] in acp.AGENT_METHODS:
        assert received(acp, method, example["params"]) == [value]


def received(acp: Any, method: Any, params: Any) -> list[Any]:
    """What the handler of an agent gets."""
    seen: list[Any] = []

    async def handle(found: Any) -> Any:
        seen.append(found)
        raise acp.InternalError

    agent = acp.Agent(acp.RemoteClient(Silence()))
    setattr(agent, method.handler, handle)
    dispatch = acp.dispatch_request if method.kind == "request" else acp.dispatch_notification
    with pytest.raises(acp.InternalError):
        asyncio.run(dispatch(agent, method.name, params))
    return seen


@pytest.mark.parametrize("protocol", [1, 2])
def test_what_no_official_schema_shows_any_more_has_examples_of_all_its_methods(protocol: int) -> None:
    withdrawn = [each for each in bundled_fragments(protocol) if each.status == "withdrawn"]
    assert withdrawn
    assert {each.spec: without_example(each) for each in withdrawn} == {each.spec: set() for each in withdrawn}


def without_example(fragment: Fragment) -> set[str]:
    shown = {each["method"] for each in fragment.document.root.get("examples", ()) if "params" in each}
    assert shown
    return {node["x-method"] for node in fragment.definitions.values() if "x-method" in node} - shown
