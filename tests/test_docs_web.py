"""The service of docs/web.md with a real server: its answers, its page and its documentation in a browser.

`ACPGEN_SCREENSHOTS=folder pytest tests/test_docs_web.py` writes pictures there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import run_acpgen
from tests.documents import blocks
from tests.needs import lacks, need
from tests.published import MissingSchemaError, Origin, from_npm
from tests.support import REPOSITORY

pytestmark = pytest.mark.full

SWAGGER = "swagger-ui-dist@5.35.0"
INTEGRITY = "sha512-U06rpMtW9V3XPGOBeamTUSr0Z09jMX4IJuANpE/EZbAhw0G8CgwrzU4YmXkn/h0wCDNsXdGarTNNHC3sU8yVUQ=="
PLAN = {"sessionUpdate": "plan", "entries": [{"content": "Read", "priority": "high", "status": "pending"}]}
TEXT = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "<b>Hello</b> & bye"}}
INFO = {"sessionId": "one", "cwd": "/home/me", "title": "Fix the parser"}


class Service:
    """The service as a client has it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(self, path: str, sent: Any = None) -> tuple[int, Any]:
        """The status and the value of an answer; with `sent`, to a POST."""
        body = None if sent is None else json.dumps(sent).encode()
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        return status, json.loads(text) if text else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page beside the package that it uses."""
    home = tmp_path_factory.mktemp("web")
    parts = ("--with", "store", "--with", "pydantic")
    assert run_acpgen("build", "--role", "agent", *parts, "--out", "demo", cwd=home).code == 0
    for block in blocks((REPOSITORY / "docs" / "web.md").read_text(encoding="utf-8")):
        if block.name:
            (home / block.name).write_text(block.text, encoding="utf-8")
    return home


@pytest.fixture
def service(folder: Path) -> Iterator[Service]:
    """The service with an empty store."""
    for library in ("fastapi", "uvicorn"):
        need(library)
    for old in folder.glob("web.db*"):
        old.unlink()
    command = [sys.executable, "-m", "uvicorn", "web:app", "--port", "0", "--timeout-graceful-shutdown", "1"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        assert server.stderr is not None
        said = list[str]()
        for line in server.stderr:
            said.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                break
        else:
            pytest.fail("".join(said))
        try:
            yield Service(found[1])
        finally:
            server.terminate()
            server.communicate()


def test_it_reads_and_writes_what_is_on_the_wire(service: Service) -> None:
    status, info = service.call("/sessions", {"info": INFO, "updates": [PLAN]})
    assert (status, info) == (201, {**INFO, "updatedAt": info["updatedAt"]})
    assert service.call("/sessions", {"info": INFO})[0] == 409
    assert service.call("/sessions/one/updates", TEXT) == (204, None)
    status, found = service.call("/sessions/one")
    assert (status, found["updates"]) == (200, [PLAN, TEXT])
    assert service.call("/sessions") == (200, [found["info"]])
    assert found["info"].keys() == {"sessionId", "cwd", "title", "updatedAt"}  # and nothing that is absent
    assert service.call("/sessions/two")[0] == 404


def test_what_does_not_fit_is_answered_with_its_places(service: Service) -> None:
    wrong = {"info": {"session_id": "one", "cwd": "/"}, "updates": [PLAN, {"sessionUpdate": "plan"}]}
    status, answer = service.call("/sessions", wrong)
    assert status == 422
    assert [each["loc"] for each in answer["detail"]] == [
        ["body", "info", "sessionId"],
        ["body", "updates", 1, "entries"],
    ]
    status, answer = service.call("/sessions/one/updates", {**TEXT, "content": {"type": "text", "text": 5}})
    assert status == 422
    (error,) = answer["detail"]
    assert (error["loc"], error["msg"]) == (["body", "content", "text"], "Input should be a string, not 5")
    assert error["input"] == 5


def test_its_documentation_has_the_protocols_own_names(service: Service) -> None:
    _, document = service.call("/openapi.json")
    schema = document["components"]["schemas"]["SessionInfo"]
    assert {"sessionId", "additionalDirectories", "_meta"} <= schema["properties"].keys()
    assert schema["required"] == ["sessionId", "cwd"]
    assert all(each.get("description") for each in schema["properties"].values())
    body = document["paths"]["/sessions/{session_id}/updates"]["post"]["requestBody"]["content"]["application/json"]
    members = {each["$ref"].rpartition("/")[2] for each in body["schema"]["anyOf"]}
    schemas = [document["components"]["schemas"][name] for name in members]
    assert "agent_message_chunk" in {each["properties"]["sessionUpdate"]["const"] for each in schemas}


# --- In a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page. At the end, nothing is in its console."""
    context = browser.new_context(viewport={"width": 1000, "height": 900})
    opened, trouble = context.new_page(), list[str]()
    opened.on("console", lambda message: trouble.append(message.text))
    opened.on("pageerror", lambda error: trouble.append(str(error)))
    yield opened
    if folder := os.environ.get("ACPGEN_SCREENSHOTS"):
        opened.screenshot(path=Path(folder) / f"{opened.title()}.png")
    context.close()
    assert trouble == []


def words(found: Any) -> list[str]:
    return [" ".join(text.split()) for text in found.all_inner_texts()]


def test_the_page_shows_updates_as_they_come(service: Service, page: Any) -> None:
    service.call("/sessions", {"info": INFO, "updates": [PLAN]})
    page.goto(service.url)
    page.get_by_role("link", name="Fix the parser").click()
    shown = page.locator("#updates li")
    shown.first.wait_for()
    assert words(shown) == ["plan • Read"]
    service.call("/sessions/one/updates", TEXT)
    page.get_by_text("& bye").wait_for()
    assert words(shown) == ["plan • Read", "agent message chunk <b>Hello</b> & bye"]
    assert page.locator("#updates b").count() == 0  # a text of an agent is never HTML


def test_a_browser_that_was_away_gets_what_it_has_missed(service: Service) -> None:
    """It names the last event that it has seen."""
    service.call("/sessions", {"info": INFO, "updates": [PLAN, TEXT, PLAN]})
    request = urllib.request.Request(f"{service.url}/sessions/one/events", headers={"Last-Event-ID": "1"})
    with urllib.request.urlopen(request) as answer:
        lines = [answer.readline().decode().strip() for _ in range(5)]
    data = [json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")]
    assert data == [TEXT, PLAN]
    assert next(line for line in lines if line.startswith("id:")).removeprefix("id:").strip() == "2"


def test_the_page_of_the_documentation(service: Service, page: Any) -> None:
    """Its scripts come from another host, which the test stands for."""
    for path in ("swagger-ui-bundle.js", "swagger-ui.css"):
        page.route(f"https://cdn.jsdelivr.net/**/{path}", answering(path=swagger(path)))
    page.route("https://fastapi.tiangolo.com/**", answering(body=""))
    page.goto(f"{service.url}/docs")
    page.get_by_text("Create", exact=True).first.click()
    page.get_by_text("Schema", exact=True).first.click()
    page.get_by_text("Expand all").first.click()
    page.get_by_text("sessionId", exact=True).first.wait_for()
    page.get_by_text("Identifies the listed session in further requests.").first.wait_for()


def answering(**what: Any) -> Callable[[Any], None]:
    """Answers each request with this."""

    def answer(route: Any) -> None:
        route.fulfill(**what)

    return answer


def swagger(path: str) -> Path:
    """A file of what shows the documentation."""
    try:
        return from_npm(f"swagger/{path}", Origin(package=SWAGGER, integrity=INTEGRITY, path=path))
    except MissingSchemaError as error:
        lacks("registry", error)
