"""Placing partitions by hand in the terminal: judged as one types, refused with what would work."""

import asyncio
from functools import partial

from textual import events
from textual.app import App
from textual.widgets import Select, Static, TextArea

from control.operations.errors import InvalidInputError
from control.views.plan_choices import PlanChoices
from planner.by_hand import HandError, LeaderOrder, edited, edits_text, parse_edits
from planner.goals import PlanRequest
from planner.optimizer import judged_plan, plan
from planner.planned_map import KeptPlans, plan_name
from tests.support.settle import settle
from tests.unit.planner.clusters import cluster
from tui.screens.reassignments.by_hand import HandScreen

BEFORE = cluster({1: None, 2: None, 3: None}, [(1, 2)] * 6)
MADE = plan(BEFORE, PlanRequest())
BASE = MADE.alternatives[0].proposal
KEPT = KeptPlans()


async def judge(entries: str, leaders: str) -> PlanChoices:
    """As an operator's session does, on a cluster that stands still."""
    try:
        proposal = edited(BEFORE, BASE, parse_edits(entries), leaders=LeaderOrder(leaders))
    except HandError as error:
        raise InvalidInputError({"by_hand": str(error)}) from error
    made = KEPT.keep(judged_plan(BEFORE, PlanRequest(), proposal), {})
    return PlanChoices.of_plan(MADE).with_edit(made, plan_name(BASE), entries)


def _says(verdict: Static, words: str) -> bool:
    return words in str(verdict.render())


async def test_entries_are_judged_at_once_and_taken_when_they_can_be() -> None:
    taken: list[PlanChoices | None] = []
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HandScreen(edits_text(BASE), judge), taken.append)
        await pilot.pause()
        entries = app.screen.query_one("#entries", TextArea)
        verdict = app.screen.query_one("#hand-verdict", Static)
        assert parse_edits(entries.text) == BASE.targets()
        await settle(pilot, lambda: "✔" in str(verdict.render()), "the plan is judged")

        for text, words in (
            (
                "t-0: 1,9",
                "broker 9 does not exist or does not run; [1, 2] would work",
            ),
            ("t-0: 3,3", "names a broker twice; [3, 1] would work"),
            ("t-7: 1,2", "t has no partition 7 (0–5)"),
            ("t-0", "is no entry like"),
        ):
            entries.text = text
            await settle(pilot, partial(_says, verdict, words), words)
            await pilot.press("ctrl+s")
            assert taken == []

        entries.text = "t-0: 2,3"
        app.screen.query_one("#leader-order", Select).value = "keep"
        await settle(pilot, lambda: "✔" in str(verdict.render()), "the edit is judged")
        await pilot.press("ctrl+s")
        await settle(pilot, lambda: bool(taken), "the edit is taken")
    (made,) = taken
    assert made is not None
    targets = made.chosen.proposal(KEPT).targets()
    assert targets[BEFORE.partitions[0].key] == (2, 3)


async def test_a_key_typed_just_before_it_is_taken_counts() -> None:
    """What is taken is what stands in the field, however fast the keys come."""
    taken: list[PlanChoices | None] = []
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HandScreen(edits_text(BASE), judge), taken.append)
        await pilot.pause()
        verdict = app.screen.query_one("#hand-verdict", Static)
        await settle(pilot, lambda: "✔" in str(verdict.render()), "the plan is judged")
        for key in (events.Key("x", "x"), events.Key("ctrl+s", None)):
            app.post_message(key)
        await settle(pilot, lambda: "xt-0 does not exist" in str(verdict.render()), "it is judged")
        assert app.screen.query_one("#entries", TextArea).text.startswith("x")
    assert taken == []


async def test_what_is_taken_before_its_verdict_is_taken_with_it() -> None:
    """Unless keys come after."""
    may_answer = asyncio.Event()

    async def slowly(entries: str, leaders: str) -> PlanChoices:
        await may_answer.wait()
        return await judge(entries, leaders)

    taken: list[PlanChoices | None] = []
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(HandScreen(edits_text(BASE), slowly), taken.append)
        await pilot.pause()
        entries = app.screen.query_one("#entries", TextArea)
        verdict = app.screen.query_one("#hand-verdict", Static)
        await pilot.press("ctrl+s")
        entries.text = "t-0: 3,2"
        may_answer.set()
        await settle(pilot, lambda: "✔" in str(verdict.render()), "the last text is judged")
        assert taken == []

        may_answer.clear()
        entries.text = "t-0: 2,3"
        await settle(pilot, lambda: "judging" in str(verdict.render()), "no old verdict")
        await pilot.press("ctrl+s")
        may_answer.set()
        await settle(pilot, lambda: bool(taken), "it is taken")
    (made,) = taken
    assert made is not None
    assert made.chosen.proposal(KEPT).targets()[BEFORE.partitions[0].key] == (2, 3)
