"""The page of `acpgen trace --html` in a headless Chromium: list, search, timeline, keys, phone, paper, accessibility.

`ACPGEN_SCREENSHOTS=1 pytest tests/test_trace_browser.py` renews the pictures in docs/.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.browser_support import DESKTOP, PHONE, Visit, check_accessibility
from tests.command_line import run_acpgen
from tests.support import DEEP, REPOSITORY
from tests.test_trace import HERE, Json, answer, ask, start, tell
from tests.test_trace_page import HOSTILE

pytestmark = pytest.mark.full

MANY = 100_000 if DEEP else 20_000
MOST_BYTES = 150_000
FILES = {"fs": {"readTextFile": True, "writeTextFile": True}}
TEXTS = (
    *("The parser reads the file line by line, and drops what has no newline at its end. ", "I look at it now.\n\n"),
    *("The test for it expects the old result, ", "so I change both: ", "first the loop, ", "then the test."),
)
PATHS = ("src/parser.py", "tests/test_parser.py", "docs/guide.md")


class Recording:
    """Lines of a trace, with a clock."""

    def __init__(self) -> None:
        self.lines: list[Json] = []
        self._time = 0.0
        self._ids = count(2)

    def add(self, sender: str, message: Json, seconds: float = 0.04) -> None:
        self._time += seconds
        self.lines.append({"t": round(self._time, 3), "from": sender, "msg": message})

    def call(self, sender: str, method: str, params: Json) -> Callable[..., None]:
        """Add a request: the function that answers it."""
        number = next(self._ids)
        self.add(sender, ask(number, method, params))
        other = {"client": "agent", "agent": "client"}[sender]
        return lambda result, seconds=0.04: self.add(other, answer(number, result), seconds)

    def update(self, session: str, seconds: float = 0.04, **update: Json) -> None:
        self.add("agent", tell("session/update", {"sessionId": session, "update": update}), seconds)

    def turn(self, session: str, prompt: str) -> None:
        """A prompt with pieces of an answer, and tool calls that read, and ask for permission."""
        text = {"type": "text", "text": prompt}
        done = self.call("client", "session/prompt", {"sessionId": session, "prompt": [text]})
        for number, path in enumerate(PATHS):
            for piece in TEXTS:
                content = {"type": "text", "text": piece}
                self.update(session, 0.09, sessionUpdate="agent_message_chunk", content=content)
            call = f"call_{next(self._ids)}"
            self.update(session, sessionUpdate="tool_call", toolCallId=call, title=f"Edit {path}", status="pending")
            if number % 2:
                options = [{"optionId": "allow", "name": "Allow", "kind": "allow_once"}]
                asked = {"sessionId": session, "toolCall": {"toolCallId": call}, "options": options}
                chosen = {"outcome": {"outcome": "selected", "optionId": "allow"}}
                self.call("agent", "session/request_permission", asked)(chosen, 1.4)
            else:
                self.call("agent", "fs/read_text_file", {"sessionId": session, "path": f"/work/{path}"})(
                    {"content": "x"}
                )
            self.update(session, 0.7, sessionUpdate="tool_call_update", toolCallId=call, status="completed")
        done({"stopReason": "end_turn"})


def recorded(turns: int) -> Recording:
    """Two sessions with turns after each other."""
    made = Recording()
    hello, said = start({"loadSession": True}, FILES)
    made.add("client", hello, 0)
    made.add("agent", said, 0.2)
    for session in ("fix-the-parser", "write-the-guide"):
        made.call("client", "session/new", HERE)({"sessionId": session}, 0.1)
    for turn in range(turns):
        made.turn(("fix-the-parser", "write-the-guide")[turn % 2], "Why does the parser drop the last line?")
    return made


def with_mistakes() -> list[Json]:
    made = recorded(2)
    image = {"type": "image", "mimeType": "image/png"}
    made.update("fix-the-parser", sessionUpdate="agent_message_chunk", content=image)
    kind = {"title": "Look", "kind": "peek", "status": "pending"}
    made.update("write-the-guide", sessionUpdate="tool_call", toolCallId="look", **kind)
    made.turn("fix-the-parser", "Thank you")
    made.add("agent", tell("session/dance", {}))
    return made.lines


def page_of(folder: Path, lines: list[Json], *options: str) -> str:
    path = folder / "editor.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="utf-8")
    ran = run_acpgen("trace", path, "--html", "page.html", *options, cwd=folder)
    assert ran.code in (0, 1), ran.stderr
    return (folder / "page.html").as_uri()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of a trace with mistakes."""
    return page_of(tmp_path_factory.mktemp("small"), with_mistakes(), "--reference", "site/index.html")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of the page of a trace with very many messages."""
    lines = recorded(1).lines
    turn = [each for each in lines[6:] if "id" not in each["msg"]]
    return page_of(tmp_path_factory.mktemp("large"), lines + turn * (MANY // len(turn) + 1))


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Opens a page. At the end of the test, nothing is in the console, and nothing was requested."""
    visits: list[Visit] = []

    def open_page(site: str, **options: Any) -> Any:
        visits.append(Visit(browser, site, **options))
        visits[-1].page.wait_for_selector("#list .row", state="attached")
        return visits[-1].page

    yield open_page
    for each in visits:
        each.context.close()
    assert [trouble for each in visits for trouble in each.trouble] == []


