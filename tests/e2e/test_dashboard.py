"""The page in a real Chromium, on a store that the tests write: what it shows is what is there.

A change needs that each view opens, and one of each kind of interaction; all else is `thorough`.
"""

import http.client
import json
import re
import socket
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal

import pytest
from playwright.sync_api import Browser, Page, Position, Route, expect

from tests.support.axe import serious_findings
from tests.support.browser import dialog_of, open_page
from tests.support.cut_proxy import CutProxy
from tests.support.page_server import PageServer
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until
from tests.support.store_builder import (
    StoreBuilder,
    SyntheticSizes,
    partition_history_of,
    sums_history_of,
    synthetic_rows,
)

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]

SIZES = SyntheticSizes(topics=4, partitions=40, groups=3)
VIEWS = {
    "overview": "#broker-bars .bar-part",
    "findings": "#all-findings .finding",
    "alerts": "#alerts-table .empty",
    "job": "#job-tiles .tile",
    "topics/topic-1": "#grid-partitions .ag-center-cols-container .ag-row",
    "topics/topic-1/partitions/1": "#detail-replicas tbody tr",
    "groups/group-1": "#grid-lags .ag-center-cols-container .ag-row",
    "map": "#map-figure .heat-plot img",
    "what-if?broker=102": "#loss-answer tbody tr",
    "plan": "#plan-button",
    "moves": "#moves-table .empty",
    "journal": "#journal-table .empty",
    "produce/topic-1": "#produce-send",
    "browse/topic-1": "#browse-result .finding",
}
"""Paths, and what is there once they are."""
DARK_VIEWS = {path: VIEWS[path] for path in ("overview", "groups/group-1", "plan")}
"""In the dark only colours differ, and these views have them all."""


