"""A way back takes back what its operation did, and nothing that others did since."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from control.move.commands import Command, ControlCommand, ReassignCommand
from control.move.events import EventKind, Outcome
from control.move.rollback_plan import SETTLED_WITHIN_S
from control.move.state import OperationState, Phase, submitted
from control.operations.bus.client import OperationsClient
from control.operations.errors import ConflictError, InvalidInputError
from control.operations.executor import run as run_module
from planner.proposal import PartitionChange
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    TO,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

A, B, C = (change(topic) for topic in "abc")
"""What mv-0 moved; its way back goes from TO to FROM."""
RAISED = (3, 2, 4)
BETWEEN = (3, 1, 2)
LEFT = ("a-0: is on [3, 2, 4]", "not where mv-0", "left as it is")


def back_of(*changes: PartitionChange) -> ReassignCommand:
    inverse = (one.inverse() for one in changes)
    waves = WaveRules(partitions=len(changes))
    return command_of(*inverse, is_strict=False, rollback_of="mv-0", waves=waves)


def cluster_with(*placed: Sequence[int]) -> FakeCluster:
    return FakeCluster({one.key: at for one, at in zip((A, B, C), placed, strict=False)})


async def test_what_others_have_moved_since_is_left_and_named_and_the_rest_goes_back() -> None:
    cluster, context = cluster_with(RAISED, TO, FROM), FakeContext(back_of(A, B, C))
    ended = await run(cluster, context, cluster.arrive)
    assert cluster.placed == {A.key: RAISED, B.key: FROM, C.key: FROM}
    assert ended.outcome is Outcome.FAILED
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, *LEFT)
    assert ended.message == f"failed: 2 of 3 partitions moved; {note}"


async def test_where_others_have_moved_all_of_it_a_way_back_is_refused() -> None:
    cluster, context = cluster_with(RAISED, FROM), FakeContext(back_of(A, B))
    ended = await run(cluster, context)
    assert (ended.outcome, cluster.asked) == (Outcome.REFUSED, [])
    assert not lacking(ended.message, "a-0 is on [3, 2, 4]", "not where mv-0", "first roll back")


async def test_what_others_move_before_its_wave_is_left_also_after_a_crash() -> None:
    """A is raised, B is on its way elsewhere; the wave was under way before the crash."""
    cluster = cluster_with(RAISED, TO, TO)
    cluster.begin(B.key, (4, 2))
    context = begun(back_of(A, B, C), wave=1)
    ended = await run(cluster, context, lambda: cluster.arrive(C.key), idle)
    assert (ended.outcome, cluster.placed[C.key]) == (Outcome.FAILED, FROM)
    assert (cluster.placed[A.key], cluster.targets) == (RAISED, {B.key: (4, 2)})
    assert not lacking(ended.message, "b-0", "on its way to [4, 2]", "left as it is")


async def test_what_could_not_be_cancelled_is_turned_round_in_flight() -> None:
    cluster = cluster_with(FROM)
    cluster.begin(A.key, TO)
    ended = await run(cluster, FakeContext(back_of(A)), idle)
    assert (ended.outcome, cluster.placed, cluster.targets) == (Outcome.DONE, {A.key: FROM}, {})


@pytest.mark.parametrize("raised", [True, False], ids=["raised", "new"])
async def test_a_change_of_the_replication_factor_goes_back(raised: bool) -> None:
    few, many = (1, 2), (1, 2, 3)
    before, after = (few, many) if raised else (many, few)
    one = PartitionChange(topic="a", partition=0, before=before, after=after, size_bytes=0)
    cluster = cluster_with(after)
    ended = await run(cluster, FakeContext(back_of(one)), lambda: cluster.arrive())
    assert (ended.outcome, cluster.placed) == (Outcome.DONE, {A.key: before})


async def test_old_news_of_a_cancel_is_waited_for() -> None:
    """The broker that is asked tells of both copies, as it did while it moved."""
    cluster, context = cluster_with(BETWEEN, TO), FakeContext(back_of(A, B))

    def hear() -> None:
        assert cluster.asked == []
        cluster.placed[A.key] = (2, 1)

    ended = await run(cluster, context, hear, cluster.arrive)
    assert (ended.outcome, cluster.placed) == (Outcome.DONE, {A.key: FROM, B.key: FROM})


async def test_replicas_that_somebody_added_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are as if the move were under way, for good."""
    clock = SimpleNamespace(now_s=0.0)
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    cluster, context = cluster_with(BETWEEN, TO), FakeContext(back_of(A, B))

    def wait() -> None:
        clock.now_s += SETTLED_WITHIN_S

    ended = await run(cluster, context, wait, cluster.arrive)
    assert (ended.outcome, cluster.placed) == (Outcome.FAILED, {A.key: BETWEEN, B.key: FROM})
    assert not lacking(ended.message, "a-0", "on [3, 1, 2]", "not where mv-0")


