"""`acpgen diff`: what OLD and NEW may be, what is printed, and the exit code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from markdown_it import MarkdownIt

from acpgen.diff.markdown import code, escaped
from acpgen.schema.bundled import find_release
from tests.command_line import Outcome, build_package, run_acpgen
from tests.diff_cases import TEXT, asking, constants, holding, message, thing, with_x
from tests.support import REPOSITORY, schema_of

SMALL, LARGER = asking(thing()), with_x(TEXT)


def write(path: Path, schema: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema), encoding="utf-8")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the schemas `old.json` and `new.json`."""
    write(tmp_path / "old.json", SMALL)
    write(tmp_path / "new.json", LARGER)
    return tmp_path


def diff(*arguments: str | Path, cwd: Path) -> Outcome:
    return run_acpgen("diff", *arguments, cwd=cwd)


def data(*arguments: str | Path, cwd: Path) -> Any:
    ran = diff(*arguments, "--format", "json", cwd=cwd)
    assert ran.code == 0, ran.stderr
    return json.loads(ran.stdout)


def rules(*arguments: str | Path, cwd: Path) -> set[str]:
    return {finding["rule"] for finding in data(*arguments, cwd=cwd)["findings"]}


def refused(*arguments: str | Path, cwd: Path) -> str:
    """What is said of arguments that do not work."""
    ran = diff(*arguments, cwd=cwd)
    assert (ran.code, ran.stdout) == (2, "")
    assert "\x1b" not in ran.stderr
    return ran.stderr


# --- What OLD and NEW may be ----------------------------------------------------------------------------------------


def test_two_files(home: Path) -> None:
    assert rules("old.json", "new.json", cwd=home) == {"field-added-optional"}
    assert rules(home / "new.json", home / "old.json", cwd=REPOSITORY) == {"field-removed-optional"}


def test_bundled_releases(home: Path) -> None:
    found = data("v1/0.10.8", "v1/2026-11-02", cwd=home)
    assert (found["old"], found["new"], found["notes"]) == ("v1/0.10.8", "v1/2026-11-02", [])
    assert data("0.10.8", "2026-11-02", cwd=home)["findings"] == found["findings"]


def test_a_bundled_release_of_another_protocol(home: Path) -> None:
    assert rules("v2/2026-11-02", "2026-11-02", "--protocol", "2", cwd=home) == set()
    assert "protocol-changed" in rules("v1/2026-11-02", "v2/2026-11-02", cwd=home)


def test_the_file_of_a_bundled_release_is_that_release(home: Path) -> None:
    copied = home / "copied.json"
    shutil.copyfile(find_release(2).schema, copied)
    found = data("v2/2026-11-02", copied, cwd=home)
    assert (found["findings"], found["notes"]) == ([], [])