class Store:
    """A store whose next version is written when a test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._builder = StoreBuilder(folder)

    def write(
        self,
        *,
        of_all: Mapping[str, Any] | None = None,
        history_s: int = 0,
        ago_s: int = 0,
        fenced: int | None = None,
        interval_ms: int = 120_000,
        **changed: Any,
    ) -> dict[str, list[dict[str, Any]]]:
        """The next version, as of ``ago_s``; ``changed`` are columns of the partition topic-0-0,
        ``fenced`` is a broker that is down. Nobody writes on by itself: at the usual
        ``interval_ms`` no broker is called silent for it."""
        at_ms = time.time_ns() // 1_000_000 - ago_s * 1_000
        rows = synthetic_rows(SIZES, at_ms=at_ms)
        for broker in rows["brokers"]:
            broker["is_fenced"] = broker["broker"] == fenced
            broker["interval_ms"] = interval_ms
        for partition in rows["partitions"]:
            partition.update(of_all or {})
        rows["partitions"][0].update(changed)
        history = partition_history_of(rows["partitions"], history_s)
        sums = sums_history_of(rows, history_s, at_ms)
        self._builder.write(rows, partition_history=history, **sums)
        return rows


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store(tmp_path_factory.mktemp("page") / "store")
    store.write(history_s=5)
    return store


@pytest.fixture(scope="module")
def server(store: Store) -> Iterator[PageServer]:
    # What acts says so, what shows does not need it.
    with PageServer(store.folder) as server:
        yield server


@pytest.fixture
def overview(page: Page, server: PageServer) -> None:
    """The tab stands there."""
    go(page, server, "overview")
    expect(page.locator("#tiles .tile").first).to_be_visible()


def go(page: Page, server: PageServer, path: str) -> None:
    page.goto(f"{server.url}/{path}")


NOTE_PUSHES: Final = """() => {
    const page = window.dash_clientside.partiscope, { hear } = page, seen = new Set();
    page.hear = (beat, ...given) => {
        window.pushes = seen.add(JSON.stringify(beat.news)).size;
        return hear(beat, ...given);
    };
}"""


def push_two(page: Page, store: Store, **changed: Any) -> None:
    """Until the tab was told of two versions: it would have shown the first."""
    page.evaluate(NOTE_PUSHES)
    for number in (1, 2):
        store.write(**changed)
        page.wait_for_function("number => window.pushes >= number", arg=number)


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_figures_of_the_overview_are_those_of_the_store(page: Page) -> None:
    expect(page.locator("#head-brokers")).to_have_text("3/3 brokers")
    expect(page.locator("#tiles")).to_contain_text("160")
    expect(page.locator("#broker-table tbody tr")).to_have_count(3)
    expect(page.locator("#findings")).to_contain_text("STOP on topic-2-")
    expect(page.locator("#group-table tbody tr").first).to_contain_text("200,000")
    expect(page.locator("#broker-bars .bar-part")).to_have_count(3)
    expect(page.locator("#heat-map .heat-plot img")).to_have_count(1)


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_switching_the_measure_redraws_the_bars(page: Page) -> None:
    page.locator("#broker-measure").get_by_text("replicas").click()

    expect(page.locator("#broker-bars .bar-part")).to_have_count(6)


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_the_map_tells_the_cell_under_the_pointer_and_a_click_opens_its_topic(page: Page) -> None:
    plot = page.locator("#heat-map .heat-plot")
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    assert box
    last = Position(x=box["width"] - 4, y=box["height"] - 4)

    plot.hover(position=last)
    expect(page.locator("#tip")).to_contain_text("topic-3 on 103: ")
    plot.click(position=last)

    expect(page.locator("h1")).to_have_text("topic-3")
    expect(page.locator("#tip")).to_be_hidden()


@pytest.mark.usefixtures("overview")
def test_a_new_version_shows_by_itself_without_reload(page: Page, store: Store) -> None:
    page.evaluate("window.notReloaded = true")
    broker = page.locator("#broker-table a", has_text="102")
    broker.focus()

    store.write(leader=-1)

    expect(page.locator("#findings")).to_contain_text("1 partition offline")
    expect(broker).to_be_focused()
    assert page.evaluate("window.notReloaded")
    store.write()
    expect(page.locator("#findings")).not_to_contain_text("offline")


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_trouble_changes_badges_and_leaves_the_screen(page: Page, store: Store) -> None:
    store.write()
    expect(page.locator("#age")).not_to_contain_text("✖")
    page.locator("#tiles").evaluate("tiles => { tiles.isTheSame = true; }")

    store.write(fenced=103)
    expect(page.locator("#head-brokers")).to_contain_text("2/3 brokers")
    store.write(ago_s=300, interval_ms=1_000)

    expect(page.locator("#age")).to_contain_text("✖ 5 m")
    expect(page.locator("#job")).to_contain_text("job late 5 m")
    expect(page.locator("#tiles")).to_contain_text("160")
    expect(page.locator("#broker-bars .bar-part")).to_have_count(3)
    assert page.locator("#tiles").evaluate("tiles => tiles.isTheSame")
    store.write()
    expect(page.locator("#age")).not_to_contain_text("✖")
    expect(page.locator("#head-brokers")).to_have_text("3/3 brokers")


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_a_paused_page_stands_still_until_resumed(page: Page, store: Store) -> None:
    page.keyboard.press("Space")
    expect(page.locator("#pause-button")).to_have_text("▶")
    push_two(page, store, leader=-1)
    expect(page.locator("#findings")).not_to_contain_text("offline")

    page.keyboard.press("Space")

    expect(page.locator("#findings")).to_contain_text("1 partition offline")
    store.write()


def test_partitions_are_sorted_and_filtered_by_the_server(
    page: Page, server: PageServer, store: Store
) -> None:
    go(page, server, "partitions?q=topic:topic-1&sort=-high_watermark")
    rows = page.locator(".ag-center-cols-container .ag-row")

    expect(page.locator("#count-partitions")).to_have_text("40 of 160 rows")
    expect(rows.first).to_contain_text("17,900")
    page.locator("#filter-partitions").fill("topic:topic-1 partition<2")
    expect(page.locator("#count-partitions")).to_have_text("2 of 160 rows")
    expect(rows).to_have_count(2)
    expect(page).to_have_url(re.compile("q=topic"))
    page.locator("#filter-partitions").fill("colour:red")
    expect(page.locator("#count-partitions")).to_contain_text("no column 'colour'")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("path", "column", "orders"),
    [
        ("groups", "lag", ["descending", "ascending", "none"]),
        ("groups", "loses", ["ascending", "descending", "none"]),
        ("topics", "topic", ["ascending", "descending", "none"]),
    ],
)
def test_numbers_are_sorted_from_the_largest_as_in_the_terminal(
    page: Page, server: PageServer, path: str, column: str, orders: list[str]
) -> None:
    """Clicks on its title; a time that is left begins with the soonest, a name with the first."""
    go(page, server, path)
    expect(page.locator(".ag-row").first).to_be_visible()
    title = page.locator(f'.ag-header-cell[col-id="{column}"]')
    for order in orders:
        title.click()
        try:
            expect(title).to_have_attribute("aria-sort", order, timeout=patience_s(5) * 1000)
        except AssertionError:
            # A press that meets a table while its columns are fitted is lost, once in a while.
            title.click()
        expect(title).to_have_attribute("aria-sort", order)
        sort = {"descending": f"sort=-{column}", "ascending": f"sort={column}", "none": ""}[order]
        expect(page).to_have_url(f"{server.url}/{path}{sort and '?'}{sort}")


SLOW_TO_TAKE_OVER: Final = """
(() => {
  const { rowsWanted } = window.dash_clientside.partiscope;
  window.dash_clientside.partiscope.rowsWanted = async (...given) => {
    while (!window.mayTakeOver) await new Promise((done) => window.setTimeout(done, 20));
    return rowsWanted(...given);
  };
})();
"""
"""What a browser that has much to do at first makes of ``rows.js``."""


@pytest.mark.thorough
def test_a_tab_says_when_it_goes(browser: Browser, server: PageServer) -> None:
    """Playwright does not tell what a page sends while it goes, so the page notes it."""
    with browser.new_context() as context:
        page = context.new_page()
        page.add_init_script(
            """navigator.sendBeacon = (address) => window.localStorage.setItem("said", address);"""
        )
        said: list[str | None] = []
        for _ in range(2):
            page.goto(f"{server.url}/overview")
            expect(page.locator("#age")).to_contain_text(" ago")
            page.reload()
            said.append(page.evaluate("() => window.localStorage.getItem('said')"))
        assert all(address and address.startswith("/tab-gone/") for address in said)
        assert said[0] != said[1]


@pytest.mark.thorough
def test_callbacks_wait_for_scripts_that_come_late(browser: Browser, server: PageServer) -> None:
    """Dash begins once the page's modules have run, whatever the network does."""
    errors: list[str] = []
    with browser.new_context() as context:
        page = context.new_page()
        page.on("console", lambda it: errors.append(it.text) if it.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        held: list[Route] = []
        page.route("**/assets/modules/*", lambda route: held.append(route))
        with page.expect_response("**/_dash-layout"), page.expect_response("**/_dash-dependencies"):
            page.goto(f"{server.url}/topics", wait_until="commit")
        page.wait_for_function("() => window.DashRenderer")
        expect(page.locator("h1")).to_have_count(0)
        page.route("**/assets/modules/*", lambda route: route.continue_())
        for route in held:
            route.continue_()
        expect(page.locator("#count-topics")).to_have_text("4 rows")
    assert errors == []


@pytest.mark.thorough
def test_a_filter_typed_before_the_first_rows_are_there_is_answered(
    page: Page, server: PageServer
) -> None:
    def slowed(route: Route) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=response.text() + SLOW_TO_TAKE_OVER)

    page.route("**/assets/modules/main.js*", slowed)
    go(page, server, "groups/group-1")
    expect(page.locator("#grid-lags .ag-center-cols-container .ag-row")).to_have_count(1)
    for typed in ("partition<4", "partition<3", "partition<2"):
        page.locator("#filter-lags").fill(typed)
        page.evaluate("() => new Promise((done) => window.requestAnimationFrame(done))")
    page.evaluate("window.mayTakeOver = true")

    expect(page.locator("#count-lags")).to_have_text("2 of 40 rows")
    expect(page.locator("#grid-lags .ag-center-cols-container .ag-row")).to_have_count(2)


