"""On a production cluster no key changes anything before the cluster's name was typed."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from control.model.watched_cluster import WatchedCluster
from control.move.state import OperationState, Phase
from control.operations.catalogue.operation import Done, Operation
from control.operations.operation_session import OperationSession
from control.operations.previews import Previewed
from tests.snapshots.canned import CannedSession
from tests.support.settle import settle
from tests.unit.control.operations.previews import PROD, previewed
from tests.unit.tui.test_move_told import RUNNING
from tui.app import PartiscopeApp
from tui.screens.dialogs.confirm import ConfirmScreen, RateScreen
from tui.screens.messages.produce import ProduceScreen
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services


@pytest.fixture
def production(services: Services) -> Services:
    return replace(services, watched=replace(services.watched, name="prod", is_production=True))


def _question(app: PartiscopeApp) -> str:
    return " ".join(str(line.render()) for line in app.screen.query("#confirm Static"))


async def _asked(app: PartiscopeApp, pilot: Pilot[None]) -> str:
    await settle(pilot, lambda: isinstance(app.screen, ConfirmScreen), "the question")
    await settle(pilot, lambda: bool(app.screen.query(Input)), "the field")
    return _question(app)


def _says(app: PartiscopeApp, line: str) -> Callable[[], str]:
    return lambda: str(app.screen.query_one(line, Static).render())


class JudgingSession(CannedSession):
    """With the topics of a cluster that answers; what may be sent is judged as ever."""

    def __init__(self, watched: WatchedCluster) -> None:
        super().__init__()
        self.judge = OperationSession(watched, bus=None)
        self.typed: list[str] = []

    async def preview(self, asked: Operation) -> Previewed:
        return previewed(asked, self.judge.watched)

    async def perform(self, previewed: Previewed, *, typed: str = "") -> Done:
        self.judge.require(previewed.effect.command, typed=typed)
        self.typed.append(typed)
        return Done(words="sent")


async def test_producing_wants_the_name_once_on_its_view(production: Services) -> None:
    app = PartiscopeApp(production, path="produce/topic-1")
    operator = JudgingSession(production.watched)
    app.session._operations = operator  # type: ignore[assignment]
    async with app.run_test(size=(100, 40)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, ProduceScreen), "the view")
        assert app.screen.query_one("#field-topic", Input).value == "topic-1"
        await pilot.press("ctrl+s")
        assert "type prod to confirm" in await _asked(app, pilot)
        await pilot.press("escape")
        says = _says(app, "#outcome")
        await settle(pilot, lambda: "nothing was sent" in says(), "that it was left")
        await pilot.press("ctrl+s")
        await _asked(app, pilot)
        await pilot.press(*"prod", "enter")
        await settle(pilot, lambda: operator.typed == ["prod"], "that it is sent")
        await pilot.press("ctrl+s")
        assert not isinstance(app.screen, ConfirmScreen), "it was typed here already"


class StoppedSession(CannedSession):
    """Keeps what was asked of a move."""

    def __init__(self) -> None:
        super().__init__()
        self.watched = PROD
        self.asked: list[tuple[str, str]] = []

    async def perform(self, previewed: Previewed, *, typed: str = "") -> Done:
        self.asked.append((previewed.form.name, typed))
        return Done(words=f"asked to {previewed.effect.command.what}")


PAUSED = replace(RUNNING, phase=Phase.PAUSED)


async def _take(app: PartiscopeApp, pilot: Pilot[None], state: OperationState) -> None:
    await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
    assert isinstance(app.screen, MoveScreen)
    app.screen.take(state)


@pytest.mark.parametrize(("key", "state"), [("t", RUNNING), ("space", PAUSED)])
async def test_a_move_is_changed_once_the_name_was_typed(
    production: Services, key: str, state: OperationState
) -> None:
    app = PartiscopeApp(production, path="moves/mv-1")
    app.session._operations = StoppedSession()  # type: ignore[assignment]
    async with app.run_test(size=(120, 36)) as pilot:
        await _take(app, pilot, state)
        await pilot.press(key)
        if key == "t":
            await settle(pilot, lambda: isinstance(app.screen, RateScreen), "the rate")
            await pilot.press(*"5MiB", "enter")
        assert "type prod to confirm" in await _asked(app, pilot)


@pytest.mark.parametrize(
    ("keys", "asked"),
    [("space", "pause"), ("x y", "cancel"), ("X y", "cancel_after_wave")],
)
async def test_a_move_is_stopped_without_the_name(
    production: Services, keys: str, asked: str
) -> None:
    app = PartiscopeApp(production, path="moves/mv-3f9a21c4")
    operator = StoppedSession()
    app.session._operations = operator  # type: ignore[assignment]
    async with app.run_test(size=(120, 36)) as pilot:
        await _take(app, pilot, replace(RUNNING, operation_id="mv-3f9a21c4"))
        for key in keys.split():
            await pilot.press(key)
        await settle(pilot, lambda: operator.asked == [(asked, "")], "that it is asked for")


async def test_a_word_stays_typed_while_the_preview_says_the_same(production: Services) -> None:
    app = PartiscopeApp(production, path="topics/topic-2")
    app.session._operations = JudgingSession(production.watched)  # type: ignore[assignment]
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("C")
        await settle(pilot, lambda: bool(app.screen.query("#field-configs")), "the form")
        app.screen.query_one("#field-configs", Input).focus()
        await pilot.press(*"a=1", "enter")
        await _asked(app, pilot)
        await pilot.press(*"pro", "escape")
        await settle(pilot, lambda: not isinstance(app.screen, ConfirmScreen), "the form")
        app.screen.query_one("#field-configs", Input).focus()
        await pilot.press("enter")
        assert "changed" not in await _asked(app, pilot)
        assert app.screen.query_one("#word", Input).value == "pro"
        await pilot.press("d", "escape")
        await settle(pilot, lambda: not isinstance(app.screen, ConfirmScreen), "the form")
        topic = app.screen.query_one("#field-topic", Input)
        topic.value = "topic-1"
        topic.focus()
        await pilot.press("enter")
        assert "The preview has changed since" in await _asked(app, pilot)
        assert app.screen.query_one("#word", Input).value == ""
