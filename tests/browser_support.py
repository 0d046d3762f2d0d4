"""The Chromium of the system, for tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from tests.support import require


def chromium() -> str | None:
    """The browser of the system."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if (found := shutil.which(name))), None)


@contextmanager
def running_browser() -> Iterator[Any]:
    """A browser without windows; skips the test where there is none."""
    program = chromium()
    require(program, "chromium")
    require(find_spec("playwright"), "playwright")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        # the sandbox needs rights that containers do not give; the pages are our own
        started = running.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
