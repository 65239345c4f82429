"""The tour: once in a browser and in a terminal, and never at work."""

import re
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from control.views.tour import AGAIN, STEPS, TITLE
from dashboard.page_frame.tour import POINTS_AT
from partiscope.installation import Installation as Record
from tests.contract.operations_site import Site
from tests.support.axe import serious_findings
from tests.support.browser import DESKTOP, dialog_of, open_page
from tests.support.node_cluster import CLUSTER_ID
from tests.support.paced_producer import fill
from tests.support.page_server import NOWHERE, PageServer
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows
from tests.support.tmux import PROGRAM, START_S, Tmux

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(420)]
PHONE: Final = {"width": 390, "height": 844}
BAR: Final = "#tour"


@dataclass(frozen=True, kw_only=True)
class Demo:
    """An installation whose record tells of the demo load, and its page."""

    data: Path
    page: str


@pytest.fixture(scope="module")
def demo(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The shared cluster with a topic and groups of the demo's names; `test_up` has the demo."""
    data = tmp_path_factory.mktemp("tour") / "data"
    site.eyes.create("orders", dict.fromkeys(range(4), (101, 102)))
    fill(site.cluster.bootstrap, "orders", dict.fromkeys(range(4), 1 << 10))
    rows = synthetic_rows(
        SyntheticSizes(topics=2, partitions=4, groups=2), at_ms=time.time_ns() // 1_000_000
    )
    names = {"topic-0": "orders", "group-0": "billing"}
    told = {
        table: [
            {**row, "cluster": CLUSTER_ID}
            | {key: names.get(row[key], row[key]) for key in ("topic", "group_id") if key in row}
            for row in found
        ]
        for table, found in rows.items()
    }
    StoreBuilder(data / "store").write(told)
    Record(bus=site.cluster.bootstrap, demo=True).save(data)
    with PageServer(data / "store", "--data", str(data)) as server:
        yield Demo(data=data, page=server.url)


@pytest.fixture
def page(browser: Browser, demo: Demo) -> Iterator[Page]:
    """A browser that was never here, at the address that ``up`` tells."""
    errors: list[str] = []
    page = open_page(browser, demo.page, errors)
    yield page
    page.context.close()
    assert errors == []


def expect_step(page: Page, place: int) -> None:
    """Its words, its view, and its thing highlighted in sight, which the bar does not hide."""
    step = STEPS[place]
    expect(page.locator(BAR)).to_contain_text(f"{place + 1} of {len(STEPS)}: {step.title}")
    expect(page.locator(BAR)).to_contain_text(step.words)
    expect(page).to_have_url(re.compile(f"^[^/]+//[^/]+/{re.escape(step.path)}$"))
    thing = page.locator(POINTS_AT[step.thing])
    expect(thing).to_have_css("outline-style", "solid")
    expect(thing).to_be_in_viewport()
    wait_until(lambda: begins_below_the_bar(page, place), f"{step.thing} below the bar")


def begins_below_the_bar(page: Page, place: int) -> bool:
    bar = page.locator(BAR).bounding_box()
    thing = page.locator(POINTS_AT[STEPS[place].thing]).bounding_box()
    assert bar
    assert page.viewport_size
    if thing is None:  # it is just drawn anew
        return False
    return bar["y"] + bar["height"] <= thing["y"] < page.viewport_size["height"] - 40


def expect_none(page: Page) -> None:
    expect(page.locator("#age")).to_contain_text(" ago")  # so callbacks have run
    expect(page.locator(BAR)).to_be_hidden()


@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.soak)])
def test_a_browser_sees_six_steps_once_and_again_when_asked(
    page: Page, demo: Demo, scheme: Literal["dark", "light"]
) -> None:
    page.emulate_media(color_scheme=scheme)
    expect_step(page, 0)
    expect(page.locator(".tour-next")).to_be_focused()
    for place, forward in enumerate(["Enter", ">", "Enter", ">", "Enter"]):
        assert serious_findings(page) == []
        page.keyboard.press(forward)
        expect_step(page, place + 1)
    page.keyboard.press("<")
    expect_step(page, 4)
    page.reload()
    expect_step(page, 4)
    page.locator(".tour-next").click()
    page.get_by_role("button", name="Done").click()
    expect(page.locator(BAR)).to_be_hidden()
    expect(page.locator("#note")).to_have_text(AGAIN)
    expect(page.locator(POINTS_AT[STEPS[5].thing])).to_have_css("outline-style", "none")

    page.goto(demo.page)
    expect(page.locator("#tiles .tile").first).to_be_visible()
    expect_none(page)
    page.keyboard.press(":")
    page.get_by_label("what to go to or to do").fill("six steps")
    expect(page.locator(".palette-entry")).to_have_count(1)
    page.keyboard.press("Enter")
    expect_step(page, 0)
    page.keyboard.press("Escape")
    expect(page.locator(BAR)).to_be_hidden()
    expect(page).to_have_url(demo.page + "/overview")


