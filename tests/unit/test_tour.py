"""The tour: declared once, walked by both faces, offered where the demo runs."""

from dataclasses import replace
from pathlib import Path

import pytest
from textual.widget import Widget

from control.views.paths import parse_path
from control.views.tour import AGAIN, STEPS, TITLE, Offer, Thing, TourStep
from dashboard import router
from dashboard.page_frame import palette
from dashboard.page_frame import tour as page_tour
from partiscope.installation import Installation, Watched, has_demo
from tests.support.settle import settle
from tests.unit.dashboard.page_context import context_on
from tests.unit.tui.conftest import services, written_store
from tui import tour as terminal_tour
from tui.app import PartiscopeApp
from tui.preferences import Preferences
from tui.screens.base import ViewScreen
from tui.screens.details.overview import OverviewScreen
from tui.screens.views import SCREENS
from tui.terminal_session import Services
from tui.widgets.tour_panel import TourPanel

__all__ = ["services", "written_store"]

SIZES = [(80, 24), pytest.param((160, 48), marks=pytest.mark.thorough)]


def test_six_steps_each_with_a_thing_of_its_own() -> None:
    assert len(STEPS) == 6
    assert {step.thing for step in STEPS} == set(Thing)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.thing)
def test_each_step_names_a_view_and_a_thing_that_both_faces_have(step: TourStep) -> None:
    view = parse_path(step.path).view
    assert view in router.VIEWS
    assert view in SCREENS
    assert step.thing in page_tour.POINTS_AT
    assert step.thing in terminal_tour.POINTS_AT


def test_only_the_bundled_cluster_with_its_demo_load_is_toured(tmp_path: Path) -> None:
    bus = "127.0.0.1:9092"
    assert not has_demo(tmp_path, bus)
    demo = Installation(bus=bus, demo=True)
    demo.save(tmp_path)
    assert has_demo(tmp_path, bus)
    assert not has_demo(tmp_path, "kafka1:9092")
    watched = (Watched(bootstrap="kafka1:9092", cluster_id="watched"),)
    for other in (replace(demo, demo=False), replace(demo, watched=watched)):
        other.save(tmp_path)
        assert not has_demo(tmp_path, bus)
        assert not has_demo(tmp_path, "kafka1:9092")


def test_a_page_without_a_demo_neither_has_the_tour_nor_offers_it(tmp_path: Path) -> None:
    snapshot = context_on(tmp_path).snapshot
    assert page_tour.bar(Offer.NONE) == []
    assert page_tour.link(Offer.NONE) == []
    for offer, there in ((Offer.NONE, []), (Offer.ASKED, [TITLE]), (Offer.ONCE, [TITLE])):
        found = palette.entries(snapshot, "six steps", {}, offer)
        assert [entry.title for entry in found] == there


async def shown_step(app: PartiscopeApp, place: int) -> Widget:
    """The thing that the step points to."""
    (panel,) = app.screen.query(TourPanel)
    assert panel.place == place
    assert panel.has_focus
    (thing,) = app.screen.query(".toured")
    assert thing.region.height > 0
    return thing


@pytest.mark.parametrize("size", SIZES)
async def test_a_terminal_walks_the_steps_once(
    services: Services, tmp_path: Path, size: tuple[int, int]
) -> None:
    kept = Preferences(None, tour_mark=tmp_path / "began")
    app = PartiscopeApp(services, preferences=kept, tour=Offer.ONCE)
    async with app.run_test(size=size) as pilot:
        for place, step in enumerate(STEPS):
            await settle(pilot, lambda: is_at(app, place), f"step {place + 1}")  # noqa: B023
            thing = await shown_step(app, place)
            panel = app.screen.query_one(TourPanel)
            assert not panel.region.overlaps(thing.region)
            assert step.title in str(panel.visual)
            if place:
                await pilot.press("left")
                await settle(pilot, lambda: is_at(app, place - 1), "the step before")  # noqa: B023
                await pilot.press("right")
                await settle(pilot, lambda: is_at(app, place), "the step again")  # noqa: B023
            await pilot.press("enter")
        await settle(pilot, lambda: not app.screen.query(TourPanel), "its end")
        assert not app.screen.query(".toured")
    again = PartiscopeApp(services, preferences=kept, tour=Offer.ONCE)
    async with again.run_test(size=size) as pilot:
        await settle(pilot, lambda: isinstance(again.screen, OverviewScreen), "the overview")
        await pilot.pause(0.3)
        assert not again.screen.query(TourPanel)
        assert again.tour is not None
        again.tour.show(0)
        await settle(pilot, lambda: is_at(again, 0), "the tour that is asked for")
        await pilot.press("escape")
        await settle(pilot, lambda: isinstance(again.screen, OverviewScreen), "where it began")
        assert len(again.screen_stack) == 2
        assert AGAIN in [each.message for each in again._notifications]


def is_at(app: PartiscopeApp, place: int) -> bool:
    """Whether that step is shown, and has the keys."""
    found = [*app.screen.query(TourPanel)]
    return [each.place for each in found if each.has_focus] == [place]


@pytest.mark.parametrize(
    ("path", "offer"), [("topics", Offer.ONCE), ("overview", Offer.ASKED), ("overview", Offer.NONE)]
)
async def test_a_terminal_opened_for_work_is_left_alone(
    services: Services, tmp_path: Path, path: str, offer: Offer
) -> None:
    kept = Preferences(None, tour_mark=tmp_path / "began")
    app = PartiscopeApp(services, path=path, preferences=kept, tour=offer)
    async with app.run_test() as pilot:
        await settle(pilot, lambda: isinstance(app.screen, ViewScreen), "a view")
        await pilot.pause(0.3)
        assert not app.screen.query(TourPanel)
    assert kept.claim_tour(), "the first who opens the overview is still to see it"


def test_a_mark_that_cannot_be_written_begins_no_tour(tmp_path: Path) -> None:
    assert not Preferences(None, tour_mark=tmp_path / "nowhere" / "began").claim_tour()
    assert not Preferences(None).claim_tour()
