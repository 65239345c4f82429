"""A cluster that does not answer: told once to all who wait, given up only after a cancel."""

from collections.abc import Collection
from typing import Any

import pytest

from control.kafka.errors import UnreachableError
from control.move.events import Event, EventKind, MoveProgress
from control.move.state import OperationState, Phase, apply_event
from control.operations.executor import cluster_outage
from control.operations.executor.cluster_outage import ClusterOutage
from control.operations.executor.run_context import ControlFlags
from tests.support.phrases import lacking

AWAY = UnreachableError("it did not answer", reason="refused", next_step="start it")
NOTHING_YET = MoveProgress(
    bytes_done=0, bytes_total=1, partitions_done=0, partitions_total=1, wave=0, waves=1
)


class Context:
    """Folds what is emitted, as the executor does."""

    def __init__(self, *, is_started: bool, operation_id: str = "mv-1") -> None:
        self.asked = ControlFlags()
        self.told: list[str] = []
        self._state = OperationState(operation_id=operation_id, phase=Phase.WAITING)
        if is_started:
            self._take(EventKind.STARTED, "", {"progress": NOTHING_YET.document()})

    def state(self) -> OperationState:
        return self._state

    def flags(self) -> ControlFlags:
        return self.asked

    async def hold(self) -> None:
        return

    async def pause(self, reason: str) -> None:
        return

    async def remove_left_throttles(self, *, also_on: Collection[int] = ()) -> None:
        return

    async def emit(self, kind: EventKind, message: str = "", **data: Any) -> None:
        self.told.append(message)
        self._take(kind, message, data)

    def _take(self, kind: EventKind, message: str, data: dict[str, Any]) -> None:
        event = Event(
            operation_id=self._state.operation_id, kind=kind, at_ms=1, message=message, data=data
        )
        self._state = apply_event(self._state, event)


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_outage, "RETRY_S", 0.001)


async def test_a_short_outage_is_not_told() -> None:
    context = Context(is_started=True)

    await ClusterOutage().bear([context], AWAY)

    assert context.told == []


async def test_a_long_one_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_outage, "TOLD_AFTER_S", 0.0)
    context, outage = Context(is_started=True), ClusterOutage()

    for _ in range(3):
        await outage.bear([context], AWAY)

    assert len(context.told) == 1
    assert "it did not answer" in context.told[0]
    assert not context.state().is_finished


async def test_all_that_wait_are_told_and_told_again_when_it_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_outage, "TOLD_AFTER_S", 0.0)
    running, outage = Context(is_started=True), ClusterOutage()
    second, late = (Context(is_started=False, operation_id=f"mv-{n}") for n in (2, 3))

    await outage.bear([running, second], AWAY)
    await outage.bear([running, second, late], AWAY)
    assert [len(each.told) for each in (running, second, late)] == [1, 1, 1]
    assert all("waits for its cluster" in each.state().message for each in (running, second, late))
    await outage.end()
    await outage.end()

    assert [len(each.told) for each in (running, second, late)] == [2, 2, 2]
    assert lacking(running.state().message, "answers again", "goes on") == []
    assert lacking(second.state().message, "answers again", "operations before it") == []
    for each in (running, second, late):
        assert all("waits for its cluster" not in note for note in each.state().notes)


async def test_what_was_cancelled_before_it_began_ends_at_once_wherever_it_waits() -> None:
    first, second = Context(is_started=True), Context(is_started=False, operation_id="mv-2")
    second.asked.is_cancelled = True

    await ClusterOutage().bear([first, second], AWAY)

    assert second.told == ["cancelled before it began"]
    assert second.state().is_finished
    assert first.told == []


async def test_what_was_cancelled_under_way_is_given_up_when_the_cluster_stays_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, outage = Context(is_started=True), ClusterOutage()
    context.asked.is_cancelled = True

    await outage.bear([context], AWAY)
    assert not context.state().is_finished
    monkeypatch.setattr(cluster_outage, "GIVE_UP_S", 0.0)
    await outage.bear([context], AWAY)

    assert context.state().is_finished
    assert "partitions in flight may continue" in context.told[-1]