def shown(page: Any) -> list[str]:
    """The messages in view by their names."""
    rows = page.locator("#list .row:visible")
    found = rows.evaluate_all(
        "rows => rows.sort((a, b) => a.ariaPosInSet - b.ariaPosInSet)"
        ".map(row => row.querySelector('.what').innerText.replace(/\\s+/g, ' '))"
    )
    return [str(each) for each in found]


def counted(page: Any, text: str) -> None:
    """Wait until the page says how many messages fit the filters: nothing, if all do."""
    from playwright.sync_api import expect

    expect(page.locator("#count")).to_have_text(re.compile(f"^{text}" if text else "^$"), timeout=240_000)


# --- The list -------------------------------------------------------------------------------------------------------


def test_pieces_of_a_text_are_one_row_until_that_is_switched_off(visit: Any, small: str) -> None:
    page = visit(small)
    assert shown(page)[:9] == [
        *("initialize", "result initialize", "session/new", "result session/new", "session/new", "result session/new"),
        *("session/prompt", "agent_message_chunk ×6", "tool_call"),
    ]
    page.locator("#list .row", has_text="×6").first.click()
    assert "so I change both: first the loop, then the test." in page.locator(".joined").inner_text()
    page.get_by_label("Next update").click()
    assert "2 of 6 joined updates" in page.locator(".pager").inner_text()
    page.get_by_label("Join updates").click()
    assert shown(page)[7:14] == [*["agent_message_chunk"] * 6, "tool_call"]


def test_what_a_message_says_is_its_content(visit: Any, tmp_path: Path) -> None:
    """Ids are longer than most pieces of a text, and say nothing to people."""
    made = recorded(0)
    for text in ("Now ", "I ", "read."):
        content = {"type": "text", "text": text, "_meta": {"type": "text", "text": "no"}}
        made.update(
            "fix-the-parser", sessionUpdate="agent_message_chunk", messageId=f"msg_{'17' * 20}", content=content
        )
    made.update("fix-the-parser", sessionUpdate="agent_thought_chunk", messageId="msg_one", content=content)
    for status in ("in_progress", "completed"):
        made.update("fix-the-parser", sessionUpdate="tool_call_update", toolCallId="call_9", status=status)
    made.update("fix-the-parser", sessionUpdate="current_mode_update", currentModeId="careful")
    page = visit(page_of(tmp_path, made.lines))
    texts = [str(each) for each in page.locator("#list .row .text").all_inner_texts()]
    assert texts[-4:] == ["Now I read.", "read.", "in_progress · completed", "careful"]
    page.locator("#list .row", has_text="×3").first.click()
    assert page.locator(".joined").inner_text() == "Now I read."


def test_search_and_filters_leave_what_fits(visit: Any, small: str) -> None:
    page = visit(small)
    page.keyboard.press("/")
    page.keyboard.type("THANK you")
    counted(page, "1 of ")
    assert shown(page) == ["session/prompt"]
    page.keyboard.press("Escape")
    counted(page, "")
    page.select_option("#method", label=next(each for each in options(page, "method") if "· tool_call (" in each))
    page.select_option("#session", label="write-the-guide")
    counted(page, "4 of ")
    assert shown(page) == ["tool_call"] * 4
    page.select_option("#finding", value="warning")
    assert shown(page) == ["tool_call"]
    page.click("#clear")
    page.select_option("#side", label="From the client")
    page.select_option("#method", label=next(each for each in options(page, "method") if "permission" in each))
    assert set(shown(page)) == {"result session/request_permission"}


def options(page: Any, name: str) -> list[str]:
    return [str(each) for each in page.locator(f"#{name} option").all_inner_texts()]


