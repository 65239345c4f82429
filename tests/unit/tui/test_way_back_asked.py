"""What is asked before a rollback takes seconds to find out; it comes only to who waits for it."""

import asyncio
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from control.operations.reassignment.rollback import WayBackQuestion
from control.operations.verdict import Check, Verdict
from tests.support.settle import settle
from tests.unit.tui.test_move_told import RUNNING
from tui.app import PartiscopeApp
from tui.screens import moves
from tui.screens.confirm import ConfirmScreen, RateScreen
from tui.screens.moves import MoveScreen
from tui.services import Services

DOUBT = Check(name="plan is current", verdict=Verdict.WARN, reason="orders-1 is elsewhere [by now]")
QUESTION = WayBackQuestion(words="Roll mv-1 back?", doubts=(DOUBT,), is_refused=False)
REFUSED = WayBackQuestion(words="mv-1 cannot be rolled back now.", doubts=(DOUBT,), is_refused=True)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> "asyncio.Queue[WayBackQuestion]":
    """What comes of looking, when it comes."""
    answers: asyncio.Queue[WayBackQuestion] = asyncio.Queue()

    async def ask_back(*_: Any) -> WayBackQuestion:
        return await answers.get()

    monkeypatch.setattr(moves, "ask_back", ask_back)
    return answers


def told(app: PartiscopeApp) -> str:
    return " | ".join(note.message for note in app._notifications)


async def ask(app: PartiscopeApp, pilot: Pilot[None]) -> None:
    """Press the key on the screen of a move that runs."""
    await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
    assert isinstance(app.screen, MoveScreen)
    app.screen.take(RUNNING)
    await pilot.press("u")


async def test_a_question_that_comes_late_covers_nothing_else(
    services: Services, answer: "asyncio.Queue[WayBackQuestion]"
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await ask(app, pilot)
        await settle(pilot, lambda: "looking at what would go back" in told(app), "that it looks")
        await pilot.press("t")
        await settle(pilot, lambda: isinstance(app.screen, RateScreen), "the rate")
        answer.put_nowait(QUESTION)
        await settle(pilot, lambda: "Press u again" in told(app), "that it was too late")
        assert isinstance(app.screen, RateScreen)
        await pilot.press("escape", "u")
        answer.put_nowait(QUESTION)
        await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
        question = str(app.screen.query(Static).first().render())
        assert question == "Roll mv-1 back?\n▲ plan is current: orders-1 is elsewhere [by now]"


async def test_what_cannot_go_back_is_told_and_not_asked(
    services: Services, answer: "asyncio.Queue[WayBackQuestion]"
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        await pilot.press("u")
        answer.put_nowait(REFUSED)
        await settle(pilot, lambda: "cannot be rolled back now" in told(app), "why not")
        assert "plan is current: orders-1 is elsewhere [by now]" in told(app)
        assert isinstance(app.screen, MoveScreen)


@pytest.mark.parametrize("key", ["escape", "x"], ids=["leaves", "asks something else"])
async def test_what_was_confirmed_is_done_wherever_one_has_gone_and_covers_nothing(
    services: Services,
    answer: "asyncio.Queue[WayBackQuestion]",
    monkeypatch: pytest.MonkeyPatch,
    key: str,
) -> None:
    begun, is_there = asyncio.Event(), asyncio.Event()

    async def roll_back(*_: Any, **__: Any) -> str:
        begun.set()
        await is_there.wait()
        return "mv-2"

    monkeypatch.setattr(moves, "roll_back", roll_back)
    app = PartiscopeApp(services, path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await ask(app, pilot)
        answer.put_nowait(QUESTION)
        await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
        await pilot.press("y")
        await settle(pilot, begun.is_set, "that it is begun")
        await pilot.press(key)
        await settle(pilot, lambda: not isinstance(app.screen, MoveScreen), "another screen")
        gone_to = app.screen
        is_there.set()
        await settle(pilot, lambda: "mv-2 takes mv-1 back" in told(app), "that it is done")
        assert app.screen is gone_to