@pytest.mark.thorough
def test_a_table_says_that_its_rows_are_on_their_way(page: Page, server: PageServer) -> None:
    held: list[Route] = []
    page.route("**/rows/groups?*", lambda route: held.append(route))
    go(page, server, "groups")

    awaited = page.locator("#grid-groups .ag-center-cols-container .awaited")
    expect(awaited).to_have_css("content", '"loading …"', pseudo="before")
    for route in held:
        route.continue_()
    page.unroute("**/rows/groups?*")
    expect(awaited).to_have_count(0)


@pytest.mark.thorough
@pytest.mark.parametrize("pause_ms", [0, 5])
def test_a_filter_takes_what_is_typed_letter_by_letter(
    page: Page, server: PageServer, store: Store, pause_ms: int
) -> None:
    """However fast, and while news come in; another view's filter begins anew."""
    go(page, server, "topics/topic-1?q=lag>=0")
    field = page.locator("#filter-partitions")
    expect(field).to_have_value("lag>=0")
    field.fill("")
    words = "lag>1k -topic:top broker:101"
    for place, letter in enumerate(words):
        page.keyboard.type(letter, delay=pause_ms)
        if place % 10 == 5:
            store.write()
    expect(page).to_have_url(re.compile("broker(:|%3A)101"))
    expect(page.locator("#count-partitions")).to_have_text("0 of 40 rows")
    assert field.input_value() == words
    expect(field).to_be_focused()
    expect(page).to_have_url(re.compile("q=lag"))

    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Topics")
    expect(page.locator("#filter-topics")).to_have_value("")
    go_by_address(page, "topics/topic-2")
    expect(page.locator("h1")).to_have_text("topic-2")
    expect(field).to_have_value("")


def go_by_address(page: Page, path: str) -> None:
    """As a link of the page itself goes there: nothing is loaded anew."""
    page.evaluate(
        """(path) => {
            window.history.pushState({}, "", "/" + path);
            window.dispatchEvent(new CustomEvent("_dashprivate_pushstate"));
        }""",
        path,
    )


