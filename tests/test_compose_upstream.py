"""Composing the bundled fragments, and others made of what upstream adds, with the real schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from acpgen.diagnostics import Report
from acpgen.schema.bundled import bundled_fragments
from acpgen.schema.compose import Composed, compose
from acpgen.schema.data import data_folder
from acpgen.schema.document import Document, parse_document, read_document
from acpgen.schema.facts import Facts, read_facts
from acpgen.schema.fitting import FitResult, fit
from acpgen.schema.fragment import Fragment, load_fragment
from acpgen.schema.gates import check_gates
from acpgen.schema.walk import walk
from tests.published import published
from tests.support import bundled_fragment, errors_of

LACKS = "lacks a definition"


def upstream(release: str, kind: str = "schema") -> Document:
    protocol, name = release.split("/")
    label = f"{release}/{kind}.json"
    return read_document(published(label), label=label, origin=f"ACP {protocol}, {name}")


def facts(release: str) -> Facts:
    return read_facts(json.loads((data_folder() / "schema" / release / "facts.json").read_text()))


def put_real(release: str, *specs: str) -> Composed:
    protocol = int(release[1])
    fragments = [bundled_fragment(spec, protocol) for spec in specs]
    return compose(upstream(release), fragments, protocol=protocol, release=release[3:], facts=facts(release))


def fragment(name: str, protocol: int, **content: Any) -> Fragment:
    head = {"fragment": 1, "id": name, "revision": "1", "title": name, "status": "draft", "protocols": [protocol]}
    root = head | {{"defs": "$defs"}.get(key, key): value for key, value in content.items()}
    return load_fragment(parse_document(json.dumps(root).encode(), label=f"{name}.json", origin=""))


def assert_gates(composed: Composed) -> None:
    report = Report(locate=composed.locate)
    check_gates(composed.root, composed.facts.gates, report)
    assert report.found == []


def without_prose(node: Any, *, is_map: bool = False) -> Any:
    match node:
        case dict():
            return {
                key: without_prose(child, is_map=key in ("properties", "$defs") and not is_map)
                for key, child in node.items()
                if is_map or key != "description"
            }
        case list():
            return [without_prose(child) for child in node]
    return node


def test_logout_and_auth_methods_compose_on_the_release_they_were_written_for() -> None:
    composed = put_real("v1/0.10.8", "logout", "auth-methods", "auth-state@2026-03-07")
    assert composed.diagnostics == ()
    definitions = composed.root["$defs"]
    capabilities = definitions["InitializeResponse"]["properties"]["agentCapabilities"]["default"]
    assert capabilities["authCapabilities"] == {"logout": False}
    assert capabilities["getAuthState"] is False
    assert [composed.facts.gates[method].root for method in ("logout", "getAuthState")] == ["InitializeResponse"] * 2
    assert len(definitions["AuthMethod"]["anyOf"]) == 3
    assert composed.origin("/$defs/AuthMethod/anyOf/2") == "auth-methods, 2026-01-14"
    assert composed.origin("/$defs/Error/properties/authMethods") == "auth-methods, 2026-01-14"
    assert composed.origin("/$defs/Error/properties/code") == "ACP v1, 0.10.8"
    assert_gates(composed)


def test_logout_conflicts_with_the_release_that_has_it_in_another_form() -> None:
    composed = put_real("v1/2026-11-02", "logout")
    assert [(found.code, found.pointer) for found in composed.diagnostics] == [
        ("fragment-conflict", "/$defs/AuthCapabilities"),
        ("superseded", "/$defs/LogoutRequest"),
        ("superseded", "/$defs/LogoutResponse"),
        ("fragment-conflict", "/gates/InitializeResponse/logout"),
    ]


@pytest.mark.parametrize(
    ("release", "others"),
    [
        ("v1/0.10.8", {"auth-env-var@2026-11-02": "conflicts", "auth-state@2026-11-02": LACKS,
                       "session-archive@2026-11-02": LACKS,
                       "subagents@2026-11-02": LACKS, "system-prompt@2026-11-02": LACKS}),
        ("v1/2026-11-02", {"auth-methods@2026-01-14": "conflicts", "logout@2026-02-02": "conflicts"}),
        ("v2/2026-11-02", {}),
    ],
)  # fmt: skip
def test_every_bundled_fragment_against_every_bundled_release(release: str, others: dict[str, str]) -> None:
    protocol, document = int(release[1]), upstream(release)
    found = [
        fit(document, extension, protocol=protocol, facts=facts(release)) for extension in bundled_fragments(protocol)
    ]
    assert {each.fragment.spec: each.verdict.value for each in found if each.verdict is not FitResult.APPLIES} == others


@pytest.mark.parametrize("protocol", [1, 2])
def test_the_landed_auth_state_is_what_upstream_has(protocol: int) -> None:
    release = f"v{protocol}/2026-11-02"
    composed = put_real(release, "auth-state")
    assert composed.diagnostics == ()
    assert_gates(composed)
    unstable = upstream(release, "schema.unstable").root["$defs"]
    extension = bundled_fragment("auth-state", protocol)
    touched = [*extension.definitions, *extension.changes]
    assert sorted(touched) == sorted(name for name in unstable if "AuthSta" in name or name in (*touched,))
    for name in touched:
        assert without_prose(composed.root["$defs"][name]) == without_prose(unstable[name])


@pytest.mark.parametrize("protocol", [1, 2])
def test_auth_state_is_superseded_by_the_unstable_schema_that_has_it(protocol: int) -> None:
    extension = bundled_fragment("auth-state", protocol)
    known = Facts(gates={**facts(f"v{protocol}/2026-11-02").gates, **extension.gates})
    document = upstream(f"v{protocol}/2026-11-02", "schema.unstable")
    found = fit(document, extension, protocol=protocol, facts=known)
    assert (found.verdict, len(found.reasons)) == (FitResult.SUPERSEDED, 1)


def unordered(node: Any) -> Any:
    """A schema in which the order of lists and of members no longer shows."""
    match node:
        case dict():
            return {key: unordered(child) for key, child in node.items()}
        case list():
            return sorted((unordered(child) for child in node), key=lambda child: json.dumps(child, sort_keys=True))
    return node


def definitions_of(document: Document) -> dict[str, Any]:
    """The definitions other than the envelopes, whose members have no names that a fragment could go by."""
    definitions = without_prose(document.root)["$defs"]
    return {name: node for name, node in definitions.items() if not node.get("x-docs-ignore")}


def additions(stable: Any, unstable: Any) -> dict[str, Any]:
    """The change that a fragment has to state to get from one definition to the other."""
    key = next((key for key in ("oneOf", "anyOf") if key in unstable), "oneOf")
    known = [tag_of(member) for member in stable.get(key, [])]
    old, new = stable.get("properties", {}), unstable.get("properties", {})
    return {
        "properties": {wire: new[wire] for wire in new if wire not in old},
        "members": [member for member in unstable.get(key, []) if tag_of(member) not in known],
    }


def tag_of(member: Any) -> str:
    consts = [node["const"] for _, node in walk(member) if isinstance(node, dict) and "const" in node]
    return json.dumps(consts[:1] if "not" not in member else "other")


@pytest.mark.parametrize("release", ["v1/1.21.0", "v2/2.0.0-alpha.3", "v1/2026-11-02", "v2/2026-11-02"])
def test_stable_and_fragments_of_what_unstable_adds_make_unstable(release: str) -> None:
    """Without a single default literal or excluded tag stated: those have to follow by themselves."""
    protocol, document = int(release[1]), upstream(release)
    stable, unstable = definitions_of(document), definitions_of(upstream(release, "schema.unstable"))
    new = {name: node for name, node in unstable.items() if name not in stable}
    changed = {name: additions(stable[name], unstable[name]) for name in stable if stable[name] != unstable[name]}
    changed = {name: {key: value for key, value in change.items() if value} for name, change in changed.items()}
    fragments = [fragment("definitions", protocol, defs=new)] + [
        fragment(f"change-{index}", protocol, changes={name: change})
        for index, (name, change) in enumerate(changed.items())
        if change
    ]
    composed = compose(document, fragments, protocol=protocol, release=None)
    assert errors_of(composed) == []
    result = without_prose(composed.root)["$defs"]
    assert {name: unordered(result[name]) for name in unstable} == unordered(unstable)
    for name in changed:
        for key in ("oneOf", "anyOf"):
            if key in unstable[name]:  # the members that are not of a tag keep their places at the end
                tails = [[tag_of(member) for member in each[key]][-1] for each in (result[name], unstable[name])]
                assert tails[0] == tails[1]
