"""`acpgen diff`: the output and the exit code."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from acpgen.diff.compare import RULES
from acpgen.diff.findings import Rule
from acpgen.diff.formats import code, escaped, explain
from acpgen.schema.bundled import find_release
from tests.diff_running import LARGER, SMALL, data, diff, refused, rules, write
from tests.diff_schemas import TEXT, asking, constants, holding, message, thing, with_x
from tests.support import schema_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the schemas `old.json` and `new.json`."""
    write(tmp_path / "old.json", SMALL)
    write(tmp_path / "new.json", LARGER)
    return tmp_path


# --- The exit code --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schemas", "wanted", "code"),
    [
        ((SMALL, LARGER), [], 0),
        ((SMALL, LARGER), ["wire"], 0),
        ((SMALL, LARGER), ["source"], 0),
        ((SMALL, LARGER), ["any"], 1),
        ((LARGER, SMALL), ["wire"], 0),
        ((LARGER, SMALL), ["source"], 1),
        ((holding(constants("a")), holding(constants("a", "b"))), ["wire"], 1),
        ((holding(constants("a")), holding(constants("a", "b"))), ["source"], 0),
        ((holding(constants("a")), holding(constants("a", "b"))), ["source", "wire"], 1),
        ((SMALL, SMALL), ["any", "wire", "source"], 0),
        ((with_x({**TEXT, "description": "One."}), with_x({**TEXT, "description": "Two."})), ["any"], 0),
    ],
)
def test_findings_that_fail(schemas: tuple[Any, Any], wanted: list[str], code: int, tmp_path: Path) -> None:
    for name, schema in zip(("old.json", "new.json"), schemas, strict=True):
        write(tmp_path / name, schema)
    options = [part for each in wanted for part in ("--fail-on", each)]
    ran = diff("old.json", "new.json", *options, cwd=tmp_path)
    assert ran.code == code
    assert ran.stdout
    assert bool(ran.stderr) is bool(code)


# --- Rules ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.id)
def test_a_rule_is_explained(rule: Rule) -> None:
    head, *reasons = explain(rule.id).splitlines()
    assert head == f"{rule.id}: {rule.meaning}"
    assert reasons[:2] == [f"  wire: {rule.wire}", f"  source: {rule.source}"]
    assert reasons[2:] == ([] if rule.reverse == rule.id else [f"  with OLD and NEW exchanged: {rule.reverse}"])


def test_explaining_needs_no_schemas(tmp_path: Path) -> None:
    ran = diff("--explain", "field-made-required", cwd=tmp_path)
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == explain("field-made-required") + "\n"


@pytest.mark.parametrize(
    ("name", "hint"), [("field-made-requried", "did you mean 'field-made-required'?"), ("x", "the rules are protocol-")]
)
def test_an_unknown_rule(name: str, hint: str, tmp_path: Path) -> None:
    said = refused("--explain", name, cwd=tmp_path)
    assert f"error: no rule has the id {name!r} [unknown-rule]" in said
    assert f"hint: {hint}" in said


# --- What is printed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "expected"),
    [("text", "\nno differences\n"), ("markdown", "\nNo differences.\n"), ("json", '"findings": []')],
)
def test_no_differences(form: str, expected: str, home: Path) -> None:
    ran = diff("old.json", "old.json", "--format", form, cwd=home)
    assert ran.code == 0
    assert expected in ran.stdout


def test_documentation_alone(tmp_path: Path) -> None:
    for name, text in (("old.json", "One."), ("new.json", "Two.")):
        write(tmp_path / name, with_x({**TEXT, "description": text}))
    assert "no differences, except in documentation (1)" in diff("old.json", "new.json", cwd=tmp_path).stdout
    assert "AskRequest: other text about x" in diff("old.json", "new.json", "--all", cwd=tmp_path).stdout