def test_a_search_finds_quotes_markup_and_findings(visit: Any, tmp_path: Path) -> None:
    made = recorded(0)
    for text in ('say "a\\b"\n', "<b>Ünter</b>"):
        made.update("fix-the-parser", sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})
    made.add("agent", tell("session/dance", {}))
    page = visit(page_of(tmp_path, made.lines))
    for query, found in (('"a\\b"', "agent_"), ("<b>ünter", "agent_"), ("unknown-method", "session/dance")):
        page.fill("#query", query)
        counted(page, "1 of ")
        assert shown(page)[0].startswith(found)
    page.fill("#query", "nothing has this")
    page.locator("#nothing").wait_for()


def test_a_message_has_its_findings_where_they_are(visit: Any, small: str) -> None:
    page = visit(small)
    page.keyboard.press("f")
    page.locator("#detail .finding").first.wait_for()
    assert page.locator(".json .finding.warning").inner_text().startswith("warning 'agent_message_chunk' comes after")
    assert "ContentBlockImage requires the property 'data'" in page.locator(".json .finding.error").inner_text()
    before = page.locator(".json .line.error")
    assert before.inner_text().strip() == '"content": {'
    links = [str(each.get_attribute("href")) for each in page.locator("#detail a").all()]
    assert links == [
        *["site/index.html#v1/methods/session/update"] * 2,
        "site/index.html#v1/types/ContentBlockImage.data",
    ]


def test_a_request_leads_to_its_answer_and_back(visit: Any, small: str) -> None:
    page = visit(small)
    page.locator("#list .row", has_text="session/prompt").first.click()
    facts = page.locator("#detail .facts").inner_text()
    assert "Duration\n" in facts
    assert "fix-the-parser" in facts
    page.locator("#detail dd button", has_text="result").click()
    assert "end_turn" in page.locator(".json").inner_text()
    page.keyboard.press("r")
    assert "Why does the parser" in page.locator(".json").inner_text()


def test_the_keyboard_is_enough(visit: Any, small: str) -> None:
    page = visit(small)
    page.keyboard.press("/")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.id") == "list"
    active = page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    )
    assert "result" in active
    assert page.locator("#list [aria-selected=true]").count() == 1
    assert page.evaluate("location.hash") == "#2"
    page.keyboard.press("End")
    assert page.locator("#detail h2").inner_text() == "session/dance"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    assert page.evaluate("document.activeElement.id") == "list"


def test_an_address_opens_its_message(visit: Any, small: str) -> None:
    page = visit(small, anchor="3")
    assert page.locator("#detail h2").inner_text() == "session/new"


# --- The timeline ---------------------------------------------------------------------------------------------------


def test_lanes_choose_sessions_and_tool_calls(visit: Any, small: str) -> None:
    page = visit(small)
    lanes = page.locator("#names").inner_text().split("\n")
    assert lanes == ["connection", "fix-the-parser", "tool calls", "write-the-guide", "tool calls"]
    page.locator("#names button", has_text="write-the-guide").click()
    assert page.locator("#session").evaluate("each => each.selectedOptions[0].text") == "write-the-guide"
    page.locator("#names button", has_text="write-the-guide").click()
    counted(page, "")
    box = page.locator("#canvas").bounding_box()
    found = any_task(page, box["x"], box["y"] + 18 + 2 * 20 + 10, box["width"])
    assert "call_" in found
    assert page.locator("#chip").inner_text().startswith("tool call call_")
    assert shown(page) == ["tool_call", "tool_call_update"]


def any_task(page: Any, left: float, y: float, width: float) -> str:
    """Click on the first task that is found in a lane: what the page says of it."""
    for part in range(200):
        page.mouse.move(left + part * width / 200, y)
        if said := page.locator("#hover").inner_text():
            page.mouse.click(left + part * width / 200, y)
            page.locator("#chip").wait_for()
            return str(said)
    raise AssertionError("no task in this lane")


def test_a_trace_without_times_is_counted(visit: Any, tmp_path: Path) -> None:
    lines = [each["msg"] for each in recorded(1).lines]
    page = visit(page_of(tmp_path, lines))
    assert page.locator("#axis").is_hidden()
    assert page.locator("#names").inner_text().split("\n")[1] == "fix-the-parser"
    assert page.locator("#list .row .seconds").all_inner_texts()[:3] == ["", "", ""]


# --- Very many messages ---------------------------------------------------------------------------------------------