@pytest.mark.thorough
def test_a_window_over_two_blocks_asks_for_both_at_once(page: Page, server: PageServer) -> None:
    go(page, server, "partitions")
    expect(page.locator("#count-partitions")).to_have_text("160 rows")
    asked: list[str] = []
    page.route("**/rows/partitions?*", lambda route: asked.append(route.request.url))
    # Without an answer to the first.
    with page.expect_request("**/rows/partitions?from=100&to=200*"):
        page.evaluate(
            """() => {
                const grid = window.dash_ag_grid.getApi("grid-partitions");
                grid.purgeInfiniteCache();
                grid.ensureIndexVisible(99);
            }"""
        )
    assert any(url.endswith("?to=100") for url in asked)
    page.unroute_all(behavior="ignoreErrors")


@pytest.mark.thorough
def test_a_refresh_keeps_selection_and_scroll(page: Page, server: PageServer, store: Store) -> None:
    go(page, server, "partitions")
    body = page.locator(".ag-body-viewport")
    expect(page.locator("#count-partitions")).to_have_text("160 rows")
    page.locator('.ag-center-cols-container .ag-row[row-id="topic-0-12"]').click()
    body.evaluate("element => element.scrollTop = 340")
    before = body.evaluate("element => element.scrollTop")

    store.write(of_all={"high_watermark": 987_654_321})

    selected = page.locator(".ag-center-cols-container .ag-row-selected")
    expect(selected).to_contain_text("987,654,321")
    expect(selected).to_have_attribute("row-id", "topic-0-12")
    assert body.evaluate("element => element.scrollTop") == before
    store.write()


@pytest.mark.thorough
def test_news_faster_than_answers_leave_no_row_blank(page: Page, server: PageServer) -> None:
    go(page, server, "partitions")
    expect(page.locator("#count-partitions")).to_have_text("160 rows")
    slow = {"offline": False, "latency": 600, "downloadThroughput": -1, "uploadThroughput": -1}
    network = page.context.new_cdp_session(page)
    network.send("Network.emulateNetworkConditions", slow)
    page.evaluate("""() => {
        window.told = 1e6;
        const beat = () => (
            { now_ms: window.told, words: "", news: { version: window.told++, built_ms: 0 } });
        window.setInterval(
            () => window.dash_clientside.set_props("beat", { data: beat() }), 200);
    }""")
    page.wait_for_function("() => window.told > 1e6 + 5")

    page.locator(".ag-body-viewport").evaluate("body => body.scrollTop = 34 * 150")

    last = page.locator('.ag-center-cols-container .ag-row[row-id="topic-3-39"]')
    expect(last).to_contain_text("✔ ok")
    network.detach()


def test_from_the_table_into_a_partition_and_back_by_keys(page: Page, server: PageServer) -> None:
    go(page, server, "topics/topic-1")
    page.locator('.ag-center-cols-container .ag-row[row-id="topic-1-2"]').dblclick()

    expect(page.locator("h1")).to_have_text("topic-1-2")
    expect(page.locator("#detail-replicas tbody tr")).to_have_count(3)
    expect(page.locator("#detail-groups")).to_contain_text("group-1")
    expect(page.locator("#detail-segments .barlayer .point path")).to_have_count(2)
    expect(page.locator("#detail-tiles")).to_contain_text("★ 10")
    page.locator(".crumbs").get_by_role("link", name="topic-1", exact=True).click()
    expect(page.locator("h1")).to_have_text("topic-1")


@pytest.mark.thorough
def test_escape_closes_what_is_open_and_leaves_no_view(page: Page, server: PageServer) -> None:
    for view in ("topics/topic-1/partitions/2", "browse/topic-1", "groups/group-1", "topics"):
        go(page, server, view)
        expect(page.locator("h1")).to_be_visible()
        address = page.url
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        expect(dialog_of(page)).to_be_visible()
        expect(page).to_have_url(address)
        page.keyboard.press("Escape")
        expect(dialog_of(page)).to_have_count(0)
    page.keyboard.press("l")
    columns = page.locator("main .column-choice")
    expect(columns).to_have_attribute("open", "")
    page.keyboard.press("Escape")
    expect(columns).not_to_have_attribute("open", "")
    page.keyboard.press("/")
    expect(page.locator("#filter-topics")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#filter-topics")).not_to_be_focused()
    expect(page.locator("h1")).to_have_text("Topics")


@pytest.mark.usefixtures("overview")
def test_keys_go_everywhere(page: Page) -> None:
    for keys, title in (("g t", "Topics"), ("g g", "Groups"), ("g m", "Map"), ("g r", "Moves")):
        for key in keys.split():
            page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(title)
    page.keyboard.press("?")
    expect(dialog_of(page)).to_contain_text("pause, resume")
    page.keyboard.press("Escape")
    expect(dialog_of(page)).to_have_count(0)
    expect(page.locator("h1")).to_have_text("Moves")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("#count-topics")).to_have_text("4 rows")
    page.keyboard.press("/")
    expect(page.locator("#filter-topics")).to_be_focused()


