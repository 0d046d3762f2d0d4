"""The history of the protocol, played: each release is built, used, and replaced by the next one."""

from __future__ import annotations

import ast
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from acpgen.schema.bundled import list_releases
from tests.command_line import Outcome, run_acpgen, tree
from tests.history.agents import WRITTEN, Talk, complaint, talk, written
from tests.history.comparison import Found, gone_names, parse
from tests.history.edits import edited
from tests.history.surface import read_surface, unfound
from tests.history.timeline import BUNDLED, SMALL, STABLE, TAGS, UNSTABLE, Pair, facts, method_changes, renamed_fields
from tests.project_support import Project
from tests.published import FILES
from tests.support import deep_except
from tests.vendoring import git

pytestmark = pytest.mark.needs("posix")

CONFIG = """\
out = "acp"
role = "both"
open = false
protocol = {protocol}
schema = "vendor/schema.json"
"""

BUILT: dict[Path, dict[str, bytes]] = {}
"""Packages by their schemas: what one bump has built is where the next one starts."""

TAKEN: dict[tuple[int, str], list[str]] = {
    (1, "0.6.3"): ["type-renamed RequestPermissionRequestToolCall"],
    (1, "0.10.8"): ["type-renamed ToolCallUpdate", "method-removed session/set_model"],
    (1, "0.12.2"): ["type-renamed KillTerminalRequest"],
    (1, "0.13.6"): [],
    (1, "1.16.0"): [],
    (1, "1.21.0"): ["type-kind-changed AuthMethod"],
    (1, "2026-11-02"): [],
    (2, "2.0.0-alpha.1"): [
        "field-renamed AuthMethodAgent.methodId",
        "type-renamed CancelSessionNotification",
        "field-renamed InitializeResponse.info",
        "type-renamed LoginAuthRequest",
        "type-renamed LoginAuthResponse",
        "field-added-required RequestPermissionRequest.title",
        "field-removed-required RequestPermissionRequest.toolCall",
        "type-renamed UpdateSessionNotification",
        "method-renamed auth/login",
        "method-removed session/load",
    ],
    (2, "2.0.0-alpha.3"): [],
    (2, "2026-11-02"): [
        "field-added-required PromptResponse.messageId",
        "type-kind-changed SessionUpdateStateUpdateIdle",
    ],
}
"""The findings that the agent has to be edited for, by the new release."""


