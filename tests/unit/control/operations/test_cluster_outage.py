"""A cluster that does not answer: told once, waited for, given up only after a cancel."""

from typing import Any

import pytest

from control.kafka.errors import UnreachableError
from control.operations import cluster_outage
from control.operations.cluster_outage import ClusterOutage
from control.operations.events import Event, EventKind, MoveProgress
from control.operations.run_context import ControlFlags
from control.operations.state import OperationState, apply_event

AWAY = UnreachableError("it did not answer", reason="refused", next_step="start it")
NOTHING_YET = MoveProgress(
    bytes_done=0, bytes_total=1, partitions_done=0, partitions_total=1, wave=0, waves=1
)


class Context:
    """Folds what is emitted, as the executor does."""

    def __init__(self, *, is_started: bool) -> None:
        self.asked = ControlFlags()
        self.told: list[str] = []
        self._state = OperationState(operation_id="mv-1")
        if is_started:
            self._take(EventKind.STARTED, "", {"progress": NOTHING_YET.document()})

    def state(self) -> OperationState:
        return self._state

    def flags(self) -> ControlFlags:
        return self.asked

    async def hold(self) -> None:
        return

    async def emit(self, kind: EventKind, message: str = "", **data: Any) -> None:
        self.told.append(message)
        self._take(kind, message, data)

    def _take(self, kind: EventKind, message: str, data: dict[str, Any]) -> None:
        event = Event(operation_id="mv-1", kind=kind, at_ms=1, message=message, data=data)
        self._state = apply_event(self._state, event)


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_outage, "RETRY_S", 0.001)


async def test_a_short_outage_is_not_told() -> None:
    context = Context(is_started=True)

    await ClusterOutage().bear(context, AWAY)

    assert context.told == []


async def test_a_long_one_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_outage, "TOLD_AFTER_S", 0.0)
    context, outage = Context(is_started=True), ClusterOutage()

    for _ in range(3):
        await outage.bear(context, AWAY)

    assert len(context.told) == 1
    assert "it did not answer" in context.told[0]
    assert not context.state().is_finished


async def test_what_was_cancelled_before_it_began_ends_at_once() -> None:
    context = Context(is_started=False)
    context.asked.is_cancelled = True

    await ClusterOutage().bear(context, AWAY)

    assert context.told == ["cancelled before it began"]
    assert context.state().is_finished


async def test_what_was_cancelled_under_way_is_given_up_when_the_cluster_stays_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context, outage = Context(is_started=True), ClusterOutage()
    context.asked.is_cancelled = True

    await outage.bear(context, AWAY)
    assert not context.state().is_finished
    monkeypatch.setattr(cluster_outage, "GIVE_UP_S", 0.0)
    await outage.bear(context, AWAY)

    assert context.state().is_finished
    assert "what is in flight there may go on" in context.told[-1]