@pytest.mark.thorough
def test_a_detail_opened_before_its_thing_is_known_fills_by_itself(
    page: Page, server: PageServer, store: Store
) -> None:
    go(page, server, "topics/late/partitions/0")
    expect(page.locator("#missing")).to_contain_text("no topic late")
    expect(page.locator("main .actions button:visible")).to_have_text("All topics")
    page.keyboard.press("D")
    expect(dialog_of(page)).to_be_visible()
    expect(dialog_of(page).get_by_role("textbox", name="Topic")).to_have_value("")
    page.keyboard.press("Escape")

    store.write(topic="late")

    expect(page.locator("#detail-tiles")).to_contain_text("★ 101")
    expect(page.locator("#detail-replicas tbody tr")).to_have_count(3)
    expect(page.get_by_role("button", name="Produce here")).to_be_visible()

    store.write()

    expect(page.locator("#missing")).to_contain_text("no topic late")
    expect(page.get_by_role("button", name="Produce here")).to_be_hidden()


@pytest.mark.usefixtures("overview")
def test_a_findings_next_step_opens_what_mends_it(page: Page, store: Store) -> None:
    store.write(leader=102)
    finding = page.locator(".finding", has_text="1 leader not preferred")

    finding.get_by_role("button").click()

    dialog = dialog_of(page)
    expect(dialog).to_contain_text("Elect preferred leaders")
    expect(dialog.get_by_label("Topics")).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog_of(page)).to_have_count(0)
    expect(page).to_have_url(re.compile("/overview$"))
    store.write()


LED_BY_ONE: Final = {"leader": 101, "replicas": [101, 102, 103], "isr": [101, 102, 103]}


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_r_on_a_skewed_cluster_opens_the_plan_that_mends_it(page: Page, store: Store) -> None:
    store.write(of_all=LED_BY_ONE)
    expect(page.locator("#findings")).to_contain_text("leaders skew +200 %")
    page.mouse.move(0, 0)

    page.keyboard.press("R")

    expect(page.locator("h1")).to_have_text("Plan")
    expect(page.get_by_role("textbox", name="Balance")).to_have_value("leaders")
    expect(page.get_by_label("Reason")).to_have_value("broker 101: leaders skew +200 %")
    store.write()


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_skewed_leaders_that_only_need_an_election_lead_to_it(page: Page, store: Store) -> None:
    store.write(of_all={"leader": 101})
    finding = page.locator("#findings .finding", has_text="leaders skew +200 %").first
    finding.get_by_text("Elect the preferred leaders").click()
    expect(dialog_of(page)).to_contain_text("Elect")
    page.keyboard.press("Escape")
    store.write()


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_who_may_not_move_is_told_so_on_the_way_to_a_plan(page: Page, store: Store) -> None:
    store.write(of_all=LED_BY_ONE)
    step = page.locator('#findings a.finding-step[href^="/plan"]').first
    expect(step).to_be_visible()
    page.evaluate("""window.dash_clientside.set_props(
        "denied", { data: { reassign: "needs ALTER on the cluster" } })""")
    expect(page.locator("html")).to_have_attribute("data-moves", "denied")
    expect(page.locator("main .finding button")).to_have_count(0)  # Told without one to grey.

    step.click()

    expect(page.locator("#note")).to_have_text("needs ALTER on the cluster")
    expect(page).to_have_url(re.compile("/overview$"))
    store.write()


@pytest.mark.thorough
def test_keys_act_on_what_is_here_or_under_the_pointer(page: Page, server: PageServer) -> None:
    go(page, server, "brokers/102")
    expect(page.locator("#broker-tiles")).to_contain_text("alive")
    page.keyboard.press("w")
    expect(page.locator("h1")).to_have_text("What if")
    expect(page.locator("#loss-answer")).to_contain_text("new leaders")
    expect(page).to_have_url(re.compile(r"what-if\?broker=102$"))
    page.keyboard.press("Space")  # Else the row under the pointer may just be drawn anew.
    expect(page.locator("#pause-button")).to_have_text("▶")
    page.locator('#loss-answer tr[data-path="topics/topic-0/partitions/1"]').hover()
    page.keyboard.press("P")
    page.wait_for_url("**/produce/topic-0?partition=1")


