"""A wave waits until Kafka has deleted what earlier waves removed from its disks."""

from typing import Any

import pytest

from control.move.events import EventKind, Outcome
from control.operations.executor import run as reassign_run
from planner.proposal import PartitionChange
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FakeCluster,
    FakeContext,
    command_of,
    idle,
    run,
)
from tests.unit.control.operations.reassignment.test_preflight_disk import GIB, log_dir

LEAVES = PartitionChange(topic="b", partition=0, before=(3, 2), after=(1, 2), size_bytes=2 * GIB)
COMES = PartitionChange(topic="c", partition=0, before=(1, 2), after=(3, 2), size_bytes=3 * GIB)


@pytest.fixture(autouse=True)
def _unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> dict[Any, float]:
        return {}

    monkeypatch.setattr(reassign_run, "measure_produced", nothing)


def swapped() -> tuple[FakeCluster, FakeContext]:
    """What comes to broker 3 needs the room of what leaves it."""
    cluster = FakeCluster({LEAVES.key: (3, 2), COMES.key: (1, 2)})
    cluster.logs = logs_of(free=2 * GIB)
    return cluster, FakeContext(command_of(LEAVES, COMES))


def logs_of(*, free: int) -> tuple[Any, ...]:
    return log_dir(1, "/d", 90 * GIB, c=3 * GIB), log_dir(3, "/d", free, b=2 * GIB)


async def test_the_next_wave_waits_until_the_files_are_deleted() -> None:
    cluster, context = swapped()

    def still_there() -> None:
        assert [list(asked) for asked in cluster.asked] == [[LEAVES.key]]

    def delete() -> None:
        still_there()
        cluster.logs = logs_of(free=4 * GIB)

    ended = await run(cluster, context, cluster.arrive, still_there, delete, cluster.arrive)
    assert ended.outcome is Outcome.DONE
    assert [list(asked) for asked in cluster.asked] == [[LEAVES.key], [COMES.key]]
    (told,) = [it for it in context.said(EventKind.NOTE) if "room" in it]
    assert not lacking(told, "broker 3 needs 3.0 GiB", "file.delete.delay.ms", "cancel")


async def test_it_can_be_cancelled_while_it_waits() -> None:
    cluster, context = swapped()

    def cancel() -> None:
        context.script.is_cancelled = True

    ended = await run(cluster, context, cluster.arrive, cancel)
    assert ended.outcome is Outcome.CANCELLED
    assert [list(asked) for asked in cluster.asked] == [[LEAVES.key]]


async def test_nobody_waits_for_room_of_what_is_there_already() -> None:
    cluster, context = swapped()

    def copy_by_hand() -> None:
        cluster.arrive()
        cluster.placed[COMES.key] = (1, 3, 2)

    ended = await run(cluster, context, copy_by_hand, idle)
    assert "somebody else has moved it" in ended.message
    assert not [it for it in context.said(EventKind.NOTE) if "room" in it]


async def test_nobody_waits_for_a_disk_that_is_not_told() -> None:
    cluster, context = swapped()

    def hide() -> None:
        cluster.arrive()
        cluster.logs = None

    ended = await run(cluster, context, hide, cluster.arrive)
    assert ended.outcome is Outcome.DONE
