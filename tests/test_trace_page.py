"""The page of `acpgen trace --html`: its data and links. `test_trace_browser.py` looks at it in a browser."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.command_line import Outcome, run_acpgen
from tests.test_trace import OPENED, PLANTED, Json, S, answer, ask, prompted, tell, written

HOSTILE = (
    "</script><script>globalThis.hacked = 1</script>",
    "<!--<script>",
    "-->]]><img src=x onerror=globalThis.hacked=1>",
    "javascript:globalThis.hacked=1",
    "{{ 7 * 7 }} {% raw %}",
    "\ud800 lone \u2028 \u202e bidi \x00 \x7f",
    "' \" ` ${1} \\u003c \\",
)


class Page(HTMLParser):
    """A page: its elements with their attributes, and the texts of its scripts."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self._kind: str | None = None
        self._is_script = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._is_script = tag == "script"
        self._kind = dict(attrs).get("type")
        if self._is_script:
            self.scripts.append((self._kind, ""))

    def handle_endtag(self, tag: str) -> None:
        self._is_script = False

    def handle_data(self, data: str) -> None:
        if self._is_script:
            kind, text = self.scripts.pop()
            self.scripts.append((kind, text + data))

    @property
    def index(self) -> Any:
        [text] = [text for kind, text in self.scripts if kind == "application/json"]
        return json.loads(text)

    @property
    def messages(self) -> list[Json]:
        blocks = [text[1:-1] for kind, text in self.scripts if kind == "application/x-ndjson"]
        return [json.loads(line) for block in blocks for line in block.split("\n")]


def rendered(folder: Path, messages: list[Json], *options: str) -> Page:
    path = written(folder, messages)
    ran = run_acpgen("trace", path, "--html", "page.html", *options, cwd=folder)
    assert ran.code in (0, 1), ran.stderr
    return Page((folder / "page.html").read_text(encoding="utf-8"))


def test_every_message_is_on_the_page_as_it_was(tmp_path: Path) -> None:
    messages = [*OPENED, *(prompted({"type": "text", "text": each}, *[{}] * 3)[0] for each in HOSTILE)]
    messages += [{**tell("session/cancel", S), "big": 2**70, "float": 1e300}] * 1100
    assert rendered(tmp_path, messages).messages == messages


SECRET = "sk-7d1"
LOGIN = ask("in", "authenticate", {"methodId": "key", "_meta": {"pin": SECRET}})
CONFIDENTIAL = [
    *OPENED,
    ask(5, "session/new", {"cwd": "/", "mcpServers": [{"name": "m", "url": "u", "type": "http", "headers": SECRET}]}),
    answer(5, {"sessionId": "t"}),
    {"from": "client", "msg": [LOGIN]},
    {"from": "agent", "msg": answer("in", {"_meta": {"token": SECRET}})},
    {"from": "agent", "raw": '{"env":[{"name":"KEY","value":"' + SECRET},
]


def test_secrets_are_masked_unless_they_are_asked_for(tmp_path: Path) -> None:
    """Also in what findings say, on the page and elsewhere; and lines that were cut end before them."""
    path = written(tmp_path, CONFIDENTIAL)
    path.write_text(path.read_text(encoding="utf-8") + '{"headers":["' + SECRET + '",\n', encoding="utf-8")
    for options, count in (((), 0), (("--secrets",), 9)):
        ran = run_acpgen("trace", path, "--html", "page.html", *options, cwd=tmp_path)
        source = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert ran.code == 1
        assert (source + ran.stderr).count(SECRET) == count
    ran = run_acpgen("trace", path, cwd=tmp_path)
    assert "expected an array, found ***" in ran.stderr
    assert len(json.loads(run_acpgen("trace", path, "--format", "json", cwd=tmp_path).stderr)) == 4


def test_what_a_recorder_has_masked_is_no_mistake(tmp_path: Path) -> None:
    masked = [*OPENED, {"from": "client", "msg": {**LOGIN, "params": {"methodId": "key", "_meta": {"pin": "***"}}}}]
    masked += [{"from": "agent", "masked": True, "msg": answer("in", {"_meta": {"token": "***"}})}]
    page = rendered(tmp_path, masked)
    assert page.index["findings"] == []
    assert page.messages[-1] == masked[-1]["msg"]


def test_texts_of_a_trace_are_data_and_nothing_else(tmp_path: Path) -> None:
    plain = rendered(tmp_path, [*OPENED, tell("a", {}), ask("b", "b", {}), answer("c", {})])
    strange = [tell(each, {each: each}) for each in HOSTILE]
    strange += [ask(each, "session/close", {"sessionId": each, each: [each]}) for each in HOSTILE]
    strange += [{"acp_trace": 1, "command": [*HOSTILE], "started": HOSTILE[0], "connection": HOSTILE[0]}]
    strange += [{"from": "agent", "lost": each, "connection": each} for each in HOSTILE]
    page = rendered(tmp_path, [*OPENED, *strange], "--reference", '"><script>x')
    source = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert [kind for kind, _ in page.scripts] == [kind for kind, _ in plain.scripts]
    assert page.scripts[-1] == plain.scripts[-1]
    known = {tag for tag, _ in plain.tags} | {"code"}
    assert {tag for tag, _ in page.tags} <= known
    assert not any(key.startswith("on") for _, values in page.tags for key in values)
    for _, data in page.scripts[:-1]:
        assert "<" not in data
    assert source.count("<script") == len(page.scripts)