@pytest.mark.usefixtures("overview")
def test_the_palette_goes_anywhere(page: Page) -> None:
    page.keyboard.press(":")
    field = page.get_by_label("what to go to or to do")
    expect(field).to_be_focused()
    field.fill("topic-2")
    expect(page.locator(".palette-entry").first).to_contain_text("topic-2")
    page.keyboard.press("Enter")

    expect(page.locator("h1")).to_have_text("topic-2")
    expect(dialog_of(page)).to_have_count(0)


def test_a_table_is_exported_as_its_filter_leaves_it(page: Page, server: PageServer) -> None:
    go(page, server, "topics/topic-1?q=partition<3&sort=-partition")
    expect(page.locator("#count-partitions")).to_have_text("3 of 40 rows")
    page.locator("#count-partitions").click()

    with page.expect_download() as download:
        page.keyboard.press("e")

    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("topic,partition,status,leader,")
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["topic-1", "2"], ["topic-1", "1"], ["topic-1", "0"]
    ]  # fmt: skip
    with page.expect_download() as download:
        page.keyboard.press("J")

    found = json.loads(Path(download.value.path()).read_text())
    assert [(record["topic"], record["partition"]) for record in found] == [
        ("topic-1", 2), ("topic-1", 1), ("topic-1", 0)
    ]  # fmt: skip
    wrong = page.request.get(f"{server.url}/export/partitions.csv?q=colour:red")
    assert (wrong.status, "no column 'colour'" in wrong.text()) == (400, True)
    assert page.request.get(f"{server.url}/export/colours.csv").status == 404
    records = page.request.get(f"{server.url}/export/brokers.json").json()
    assert [record["rack"] for record in records] == ["a", "b", "c"]


@pytest.mark.thorough
def test_a_link_is_copied_and_opens_the_same(page: Page, server: PageServer) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    go(page, server, "groups/group-1")
    page.locator("#filter-lags").fill("partition<2")
    expect(page.locator("#count-lags")).to_have_text("2 of 40 rows")
    page.locator("#count-lags").click()
    page.keyboard.press("y")
    expect(page.locator("#note")).to_have_text("link copied")

    link = page.evaluate("navigator.clipboard.readText()")
    page.goto(link)

    expect(page.locator("#count-lags")).to_have_text("2 of 40 rows")


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_another_time_shows_what_was_then_until_one_goes_back(
    page: Page, server: PageServer, store: Store
) -> None:
    store.write(leader=-1)
    moment = datetime.now(UTC)
    then = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    expect(page.locator("#findings")).to_contain_text("1 partition offline")
    wait_until(lambda: datetime.now(UTC) > moment + timedelta(seconds=1.5), "then is past")
    store.write()
    expect(page.locator("#findings")).not_to_contain_text("offline")
    page.keyboard.press("@")
    page.get_by_label("At", exact=True).fill(then)
    page.get_by_role("button", name="Show", exact=True).click()

    bar = page.locator("#past-bar")
    expect(bar).to_contain_text("you are looking at ")
    expect(page.locator("#time-shown")).to_contain_text("10 minutes up to ")
    expect(dialog_of(page)).to_have_count(0)
    expect(page.locator("#findings")).to_contain_text("1 partition offline")
    push_two(page, store)
    expect(page.locator("#findings")).to_contain_text("1 partition offline")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/partitions?at=*")
    first = page.locator('.ag-center-cols-container .ag-row[row-id="topic-0-0"]')
    expect(first).to_contain_text("offline")
    page.reload()
    expect(bar).to_be_visible()
    expect(first).to_contain_text("offline")

    page.get_by_role("button", name="back to now").click()

    expect(bar).to_be_hidden()
    expect(page.locator("#time-shown")).to_have_text("last 10 minutes")
    expect(first).not_to_contain_text("offline")
    page.wait_for_url("**/partitions")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("at", "words"), [("2199-01-01T00:00", "in the future"), ("2001-01-01", "before history")]
)
def test_a_moment_that_is_not_kept_says_so_and_nothing_looks_well(
    page: Page, server: PageServer, at: str, words: str
) -> None:
    go(page, server, f"overview?at={at}")
    expect(page.locator("#past-words")).to_contain_text(words)
    expect(page.locator("#findings")).to_contain_text(words)
    expect(page.locator("#tiles")).to_contain_text("n/a")
    main = page.locator("main").inner_text()
    assert "✔" not in main
    assert "No findings" not in main
    go(page, server, f"topics?at={at}")
    expect(page.locator("#count-topics")).to_contain_text(words)
    refused = page.request.get(f"{server.url}/export/topics.csv?at={at}")
    assert (refused.status, words in refused.text()) == (404, True)
    page.get_by_role("button", name="back to now").first.click()
    expect(page.locator("#count-topics")).to_have_text("4 rows")