class FakeBus:
    """Holds states, and the commands that come."""

    def __init__(self, *states: OperationState) -> None:
        self.known = {state.operation_id: state for state in states}
        self.commands: list[Command] = []

    async def ensure_topics(self) -> None:
        """They are there."""

    async def states(self, *, is_whole: bool = False) -> list[OperationState]:
        return list(self._all().values())

    async def get(self, operation_id: str) -> OperationState | None:
        return self._all().get(operation_id)

    def _all(self) -> dict[str, OperationState]:
        asked = [it for it in self.commands if isinstance(it, ReassignCommand)]
        return {**{it.operation_id: submitted(it) for it in asked}, **self.known}

    async def read_commands(self, *, of: str) -> tuple[list[Command], int]:
        asked = replace(command_of(*self.known[of].changes, throttle="auto"), operation_id=of)
        return [asked, *self.commands], 1 + len(self.commands)

    async def publish_command(self, command: Command) -> None:
        self.commands.append(command)


def state_of(name: str, *changes: PartitionChange, phase: Phase) -> OperationState:
    known: dict[str, Any] = {"outcome": Outcome.DONE} if phase is Phase.FINISHED else {}
    return OperationState(
        operation_id=name,
        bootstrap="c:1",
        phase=phase,
        changes=changes,
        started_ms=1,
        waves_begun=1,
        **known,
    )


def client_of(bus: FakeBus, monkeypatch: pytest.MonkeyPatch) -> OperationsClient:
    client = OperationsClient("bus:1", who="tester")
    monkeypatch.setattr(client, "_bus", bus)
    monkeypatch.setattr(client, "_ledger", bus)
    return client


async def test_a_way_back_is_refused_while_another_moves_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor is what runs cancelled for it; others that move something else do not matter."""
    ours = state_of("mv-0", A, B, phase=Phase.RUNNING)
    bus = FakeBus(ours, state_of("mv-2", B, phase=Phase.WAITING))
    client = client_of(bus, monkeypatch)
    with pytest.raises(ConflictError, match=r"mv-2 of somebody\b.* 1 of these"):
        await client.rollback(await client.rollback_plan("mv-0"))
    assert bus.commands == []
    bus.known["mv-2"] = state_of("mv-2", C, phase=Phase.RUNNING)
    undo = await client.rollback(await client.rollback_plan("mv-0"))
    cancel, back = bus.commands
    assert isinstance(cancel, ControlCommand)
    assert isinstance(back, ReassignCommand)
    assert (back.operation_id, back.rolled_back) == (undo, "mv-0")
    assert [one.after for one in back.changes] == [FROM, FROM]


async def test_events_without_a_command_are_no_operation_that_could_be_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anybody may write that it has moved something."""
    bus = FakeBus(state_of("mv-0", A, phase=Phase.FINISHED))

    async def none(*, of: str) -> tuple[list[Command], int]:
        return [], 0

    monkeypatch.setattr(bus, "read_commands", none)
    with pytest.raises(InvalidInputError) as told:
        await client_of(bus, monkeypatch).rollback_plan("mv-0")
    assert lacking(str(told.value), "mv-0", "on this bus") == []
