"""Figures come while a hand is on the page: no press is lost, and what is marked stays marked."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TimedOut

from tests.support.page_server import PageServer
from tests.support.patience import patience_s
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(600)]

SIZES: Final = SyntheticSizes(topics=4, partitions=8, groups=6)
PRESS_MS: Final = 120
"""Of a human."""
PRESSES: Final = 12
"""On each kind of place."""
PLACES: Final = {
    "overview": (
        "#broker-table tbody a",
        "#group-table tbody a",
        "#broker-bars a.bar",
        "#findings a.finding-subject",
    ),
    "findings": ("#all-findings a.finding-subject",),
    "topics/topic-1/partitions/1": ("#detail-replicas tbody a", "#detail-groups tbody a"),
    "what-if?broker=102": ("#loss-answer tbody a",),
}


class Figures:
    """Readings in which every figure is another, and every list is in another order."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        self._builder = StoreBuilder(folder)
        self._chance = random.Random(59)

    def write(self) -> None:
        """The next one."""
        rows = synthetic_rows(SIZES, at_ms=time.time_ns() // 1_000_000)
        for table, column in (
            ("groups", "lag"), ("commits", "lag"), ("brokers", "size_bytes"),
            ("partitions", "size_bytes"), ("replicas", "size_bytes"), ("brokers", "in_bytes_per_s"),
        ):  # fmt: skip
            for row in rows[table]:
                row[column] = self._chance.randrange(1_000, 10_000_000)
        for group in rows["groups"]:
            group["status"] = self._chance.choice(("STOP", "ERR", "WARN"))
        for broker in rows["brokers"]:
            broker["interval_ms"] = 120_000
        self._builder.write(rows)
        self.written += 1

    def wait_for_next(self) -> None:
        """Until one more is written."""
        before = self.written
        wait_until(lambda: self.written > before, "readings come")

    @contextmanager
    def coming(self) -> Iterator[None]:
        """One after the other, as fast as the page takes them."""
        is_over = Event()

        def write_on() -> None:
            while not is_over.wait(0.1):
                self.write()

        writer = Thread(target=write_on)
        writer.start()
        try:
            yield
        finally:
            is_over.set()
            writer.join()


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> Figures:
    found = Figures(tmp_path_factory.mktemp("hand") / "store")
    found.write()
    return found


@pytest.fixture(scope="module")
def server(figures: Figures) -> Iterator[PageServer]:
    with PageServer(figures.folder) as server:
        yield server


COUNT_READINGS: Final = """() => {
    window.readings = 0;
    const { partiscope } = window.dash_clientside, { tick } = partiscope;
    partiscope.tick = (...given) => { window.readings += 1; return tick(...given); };
}"""
PRESSED: Final = """() => {
    document.addEventListener("pointerdown", ({ target }) => {
        const link = target.closest("a");
        window.pressedOn = link && link.getAttribute("href");
    }, true);
}"""


@pytest.mark.parametrize(
    ("view", "place"), [(view, place) for view, found in PLACES.items() for place in found]
)
def test_no_press_is_lost_while_figures_come(
    page: Page, server: PageServer, figures: Figures, view: str, place: str
) -> None:
    """It leads where the words led that the hand pressed on."""
    chance = random.Random(f"{view} {place}")
    page.goto(f"{server.url}/{view}")
    expect(page.locator(place).first).to_be_visible()
    page.evaluate(PRESSED)
    lost, pressed = [], 0
    with figures.coming():
        while pressed < PRESSES:
            figures.wait_for_next()
            page.wait_for_timeout(chance.uniform(0, 150))
            found = page.locator(place)
            count = found.count()
            box = found.nth(chance.randrange(count)).bounding_box() if count else None
            if box is None:
                continue  # The view is only coming back, or the row went in this very reading.
            page.mouse.move(box["x"] + min(box["width"], 30) / 2, box["y"] + box["height"] / 2)
            page.mouse.down()
            page.wait_for_timeout(PRESS_MS)
            page.mouse.up()
            href = page.evaluate("window.pressedOn")
            if href is None:
                continue  # It moved away before the press: the hand aims again.
            pressed += 1
            if not _leads_to(page, href):
                lost.append((pressed, href, page.url))
                page.goto(f"{server.url}/{view}")
                page.evaluate(PRESSED)
            else:
                page.go_back()
            expect(page.locator(place).first).to_be_visible()
    assert lost == []


def _leads_to(page: Page, href: str) -> bool:
    try:
        page.wait_for_url(
            lambda url: urlsplit(url).path == urlsplit(href).path, timeout=patience_s(5) * 1_000
        )
    except TimedOut:
        return False
    return True


def test_what_is_marked_and_focused_stays_so(
    page: Page, server: PageServer, figures: Figures
) -> None:
    page.goto(f"{server.url}/overview")
    row = page.locator("#broker-table tbody tr").nth(1)
    expect(row).to_be_visible()
    row.locator("a").focus()
    marked = """() => {
        const row = document.querySelectorAll("#broker-table tbody tr")[1];
        window.marked = row;
        window.getSelection().selectAllChildren(row.querySelector("a"));
        return window.getSelection().toString();
    }"""
    name = page.evaluate(marked)
    page.evaluate(COUNT_READINGS)
    with figures.coming():
        wait_until(lambda: page.evaluate("window.readings > 3"), "readings are shown")
    assert page.evaluate("window.getSelection().toString()") == name
    assert page.evaluate("window.marked.isConnected")
    assert page.evaluate("window.marked.contains(document.activeElement)")