def test_of_very_many_messages_only_those_in_view_are_elements(visit: Any, large: str) -> None:
    page = visit(large)
    page.get_by_label("Join updates").click()
    assert page.locator("#list").evaluate("each => each.querySelectorAll('*').length") < 1500
    page.locator("#list").focus()
    page.keyboard.press("End")
    last = page.locator("#list [aria-selected=true]")
    assert int(last.get_attribute("aria-posinset")) == int(last.get_attribute("aria-setsize")) >= MANY
    assert page.locator("#list").evaluate("each => each.querySelectorAll('*').length") < 1500
    page.fill("#query", "end_turn")
    counted(page, "1 of ")


# --- Untrusted texts ------------------------------------------------------------------------------------------------


def test_no_text_of_a_trace_becomes_markup_or_script(visit: Any, tmp_path: Path) -> None:
    made = recorded(0)
    for text in HOSTILE:
        made.add("agent", tell(text, {text: text, "sessionId": text}))
        made.add("client", ask(text, "session/close", {"sessionId": text, text: [text]}))
        content = {"type": "text", "text": text}
        made.update(text, sessionUpdate=text, toolCallId=text, content=content)
    made.lines += [{"from": "agent", "raw": text} for text in HOSTILE]
    made.lines += [{"connection": text, "msg": tell("session/cancel", {"sessionId": text})} for text in HOSTILE]
    page = visit(page_of(tmp_path, made.lines))
    rows = page.locator("#list [role=option]").count()
    assert rows > 20
    page.locator("#list").focus()
    page.keyboard.press("Home")
    for _ in range(len(made.lines)):
        page.keyboard.press("ArrowDown")
    for text in HOSTILE:
        page.fill("#query", text)
    page.click("#help")
    assert page.evaluate("globalThis.hacked === undefined")
    assert page.locator("img, iframe, svg, b b, .row script").count() == 0
    assert "\u202e" not in page.locator("body").inner_text()


# --- Looks ----------------------------------------------------------------------------------------------------------

BLACK, WHITE = "rgb(0, 0, 0)", "rgb(255, 255, 255)"


def test_light_and_dark(visit: Any, small: str) -> None:
    background = "getComputedStyle(document.documentElement).backgroundColor"
    light, dark = visit(small), visit(small, color_scheme="dark")
    colours = [each.evaluate(background) for each in (light, dark)]
    assert len(set(colours)) == 2
    light.click("#theme")
    light.reload()
    assert light.evaluate(background) == colours[1]


def test_a_phone_shows_a_message_on_its_own(visit: Any, small: str) -> None:
    page = visit(small, viewport=PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert page.locator("#method").is_hidden()
    page.click("#more")
    assert page.locator("#method").is_visible()
    page.click("#fold")
    assert page.locator("#names button").first.is_visible()
    page.locator("#list .row", has_text="session/new").first.click()
    assert page.locator("#detail").bounding_box()["width"] == PHONE["width"]
    page.get_by_label("Close the message").click()
    assert "session/new" in shown(page)


def test_paper_has_the_rows_that_fit_the_filters(visit: Any, small: str) -> None:
    page = visit(small, color_scheme="dark")
    page.fill("#query", "session/dance")
    counted(page, "1 of")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    colours = "(({ color, backgroundColor }) => [color, backgroundColor])(getComputedStyle(document.documentElement))"
    assert page.evaluate(colours) == [BLACK, WHITE]
    assert page.locator("#paper .row").all_inner_texts()[0].split()[-2:] == ["session/dance", "error"]
    assert page.locator("#paper .row").count() == 1
    assert page.locator("#filters").is_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#paper .row").count() == 0


@pytest.mark.parametrize(("scheme", "viewport"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"])
def test_nothing_is_serious_for_accessibility(browser: Any, small: str, scheme: str, viewport: dict[str, int]) -> None:
    seen = Visit(browser, small, viewport=viewport, color_scheme=scheme, bypass_csp=True)
    seen.page.click("#help")
    check_accessibility(seen.page)
    seen.page.click("#help")
    seen.page.keyboard.press("f")
    seen.page.keyboard.press("f")
    check_accessibility(seen.page)
    seen.context.close()


@pytest.mark.skipif(not os.environ.get("ACPGEN_SCREENSHOTS"), reason="renews pictures, with ACPGEN_SCREENSHOTS=1")
def test_the_pictures_in_the_documentation(visit: Any, small: str) -> None:
    sizes = {"desktop": {"width": 1120, "height": 720}, "phone": {"width": 390, "height": 760}}
    for name, viewport in sizes.items():
        page = visit(small, viewport=viewport)
        if name == "desktop":
            page.keyboard.press("f")
            page.locator("#detail .finding").first.wait_for()
        path = REPOSITORY / "docs" / f"trace-{name}.png"
        page.screenshot(path=path)
        assert path.stat().st_size < MOST_BYTES
