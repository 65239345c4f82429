"""A plan's review on a small terminal: checks are reached by key, what stays broken is named."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from textual.widgets import Input, OptionList, Static, TextArea

from control.operations.catalogue.moves.reassign import Reassign
from control.operations.reassignment.facts import ClusterFacts, topology_of
from control.operations.reassignment.planning import Preview, preview_of
from planner.by_hand import edited, parse_edits
from planner.goals import PlanRequest
from planner.optimizer import Plan, judged_plan
from planner.proposal import Proposal
from tests.snapshots.canned import CannedSession, facts
from tests.support.picture import picture
from tests.support.settle import settle
from tui.app import PartiscopeApp
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.terminal_session import Services

NEW: Final = 104


class CrowdedSession(CannedSession):
    """Its plan fills a disk and leaves all replicas of a partition in one rack."""

    async def plan(self, values: Mapping[str, str]) -> Plan:
        """Whatever the form says: the same by hand."""
        topology = topology_of(crowded())
        base = Proposal(name="now", changes=())
        made = edited(topology, base, parse_edits("topic-1-0: 101,104"))
        return self.plans.keep(judged_plan(topology, PlanRequest(), made), values)

    async def review(self, asked: Reassign) -> Preview:
        """Refused by pre-flight."""
        return preview_of(crowded(), asked.proposal, throttle="auto")


def crowded() -> ClusterFacts:
    """The canned cluster, in which 101 and 104 are in one rack, with a small disk."""
    now = facts()
    return replace(now, usable_bytes={**now.usable_bytes, NEW: 1 << 20})


async def test_the_checks_are_reached_by_key_and_say_on_asking_why_it_is_refused(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="plan")
    app.session._operations = CrowdedSession()  # type: ignore[assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+s")
        review = app.screen.query_one("#review", Static)
        await settle(pilot, lambda: "✖ disk" in str(review.render()), "the review")
        assert isinstance(app.focused, OptionList)
        await pilot.pause()
        assert "3 violations left" in picture(app)
        assert "▲ topic-1-0: on 1 rack" in picture(app)
        assert "other operators:" not in picture(app)
        for _ in range(3):
            await pilot.press("pagedown")
        await pilot.pause()
        assert "new leader?" in picture(app)
        assert "1 by hand" not in picture(app)
        await pilot.press("c")
        await pilot.pause()
        assert "✖ pre-flight refuses: disk: broker 104 needs" in picture(app)
        await pilot.press("pagedown", "pageup")
        await pilot.pause()
        assert "1 by hand" in picture(app)


class Throttled(CannedSession):
    """Previews with the throttle of the form; counts its plans."""

    planned = 0

    async def plan(self, values: Mapping[str, str]) -> Plan:
        """Counted."""
        self.planned += 1
        return await super().plan(values)

    async def review(self, asked: Reassign) -> Preview:
        """At this rate."""
        return preview_of(facts(), asked.proposal, throttle=asked.throttle)


class SlowSession(CrowdedSession):
    """Works a preview out until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.may_answer = asyncio.Event(), asyncio.Event()

    async def review(self, asked: Reassign) -> Preview:
        """Not before it may."""
        self.asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            await self.may_answer.wait()  # as what was on its way when it was given up
        return await super().review(asked)


async def test_back_to_the_form_while_a_preview_is_worked_out(services: Services) -> None:
    app = PartiscopeApp(services, path="plan")
    operator = SlowSession()
    app.session._operations = operator  # type: ignore[assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("ctrl+s")
        await operator.asked.wait()
        await pilot.press("e")
        operator.may_answer.set()
        await pilot.pause(0.1)
        assert "✖ disk" not in picture(app)
        assert " 1 scope and goal " in picture(app)


class LateSession(Throttled):
    """Its preview comes when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer = asyncio.Event()

    async def review(self, asked: Reassign) -> Preview:
        """Not before it may."""
        await self.may_answer.wait()
        return await super().review(asked)


async def test_a_plan_that_is_chosen_before_its_preview_is_there_is_asked_about_then(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="plan")
    operator = LateSession()
    app.session._operations = operator  # type: ignore[assignment]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: bool(app.screen.query_one(OptionList).options), "plans")
        await pilot.press("enter")
        await settle(pilot, lambda: "previewing it" in picture(app), "that it is noticed")
        assert not isinstance(app.screen, ConfirmScreen)
        operator.may_answer.set()
        await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")


async def test_what_was_made_by_hand_survives_a_change_of_throttle(services: Services) -> None:
    """And the confirmation tells the throttle; another scope is planned anew, and that is said."""
    app = PartiscopeApp(services, path="plan")
    operator = Throttled()
    app.session._operations = operator  # type: ignore[assignment]
    async with app.run_test(size=(120, 40)) as pilot:
        screen = app.screen
        review = screen.query_one("#review", Static)
        chooser = screen.query_one(OptionList)
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: "time" in str(review.render()), "the review")
        offered = chooser.option_count + 1
        await pilot.press("h")
        await settle(pilot, lambda: bool(app.screen.query("#entries")), "by hand")
        app.screen.query_one("#entries", TextArea).text = "topic-1-0: 103,104"
        verdict = app.screen.query_one("#hand-verdict", Static)
        await settle(pilot, lambda: "✔" in str(verdict.render()), "it is judged")
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: chooser.highlighted == offered - 1, "it is taken")

        await pilot.press("e")
        screen.query_one("#field-throttle", Input).value = "7MiB"
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: "at 7.0 MiB/s per broker" in str(review.render()), "its time")
        assert operator.planned == 1
        assert (chooser.option_count, chooser.highlighted) == (offered, offered - 1)
        await pilot.press("c")
        await settle(pilot, lambda: "Throttle: 7.0 MiB/s a broker" in picture(app), "the question")
        await pilot.press("escape", "e")

        screen.query_one("#field-topics", Input).value = "topic-1"
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: operator.planned == 2, "another scope is planned anew")
        await settle(pilot, lambda: "placements by hand" in picture(app), "and that is said")
