"""`acpgen rfd extract` as a user meets it: from the text of an RFD to a fragment that can be built with."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from acpgen.schema.data import data_folder
from acpgen.schema.document import split
from acpgen.schema.fragment import find_marks, load_fragment
from acpgen.schema.walk import LISTS_OF_SCHEMAS, MAPS_OF_SCHEMAS, SINGLE_SCHEMAS
from tests.command_line import Outcome, run_acpgen
from tests.needs import need
from tests.published import shared
from tests.support import REPOSITORY

need("tree_sitter")

EDITS = REPOSITORY / "tests" / "rfd"

BUNDLED = {
    "logout-2026-02-02": "logout@2026-02-02",
    "auth-state-2026-03-07": "auth-state@2026-03-07",
    "auth-methods-2026-01-14": "auth-methods@2026-01-14",
}
"""The texts that bundled fragments follow."""

WAVE = """
# Waving

RFD: https://example.org/rfds/waving

```ts
interface AgentCapabilities {
  // ... existing fields ...
  wave?: boolean;
}
interface WaveRequest { hand: "left" | "right"; speed?: number }
interface WaveResponse { seen: boolean }
```

```json
{ "jsonrpc": "2.0", "id": 1, "method": "wave", "params": { "hand": "left" } }
```

## Revision history

* 2026-05-01: First version
"""
"""A text that says everything."""


def extract(folder: Path, text: str | bytes, *arguments: str, name: str = "wave.md") -> Outcome:
    data = text if isinstance(text, bytes) else text.encode()
    (folder / name).write_bytes(data)
    return run_acpgen("rfd", "extract", name, *arguments, cwd=folder)


def draft_of(ran: Outcome) -> dict[str, Any]:
    draft: dict[str, Any] = json.loads(ran.stdout)
    return draft


def edited(root: Any, edits: list[dict[str, Any]]) -> Any:
    """`root` after edits: each puts a value at a pointer, or removes what is there, and says why."""
    for edit in edits:
        assert edit.keys() <= {"at", "value", "why"}
        assert edit["why"]
        *parents, last = split(edit["at"])
        node = root
        for token in parents:
            node = node[int(token)] if isinstance(node, list) else node[token]
        if "value" in edit:
            assert node.get(last) != edit["value"], f"{edit['at']} needs no edit"
            node[last] = edit["value"]
        else:
            del node[last]
    return root


def without_descriptions(node: Any) -> Any:
    """A schema without descriptions; a property of that name stays."""
    if not isinstance(node, dict):
        return node
    return {key: _without_descriptions(key, value) for key, value in node.items() if key != "description"}


def _without_descriptions(key: str, value: Any) -> Any:
    if key in MAPS_OF_SCHEMAS:
        return {name: without_descriptions(child) for name, child in value.items()}
    if key in LISTS_OF_SCHEMAS:
        return [without_descriptions(child) for child in value]
    return without_descriptions(value) if key in SINGLE_SCHEMAS else value


def comparable(fragment: Mapping[str, Any]) -> dict[str, Any]:
    """A fragment without its descriptions."""
    found = {key: value for key, value in fragment.items() if key != "description"}
    found["$defs"] = {name: without_descriptions(node) for name, node in fragment.get("$defs", {}).items()}
    found["changes"] = {
        name: {key: without_descriptions_of_change(key, part) for key, part in change.items()}
        for name, change in fragment.get("changes", {}).items()
    }
    return found


def without_descriptions_of_change(key: str, part: Any) -> Any:
    """One part of a change: properties, members or a replacement."""
    match key:
        case "members":
            return [without_descriptions(member) for member in part]
        case "properties" | "replace":
            return {name: without_descriptions(node) for name, node in part.items()}
    return part


# --- The real texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", BUNDLED)
def test_a_bundled_fragment_is_the_draft_after_a_few_edits(page: str) -> None:
    ran = run_acpgen("rfd", "extract", shared(f"rfd/{page}.txt"), "--release", "0.10.8", cwd=REPOSITORY)
    assert ran.code == 1, ran.stderr
    draft = draft_of(ran)
    edits = json.loads((EDITS / f"{page}.patch.json").read_text(encoding="utf-8"))
    bundled = data_folder() / "schema" / "extensions" / "v1" / f"{BUNDLED[page]}.json"
    assert comparable(edited(draft, edits)) == comparable(json.loads(bundled.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", BUNDLED)
def test_each_edit_but_those_of_style_is_asked_for(page: str) -> None:
    """What has to be edited stands in the draft as a mark, or is a matter of this project's taste."""
    ran = run_acpgen("rfd", "extract", shared(f"rfd/{page}.txt"), "--release", "0.10.8", cwd=REPOSITORY)
    edits = json.loads((EDITS / f"{page}.patch.json").read_text(encoding="utf-8"))
    places = {edit["at"] for edit in edits}
    marks = {pointer for pointer, _ in find_marks(draft_of(ran))}
    assert {pointer for pointer in marks if not any(pointer.startswith(place) for place in places)} == set()
    taste = {place for place in places if not any(pointer.startswith(place) for pointer in marks)}
    assert taste <= {
        *("/title", "/rfd", "/extracted"),
        "/changes/AgentCapabilities/properties/getAuthState/x-deserialize-default-on-error",
    }


