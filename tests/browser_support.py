"""Pages in a headless Chromium, and what happens in them that must not."""

from __future__ import annotations

from typing import Any

from tests.needs import find_program, lacks
from tests.published import MissingSchemaError, Origin, from_npm

AXE = Origin(
    package="axe-core@4.14.1",
    integrity="sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ==",
    path="axe.min.js",
)
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 360, "height": 760}


def chromium() -> str | None:
    """The browser of the system."""
    return find_program("chromium", "chromium-browser", "google-chrome")


class Visit:
    """A page in a window of its own, and what happened in it that must not."""

    def __init__(self, browser: Any, site: str, *, anchor: str = "", **options: Any) -> None:
        self.context = browser.new_context(**{"viewport": DESKTOP, "color_scheme": "light", **options})
        self.context.set_default_timeout(240_000)  # milliseconds: against hanging alone
        self.page = self.context.new_page()
        self.trouble: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("request", self._see)
        self._site = site
        self.page.goto(f"{site}#{anchor}" if anchor else site)

    def _see(self, request: Any) -> None:
        if not request.url.startswith((self._site, "data:")):
            self.trouble.append(request.url)

    @property
    def anchor(self) -> str:
        return str(self.page.evaluate("decodeURI(location.hash.slice(1))"))

    def is_in_view(self, anchor: str) -> bool:
        script = """(id) => { const { top, bottom } = document.getElementById(id).getBoundingClientRect();
                              return top < innerHeight && bottom > 0; }"""
        return bool(self.page.evaluate(script, anchor))


def axe_script() -> str:
    """The source of axe; skips the test if it cannot be had. The policy of a page refuses it, so bypass that."""
    try:
        return from_npm("axe.min.js", AXE).read_text(encoding="utf-8")
    except MissingSchemaError as error:
        lacks("registry", error)


def check_accessibility(page: Any) -> None:
    """Nothing on the page is a serious problem for accessibility."""
    page.evaluate(axe_script())
    found = page.evaluate("axe.run()")
    assert len(found["passes"]) > 15
    serious = [each for each in found["violations"] if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in serious] == []
