"""Every view at three widths: no figure is cut, nothing overlaps, and no view is wider than its
window, though names are long and figures large."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_server import PageServer
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(300)]

SIZES: Final = SyntheticSizes(topics=4, partitions=40, groups=3)
WIDTHS: Final = (1440, 1024, 390)
LONG: Final = "prod.eu-west-1.orders.payment-events.enriched.by-customer.v2"
LOOKS: Final = 20
OWN_GROUP: Final = "__partiscope_executor"
VIEWS: Final = {
    "overview": "#broker-bars .bar-part",
    "findings": "#all-findings .finding",
    "job": "#job-tiles .tile",
    "brokers": ".ag-center-cols-container .ag-row",
    "brokers/101": "#broker-tiles .tile",
    "topics": ".ag-center-cols-container .ag-row",
    f"topics/{LONG}": ".ag-center-cols-container .ag-row",
    f"topics/{LONG}/partitions/0": "#detail-replicas tbody tr",
    "partitions": ".ag-center-cols-container .ag-row",
    "groups": ".ag-center-cols-container .ag-row",
    f"groups/{LONG}": "#grid-lags .ag-center-cols-container .ag-row",
    "map": "#map-figure .heat-plot img",
    "what-if?broker=102": "#loss-answer tbody tr",
    "plan": "#plan-button",
    "check": "#check-button",
    "moves": "#moves-table .empty",
    "journal": "#journal-table .empty",
    f"produce/{LONG}": "#produce-send",
    f"browse/{LONG}": "#browse-result .finding",
}
"""Paths, and what is there once they are."""
FAULTS: Final = """() => {
  const found = [];
  const drawn = "svg, .heat, .bars, pre, .message-value, .unseen, .name-head";
  const isClipped = (it) => ["hidden", "clip"].includes(getComputedStyle(it).overflowX);
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const words = node.textContent.trim();
    if (!words || element.closest(drawn) || !element.checkVisibility({ visibilityProperty: true }))
      continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (!box.width) continue;
    let shown = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
    let scrolls = false;
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const style = getComputedStyle(at);
      scrolls ||= ["auto", "scroll"].includes(style.overflowX);
      if (!isClipped(at) && !["auto", "scroll"].includes(style.overflowX)) continue;
      const edge = at.getBoundingClientRect();
      if (isClipped(at) && !scrolls && /\\d/.test(words)
          && (box.left < edge.left - 1 || box.right > edge.right + 1))
        found.push(`cut: ${words} in ${at.className}`);
      shown = { left: Math.max(shown.left, edge.left), right: Math.min(shown.right, edge.right),
        top: Math.max(shown.top, edge.top), bottom: Math.min(shown.bottom, edge.bottom) };
    }
    for (const line of range.getClientRects())
      texts.push({ words, element, left: Math.max(line.left, shown.left),
        right: Math.min(line.right, shown.right), top: Math.max(line.top, shown.top),
        bottom: Math.min(line.bottom, shown.bottom) });
  }
  const isStuck = (it) => Boolean(it.closest(".top-bar, .nav, .past-bar, .confirm-bar, .toast"));
  texts.forEach((one, place) => texts.slice(place + 1).forEach((other) => {
    const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
    const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
    if (across > 2 && down > 4 && isStuck(one.element) === isStuck(other.element))
      found.push(`overlap: ${one.words} / ${other.words}`);
  }));
  const pen = document.createElement("canvas").getContext("2d");
  for (const field of document.querySelectorAll("input[placeholder]")) {
    if (!field.checkVisibility() || field.type === "search") continue;
    const style = getComputedStyle(field);
    pen.font = style.font;
    const room = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    if (pen.measureText(field.placeholder).width > room + 1)
      found.push(`cut: placeholder ${field.placeholder}`);
  }
  for (const head of document.querySelectorAll(".ag-header-cell[col-id]")) {
    const column = head.getAttribute("col-id");
    const cells = [...head.closest(".ag-root").querySelectorAll(`.ag-cell[col-id="${column}"]`)];
    if (cells.some((cell) => !cell.getBoundingClientRect().width))
      found.push(`a head without cells: ${column}`);
  }
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) found.push(`wider than its window: ${scrollWidth}`);
  return found;
}"""


def _rows() -> dict[str, list[dict[str, Any]]]:
    """Long names and large figures; a group of Partiscope's own."""
    rows = synthetic_rows(SIZES, at_ms=time.time_ns() // 1_000_000)
    for row in (it for kind in rows.values() for it in kind):
        if row.get("topic") == "topic-1":
            row["topic"] = LONG
        if row.get("group_id") == "group-1":
            row["group_id"] = LONG
        if row.get("group_id") == "group-2":
            row["group_id"] = OWN_GROUP
    for broker in rows["brokers"]:
        broker["interval_ms"] = 3_600_000
    rows["partitions"][0]["isr"] = rows["partitions"][0]["replicas"][:1]
    return rows


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    folder: Path = tmp_path_factory.mktemp("fit") / "store"
    StoreBuilder(folder).write(_rows())
    with PageServer(folder) as server:
        yield server


def _lasting_faults(page: Page) -> list[str]:
    """Tables move for a moment when their rows come."""
    faults: list[str] = []
    for _ in range(LOOKS):
        page.wait_for_timeout(200)
        faults = page.evaluate(FAULTS)
        if not faults:
            break
    return faults


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits(page: Page, server: PageServer, width: int, scheme: Any) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    found = {}
    for path, is_there in VIEWS.items():
        page.goto(f"{server.url}/{path}")
        expect(page.locator(is_there).first).to_be_visible()
        found[path] = _lasting_faults(page)
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_a_wide_table_shows_the_columns_that_fit_and_all_on_request(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/groups")
    heads = page.locator(".ag-header-cell")
    expect(page.locator(".ag-center-cols-container .ag-row")).to_have_count(2)
    expect(page.locator("#columns-word-groups")).to_contain_text(" of ")
    fitting = heads.count()
    assert page.locator("[col-id=lag]").first.is_visible()
    name = page.locator("[row-id] [col-id=group]", has_text="…").first
    assert name.inner_text().startswith("prod.")
    assert name.inner_text().endswith(".v2"), "its end says which it is"
    page.keyboard.press("l")
    page.locator("#columns-groups").get_by_text("no verdict because").click()
    expect(heads.filter(has_text="no verdict because")).to_have_count(1)
    expect(heads).to_have_count(fitting + 1)
    page.locator(".columns-fit").click()
    expect(heads).to_have_count(fitting)
    assert "cols=" not in page.url


def test_groups_of_partiscope_are_listed_on_request(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/groups")
    rows = page.locator(".ag-center-cols-container .ag-row")
    expect(rows).to_have_count(2)
    page.locator("h1").click()
    page.keyboard.press("Shift+H")
    expect(page.locator(f'[row-id="{OWN_GROUP}"]').first).to_be_visible()


def test_a_link_to_some_minutes_ago_keeps_its_moment(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/topics?at=15m")
    expect(page).to_have_url(re.compile(r"at=20\d\d-"))
