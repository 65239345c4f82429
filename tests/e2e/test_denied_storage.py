"""A browser that keeps nothing for pages (cookies are blocked): all works until the page goes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from control.views.tour import STEPS
from partiscope.installation import Installation as Record
from tests.support.browser import chromium
from tests.support.page_server import NOWHERE, PageServer
from tests.support.store_builder import StoreBuilder, SyntheticSizes

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(240)]
DENIED = """for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
  });
}"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setenv("PARTISCOPE_TOUR", "once")
    StoreBuilder(tmp_path / "store").write_synthetic(SyntheticSizes(topics=2), history_s=1)
    server, errors = PageServer(tmp_path / "store"), list[str]()
    Record(bus=NOWHERE, demo=True).save(tmp_path / "data")
    with server, chromium() as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.add_init_script(DENIED)
        page.goto(server.url)
        yield page
        assert errors == []


def test_the_tour_and_the_choice_of_columns_work(page: Page) -> None:
    expect(page.locator("#tour")).to_contain_text(f"1 of {len(STEPS)}")
    page.keyboard.press("Enter")
    expect(page.locator("#tour")).to_contain_text(f"2 of {len(STEPS)}")
    page.locator(".tour-end").click()
    page.get_by_role("link", name="Partitions", exact=True).click()
    head = page.locator(".ag-header-cell").filter(has_text="high watermark")
    expect(head).to_be_visible()
    page.keyboard.press("l")
    page.locator("#columns-partitions").get_by_text("high watermark").click()
    expect(head).to_have_count(0)
