"""The tour over the real demo: once in a browser and in a terminal, and never at work."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from control.views.tour import AGAIN, STEPS, TITLE
from dashboard.page_frame.tour import POINTS_AT
from partiscope.installation import Installation as Record
from tests.support.axe import serious_findings
from tests.support.browser import chromium, dialog_of, open_page
from tests.support.installation import Installation
from tests.support.page_server import NOWHERE, PageServer
from tests.support.settle import wait_until
from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.support.tmux import PROGRAM, START_S, Tmux

pytestmark = [pytest.mark.e2e, pytest.mark.browser, pytest.mark.timeout(420)]
PHONE: Final = {"width": 390, "height": 844}
BAR: Final = "#tour"
CALM_S: Final = 1.5
"""So long nothing begins by itself."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """``partiscope up`` with its demo load."""
    with Installation(tmp_path_factory.mktemp("tour") / "data") as installation:
        installation.wait_ready()
        yield installation


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser, running: Installation) -> Iterator[Page]:
    """A browser that was never here, at the address that ``up`` tells."""
    errors: list[str] = []
    page = open_page(browser, running.page, errors)
    yield page
    page.context.close()
    assert errors == []


def expect_step(page: Page, place: int) -> None:
    """Its words, its view, and its thing highlighted in sight, which the bar does not hide."""
    step = STEPS[place]
    expect(page.locator(BAR)).to_contain_text(f"{place + 1} of {len(STEPS)}: {step.title}")
    expect(page.locator(BAR)).to_contain_text(step.words)
    assert page.url.split("/", 3)[3] == step.path
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
    page.wait_for_timeout(CALM_S * 1_000)
    expect(page.locator(BAR)).to_be_hidden()


@pytest.mark.spark
@pytest.mark.parametrize("scheme", ["dark", pytest.param("light", marks=pytest.mark.soak)])
def test_a_browser_sees_six_steps_once_and_again_when_asked(
    page: Page, running: Installation, scheme: Literal["dark", "light"]
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

    page.goto(running.page)
    expect(page.locator("#tiles .tile").first).to_be_visible()
    expect_none(page)
    page.keyboard.press(":")
    page.get_by_label("what to go to or to do").fill("six steps")
    expect(page.locator(".palette-entry")).to_have_count(1)
    page.keyboard.press("Enter")
    expect_step(page, 0)
    page.keyboard.press("Escape")
    expect(page.locator(BAR)).to_be_hidden()
    assert page.url.endswith("/map")


@pytest.mark.spark
def test_on_a_phone_each_step_shows_what_it_speaks_of(
    browser: Browser, running: Installation
) -> None:
    errors: list[str] = []
    page = browser.new_page(viewport=PHONE)  # type: ignore[arg-type]
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(running.page)
    for place in range(len(STEPS)):
        expect_step(page, place)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        page.locator(".tour-next").click()
    expect(page.locator(BAR)).to_be_hidden()
    page.context.close()
    assert errors == []


@pytest.mark.spark
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


@pytest.mark.spark
def test_who_follows_a_link_is_at_work(browser: Browser, running: Installation) -> None:
    page = open_page(browser, f"{running.page}/groups", [])
    expect(page.locator(".ag-row").first).to_be_visible()
    expect_none(page)
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("#tiles .tile").first).to_be_visible()
    expect_none(page)
    page.goto(running.page)
    expect_step(page, 0)
    page.context.close()


@pytest.mark.spark
@pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 48), marks=pytest.mark.soak)])
def test_a_terminal_sees_six_steps_once_and_again_when_asked(
    running: Installation, size: tuple[int, int]
) -> None:
    command = f"{PROGRAM} tui --data {running.data}"
    (running.data / "tour-began").unlink(missing_ok=True)
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
        time.sleep(CALM_S)
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


def served(folder: Path, record: Record) -> PageServer:
    """A page of figures alone, in an installation of this record."""
    StoreBuilder(folder / "store").write_synthetic(SyntheticSizes(topics=2, partitions=4, groups=1))
    server = PageServer(folder / "store")
    record.save(folder / "data")
    return server


@pytest.mark.parametrize(
    ("record", "setting", "is_there"),
    [
        (Record(bus=NOWHERE), "once", False),
        (Record(bus=NOWHERE, demo=True), "never", True),
    ],
)
def test_without_a_demo_there_is_no_tour_and_a_setting_leaves_it_to_who_asks(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record: Record,
    setting: str,
    is_there: bool,
) -> None:
    monkeypatch.setenv("PARTISCOPE_TOUR", setting)
    with served(tmp_path, record) as server:
        page = open_page(browser, server.url, [])
        expect(page.locator("#tiles .tile").first).to_be_visible()
        expect_none(page)
        page.keyboard.press(":")
        page.get_by_label("what to go to or to do").fill("six steps")
        expect(page.locator(".palette-entry")).to_have_count(int(is_there))
        page.context.close()