@pytest.mark.thorough
def test_internal_topics_are_listed_when_asked_for(
    page: Page, server: PageServer, store: Store
) -> None:
    store.write(topic="__consumer_offsets")
    go(page, server, "topics")
    names = page.locator(".ag-pinned-left-cols-container .ag-row")
    expect(names).to_have_count(4)
    page.get_by_label("internal").check()
    expect(names).to_have_count(5)
    expect(names.get_by_text("__consumer_offsets")).to_be_visible()
    expect(page).to_have_url(f"{server.url}/topics?internal=yes")
    page.reload()
    expect(names).to_have_count(5)
    page.locator("h1").click()
    page.keyboard.press("Shift+H")
    expect(names).to_have_count(4)
    go(page, server, "topics?q=topic:__consumer_offsets")
    expect(names).to_have_count(1)
    store.write()


@pytest.mark.thorough
def test_columns_are_chosen_linked_and_exported(
    page: Page, server: PageServer, store: Store
) -> None:
    go(page, server, "partitions")
    head = page.locator(".ag-header-cell")
    expect(head.filter(has_text="high watermark")).to_be_visible()
    page.keyboard.press("l")
    page.locator("#columns-partitions").get_by_text("high watermark").click()
    expect(head.filter(has_text="high watermark")).to_have_count(0)
    expect(page).to_have_url(re.compile("cols=partition"))
    page.evaluate(
        """() => window.dash_ag_grid.getApiAsync("grid-partitions")
            .then((api) => api.setColumnsVisible(["high_watermark"], true))"""
    )
    store.write()  # A table that was drawn anew is corrected with the next figures.
    expect(head.filter(has_text="high watermark")).to_have_count(0)
    page.reload()
    expect(page.locator("#count-partitions")).to_contain_text("rows")
    expect(head.filter(has_text="high watermark")).to_have_count(0)
    # Another table of partitions, by a path that names no columns: those chosen last.
    go(page, server, "topics/topic-1")
    expect(page.locator("#count-partitions")).to_contain_text("rows")
    expect(page).to_have_url(re.compile("cols=status"))
    expect(head.filter(has_text="high watermark")).to_have_count(0)
    go(page, server, "partitions?cols=lag,high_watermark")
    expect(head.filter(has_text="high watermark")).to_be_visible()
    expect(page).to_have_url(re.compile("cols=(max_)?lag(,|%2C)high_watermark"))
    answer = page.request.get(f"{server.url}/export/partitions.csv?q=topic-0-7&cols=lag")
    assert answer.text().splitlines()[0] == "topic,max_lag"
    wrong = page.request.get(f"{server.url}/export/partitions.csv?cols=lga")
    assert (wrong.status, "no column 'lga'" in wrong.text()) == (400, True)


@pytest.mark.parametrize(
    ("scheme", "paths"),
    [("light", VIEWS), pytest.param("dark", DARK_VIEWS, marks=pytest.mark.thorough)],
)
def test_nothing_hinders_people_seriously(
    page: Page, server: PageServer, scheme: Literal["light", "dark"], paths: dict[str, str]
) -> None:
    page.emulate_media(color_scheme=scheme)
    found = {}
    for path, is_there in paths.items():
        go(page, server, path)
        expect(page.locator(is_there).first).to_be_visible()
        found[path] = serious_findings(page)
    page.keyboard.press("?")
    expect(dialog_of(page)).to_be_visible()
    found["help"] = serious_findings(page)
    assert {path: what for path, what in found.items() if what} == {}


@pytest.mark.thorough
@pytest.mark.usefixtures("overview")
def test_one_switch_changes_page_grid_and_figures(page: Page) -> None:
    page.emulate_media(color_scheme="light")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    # A chart has no text for a moment while it is drawn anew.
    ink = "() => document.querySelector('#throughput-chart .xtick text')?.style.fill"
    of_light = page.wait_for_function(ink).json_value()
    ground_of_light = page.evaluate(ground)

    page.locator("#scheme-switch").click()

    expect(page.locator("html")).to_have_attribute("data-ag-theme-mode", "dark")
    expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", "dark")
    page.wait_for_function(f"before => ![before, undefined].includes(({ink})())", arg=of_light)
    page.wait_for_function(f"before => ({ground})() !== before", arg=ground_of_light)
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-scheme", "dark")