def test_a_file_is_of_the_protocol_of_the_other_side(home: Path) -> None:
    """The upstream files do not say what they are."""
    assert "protocol-changed" not in rules("v2/2026-11-02", "new.json", cwd=home)
    assert "protocol-changed" in rules("v2/2026-11-02", "new.json", "--protocol", "1", cwd=home)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of a bundled schema with extensions."""
    folder = tmp_path_factory.mktemp("built") / "acp"
    return build_package(
        folder, "--release", "0.10.8", "--extension", "logout", "--extension", "auth-state@2026-03-07", "--no-runtime"
    )


@pytest.mark.parametrize("name", ["", "acpgen.lock"])
def test_a_package_is_what_it_was_built_from(package: Path, name: str) -> None:
    found = data("v1/0.10.8", package / name, cwd=package.parent)
    added = {each["method"] for each in found["findings"] if each["rule"] == "method-added"}
    assert added == {"logout", "getAuthState"}
    assert "logout, 2026-02-02" in found["new"]
    same = ("--old-extension", "logout", "--old-extension", "auth-state@2026-03-07")
    assert data("v1/0.10.8", package / name, *same, cwd=package.parent)["findings"] == []


def test_an_extension_that_both_have_makes_no_difference(package: Path) -> None:
    assert rules(package, package, "--extension", "logout", cwd=package.parent) == set()
    assert rules("v1/0.10.8", "v1/0.10.8", "--extension", "logout", cwd=package.parent) == set()
    assert "method-added" in rules("v1/0.10.8", "v1/0.10.8", "--new-extension", "logout", cwd=package.parent)


def test_the_options_of_a_package_hold_for_the_other_side_too(home: Path) -> None:
    schema = write(
        home / "schema.json", holding({"oneOf": [thing(("k",), k={"const": "a"}), thing(("k",), k={"const": "b"})]})
    )
    build_package(home / "acp", "--schema", schema, "--open-unions", "--keep-unknown", "--no-runtime")
    assert rules("acp", "schema.json", "--source", "schema.json", cwd=home) == set()


def test_a_package_of_a_file_needs_that_file(home: Path) -> None:
    fragment = {"fragment": 1, "id": "acme", "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    write(home / "acme.json", {**fragment, "$defs": {"Acme": thing(a=TEXT)}})
    build_package(home / "acp", "--schema", home / "old.json", "--extension", "./acme.json", "--no-runtime")
    for name in ("old.json", "acme.json"):
        sources = [other for each in ("old.json", "acme.json") if each != name for other in ("--source", each)]
        said = refused("acp", "new.json", *sources, cwd=home)
        assert sha256((home / name).read_bytes()).hexdigest() in said
        assert repr(Path(name).stem if name == "acme.json" else name) in said
        assert "[manifest-input]" in said
        assert "--source" in said
    found = rules("acp", "new.json", "--source", "old.json", "--source", "acme.json", cwd=home)
    assert found == {"field-added-optional", "type-removed"}


def test_another_text_under_the_name_of_a_bundled_schema(package: Path, tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    lock["schema"]["sha256"] = "0" * 64
    lock["acpgen"] = "0.0.7"
    write(tmp_path / "acpgen.lock", lock)
    said = refused(tmp_path, "v1/0.10.8", cwd=tmp_path)
    assert "is another" in said
    assert "use acpgen 0.0.7" in said


@pytest.mark.parametrize("name", ["../../secret.json", "/etc/passwd", "x.json", "a@../b"])
def test_a_manifest_opens_no_files(package: Path, name: str, tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    lock["extensions"] = [{"name": name, "sha256": "0" * 64}]
    write(tmp_path / "acpgen.lock", lock)
    assert "[manifest-input]" in refused(tmp_path, "v1/0.10.8", cwd=tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [{"protocol": "1"}, {"schema": None}, {"schema": {"name": 1, "sha256": ""}}, {"extensions": 5}, {"options": []}],
    ids=str,
)
def test_a_manifest_that_says_nonsense(package: Path, spoil: Mapping[str, Any], tmp_path: Path) -> None:
    lock = json.loads((package / "acpgen.lock").read_text(encoding="utf-8"))
    write(tmp_path / "acpgen.lock", {**lock, **spoil})
    assert "[manifest-broken]" in refused(tmp_path, "v1/0.10.8", cwd=tmp_path)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("missing.json", "neither a file nor a bundled release"),
        ("v1/9.9", "no release '9.9' of protocol 1"),
        ("v7/0.10.8", "no schema of protocol 7"),
        (".", "has no acpgen.lock"),
        ("x" * 5000, "neither a file nor a bundled release"),
        ("", "neither a file nor a bundled release"),
    ],
)
def test_specs_that_lead_nowhere(spec: str, expected: str, home: Path) -> None:
    assert expected in refused(spec, "new.json", cwd=home)


def test_a_release_of_the_other_protocol_is_hinted_at(home: Path) -> None:
    assert "v1/0.10.8" in refused("0.10.8", "new.json", "--protocol", "2", cwd=home)


# --- git ------------------------------------------------------------------------------------------------------------


def git(*arguments: str, cwd: Path) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A repository with a schema and a package in its first commit, and others in the second."""
    home = tmp_path_factory.mktemp("repository")
    with patch.dict(os.environ, {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}):
        schema = write(home / "sub" / "schema.json", SMALL)
        write(home / "new.json", LARGER)
        build_package(home / "acp", "--schema", schema, "--no-runtime")
        git("init", "-q", cwd=home)
        git("add", ".", cwd=home)
        git("commit", "-qm", "first", cwd=home)
        git("tag", "first", cwd=home)
        write(schema, LARGER)
        build_package(home / "acp", "--schema", schema, "--no-runtime")
        git("commit", "-qam", "second", cwd=home)
        yield home


def test_files_in_git(repository: Path) -> None:
    assert rules("first:sub/schema.json", "HEAD:sub/schema.json", cwd=repository) == {"field-added-optional"}
    assert rules("HEAD~1:./schema.json", "schema.json", cwd=repository / "sub") == {"field-added-optional"}


