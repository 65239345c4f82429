"""Presses as long as a human's, at random moments of a page whose figures change."""

import random
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import FloatRect, Locator, Page, expect
from playwright.sync_api import TimeoutError as TimedOut

from dashboard import ids
from dashboard.page_frame.shell import SHOWN
from tests.support.browser import DESKTOP
from tests.support.patience import patience_s

PRESS_MS: Final = 120
_SPREAD_MS: Final = 150
"""A press comes so long after a reading at most."""
_WATCH: Final = """() => {
    document.addEventListener("pointerdown", ({ target }) => {
        const link = target.closest("a");
        window.pressedOn = link && link.getAttribute("href");
    }, true);
}"""


class Lost(NamedTuple):
    """A press that did not lead where the words led that the hand pressed on."""

    number: int
    href: str
    url: str


def lost_presses(
    page: Page, url: str, place: str, *, times: int, wait_for_next: Callable[[], None]
) -> list[Lost]:
    """Press on links at ``place`` of the view at ``url``; ``wait_for_next`` waits for figures."""
    chance = random.Random(f"{urlsplit(url).path} {place}")
    _open(page, url)
    lost, pressed = [], 0
    while pressed < times:
        wait_for_next()
        page.wait_for_timeout(chance.uniform(0, _SPREAD_MS))
        href = _press(page, place, chance)
        if href is None:
            continue  # It moved away before the press: the hand aims again.
        pressed += 1
        if not _leads_to(page, href):
            lost.append(Lost(pressed, href, page.url))
            _open(page, url)
        else:
            # A view that still waits for its answer is replaced as a whole, whoever presses.
            _wait_shown(page, href)
            page.go_back()
        _wait_shown(page, url)
        expect(page.locator(place).first).to_be_visible()
    return lost


def _open(page: Page, url: str) -> None:
    page.goto(url)
    page.evaluate(_WATCH)


def _press(page: Page, place: str, chance: random.Random) -> str | None:
    """Where the link leads that was under the hand as it pressed; None: there was none."""
    found = page.locator(place)
    box = _box(found.nth(chance.randrange(found.count() or 1)))
    if box is None or box["y"] + box["height"] > DESKTOP["height"]:
        return None  # The row went in this very reading, or is below the window.
    page.evaluate("window.pressedOn = null")
    page.mouse.move(box["x"] + min(box["width"], 30) / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(PRESS_MS)
    page.mouse.up()
    href: str | None = page.evaluate("window.pressedOn")
    return href


def _box(place: Locator) -> FloatRect | None:
    try:
        return place.bounding_box(timeout=1_000)
    except TimedOut:
        return None


def _leads_to(page: Page, href: str) -> bool:
    try:
        page.wait_for_url(
            lambda url: urlsplit(url).path == urlsplit(href).path, timeout=patience_s(5) * 1_000
        )
    except TimedOut:
        return False
    return True


def _wait_shown(page: Page, address: str) -> None:
    """Until the view of an address is drawn."""
    drawn = page.locator(f'#{ids.CONTENT}[{SHOWN}="{urlsplit(address).path}"]')
    expect(drawn).to_be_attached()
