"""The two faces as an operator's hands: plan, confirm, watch and cancel a reassignment."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from playwright.sync_api import Page, expect
from textual.pilot import Pilot
from textual.widgets import Input, Select

from control.model.watched_cluster import WatchedCluster
from control.operations.catalogue.moves.reassign import REASSIGN, TASK_LABELS, Task, with_task
from control.views.snapshots.feed import SnapshotFeed
from spark_metrics.window.aggregates import AggregatesReader
from tests.contract.operations_site import Site
from tests.support.browser import chromium, open_page
from tests.support.page_server import PageServer
from tests.support.picture import picture
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services

PAGE_TIMEOUT_MS: Final = 120_000
TERMINAL_SIZE: Final = (160, 60)
FITS: Final = "both copies fit in every wave"
"""Pre-flight has been read out to its end."""


class Face(Protocol):
    """Values are those of the form's fields by name, as they are typed."""

    def begin(self, values: Mapping[str, str]) -> None:
        """Fill in the form, choose the first alternative, confirm; its move is on show then."""

    def cancel(self) -> None:
        """The move on show."""

    def wait_until_shown(self, words: str) -> None:
        """Until the move on show says so."""


class PageFace:
    """In a real browser."""

    def __init__(self, page: Page, url: str) -> None:
        self._page = page
        self._url = url

    def begin(self, values: Mapping[str, str]) -> None:
        """The wizard, step by step."""
        page, texts = self._page, dict(values)
        page.goto(f"{self._url}/plan?spread={texts.pop('spread')}")
        confirmation = {name: texts.pop(name) for name in ("throttle", "reason")}
        task = TASK_LABELS[Task(with_task(values)["task"])]
        page.get_by_role("radio", name=task).check()
        self._fill(texts)
        page.locator("#plan-button").click()
        review = page.locator("#plan-review")
        expect(review).to_contain_text(FITS, timeout=PAGE_TIMEOUT_MS)
        self._fill(confirmation)
        page.keyboard.press("Tab")
        expect(page.locator("#plan-confirm")).to_be_enabled(timeout=PAGE_TIMEOUT_MS)
        page.locator("#plan-confirm").click()
        page.locator("#plan-yes").click()
        page.wait_for_url("**/moves/mv-*", timeout=PAGE_TIMEOUT_MS)

    def cancel(self) -> None:
        """Its button."""
        self._page.locator("#move-cancel").click()
        self._page.locator("#move-confirm").click()

    def wait_until_shown(self, words: str) -> None:
        """On the move's page."""
        expect(self._page.locator("#move-body")).to_contain_text(words, timeout=PAGE_TIMEOUT_MS)

    def _fill(self, texts: Mapping[str, str]) -> None:
        labels = {field.name: field.label for field in REASSIGN.fields}
        for name, text in texts.items():
            self._page.get_by_label(labels[name], exact=True).fill(text)


class TerminalFace:
    """Keys in the terminal; it stands still between the steps."""

    def __init__(self, runner: asyncio.Runner, pilot: Pilot[None]) -> None:
        self._runner = runner
        self._pilot = pilot
        self._app = pilot.app

    def begin(self, values: Mapping[str, str]) -> None:
        """The wizard, step by step."""
        self._runner.run(self._begin(values))

    def cancel(self) -> None:
        """Its key, and yes."""
        self._runner.run(self._press("x", "y"))

    def wait_until_shown(self, words: str) -> None:
        """On the move's screen."""
        self._runner.run(self._wait(words))

    async def _begin(self, values: Mapping[str, str]) -> None:
        await self._press("g", "o", "R")
        task = with_task(values)["task"]
        self._app.screen.query_one("#field-task", Select).value = task
        await self._press()
        for name, text in values.items():
            field = self._app.screen.query_one(f"#field-{name}", Input)
            field.focus()
            field.value = ""
            await self._press(*text)
        await self._press("enter")
        await self._wait(FITS)
        await self._press("c")
        await settle(
            self._pilot, lambda: isinstance(self._app.screen, ConfirmScreen), "it asks once more"
        )
        await self._press("y")
        await settle(self._pilot, lambda: isinstance(self._app.screen, MoveScreen), "it is sent")

    async def _press(self, *keys: str) -> None:
        await self._pilot.pause()
        for key in keys:
            await self._pilot.press(_KEYS.get(key, key))
            await self._pilot.pause()

    async def _wait(self, words: str) -> None:
        try:
            await settle(self._pilot, lambda: words in picture(self._app), words)
        except AssertionError as error:
            raise AssertionError(f"{words!r} is not in\n{picture(self._app)}") from error


_KEYS: Final = {
    ",": "comma",
    "-": "minus",
    ".": "full_stop",
    " ": "space",
}


@contextmanager
def page_face(site: Site, store: Path) -> Iterator[Face]:
    """A server, a browser, and no error on its console."""
    errors: list[str] = []
    where = ("--bootstrap", site.cluster.bootstrap, "--bus", site.cli.bus)
    with PageServer(store, *where) as server, chromium() as browser:
        yield PageFace(open_page(browser, f"{server.url}/overview", errors), server.url)
    assert errors == []


@contextmanager
def terminal_face(site: Site, store: Path) -> Iterator[Face]:
    """The application on a terminal of its own, without a screen."""
    reader = AggregatesReader(str(store))
    feed = SnapshotFeed(reader)
    watched = WatchedCluster(bootstrap=site.cluster.bootstrap)
    services = Services(feed=feed, history=reader, watched=watched, bus=site.cli.bus)
    with asyncio.Runner() as runner:
        session = PartiscopeApp(services).run_test(size=TERMINAL_SIZE)
        pilot = runner.run(session.__aenter__())
        try:
            yield TerminalFace(runner, pilot)
        finally:
            runner.run(session.__aexit__(None, None, None))
            feed.stop()
