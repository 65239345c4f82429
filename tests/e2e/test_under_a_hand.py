"""Figures come while a hand is on the page: no press is lost, and what is marked stays marked."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.support.page_server import PageServer
from tests.support.presses import lost_presses
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(600)]

SIZES: Final = SyntheticSizes(topics=4, partitions=8, groups=6)
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
    const { partiscope } = window.dash_clientside, { hear } = partiscope;
    partiscope.hear = (...given) => {
        const answer = hear(...given);
        if (answer[0] !== window.dash_clientside.no_update) window.readings += 1;
        return answer;
    };
}"""


@pytest.mark.parametrize(
    ("view", "place"), [(view, place) for view, found in PLACES.items() for place in found]
)
def test_no_press_is_lost_while_figures_come(
    page: Page, server: PageServer, figures: Figures, view: str, place: str
) -> None:
    """It leads where the words led that the hand pressed on."""
    with figures.coming():
        lost = lost_presses(
            page, f"{server.url}/{view}", place, times=PRESSES,
            wait_for_next=figures.wait_for_next,
        )  # fmt: skip
    assert lost == []


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


NOTE_CHARTS: Final = """() => {
    const dash = window.dash_clientside, { set_props: setProps } = dash;
    const { hear } = dash.partiscope;
    Object.assign(window, { drawn: [], told: [] });
    dash.partiscope.hear = (...given) => {
        const [next, chart] = hear(...given);
        if (next !== dash.no_update) window.told.push(next.version);
        if (chart !== dash.no_update) window.drawn.push(chart.version);
        return [next, chart];
    };
    dash.set_props = (id, props) => {
        if (id === "chart-tick") window.drawn.push(props.data.version);
        return setProps(id, props);
    };
}"""


def test_charts_are_drawn_less_often_than_figures_come_and_show_the_last(
    page: Page, server: PageServer, figures: Figures
) -> None:
    page.goto(f"{server.url}/overview")
    expect(page.locator("#lag-chart .js-plotly-plot")).to_be_visible()
    page.evaluate(NOTE_CHARTS)
    with figures.coming():
        wait_until(lambda: page.evaluate("window.drawn.length > 2"), "charts are drawn")
        told, drawn = page.evaluate("[window.told.length, window.drawn.length]")
    assert told > 2 * drawn
    wait_until(
        lambda: page.evaluate("window.drawn.at(-1) === window.told.at(-1)"), "the last is drawn"
    )


TEXTS: Final = 60
FILL: Final = f"""first => {{
    const box = document.querySelector("#texts") || document.createElement("div");
    box.id = "texts";
    document.body.append(box);
    const texts = Array.from({{ length: {TEXTS} }}, (_, i) => `<p>${{i + first}}</p>`);
    box.dataset.markup = texts.join("");
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}}"""


def test_texts_that_change_together_are_laid_out_together(page: Page, server: PageServer) -> None:
    page.goto(f"{server.url}/overview")
    expect(page.locator("#broker-table tbody tr").first).to_be_visible()
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable")

    def layouts() -> int:
        told = browser.send("Performance.getMetrics")["metrics"]
        return int(next(it["value"] for it in told if it["name"] == "LayoutCount"))

    page.evaluate(FILL, 0)
    before = layouts()
    page.evaluate(FILL, 1_000)
    assert page.locator("#texts p").last.text_content() == str(1_000 + TEXTS - 1)
    assert layouts() - before < TEXTS // 4


@pytest.mark.parametrize("view", ["topics", "journal", "browse/topic-1", "topics/topic-1/configs"])
def test_the_key_of_the_filter_finds_it(page: Page, server: PageServer, view: str) -> None:
    page.goto(f"{server.url}/{view}")
    field = page.locator("main .filter-input, main .filter-field input").first
    expect(field).to_be_visible()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("2026-11-30 :q", delay=20)
    expect(field).to_have_value("2026-11-30 :q")


@pytest.mark.parametrize(
    ("view", "key"), [("groups/group-1", "O"), ("topics/topic-1", "D"), ("brokers/101", "W")]
)
def test_a_dialog_takes_what_is_typed_and_enter_leaves_it_open(
    page: Page, server: PageServer, view: str, key: str
) -> None:
    page.goto(f"{server.url}/{view}")
    expect(page.locator("#content .tile").first).to_be_visible()
    page.keyboard.press(f"Shift+{key}")
    field = page.locator("[role=dialog] input[data-autofocus]")
    expect(field).to_be_focused()
    page.keyboard.type("10m", delay=20)
    expect(field).to_have_value("10m")
    page.keyboard.press("Enter")
    page.wait_for_timeout(500)
    expect(field).to_be_visible()
