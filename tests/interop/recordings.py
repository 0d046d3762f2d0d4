"""What `acpgen trace` finds in the conversations that pairs record while their flows are played."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tests.command_line import run_acpgen
from tests.interop.pairs import Json, Pair
from tests.interop.puppet import CONTROL

USUAL = {"initialize", "session/new", "session/prompt", "session/update", "session/request_permission"}
"""The methods of a whole turn."""
MADE = (
    # the flow is about them
    ("invalid params: .*", "missing-property|wrong-value"),
    ("unknown methods: .*", "unknown-method"),
    # an update by itself; in protocol 1, updates belong to a turn
    ("session/update: .*", "after-turn"),
    # the clients do not advertise these, as the SDK for Python does not know the capabilities
    (r"session/update: (config_option_update|notice|compaction_\w+)", "capability"),
    ("sessions: session/(new|load)|config options: .*", "capability"),
    # here comes the answer to `session/new` that `$/cancel_request` did not cancel: see `GAPS`
    ("sessions side by side", "capability"),
)
"""The mistakes that flows make, as regular expressions for their names and for the codes of the findings."""


async def begin(pair: Pair, flow: str) -> None:
    """Say in the recording which flow begins, with an order that the agent gets on the wire."""
    await pair.order("agent", "reset", {"answers": {}, "flow": flow})


def unexpected(findings: Mapping[str, list[Json]]) -> list[tuple[str, str]]:
    """Of findings by flow, those that no flow makes on purpose: the flow and what was found."""
    return [
        (flow, f"{each['code']}: {each['message']}")
        for flow, found in findings.items()
        for each in found
        if not any(re.fullmatch(name, flow) and re.fullmatch(code, each["code"]) for name, code in MADE)
    ]


def findings_of(trace: Path) -> dict[str, list[Json]]:
    """The findings by flow, without those about the methods with which the tests control the agent."""
    flows, found = flows_of(trace), defaultdict[str, list[Json]](list)
    for each in json.loads(run_acpgen("trace", trace, "--format", "json", cwd=trace.parent).stderr):
        if each["severity"] != "note":
            found[flows[each["line"] - 1]].append(each)
    return found


def flows_of(trace: Path) -> list[str]:
    """The flow that each line belongs to."""
    flow, flows = "", list[str]()
    for message in (each.get("msg", {}) for each in lines(trace)):
        if message.get("method") == f"{CONTROL}reset":
            flow = message["params"].get("flow", flow)
        flows.append(flow)
    return flows


def said(trace: Path) -> dict[str, set[str]]:
    """Who has said something, and which methods."""
    found = defaultdict[str, set[str]](set)
    for each in lines(trace):
        if "msg" in each:
            found[each["from"]] |= {each["msg"].get("method", "")} - {""}
    return found


def lines(trace: Path) -> list[Json]:
    # not those of `str.splitlines`, which also splits where a text has U+2028
    return [json.loads(line) for line in trace.read_bytes().splitlines()]