def test_a_page_about_a_later_protocol_asks_for_what_it_does_not_define() -> None:
    page = shared("rfd/authentication-v2-page.txt")
    ran = run_acpgen("rfd", "extract", page, "--protocol", "2", cwd=REPOSITORY)
    assert ran.code == 1
    wanted = {pointer for pointer, _ in find_marks(draft_of(ran)["$defs"])}
    assert wanted == {"/AuthenticateRequest", "/AuthenticateResponse", "/LogoutRequest", "/LogoutResponse"}


@pytest.mark.parametrize("page", ["authentication-v2-page", "schema-v1-page-2025"])
def test_a_page_that_adds_nothing_is_unusable(page: str) -> None:
    ran = run_acpgen("rfd", "extract", shared(f"rfd/{page}.txt"), cwd=REPOSITORY)
    assert (ran.code, ran.stdout) == (2, "")
    assert "[rfd-nothing-found]" in ran.stderr


# --- What comes out --------------------------------------------------------------------------------------------------


def test_a_text_that_says_everything_is_complete(tmp_path: Path) -> None:
    ran = extract(tmp_path, WAVE, "--release", "0.10.8")
    assert ran.code == 0, ran.stderr
    draft = draft_of(ran)
    assert list(find_marks(draft)) == []
    assert (draft["id"], draft["title"], draft["revision"]) == ("wave", "Waving", "2026-05-01")
    assert (draft["rfd"], draft["status"]) == ("https://example.org/rfds/waving", "draft")
    assert draft["$defs"]["WaveRequest"] == {
        "type": "object",
        "properties": {
            "hand": {"anyOf": [{"type": "string", "const": "left"}, {"type": "string", "const": "right"}]},
            "speed": {"type": ["number", "null"]},
        },
        "required": ["hand"],
        "x-side": "agent",
        "x-method": "wave",
    }
    assert draft["gates"] == {"InitializeResponse": {"wave": "agentCapabilities.wave"}}
    # only notes, and each example is accounted for
    assert "wave.md:16:1: note: an example: a request of wave [rfd-example]" in ran.stderr
    assert "warning" not in ran.stderr


def test_a_complete_draft_can_be_built_with(tmp_path: Path) -> None:
    assert extract(tmp_path, WAVE, "--release", "0.10.8", "--out", "wave.json").code == 0
    fragment = load_fragment(tmp_path / "wave.json")
    assert fragment.spec == "wave@2026-05-01"
    ran = run_acpgen(
        *("build", "--release", "0.10.8", "--extension", "./wave.json", "--role", "both", "--out", "acp"), cwd=tmp_path
    )
    assert ran.code == 0, ran.stderr
    assert 'WaveRequestHand: TypeAlias = Literal["left", "right"]' in (tmp_path / "acp" / "types.py").read_text(
        encoding="utf-8"
    )


def test_the_draft_says_where_it_comes_from(tmp_path: Path) -> None:
    extracted = draft_of(extract(tmp_path, WAVE))["extracted"]
    assert extracted["file"] == "wave.md"
    assert len(extracted["sha256"]) == 64
    assert extracted["lines"] == {
        "/changes/AgentCapabilities": "7-10",
        "/$defs/WaveRequest": "11",
        "/$defs/WaveResponse": "12",
    }


def test_a_draft_with_marks_is_refused_with_what_is_to_be_filled_in(tmp_path: Path) -> None:
    text = WAVE.replace("# ", "")
    assert extract(tmp_path, text, "--out", "wave.json").code == 1
    ran = run_acpgen("build", "--extension", "./wave.json", "--out", "acp", cwd=tmp_path)
    assert ran.code == 2
    assert "wave.json:5:12: error: this is a draft; fill in what the extension is about, " in ran.stderr
    assert "[fragment-draft]" in ran.stderr
    assert not (tmp_path / "acp").exists()