def named(kept: set[str], pairs: list[Pair]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("pair", deep_except(kept, {str(pair): pair for pair in pairs}))


PLAYED = {
    "v2 0.14.0 to 2.0.0-alpha.1",  # properties, types and methods are renamed, removed and added
    "v2 2.0.0-alpha.3 to 2026-11-02",  # the newest, in which a class has become a union
}
"""Of protocol 1, a bump between the bundled releases has what the agent is edited for in those that upstream made."""
COMPARED = {
    str(SMALL),  # all that came between these two
    "v1 0.4.9 to 0.6.3",  # a type is renamed, and properties, before there were two schemas
    "v1 0.6.3 to 0.10.8",  # a method is removed, and the type has its name back
    "v2 0.14.0 to 2.0.0-alpha.1",  # methods are renamed
    "v2 2.0.0-alpha.3 to 2026-11-02",  # ids are no longer null
    "v1 0.10.8 to 0.12.2 unstable",  # a method is added under one name and ends with another
    "v1 1.21.0 to 2026-11-02 unstable",  # many methods are removed, and one has another side
}
"""One bump for each thing that a table of the timeline can say."""


# --- What the agent is at a release ---------------------------------------------------------------------------------


@cache
def findings(pair: Pair) -> list[Found]:
    """What `acpgen diff` says of two schemas."""
    old, new = pair.files
    ran = run_acpgen("diff", old, new, "--protocol", str(pair.protocol), "--format", "json", cwd=old.parent)
    assert ran.code == 0, ran.stderr
    return parse(ran.stdout)


@cache
def agent_at(protocol: int, release: str) -> str:
    """What became of an agent by the edits of each bump since it was written."""
    if body := WRITTEN.get((protocol, release)):
        return ast.unparse(ast.parse(body))
    (before,) = (pair for pair in STABLE if (pair.protocol, pair.new) == (protocol, release))
    return edited(agent_at(protocol, before.old), findings(before))[0]


# --- A bump ---------------------------------------------------------------------------------------------------------


class Vendor(Project):
    """A project in git, with an agent and the package that it is written against."""

    def __init__(self, path: Path, pair: Pair, body: str) -> None:
        super().__init__(path, CONFIG.format(protocol=pair.protocol))
        self.pair = pair
        (path / "vendor").mkdir()
        shutil.copy(pair.files[0], path / "vendor" / "schema.json")
        self.write(body)
        git(path, "init", "--quiet")
        self.build_old()
        git(path, "add", ".")
        git(path, "commit", "--quiet", "--message", f"Build {pair.old}")

    @property
    def public(self) -> set[str]:
        """The public names of the package."""
        return self.names("acp")

    def write(self, body: str) -> None:
        (self.path / "agent.py").write_text(written(body), encoding="utf-8")

    def put_new_schema(self) -> None:
        shutil.copy(self.pair.files[1], self.path / "vendor" / "schema.json")

    def build_old(self) -> None:
        """Have the package of the old release; the build that follows tells whether it is what one makes."""
        package = self.path / "acp"
        if known := BUILT.get(self.pair.files[0]):
            for path, data in known.items():
                (package / path).parent.mkdir(parents=True, exist_ok=True)
                (package / path).write_bytes(data)
        self.build()
        BUILT[self.pair.files[0]] = tree(package)

    def build(self) -> str:
        """Build; returns what is said about it."""
        return self.good("build").stderr

    def check(self) -> Outcome:
        return self.run("check")

    def compare(self, *arguments: str) -> list[Found]:
        return parse(self.good("diff", *arguments, "vendor/schema.json", "--format", "json").stdout)

    def talk(self, release: str, *options: str) -> Talk:
        return talk(self.path, self.pair.protocol, release, options=options)

    def complaint(self, release: str) -> str | None:
        """What is wrong with what the agent does for a client of `release`, if anything."""
        return complaint(self.talk(release), self.pair.protocol)


def dropped(said: str) -> list[str]:
    """The names of which a build has said that they are gone."""
    return sorted(re.findall(r"^warning: the package no longer defines (\w+) ", said, flags=re.MULTILINE))


def bump(folder: Path, pair: Pair, taken: list[str]) -> None:
    """Play the bump; `taken` are the findings for which the agent has to be edited."""
    body = agent_at(pair.protocol, pair.old)
    project = Vendor(folder, pair, body)
    assert project.check().code == 0
    assert project.complaint(pair.old) is None

    project.put_new_schema()
    red = project.check()
    assert red.code == 1
    assert re.search(r"^acp: \d+ stale$", red.stdout, flags=re.MULTILINE), red.stdout
    assert re.search(r"^  schema\.sha256: \w{12} -> \w{12}$", red.stdout, flags=re.MULTILINE), red.stdout
    assert "\n  stale   codec.py\n" in red.stdout
    assert "fix it with: acpgen build\n" in red.stdout

    found = project.compare("HEAD:vendor/schema.json", "--protocol", str(pair.protocol))
    assert found == project.compare("acp", "--source", "HEAD:vendor/schema.json")
    before, surface = project.public, read_surface(folder / "acp")
    said = project.build()
    assert dropped(said) == sorted(before - project.public) == sorted(gone_names(found))
    assert unfound(surface, read_surface(folder / "acp"), found) == []
    assert project.check().code == 0
    BUILT[pair.files[1]] = tree(folder / "acp")

    edited_body, edits = edited(body, found)
    assert sorted(edits) == sorted(taken)
    if edits:
        assert unfound(surface, read_surface(folder / "acp"), []) != []
        assert project.complaint(pair.new), f"the agent runs as it was, without {edits}"
        project.write(edited_body)
    assert project.complaint(pair.new) is None


@pytest.mark.full
@named(PLAYED, STABLE)
def test_a_bump(pair: Pair, tmp_path: Path) -> None:
    bump(tmp_path, pair, TAKEN[pair.protocol, pair.new])


@pytest.mark.full
def test_a_bump_between_bundled_releases(tmp_path: Path) -> None:
    bump(tmp_path, SMALL, TAKEN[1, "0.12.2"] + TAKEN[1, "1.21.0"])


@pytest.mark.full
def test_old_names_can_be_kept(tmp_path: Path) -> None:
    # a class that has become a union cannot be made any more, and yet be decoded
    agent = WRITTEN[1, "0.10.8"].replace('AuthMethod(id="key", name="A key")', "decode(AuthMethod, KEY)")
    project = Vendor(tmp_path, SMALL, f"{agent}\n\nKEY = {{'id': 'key', 'name': 'A key'}}")
    assert project.complaint(SMALL.old) is None

    project.put_new_schema()
    renames = {
        str(each.was): each.type for each in project.compare("HEAD:vendor/schema.json") if each.rule == "type-renamed"
    }
    assert "KillTerminalCommandRequest" in renames
    with (tmp_path / "pyproject.toml").open("a", encoding="utf-8") as file:
        file.write("\n[tool.acpgen.renames]\n" + "".join(f'{old} = "{new}"\n' for old, new in renames.items()))
    assert dropped(project.build()) == []
    assert project.check().code == 0

    said = project.talk(SMALL.new)
    assert complaint(said, 1) is None
    assert re.search(
        r"agent\.py:\d+: DeprecationWarning: .*KillTerminalCommandRequest.* KillTerminalRequest", said.stderr
    )
    assert "DeprecationWarning" in str(complaint(project.talk(SMALL.new, "-W", "error"), 1))


# --- What changed ---------------------------------------------------------------------------------------------------


def test_every_release_has_its_place() -> None:
    for protocol, releases in TAGS.items():
        assert {name.split("/")[1] for name in FILES if name.startswith(f"v{protocol}/")} == releases.keys()
        assert list(releases.values()) == sorted(releases.values())


def test_the_bundled_releases_are_the_ones_that_are_played() -> None:
    assert {protocol: {each.name for each in list_releases() if each.protocol == protocol} for protocol in (1, 2)} == {
        protocol: set(names) for protocol, names in BUNDLED.items()
    }


@pytest.mark.full
@named(COMPARED, [SMALL, *STABLE, *UNSTABLE])
def test_the_comparison_names_what_changed(pair: Pair) -> None:
    found = findings(pair)
    assert {each for each in map(method_change, found) if each} == method_changes(pair)
    # of a new type, or of one that is something else now, the parts are not news
    whole = {each.type for each in found if each.rule in ("type-added", "type-kind-changed")}
    known = [each for each in facts(pair) if each.owner not in whole]
    renamed = {(each.was, each.place) for each in known if each.rule == "type-renamed"}
    assert {(each.was, each.place) for each in found if each.rule == "type-renamed"} == renamed
    names = {(each.was, each.member) for each in found if each.rule == "field-renamed"}
    assert names == renamed_fields(pair)
    assert {(each.rule, each.place, each.was) for each in known} <= {
        (each.rule, each.place, each.was) for each in found
    }


def method_change(found: Found) -> tuple[str, str | None, str | None] | None:
    """What a finding says of the names of methods, as the timeline has it."""
    match found.rule:
        case "method-added":
            return (found.rule, None, found.method)
        case "method-removed":
            return (found.rule, found.method, None)
        case "method-renamed":
            return (found.rule, found.was, found.method)
        case _:
            return None
