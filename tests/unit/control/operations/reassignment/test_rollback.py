"""What is said before a rollback is what it would do, and nothing is done by asking."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.errors import UnreachableError, UnsupportedApiError
from control.kafka.ports import LogDir, ReplicaLog
from control.model.watched_cluster import WatchedCluster
from control.move.state import Phase
from control.operations.catalogue.moves.roll_back import RollBack
from control.operations.catalogue.operation import Effect, Operation, OperationContext
from control.operations.errors import ConflictError
from control.operations.operation_session import OperationSession
from control.operations.reassignment.planning import Planning
from planner.proposal import PartitionChange
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import FROM, TO, FakeCluster, change
from tests.unit.control.operations.reassignment.test_rollback_plan import (
    RAISED,
    FakeBus,
    client_of,
    cluster_with,
    state_of,
)

MIB = 1 << 20
A, B, C = (change(topic, size_bytes=MIB) for topic in "abc")


def logs_of(cluster: FakeCluster, size_bytes: int) -> tuple[LogDir, ...]:
    """Every partition of this size on broker 3."""
    replicas = tuple(
        ReplicaLog(
            broker=3,
            topic=key.topic,
            partition=key.partition,
            size_bytes=size_bytes,
            offset_lag=0,
            is_future=False,
            log_dir="/d",
        )
        for key in cluster.placed
    )
    return (LogDir(broker=3, path="/d", total_bytes=None, usable_bytes=None, replicas=replicas),)


def session_of(
    monkeypatch: pytest.MonkeyPatch,
    cluster: FakeCluster,
    *changes: PartitionChange,
    phase: Phase = Phase.FINISHED,
) -> tuple[OperationSession, FakeBus]:
    """Of a cluster on which mv-0 moved these."""

    async def no_groups() -> Any:
        raise UnsupportedApiError("list groups", served=None)

    bus = FakeBus(state_of("mv-0", *changes, phase=phase))
    admin: Any = cluster
    admin.groups = SimpleNamespace(list_groups=no_groups)
    moves = client_of(bus, monkeypatch)
    watched = WatchedCluster(bootstrap="c:1")
    session = OperationSession(watched, bus=None)

    async def answers() -> None:
        """The bus does."""

    monkeypatch.setattr(moves, "require_answer", answers)
    session._context = OperationContext(
        admin=admin, moves=moves, planning=Planning(admin), site=watched.site
    )
    return session, bus


async def asked(
    monkeypatch: pytest.MonkeyPatch,
    cluster: FakeCluster,
    *changes: PartitionChange,
    phase: Phase = Phase.FINISHED,
) -> Effect[Operation]:
    """Of mv-0; asking asks nobody to move anything."""
    session, bus = session_of(monkeypatch, cluster, *changes, phase=phase)
    effect = (await session.preview(RollBack(move="mv-0"))).effect
    assert (bus.commands, cluster.asked, cluster.configs) == ([], [], {})
    return effect


def doubts_of(effect: Effect[Operation]) -> dict[str, str]:
    return {check.name: check.reason for check in effect.doubts}


async def test_what_goes_back_is_told_by_what_it_holds_now_and_what_stays_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Others have moved A; C is where it was."""
    cluster = cluster_with(RAISED, TO, FROM)
    cluster.logs = logs_of(cluster, 5 * MIB)
    effect = await asked(monkeypatch, cluster, A, B, C)
    assert effect.refusal is None
    assert not lacking(
        effect.lines[0], "1 partition", "where it was", "1 replica, 5.0 MiB", "10.0 MiB/s a broker"
    )
    current = doubts_of(effect)["plan is current"]
    assert not lacking(current, "a-0 is on [3, 2, 4]", "not where mv-0", "left as it is")


async def test_of_a_running_move_what_is_in_flight_goes_without_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A has arrived, B is in flight, C has not begun; mv-0 itself is nobody else. A broker that B
    would have to come back to is down: its cancel needs nobody."""
    away = replace(B, before=(4, 2))
    cluster = cluster_with(TO, (4, 2), FROM)
    cluster.begin(B.key, TO)
    cluster.alive.discard(4)
    effect = await asked(monkeypatch, cluster, A, away, C, phase=Phase.RUNNING)
    assert not lacking(
        effect.lines[0], "cancelled first", "1 partition", "where it was", "1 replica, 1.0 MiB"
    )
    assert "other operators" not in doubts_of(effect)
    only = cluster_with(FROM)
    only.begin(A.key, TO)
    effect = await asked(monkeypatch, only, A, phase=Phase.RUNNING)
    assert not lacking(effect.lines[0], "cancelled first", "Everything else", "nothing moves")


async def test_what_cannot_go_back_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    effect = await asked(monkeypatch, cluster_with(RAISED, FROM), A, B)
    assert effect.refusal is not None
    assert not lacking(
        effect.refusal.reason, "mv-0 cannot be rolled back", "plan is current", "first roll back"
    )


async def test_where_all_is_back_already_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    effect = await asked(monkeypatch, cluster_with(FROM), A)
    assert not lacking(effect.lines[0], "Everything is where", "nothing moves")


async def test_without_an_answer_of_the_cluster_it_is_asked_with_that_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_with(TO)

    async def gone() -> Any:
        raise UnreachableError("no broker", reason="refused", next_step="wait")

    monkeypatch.setattr(cluster, "describe_cluster", gone)
    effect = await asked(monkeypatch, cluster, A)
    assert effect.refusal is None
    unknown, doubt = effect.lines
    assert "not known" in unknown
    assert not lacking(doubt, "▲ pre-flight", "not known", "no broker: refused")


async def test_what_runs_is_not_cancelled_for_a_way_back_that_would_be_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where that has become so since it was asked."""
    cluster = cluster_with(TO)
    session, bus = session_of(monkeypatch, cluster, A, phase=Phase.RUNNING)
    previewed = await session.preview(RollBack(move="mv-0"))
    cluster.placed[A.key] = RAISED
    with pytest.raises(ConflictError, match="mv-0 cannot be rolled back now"):
        await session.perform(previewed)
    with pytest.raises(ConflictError, match="mv-0 cannot be rolled back now"):
        await session.perform(await session.preview(RollBack(move="mv-0")))
    assert bus.commands == []
    cluster.placed[A.key] = TO
    done = await session.perform(previewed, reason="too slow")
    cancel, back = bus.commands
    assert (cancel.operation_id, back.operation_id) == ("mv-0", done.params["move"])
    assert (cancel.reason, back.reason) == ("too slow", "too slow")