@pytest.mark.full
def test_a_text_needs_no_address(tmp_path: Path) -> None:
    ran = extract(tmp_path, WAVE.replace("RFD: https://example.org/rfds/waving", ""), "--out", "wave.json")
    assert ran.code == 0, ran.stderr
    assert "[rfd-no-address]" in ran.stderr
    assert json.loads((tmp_path / "wave.json").read_text(encoding="utf-8"))["rfd"] is None
    ran = run_acpgen("build", "--extension", "./wave.json", "--out", "acp", cwd=tmp_path)
    assert ran.code == 0, ran.stderr


def test_a_complete_draft_that_the_schema_does_not_take_is_not_passed_off_as_fine(tmp_path: Path) -> None:
    ran = extract(tmp_path, WAVE.replace("interface AgentCapabilities", "interface NoCapabilities"))
    assert ran.code == 1
    assert "wave.md:7:1: warning: the text changes NoCapabilities, but ACP v1, 2026-11-02 does not define" in ran.stderr


# --- Files and options -----------------------------------------------------------------------------------------------


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "wave.json").write_text("mine", encoding="utf-8")
    ran = extract(tmp_path, WAVE, "--out", "wave.json")
    assert (ran.code, ran.stdout) == (2, "")
    assert "wave.json exists already" in ran.stderr
    assert (tmp_path / "wave.json").read_text(encoding="utf-8") == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wave.json", "wave.md"]


def test_a_written_file_is_what_stdout_has(tmp_path: Path) -> None:
    printed = extract(tmp_path, WAVE)
    written = extract(tmp_path, WAVE, "--out", "wave.json")
    assert (written.code, written.stdout, written.stderr) == (0, "", printed.stderr)
    assert (tmp_path / "wave.json").read_text(encoding="utf-8") == printed.stdout
    assert stat.S_IMODE((tmp_path / "wave.json").stat().st_mode) & 0o444 == 0o444 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_is_written_where_it_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "target").write_text("x", encoding="utf-8")
    (tmp_path / "link").symlink_to("target")
    for out, code in (("folder", "foreign-file"), ("link", "foreign-file"), ("none/wave.json", "write-failed")):
        ran = extract(tmp_path, WAVE, "--out", out)
        assert (ran.code, ran.stdout) == (2, "")
        assert f"[{code}]" in ran.stderr
    assert (tmp_path / "target").read_text(encoding="utf-8") == "x"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "link", "target", "wave.md"]


def test_nothing_is_left_behind_when_the_disk_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    ran = extract(tmp_path, WAVE, "--out", "wave.json")
    assert (ran.code, ran.stdout) == (2, "")
    assert "cannot write wave.json: No space left on device" in ran.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["wave.md"]


def test_diagnostics_for_programs(tmp_path: Path) -> None:
    ran = extract(tmp_path, WAVE.replace("# ", ""), "--format", "json")
    found = json.loads(ran.stderr)
    (mark,) = (each for each in found if each["code"] == "rfd-fill-in")
    assert (mark["severity"], mark["file"], mark["line"]) == ("warning", "wave.md", 1)
    ran = extract(tmp_path, WAVE.replace("# ", ""), "--format", "github")
    assert "::warning file=wave.md,line=1,col=1,title=rfd-fill-in::" in ran.stderr


def test_every_finding_of_a_text_of_some_size_is_printed(tmp_path: Path) -> None:
    ran = extract(tmp_path, WAVE + "\n\n".join(["}"] * 100))
    assert ran.stderr.count("[rfd-stray-code]") == 100


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\xff\xfe", "is not UTF-8"),
        (b"x" * (256 * 1024 + 1), "is larger than 256 KiB"),
        (b"", "adds nothing to"),
    ],
)
def test_unusable_input(tmp_path: Path, data: bytes, message: str) -> None:
    ran = extract(tmp_path, data)
    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acpgen.rfd.find_spec", lambda name: None if name == "tree_sitter" else name)
    ran = extract(tmp_path, WAVE, "--out", "wave.json")
    assert (ran.code, ran.stdout) == (2, "")
    assert "acpgen rfd extract needs tree-sitter [rfd-missing]" in ran.stderr
    assert 'pip install "acpgen[rfd]"' in ran.stderr
    assert not (tmp_path / "wave.json").exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    ran = run_acpgen("rfd", "extract", "none.md", cwd=tmp_path)
    assert (ran.code, ran.stdout) == (2, "")
    assert "cannot read none.md: No such file or directory" in ran.stderr


def test_the_command_without_arguments_shows_help(tmp_path: Path) -> None:
    ran = run_acpgen("rfd", "extract", "--help", cwd=tmp_path)
    assert ran.code == 0
    assert "acpgen rfd extract" in ran.stdout.partition("Examples")[2]
