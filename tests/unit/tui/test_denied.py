"""Operations that the principal may not do on a watched cluster: said, and not sent."""

from dataclasses import replace
from typing import cast

import pytest
from textual.widgets import Static

from control.access.login import TERMINAL, Login, acting_as
from control.access.roles import EVERYWHERE, OPERATOR
from control.collector.report_writer import WatchReport
from control.move.events import MoveProgress, Outcome
from control.move.state import OperationState, Phase
from control.views.snapshots.feed import REBUILD_AFTER_MS, SnapshotFeed
from control.views.snapshots.snapshot import build_snapshot
from tests.support.phrases import lacking
from tests.support.settle import settle
from tests.unit.tui.conftest import NOW_MS
from tui.app import PartiscopeApp
from tui.screens.base import ViewScreen
from tui.screens.dialogs.confirm import ConfirmScreen
from tui.screens.reassignments.moves import MoveScreen
from tui.terminal_session import Services, TerminalSession
from tui.widgets.form import FormPanel

REPORT = WatchReport(
    cluster="c",
    bootstrap="127.0.0.1:1",
    at_ms=NOW_MS,
    interval_ms=1_000,
    is_partial=False,
    denied_operations={"produce": "WRITE on topics"},
)

MOVED = OperationState(
    operation_id="mv-1",
    phase=Phase.FINISHED,
    outcome=Outcome.DONE,
    started_ms=NOW_MS - 60_000,
    waves_begun=1,
    finished_ms=NOW_MS,
)
NOTHING_MOVED = MoveProgress(
    bytes_done=0, bytes_total=9, partitions_done=0, partitions_total=3, wave=1, waves=1
)


def test_a_role_greys_what_it_lacks(services: Services) -> None:
    session = TerminalSession(services)
    assert not session.denied_words("create_topic")
    with acting_as(Login(name="victor", face=TERMINAL, roles={EVERYWHERE: OPERATOR})):
        assert "victor has the role operator" in session.denied_words("create_topic")
        assert not session.denied_words("reassign")


async def test_a_form_says_which_right_lacks_until_it_comes(services: Services) -> None:
    told = [REPORT]
    reader = services.history
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS, watch=lambda: told[0])
    app = PartiscopeApp(replace(services, feed=feed), path="produce/topic-0")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: bool(app.screen.query(FormPanel)), "the form")
        line = app.screen.query_one("#form-denied", Static)
        await settle(pilot, lambda: line.display, "what lacks is said")
        assert "WRITE on topics" in str(line.render())
        told[0] = replace(REPORT, denied_operations={})
        cast(ViewScreen, app.screen).receive(
            build_snapshot({}, version=1, now_ms=NOW_MS, watch=told[0])
        )
        assert not line.display
    feed.stop()


async def test_a_key_is_greyed_and_says_which_right_lacks(services: Services) -> None:
    told, now_ms = [REPORT], [NOW_MS]
    reader = services.history
    feed = SnapshotFeed(reader, now_ms=lambda: now_ms[0], watch=lambda: told[0])
    app = PartiscopeApp(replace(services, feed=feed), path="topics/topic-0")
    async with app.run_test(size=(120, 36)) as pilot:

        def is_lit(key: str) -> bool:
            return app.active_bindings[key].enabled

        await settle(pilot, lambda: "P" in app.active_bindings and not is_lit("P"), "greyed")
        assert is_lit("R")
        await pilot.press("P")
        await settle(pilot, lambda: bool(app._notifications), "the reason")
        (note,) = app._notifications
        assert not lacking(note.message, "✖ not allowed", "WRITE on topics")
        assert str(cast(ViewScreen, app.screen).path) == "topics/topic-0", "nothing was opened"

        told[0] = replace(REPORT, denied_operations={})
        now_ms[0] += REBUILD_AFTER_MS
        await settle(pilot, lambda: is_lit("P"), "a right that comes lights it up")
    feed.stop()


async def test_keys_of_a_move_are_greyed_too(services: Services) -> None:
    told = replace(REPORT, denied_operations={"reassign": "ALTER on the cluster"})
    reader = services.history
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS, watch=lambda: told)
    app = PartiscopeApp(replace(services, feed=feed), path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: "x" in app.active_bindings, "the move")
        await settle(pilot, lambda: not app.active_bindings["x"].enabled, "greyed")
        assert not app.active_bindings["space"].enabled, "to pause needs the right as well"
        await pilot.press("x")
        await settle(pilot, lambda: bool(app._notifications), "the reason")
        (note,) = app._notifications
        assert not lacking(note.message, "✖ not allowed", "ALTER on the cluster")
        assert isinstance(app.screen, MoveScreen), "nothing was asked"
    feed.stop()


async def test_who_only_looks_does_not_pause_a_move(read_only: Services) -> None:
    reader = read_only.history
    feed = SnapshotFeed(reader, now_ms=lambda: NOW_MS, is_read_only=True)
    app = PartiscopeApp(replace(read_only, feed=feed), path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        await settle(pilot, lambda: "space" in app.active_bindings, "its keys")
        assert not app.active_bindings["space"].enabled
        await pilot.press("space")
        await settle(pilot, lambda: bool(app._notifications), "the reason")
        assert "read" in next(iter(app._notifications)).message
    feed.stop()


@pytest.mark.parametrize(
    ("state", "lit"),
    [
        (replace(MOVED, phase=Phase.RUNNING, outcome=None), {"x", "u", "t", "space"}),
        (MOVED, {"u"}),
        (replace(MOVED, outcome=Outcome.CANCELLED, progress=NOTHING_MOVED), set[str]()),
        (replace(MOVED, outcome=Outcome.REFUSED, started_ms=None), set[str]()),
    ],
    ids=["running", "done", "cancelled before anything moved", "refused"],
)
async def test_keys_that_make_no_sense_for_how_far_a_move_is_are_greyed(
    services: Services, state: OperationState, lit: set[str]
) -> None:
    app = PartiscopeApp(services, path="moves/mv-1")
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot, lambda: isinstance(app.screen, MoveScreen), "the move")
        screen = cast(MoveScreen, app.screen)
        screen.take(state)

        def lit_keys() -> set[str]:
            known = app.active_bindings
            return {key for key in ("x", "u", "t", "space") if key in known and known[key].enabled}

        await settle(pilot, lambda: lit_keys() == lit, f"{lit} and no others are lit")
        await pilot.press("x")
        asks = isinstance(app.screen, ConfirmScreen)
        assert asks == ("x" in lit)
        assert not app._notifications, "no right lacks"