def test_the_page_loads_nothing_and_runs_its_own_script_alone(tmp_path: Path) -> None:
    page = rendered(tmp_path, OPENED)
    [policy] = [each["content"] for tag, each in page.tags if each.get("http-equiv") == "content-security-policy"]
    assert str(policy).startswith(
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    )
    addresses = [value for _, each in page.tags for key, value in each.items() if key in ("src", "href", "action")]
    assert [each for each in addresses if not str(each).startswith(("#", "data:"))] == []


def test_lines_without_a_message_are_shown_as_text(tmp_path: Path) -> None:
    path = written(tmp_path, OPENED)
    path.write_text(path.read_text(encoding="utf-8") + '{"id": <b>\n', encoding="utf-8")
    assert run_acpgen("trace", path, "--html", "page.html", cwd=tmp_path).code == 1
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert page.messages[-1] == '{"id": <b>'
    assert [(each[0], each[2]) for each in page.index["findings"]] == [(4, "no-message")]


def test_each_message_has_its_place(tmp_path: Path) -> None:
    """The columns: the sides, the pairs, the sessions, and the seconds since the first message."""
    envelopes = [{"t": 5 + number / 4, "msg": each} for number, each in enumerate([*OPENED, *prompted()])]
    index = rendered(tmp_path, envelopes).index
    rows = index["rows"]
    assert [index["sides"][each] for each in rows["side"]] == ["client", "agent"] * 3
    assert rows["asked"] == [-1, 0, -1, 2, -1, 4]
    assert rows["time"] == [0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert rows["session"] == [-1, -1, -1, 0, 0, 0]
    assert [index["methods"][each] for each in rows["method"]][-1] == "session/prompt"


def test_findings_lead_to_what_the_reference_says(tmp_path: Path) -> None:
    """Each link has its entry in the page of `acpgen docs`."""
    assert run_acpgen("docs", "--protocol", "1", "--protocol", "2", "--out", "site", cwd=tmp_path).code == 0
    reference = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    known = {*re.findall(r'\bid="([^"]+)"', reference)}
    messages = [message for planted, _ in PLANTED.values() for message in planted]
    index = rendered(tmp_path, [*OPENED, *messages], "--reference", "site/index.html").index
    found = {(each[2], each[6]) for each in index["findings"]}
    assert ("missing-property", "v1/types/ContentBlockText.text") in found
    assert ("wrong-kind", "v1/methods/session/close") in found
    assert {anchor for _, anchor in found} - {None} <= known
    assert {each for by_method in index["anchors"].values() for each in by_method.values()} <= known
    assert index["reference"] == "site/index.html"


def refused(folder: Path, *options: str) -> Outcome:
    return run_acpgen("trace", written(folder, OPENED), *options, cwd=folder)


def test_a_file_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("mine", encoding="utf-8")
    outcome = refused(tmp_path, "--html", "page.html")
    assert (outcome.code, "is not a page that acpgen wrote" in outcome.stderr) == (2, True)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == "mine"
    assert refused(tmp_path, "--html", "missing/page.html").code == 2


@pytest.mark.needs("posix")
def test_only_the_owner_can_read_the_page(tmp_path: Path) -> None:
    """A trace may have what nobody else should see."""
    rendered(tmp_path, OPENED)
    (tmp_path / "page.html").chmod(0o644)
    rendered(tmp_path, OPENED)  # its own page is replaced
    assert (tmp_path / "page.html").stat().st_mode & 0o077 == 0


@pytest.mark.needs("posix")
@pytest.mark.parametrize("kind", ["a link", "a link to nothing", "a pipe"])
def test_a_page_is_written_through_no_link(tmp_path: Path, kind: str) -> None:
    rendered(tmp_path, OPENED)
    target = (tmp_path / "page.html").rename(tmp_path / "target.html")
    before = target.read_bytes()
    if kind == "a pipe":
        os.mkfifo(tmp_path / "page.html")
    else:
        (tmp_path / "page.html").symlink_to(target if kind == "a link" else tmp_path / "nothing.html")
    assert refused(tmp_path, "--html", "page.html").code == 2
    assert (target.read_bytes(), (tmp_path / "nothing.html").exists()) == (before, False)


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    rendered(tmp_path, OPENED)
    before = (tmp_path / "page.html").read_bytes()
    with patch("acpgen.trace.page.render_page", side_effect=lambda *_, **__: iter(["half", 1])), suppress(TypeError):
        refused(tmp_path, "--html", "page.html")
    assert (tmp_path / "page.html").read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir() if "page" in each.name) == ["page.html"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", "vbscript:x"])
def test_a_reference_that_would_run_something_is_refused(address: str, tmp_path: Path) -> None:
    assert refused(tmp_path, "--html", "page.html", "--reference", address).code == 2
