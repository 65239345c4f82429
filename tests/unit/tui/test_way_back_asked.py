"""What is asked before a rollback takes seconds to find out; it comes only to who waits for it."""

import asyncio
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Static

from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Change, Done, Effect, Operation
from control.operations.errors import ConflictError
from control.operations.previews import Previewed
from tests.snapshots.canned import CannedSession
from tests.support.phrases import lacking
from tests.support.settle import settle
from tests.unit.control.operations.previews import PROD, previewed_as
from tests.unit.tui.test_move_told import RUNNING
from tui.app import PartiscopeApp
from tui.screens.dialogs.confirm import ConfirmScreen, RateScreen
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services

GOES = Change("mv-1", None, None, "1 partition goes where it was.")
DOUBT = "▲ plan is current: orders-1 is elsewhere [by now]"
QUESTION = Effect(command=RollBack(move="mv-1"), changes=(GOES,), notes=(DOUBT,))
REFUSED = replace(QUESTION, refusal=ConflictError("mv-1 cannot be rolled back now: [a] is down"))
CALM = replace(PROD, name="calm", is_production=False)


class SlowSession(CannedSession):
    """What comes of looking, when it comes; what was confirmed is done once it may be."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = CALM
        self.answers: asyncio.Queue[Effect[RollBack]] = asyncio.Queue()
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def preview(self, asked: Operation) -> Previewed:
        if not isinstance(asked, RollBack):
            return await super().preview(asked)
        return previewed_as(await self.answers.get(), CALM)

    async def perform(self, previewed: Previewed, *, typed: str = "") -> Done:
        self.begun.set()
        await self.may_end.wait()
        return Done(words="mv-2 takes mv-1 back", view="move", params={"move": "mv-2"})


def told(app: PartiscopeApp) -> str:
    return " | ".join(note.message for note in app._notifications)


async def ask(app: PartiscopeApp, pilot: Pilot[None]) -> None:
    """Press the key on the screen of a move that runs."""
    await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
    assert isinstance(app.screen, MoveScreen)
    app.screen.take(RUNNING)
    await pilot.press("u")


async def test_a_question_that_comes_late_covers_nothing_else(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    session = SlowSession()
    app.session._operations = session  # type: ignore[assignment]
    async with app.run_test(size=(120, 36)) as pilot:
        await ask(app, pilot)
        await settle(pilot, lambda: "previewing the rollback" in told(app), "that it looks")
        await pilot.press("t")
        await settle(pilot, lambda: isinstance(app.screen, RateScreen), "the rate")
        session.answers.put_nowait(QUESTION)
        await settle(pilot, lambda: "Press u again" in told(app), "that it was too late")
        assert isinstance(app.screen, RateScreen)
        await pilot.press("escape", "u")
        session.answers.put_nowait(QUESTION)
        await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
        question = str(app.screen.query(Static).first().render())
        assert not lacking(question, "Roll mv-1 back?", "1 partition", "where it was")
        assert question.endswith(f"\n{DOUBT}")


async def test_what_cannot_go_back_is_told_and_not_asked(
    services: Services,
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    session = SlowSession()
    app.session._operations = session  # type: ignore[assignment]
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        await pilot.press("u")
        session.answers.put_nowait(REFUSED)
        await settle(pilot, lambda: "cannot be rolled back now" in told(app), "why not")
        assert "[a] is down" in told(app)
        assert isinstance(app.screen, MoveScreen)


@pytest.mark.parametrize("key", ["escape", "x"], ids=["leaves", "asks something else"])
async def test_what_was_confirmed_is_done_wherever_one_has_gone_and_covers_nothing(
    services: Services, key: str
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    session = SlowSession()
    app.session._operations = session  # type: ignore[assignment]
    async with app.run_test(size=(120, 36)) as pilot:
        await ask(app, pilot)
        session.answers.put_nowait(QUESTION)
        await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
        await pilot.press("y")
        await settle(pilot, session.begun.is_set, "that it is begun")
        await pilot.press(key)
        await settle(pilot, lambda: not isinstance(app.screen, MoveScreen), "another screen")
        gone_to = app.screen
        session.may_end.set()
        await settle(pilot, lambda: "mv-2 takes mv-1 back on calm" in told(app), "that it is done")
        assert app.screen is gone_to