def test_on_a_phone_each_step_shows_what_it_speaks_of(browser: Browser, demo: Demo) -> None:
    errors: list[str] = []
    page = browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(demo.page)
    for place in range(len(STEPS)):
        expect_step(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.locator(".tour-next").click()
    expect(page.locator(BAR)).to_be_hidden()
    page.context.close()
    assert errors == []


def test_a_dialog_keeps_its_keys_and_the_help_has_the_tour(page: Page) -> None:
    expect_step(page, 0)
    page.keyboard.press("?")
    expect(dialog_of(page)).to_be_visible()
    page.keyboard.press(">")
    page.keyboard.press("Escape")
    expect(dialog_of(page)).to_be_hidden()
    expect_step(page, 0)
    page.get_by_role("button", name="End tour").click()
    expect(page.locator(BAR)).to_be_hidden()
    page.keyboard.press("?")
    dialog_of(page).get_by_role("button", name=re.compile(f"^{TITLE}: ")).click()
    expect(dialog_of(page)).to_be_hidden()
    expect_step(page, 0)


def test_who_follows_a_link_is_at_work(browser: Browser, demo: Demo) -> None:
    page = open_page(browser, f"{demo.page}/groups", [])
    expect(page.locator(".ag-row").first).to_be_visible()
    expect_none(page)
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("#tiles .tile").first).to_be_visible()
    expect_none(page)
    page.goto(demo.page)
    expect_step(page, 0)
    page.context.close()


@pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 48), marks=pytest.mark.soak)])
def test_a_terminal_sees_six_steps_once_and_again_when_asked(
    demo: Demo, size: tuple[int, int]
) -> None:
    command = shlex.join((str(PROGRAM), "tui", "--data", str(demo.data)))
    (demo.data / "tour-began").unlink(missing_ok=True)
    first = Tmux(command, size)
    try:
        for place, step in enumerate(STEPS):
            first.wait(f"{place + 1} of {len(STEPS)}: {step.title}", seconds=START_S)
            assert step.words in " ".join(first.picture().replace("▌", "").split())
            first.press("Enter" if place % 2 else "Right")
        first.wait(AGAIN)
        assert TITLE.upper() not in first.words()
    finally:
        first.close()
    second = Tmux(command, size)
    try:
        second.wait("BROKERS 3", "billing", seconds=START_S)
        assert STEPS[0].title not in second.words()
        second.press(":")
        second.wait("🔎")
        second.type("tour")
        second.wait("six steps over the demo")
        second.press("Enter")
        second.wait(f"1 of {len(STEPS)}: {STEPS[0].title}")
        second.press("Enter", "Enter", "Enter")  # None reaches the view that a step opens.
        second.wait(f"4 of {len(STEPS)}: {STEPS[3].title}")
        second.press("Escape")
        second.wait(AGAIN)
        assert STEPS[3].title not in second.words()
        assert "REASSIGN" in second.words()
    finally:
        second.close()


def test_a_setting_leaves_the_tour_to_who_asks(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTISCOPE_TOUR", "never")
    StoreBuilder(tmp_path / "store").write_synthetic(SyntheticSizes(topics=2, partitions=4))
    server = PageServer(tmp_path / "store")
    Record(bus=NOWHERE, demo=True).save(tmp_path / "data")
    with server:
        page = open_page(browser, server.url, [])
        expect(page.locator("#tiles .tile").first).to_be_visible()
        expect_none(page)
        page.keyboard.press(":")
        page.get_by_label("what to go to or to do").fill("six steps")
        expect(page.locator(".palette-entry")).to_have_count(1)
        page.context.close()


DENIED: Final = """for (const name of ["localStorage", "sessionStorage"]) {
  Object.defineProperty(window, name, {
    get() { throw new DOMException("Access is denied for this document.", "SecurityError"); },
  });
}"""
"""What a browser does that keeps nothing for pages: cookies are blocked."""


def test_without_storage_the_tour_and_the_choice_of_columns_work(
    browser: Browser, demo: Demo
) -> None:
    errors: list[str] = []
    page = browser.new_page(viewport=DESKTOP)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.add_init_script(DENIED)
    page.goto(demo.page)
    expect(page.locator(BAR)).to_contain_text(f"1 of {len(STEPS)}")
    page.keyboard.press("Enter")
    expect(page.locator(BAR)).to_contain_text(f"2 of {len(STEPS)}")
    page.locator(".tour-end").click()
    page.get_by_role("link", name="Partitions", exact=True).click()
    head = page.locator(".ag-header-cell").filter(has_text="high watermark")
    expect(head).to_be_visible()
    page.keyboard.press("l")
    page.locator("#columns-partitions").get_by_text("high watermark").click()
    expect(head).to_have_count(0)
    page.context.close()
    assert errors == []
