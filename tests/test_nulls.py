"""None of optional properties: null goes out only where it says something, which is data beside the schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from acpgen.ir.model import Options
from acpgen.roles import RoleChoice
from acpgen.schema.bundled import Release, list_releases, load_facts, load_release
from tests.runtime_support import V1, V2, pair, run
from tests.support import Packages
from tests.turns_support import is_v1

BOTH = RoleChoice.BOTH.roles
MEANS = re.compile(r"\bnull\b`?(?: or `\[\]`)? (?:clears|removes|empties|puts it back)|null or an empty list clears")
"""What descriptions say where null is not the same as leaving a property out."""


@pytest.fixture(name="acp", params=[V1, V2], ids=["v1", "v2"])
def package(request: pytest.FixtureRequest, packages: Packages) -> Any:
    """A package of either protocol."""
    return packages(request.param, roles=BOTH)


# --- The facts ---


def properties(release: Release) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The optional properties that may be null, by their definitions."""
    for name, node in load_release(release).root["$defs"].items():
        for wire, each in node.get("properties", {}).items():
            if wire not in node.get("required", []) and may_be_null(each):
                yield name, wire, each


def may_be_null(node: dict[str, Any]) -> bool:
    members = [node, *node.get("anyOf", [])]
    return any("null" in each.get("type", ()) for each in members)


@pytest.mark.parametrize("release", list_releases(), ids=lambda each: each.label)
def test_the_facts_name_what_is_there(release: Release) -> None:
    nulls = load_facts(release).nulls
    assert nulls is not None
    known = {name for each, wire, _ in properties(release) for name in (each, f"{each}/{wire}")}
    assert nulls <= known


@pytest.mark.parametrize("release", list_releases(), ids=lambda each: each.label)
def test_the_facts_name_all_of_which_the_schema_says_that_null_changes_them(release: Release) -> None:
    nulls, definitions = load_facts(release).nulls or set(), load_release(release).root["$defs"]
    said = [(name, wire) for name, wire, node in properties(release) if MEANS.search(node.get("description", ""))]
    missing = [f"{name}/{wire}" for name, wire in said if not {name, f"{name}/{wire}"} & nulls]
    missing += [
        name
        for name, node in definitions.items()
        if MEANS.search(node.get("description", "")) and name not in nulls and "properties" in node
    ]
    assert not missing
    assert said or release.name == "0.10.8"


# --- What goes out ---


@pytest.mark.every_python
def test_none_is_left_out_where_it_says_nothing(acp: Any) -> None:
    text = acp.ContentBlockText(text="x", annotations=None, meta=None)
    assert acp.encode(text) == {"type": "text", "text": "x"}
    assert acp.encode(acp.SessionInfo(session_id="s", cwd="/", title=None)) == {"sessionId": "s", "cwd": "/"}
    decoded = acp.decode(acp.SessionInfo, {"sessionId": "s", "cwd": "/", "title": None})
    assert decoded.title is None, "received null is not absent"
    assert acp.encode(decoded) == {"sessionId": "s", "cwd": "/"}


@pytest.mark.every_python
def test_none_is_null_in_a_patch(acp: Any) -> None:
    update = acp.SessionUpdateSessionInfoUpdate(title=None, meta=None)
    assert acp.encode(update) == {"sessionUpdate": "session_info_update", "title": None, "_meta": None}
    if not is_v1(acp):
        change = acp.SessionUpdateToolCallUpdate(tool_call_id="c", title=None, content=None)
        assert acp.encode(change) == {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c",
            "title": None,
            "content": None,
        }
        usage = acp.SessionUpdateUsageUpdate(used=1, size=2, cost=None, meta=None)
        assert acp.encode(usage) == {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": None}


@pytest.mark.every_python
def test_null_inside_of_what_may_be_any_json_is_kept(acp: Any) -> None:
    raw = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "rawOutput": None, "_meta": {"a": None}}
    assert acp.encode(acp.decode(acp.SessionUpdate, raw)) == raw


@pytest.mark.every_python
def test_both_ways_of_encoding_agree(packages: Packages) -> None:
    """What an agent only sends is written by functions, what it only receives by reflection."""
    raws = {
        "SessionInfo": {"sessionId": "s", "cwd": "/", "title": None, "_meta": None},
        "SessionUpdateSessionInfoUpdate": {"sessionUpdate": "session_info_update", "title": None, "_meta": None},
        "ClientCapabilities": {"session": None, "_meta": None},
        "PromptRequest": {"sessionId": "s", "prompt": [{"type": "text", "text": "", "_meta": None}], "_meta": None},
    }
    found = []
    for role in (RoleChoice.AGENT, RoleChoice.CLIENT):
        acp = packages(V1, roles=role.roles)
        found.append([acp.encode(acp.decode(getattr(acp, name), raw)) for name, raw in raws.items()])
    assert found[0] == found[1]
    assert "null" not in json.dumps([found[0][0], *found[0][2:]])
    assert found[0][1] == raws["SessionUpdateSessionInfoUpdate"]


def test_a_package_that_keeps_unknown_properties_keeps_nulls(packages: Packages) -> None:
    acp = packages(V1, roles=BOTH, options=Options(keep_unknown=True))
    raw = {"sessionId": "s", "cwd": "/", "title": None, "later": None}
    assert acp.encode(acp.decode(acp.SessionInfo, raw)) == raw


@pytest.mark.every_python
def test_editors_see_no_null(acp: Any) -> None:
    """In a question, as an author of Python writes one."""
    seen: list[Any] = []

    class Asked(acp.Client):  # type: ignore[name-defined, misc]
        async def session_request_permission(self, params: Any) -> Any:
            seen.append(params)
            return acp.RequestPermissionResponse(outcome=acp.RequestPermissionOutcomeCancelled())

    async def main() -> None:
        option = acp.PermissionOption(option_id="a", name="Allow", kind="allow_once", meta=None)
        more = (
            {"tool_call": acp.ToolCallUpdate(tool_call_id="c", title="Run", kind=None, content=None, locations=None)}
            if is_v1(acp)
            else {"title": "Run", "description": None, "subject": None}
        )
        request = acp.RequestPermissionRequest(session_id="s", options=[option], **more)
        async with pair(acp, acp.Agent, Asked) as both:
            await both.client.session_request_permission(request)

    run(main())
    (found,) = seen
    assert found.options[0].meta is acp.UNSET
    if is_v1(acp):
        assert (found.tool_call.kind, found.tool_call.content, found.tool_call.locations) == (acp.UNSET,) * 3
    else:
        assert (found.description, found.subject) == (acp.UNSET, acp.UNSET)
