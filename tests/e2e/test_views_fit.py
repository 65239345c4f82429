"""Every view at three widths: no figure is cut, nothing overlaps, and no view is wider than its
window, though names are long and figures large."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.fitting import WIDTHS, lasting_faults
from tests.support.page_server import PageServer
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(300)]

SIZES: Final = SyntheticSizes(topics=4, partitions=40, groups=3)
LONG: Final = "prod.eu-west-1.orders.payment-events.enriched.by-customer.v2"
OWN_GROUP: Final = "__partiscope_executor"
VIEWS: Final = {
    "overview": "#broker-bars .bar-part",
    "findings": "#all-findings .finding",
    "alerts": "#alerts-table .empty",
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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_fits(page: Page, server: PageServer, width: int, scheme: Any) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    found = {}
    for path, is_there in VIEWS.items():
        page.goto(f"{server.url}/{path}")
        expect(page.locator(is_there).first).to_be_visible()
        found[path] = lasting_faults(page)
    assert {path: faults for path, faults in found.items() if faults} == {}


def test_a_wide_table_shows_the_columns_that_fit_and_all_on_request(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/groups")
    heads = page.locator(".ag-header-cell")
    expect(page.locator(".ag-center-cols-container .ag-row")).to_have_count(2)
    expect(page.locator("#columns-word-groups")).to_contain_text(" of ")
    fitting = heads.count()
    expect(page.locator("[col-id=lag]").first).to_be_visible()
    name = page.locator("[row-id] [col-id=group]", has_text="…").first
    assert name.inner_text().startswith("prod.")
    assert name.inner_text().endswith(".v2"), "its end says which it is"
    page.keyboard.press("l")
    page.locator("#columns-groups").get_by_text("no verdict because").click()
    expect(heads.filter(has_text="no verdict because")).to_have_count(1)
    expect(heads).to_have_count(fitting + 1)
    page.locator(".columns-fit").click()
    expect(heads).to_have_count(fitting)
    expect(page).not_to_have_url(re.compile("cols="))


def test_a_table_that_takes_other_widths_is_made_to_fit_again(
    page: Page, server: PageServer
) -> None:
    page.goto(f"{server.url}/partitions")
    expect(page.locator(".ag-center-cols-container .ag-row").first).to_be_visible()
    assert lasting_faults(page) == []
    wide = page.locator(".ag-header-cell[col-id=topic]").bounding_box()
    page.evaluate(
        """() => window.dash_ag_grid.getApiAsync("grid-partitions").then((api) =>
            api.setColumnWidths([{ key: "topic", newWidth: 90 }], true, "gridOptionsChanged"))"""
    )
    assert lasting_faults(page) == []
    assert page.locator(".ag-header-cell[col-id=topic]").bounding_box() == wide


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
