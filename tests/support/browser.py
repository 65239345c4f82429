"""A real Chromium, headless, on a page of ours; every error on its console is kept."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)

from tests.support.patience import WAIT_S

DESKTOP: Final[ViewportSize] = {"width": 1440, "height": 900}
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# One for all files: playwright keeps a single one, the last that is set.
expect.set_options(timeout=1_000 * WAIT_S)
FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str | None:
    """The system's Chromium; None lets playwright use its own."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for as long as the context lasts; what is done in it may take as long as other
    things in tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(FLAGS))
        browser.on("context", lambda context: context.set_default_timeout(1_000 * WAIT_S))
        try:
            yield browser
        finally:
            browser.close()


def open_page(browser: Browser, url: str, errors: list[str]) -> Page:
    """A page of a desktop's size; what its console calls an error is added to ``errors``."""
    page = browser.new_page(viewport=DESKTOP)

    def keep(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(message.text)

    page.on("console", keep)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(url)
    return page


def dialog_of(page: Page) -> Locator:
    """The page's modal dialog; the tables' tooltips call themselves dialogs too."""
    return page.locator('[role=dialog][aria-modal="true"]')