@pytest.mark.thorough
def test_a_phone_stacks_the_blocks_without_scrolling_sideways(
    page: Page, server: PageServer
) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("overview", "topics/topic-1", "groups/group-1", "topics/topic-1/partitions/1"):
        go(page, server, path)
        expect(page.locator(VIEWS[path]).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        for line in page.locator("#content > .actions, #existing > .actions").all():
            assert line.evaluate("it => it.offsetHeight") < 50
    go(page, server, "partitions")
    lag = page.locator('.ag-center-cols-container .ag-row[row-index="0"] [col-id="max_lag"]')
    expect(lag).to_be_in_viewport(ratio=0.99)


@pytest.mark.thorough
def test_a_desktop_shows_every_column_whole(page: Page, server: PageServer) -> None:
    cut = """() => [...document.querySelectorAll(".ag-header-cell-text")]
        .filter(it => it.scrollWidth > it.clientWidth).map(it => it.textContent)"""
    beyond = """() => { const it = document.querySelector(".ag-center-cols-viewport");
        return it.scrollWidth - it.clientWidth }"""
    found = {}
    for path in ("topics", "partitions", "brokers", "groups", "topics/topic-1", "groups/group-1"):
        go(page, server, path)
        expect(page.locator(".ag-center-cols-container .ag-row").first).to_be_visible()
        page.wait_for_function(f"() => ({beyond})() === 0")
        found[path] = page.evaluate(cut)
    assert {path: heads for path, heads in found.items() if heads} == {}


@pytest.mark.thorough
def test_everything_comes_from_here(browser: Browser, server: PageServer) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{server.url}/overview")
    page.wait_for_selector("#tiles .tile")
    page.goto(f"{server.url}/partitions")
    page.wait_for_selector(".ag-row")

    own = (server.url, "data:", "blob:")
    assert [url for url in asked if not url.startswith(own)] == []
    assert len(asked) > 5
    page.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:8050"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/overview", "/_dash-layout", "/assets/modules/main.js"])
def test_strangers_are_refused_with_the_reason(
    server: PageServer, path: str, headers: dict[str, str]
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT_S)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()

    assert response.status == 403
    assert next(iter(headers)) in response.read().decode()
    connection.close()


@pytest.mark.parametrize("origin", ["http://evil.example", None])
def test_websockets_of_strangers_are_refused(server: PageServer, origin: str | None) -> None:
    lines = [
        "GET /_dash-ws-callback HTTP/1.1",
        f"Host: 127.0.0.1:{server.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        *([f"Origin: {origin}"] if origin else []),
    ]
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as sock:
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        answer = sock.recv(4096).decode()

    assert answer.startswith("HTTP/1.1 403")


SAID_MS_MAX: Final = 3_000
KEEP_WHEN_TEXT_CHANGES: Final = """place => {
    place.changes = [];
    const keep = () => {
        const isLost = place.textContent.includes("lost");
        if (!isLost || !place.changes[1]) place.changes[isLost ? 1 : 0] = performance.now();
    };
    keep();
    new MutationObserver(keep).observe(
        place, { childList: true, characterData: true, subtree: true });
}"""
"""When the last age was told, and when the connection was first said to be lost: by the browser's
clock, so that a busy machine delays both alike."""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ("gt", "cut"),
        ("", "silent"),
        pytest.param("gt", "silent", marks=pytest.mark.soak),
        pytest.param("", "cut", marks=pytest.mark.soak),
    ],
)
def test_a_lost_connection_is_said_and_what_was_asked_meanwhile_comes_with_it(
    browser: Browser, server: PageServer, store: Store, kind: str, keys: str
) -> None:
    store.write()  # An age of minutes would stand still for up to one.
    with CutProxy(server.port) as proxy:
        page = open_page(browser, f"http://127.0.0.1:{proxy.port}/overview", [])
        age = page.locator("#age")
        expect(age).to_contain_text(" ago")
        expect(page.locator("#tiles .tile").first).to_be_visible()

        lose = proxy.cut if kind == "cut" else proxy.fall_silent
        age.evaluate(KEEP_WHEN_TEXT_CHANGES)
        lose()
        expect(age).to_contain_text("connection lost")
        told_ms, lost_ms = age.evaluate("age => age.changes.slice(0, 2)")
        assert lost_ms - told_ms <= SAID_MS_MAX
        expect(age).to_have_class(re.compile("tone-critical"))
        before = age.inner_text()
        expect(age).not_to_have_text(before)
        expect(age).to_contain_text("connection lost")
        for key in keys:
            page.keyboard.press(key)

        proxy.begin()
        expect(age).to_contain_text(re.compile("^[^l]* ago"))
        if keys:
            expect(page.locator("h1")).to_have_text("Topics")
            row = page.locator("#grid-topics .ag-center-cols-container .ag-row")
            expect(row).not_to_have_count(0)
        page.context.close()


@pytest.mark.thorough
def test_without_a_store_the_page_says_what_to_do_and_fills_by_itself(
    browser: Browser, tmp_path: Path
) -> None:
    errors: list[str] = []
    store = Store(tmp_path / "store")
    with PageServer(store.folder) as server:
        page = open_page(browser, server.url, errors)
        expect(page.locator("#findings")).to_contain_text("No data yet")

        store.write()

        expect(page.locator("#head-brokers")).to_have_text("3/3 brokers")
        page.close()
        assert server.stop() == 0
    assert errors == []