@pytest.mark.parametrize("old", ["first:acp", "first:acp/", "first:acp/acpgen.lock"])
def test_packages_in_git(old: str, repository: Path) -> None:
    sources = ("--source", "first:sub/schema.json", "--source", "sub/schema.json")
    assert rules(old, "acp", *sources, cwd=repository) == {"field-added-optional"}
    assert "--source REV:PATH" in refused(old, "acp", cwd=repository)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("nowhere:old.json", "git knows no revision 'nowhere'"),
        ("HEAD:missing.json", "has no 'missing.json'"),
        ("HEAD:sub", "has no 'sub/acpgen.lock'"),
        (":old.json", "does not start with a revision"),
        ("--output=x:old.json", "does not start with a revision"),
        ("HEAD:old\x1b.json", "does not start with a revision"),
        ("HEAD:../../etc/passwd", "has no '../../etc/passwd'"),
    ],
)
def test_what_git_does_not_have(spec: str, expected: str, repository: Path) -> None:
    assert expected in refused("--", spec, "new.json", cwd=repository)
    assert not (repository / "x").exists()


def test_no_repository_at_all(home: Path) -> None:
    with patch.dict(os.environ, {"GIT_CEILING_DIRECTORIES": str(home.parent)}):
        assert "[no-repository]" in refused("HEAD:old.json", "new.json", cwd=home)


def test_no_git_at_all(home: Path) -> None:
    with patch.dict(os.environ, {"PATH": str(home)}):
        assert "[no-git]" in refused("HEAD:old.json", "new.json", cwd=home)


def test_a_file_with_a_colon_is_a_file(home: Path) -> None:
    write(home / "a:b.json", SMALL)
    assert rules("a:b.json", "new.json", cwd=home) == {"field-added-optional"}


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
    assert "no differences but in documentation (1)" in diff("old.json", "new.json", cwd=tmp_path).stdout
    assert "AskRequest: other text about x" in diff("old.json", "new.json", "--all", cwd=tmp_path).stdout


def test_gates(home: Path) -> None:
    """Fragments state them: for a capability that is there, that is another, and that is none."""
    base = asking(
        thing(),
        GreetRequest=message("greet", thing()),
        GreetResponse=message("greet", thing(ask={"type": "boolean"}, plead={"type": "boolean"})),
        TellNotification=message("tell", thing()),
    )
    write(home / "base.json", base)
    head = {"fragment": 1, "revision": "1", "title": "t", "status": "vendor", "protocols": [1]}
    for name, gates in {
        "none": {"tell": "ask"},
        "ask": {"tell": "ask", "ask": "ask"},
        "plead": {"tell": "ask", "ask": "plead"},
    }.items():
        added = {"$defs": {f"Of{name.capitalize()}": thing()}}
        write(home / f"{name}.json", {**head, "id": name, **added, "gates": {"GreetResponse": gates}})
    for old, new, rule, wire, source in (
        ("none", "ask", "method-gate-added", ("breaks", "loses"), "risk"),
        ("ask", "none", "method-gate-removed", ("loses", "breaks"), "ok"),
        ("ask", "plead", "method-gate-changed", ("loses", "loses"), "risk"),
    ):
        options = ("--old-extension", f"./{old}.json", "--new-extension", f"./{new}.json")
        found = data("base.json", "base.json", *options, cwd=home)["findings"]
        (gate,) = [each for each in found if "gate" in each["rule"]]
        assert (gate["rule"], gate["method"], gate["source"]["verdict"]) == (rule, "ask", source)
        (direction,) = gate["wire"]
        assert (direction["sender"], direction["old_to_new"], direction["new_to_old"]) == ("client", *wire)


def test_a_gate_that_is_not_known_is_no_gate_that_is_gone(tmp_path: Path) -> None:
    """A schema of the user's says nothing of gates; the facts of a bundled one do."""
    changed = json.loads(find_release(1).schema.read_text(encoding="utf-8"))
    changed["$comment"] = "changed"
    write(tmp_path / "mine.json", changed)
    found = data("v1/2026-11-02", "mine.json", cwd=tmp_path)
    assert found["findings"] == []
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
    """Names and values are anybody's; nothing of them reaches a terminal or a page but as text."""
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
    """A page has no HTML but line breaks, no links, and no mentions outside of code."""
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
    start = time.perf_counter()
    diff("v1/0.10.8", "v1/2026-11-02", cwd=home)
    assert time.perf_counter() - start < 2


def test_a_union_of_everything_with_itself(tmp_path: Path) -> None:
    """Definitions that refer to themselves end the comparison all the same."""
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