def test_gates(home: Path) -> None:
    """Fragments state the gates: one capability, another one, or none."""
    gated(home)
    for old, new, rule, wire, source in (
        ("none", "ask", "method-gate-added", ("breaks", "loses"), "risk"),
        ("ask", "none", "method-gate-removed", ("loses", "breaks"), "ok"),
        ("ask", "plead", "method-gate-changed", ("loses", "loses"), "risk"),
    ):
        options = ("--old-extension", f"./{old}.json", "--new-extension", f"./{new}.json")
        found = data("agent.json", "agent.json", *options, cwd=home)["findings"]
        (gate,) = [each for each in found if "gate" in each["rule"]]
        assert (gate["rule"], gate["method"], gate["source"]["verdict"]) == (rule, "ask", source)
        (direction,) = gate["wire"]
        assert (direction["sender"], direction["old_to_new"], direction["new_to_old"]) == ("client", *wire)


def test_gates_of_values(home: Path) -> None:
    """A property, a member and a constant: one capability, another one, or none. What is new has its gate without."""
    gated(home)
    head = {"fragment": 1, "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    values = ("GreetRequest.tone", "Tone=loud", "Sign=wave")
    tones = {"anyOf": [{"type": "string", "const": "loud"}, {"type": "string", "const": "low"}]}
    kinds = [{"type": "string", "const": each} for each in ("wave", "nod")]
    signs = {"oneOf": [{**thing(("kind",), kind=kind), "title": kind["const"]} for kind in kinds]}
    base = json.loads((home / "agent.json").read_text(encoding="utf-8"))
    base["$defs"] |= {"Tone": tones, "Sign": signs}
    base["$defs"]["GreetRequest"]["properties"] = {
        "tone": {"$ref": "#/$defs/Tone"},
        "signs": {"type": "array", "items": {"$ref": "#/$defs/Sign"}},
    }
    write(home / "signs.json", base)
    for name, needs in (("without", None), ("by-ask", "ask"), ("by-plead", "plead")):
        stated = {} if needs is None else {each: {"needs": needs} for each in values}
        added = {"$defs": {f"Of{name.title().replace('-', '')}": thing()}, "gates": {"GreetResponse": {"tell": "ask"}}}
        write(home / f"{name}.json", {**head, "id": name, **added, "values": {"GreetResponse": stated}})

    def gates(old: str, new: str, base: str = "signs.json") -> list[Any]:
        options = ("--old-extension", f"./{old}.json", "--new-extension", f"./{new}.json")
        return [
            each for each in data(base, "signs.json", *options, cwd=home)["findings"] if "value-gate" in each["rule"]
        ]

    for old, new, rule, source in (
        ("without", "by-ask", "value-gate-added", "risk"),
        ("by-ask", "without", "value-gate-removed", "ok"),
        ("by-ask", "by-plead", "value-gate-changed", "risk"),
    ):
        found = gates(old, new)
        places = {f"{each['type']}.{each['member']}" for each in found}
        assert places == {"GreetRequest.tone", "Tone.loud", "Sign.wave"}
        assert {(each["rule"], each["source"]["verdict"]) for each in found} == {(rule, source)}
        wire = [(each["sender"], each["old_to_new"], each["new_to_old"]) for one in found for each in one["wire"]]
        assert wire == [("client", "loses", "loses")] * 3
    assert gates("none", "by-ask", base="agent.json") == []


@pytest.mark.parametrize(("side", "senders"), [("agent", ["client"]), ("both", ["client"]), ("client", [])])
def test_a_gate_matters_to_those_who_call_the_method_in_both(side: str, senders: list[str], home: Path) -> None:
    gated(home)
    for old, new in ((("agent", "ask"), (side, "none")), ((side, "none"), ("agent", "ask"))):
        options = ("--old-extension", f"./{old[1]}.json", "--new-extension", f"./{new[1]}.json")
        found = data(f"{old[0]}.json", f"{new[0]}.json", *options, cwd=home)["findings"]
        gates = [each for each in found if "gate" in each["rule"]]
        assert [direction["sender"] for gate in gates for direction in gate["wire"]] == senders
        assert len(gates) == len(senders)


def gated(home: Path) -> None:
    """A schema for each side that handles the method `ask`, and fragments with and without a gate for it."""
    for side in ("agent", "client", "both"):
        base = asking(
            thing(),
            side=side,
            GreetRequest=message("greet", thing()),
            GreetResponse=message("greet", thing(ask={"type": "boolean"}, plead={"type": "boolean"})),
            TellNotification=message("tell", thing()),
        )
        write(home / f"{side}.json", base)
    head = {"fragment": 1, "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    for name, gates in {
        "none": {"tell": "ask"},
        "ask": {"tell": "ask", "ask": "ask"},
        "plead": {"tell": "ask", "ask": "plead"},
    }.items():
        added = {"$defs": {f"Of{name.capitalize()}": thing()}}
        write(home / f"{name}.json", {**head, "id": name, **added, "gates": {"GreetResponse": gates}})


def test_a_schema_of_ones_own_has_the_gates_of_the_bundled_one(tmp_path: Path) -> None:
    changed = json.loads(find_release(1).schema.read_text(encoding="utf-8"))
    changed["$comment"] = "changed"
    write(tmp_path / "mine.json", changed)
    found = data("v1/2026-11-02", "mine.json", cwd=tmp_path)
    assert (found["findings"], found["notes"]) == ([], [])


def test_a_gate_that_is_not_known_is_no_gate_that_is_gone(home: Path) -> None:
    """The gates of a schema are unknown if it has no capability of the bundled one and states none."""
    gated(home)
    found = data("agent.json", "agent.json", "--old-extension", "./ask.json", cwd=home)
    assert [each for each in found["findings"] if "gate" in each["rule"]] == []
    assert "NEW states no capabilities" in found["notes"][0]


def test_a_gated_method_harms_nobody(home: Path) -> None:
    found = data("v1/0.10.8", "v1/2026-11-02", cwd=home)["findings"]
    wire = {each["method"]: each["wire"][0]["new_to_old"] for each in found if each["rule"] == "method-added"}
    assert wire == {
        **dict.fromkeys(("logout", "session/close", "session/delete", "session/list", "session/resume"), "ok"),
        **dict.fromkeys(("elicitation/create", "elicitation/complete"), "ok"),
        "$/cancel_request": "loses",
    }


HOSTILE = "]8;;x\x1b[31m\x07\u202e`**|<script>@everyone #1\n## Heading"


@pytest.mark.parametrize("form", ["text", "markdown", "json"])
def test_hostile_text(form: str, tmp_path: Path) -> None:
    """Names and values are untrusted; they reach a terminal or a page only as text."""
    name = HOSTILE + "x" * 10_000
    write(tmp_path / "old.json", asking(thing(**{"a" + name: TEXT, "d": {"type": "string", "default": "a"}})))
    tagged = {"oneOf": [thing(("k",), k={"const": "t" + name}), thing(("k",), k={"const": "u"})]}
    write(
        tmp_path / "new.json",
        asking(
            thing(**{"b" + name: constants(HOSTILE, "b"), "d": {"type": "string", "default": HOSTILE}, "t": tagged}),
            MoreRequest=message("m/" + name, thing()),
            MoreResponse=message("m/" + name, thing()),
            Values=constants(HOSTILE, "b"),
        ),
    )
    ran = diff("old.json", "new.json", "--format", form, "--all", cwd=tmp_path)
    assert ran.code == 0, ran.stderr
    assert all(char.isprintable() or char in "\n\u2060" for char in ran.stdout)
    assert "\n## Heading" not in ran.stdout
    if form == "json":
        json.loads(ran.stdout)
    else:
        assert max(map(len, ran.stdout.splitlines())) < 1200
    if form == "markdown":
        assert_harmless(ran.stdout)


def assert_harmless(text: str) -> None:
    """A page has no HTML except line breaks, no links, and no mentions outside of code."""
    tokens = [
        each
        for block in MarkdownIt("commonmark").enable("table").parse(text)
        for each in (block, *(block.children or ()))
    ]
    assert {each.content for each in tokens if each.type in ("html_inline", "html_block")} <= {"<br>"}
    assert not {each.type for each in tokens} & {"link_open", "image"}
    shown = "".join(each.content for each in tokens if each.type == "text")
    assert "@everyone" not in shown
    assert "#1" not in shown
    assert {each.tag for each in tokens if each.type == "heading_open"} == {"h2", "h3"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, (as) these: 1.5", "plain words, (as) these: 1.5"),
        ("a_b*c", "a\\_b\\*c"),
        ("<b>", "\\<b\\>"),
        ("@team", "@\u2060team"),
        ("#12", "\\#\u206012"),
        ("a|b", "a\\|b"),
    ],
)
def test_markdown_shows_text_as_it_is(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_code_spans_have_a_fence_that_is_long_enough() -> None:
    assert code("a") == "`a`"
    assert code("a`b") == "`` a`b ``"
    assert code("``") == "``` `` ```"


def test_two_releases_are_compared_in_a_moment(home: Path) -> None:
    diff("v1/0.10.8", "v1/2026-11-02", cwd=home)
    start = time.process_time()
    diff("v1/0.10.8", "v1/2026-11-02", cwd=home)
    assert time.process_time() - start < 5


def test_a_union_of_everything_with_itself(tmp_path: Path) -> None:
    """The comparison ends even if definitions refer to themselves."""
    for name, leaf in (("old.json", TEXT), ("new.json", {"type": "integer"})):
        tree = thing(
            value=leaf, left={"$ref": "#/$defs/Tree"}, all={"type": "array", "items": {"$ref": "#/$defs/Node"}}
        )
        node = {"anyOf": [{"$ref": "#/$defs/Tree"}, TEXT]}
        write(
            tmp_path / name,
            schema_of(
                Tree=tree,
                Node=node,
                AskRequest=message("ask", thing(t={"$ref": "#/$defs/Node"})),
                AskResponse=message("ask", thing()),
            ),
        )
    assert rules("old.json", "new.json", cwd=tmp_path) == {"field-type-changed"}


@pytest.mark.full
@pytest.mark.parametrize(("length", "said"), [(100, ""), (3000, "[too-deep]")])
def test_a_long_chain_of_definitions(length: int, said: str, tmp_path: Path) -> None:
    """A chain is compared, or refused if it is too long, whatever the change in it."""
    for name, leaf, prefix in (("old.json", TEXT, "A"), ("new.json", {"type": "integer"}, "B")):
        own: dict[str, Any] = {f"{prefix.lower()}{number}y": TEXT for number in range(4)}
        chain: dict[str, Any] = {
            f"{prefix}{number}": thing(x={"$ref": f"#/$defs/{prefix}{number + 1}"}, **own) for number in range(length)
        }
        chain[f"{prefix}{length}"] = thing(x=leaf)
        write(tmp_path / name, with_x({"$ref": f"#/$defs/{prefix}0"}, **chain))
    ran = diff("old.json", "new.json", cwd=tmp_path)
    assert (ran.code, said in ran.stderr) == (2 if said else 0, True), ran.stderr


def test_everything_has_another_name(tmp_path: Path) -> None:
    """With too many candidates, no renames are searched."""
    for name, prefix in (("old.json", "a"), ("new.json", "b")):
        properties: dict[str, Any] = {f"{prefix}{number}x": TEXT for number in range(1000)}
        definitions: dict[str, Any] = {f"{prefix.upper()}{number}": thing(("t",), t=TEXT) for number in range(40)}
        members = {"anyOf": [{"$ref": f"#/$defs/{each}", "title": each} for each in definitions]}
        write(tmp_path / name, with_x({"$ref": "#/$defs/Many"}, Wide=thing(**properties), Many=members, **definitions))
    start = time.process_time()
    assert "field-renamed" not in rules("old.json", "new.json", cwd=tmp_path)
    assert time.process_time() - start < 20
