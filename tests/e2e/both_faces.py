"""One view in a real browser and in a real terminal, side by side, with pictures of both.

``SHOTS=folder pytest tests/e2e/test_….py`` keeps the pictures: at 1440 and 390 pixels, and as text.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import SitePage
from tests.support.browser import open_page
from tests.support.isolation import MACHINE
from tests.support.tmux import START_S, Tmux, terminal

NARROW: Final = {"width": 390, "height": 844}
SHOTS: Final = MACHINE.get("SHOTS")


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A page in Chromium and ``partiscope tui`` in a terminal of 80 columns."""

    page: Page
    terminal: Tmux

    def take(self, name: str) -> None:
        """Pictures of what is seen."""
        if not SHOTS:
            return
        wide = self.page.viewport_size
        assert wide is not None
        for size in (wide, NARROW):
            self.page.set_viewport_size(size)  # type: ignore[arg-type]
            self.page.screenshot(path=f"{SHOTS}/{name}-{size['width']}.png", full_page=True)
        self.page.set_viewport_size(wide)
        Path(SHOTS, f"{name}.txt").write_text(self.terminal.picture())

    def wait(self, *wanted: str) -> None:
        """Until both say so."""
        for words in wanted:
            expect(self.page.locator("main")).to_contain_text(words)
        self.terminal.wait(*wanted)


@contextmanager
def shown(browser: Browser, site_page: SitePage, path: str, word: str) -> Iterator[Shown]:
    """The same view of the shared cluster on both; the terminal has said ``word``."""
    errors: list[str] = []
    bootstrap, folder = site_page.bootstrap, site_page.store.folder
    page = open_page(browser, f"{site_page.server.url}/{path}", errors)
    flags = ("--store", str(folder), "--bootstrap", bootstrap, "--bus", bootstrap)
    with terminal(path, *flags, data=folder.parent / "data") as term:
        term.wait(word, seconds=START_S)
        yield Shown(page=page, terminal=term)
    page.context.close()
    assert errors == []
