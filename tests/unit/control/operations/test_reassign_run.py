"""Runs that are started again within a wave, and others who move what we move."""

from control.operations.events import Outcome
from control.planner.proposal import PartitionChange
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    begun,
    change,
    command_of,
    idle,
    run,
)

A, B, C = change("a"), change("b"), change("c")


def cluster_of(*changes: PartitionChange) -> FakeCluster:
    return FakeCluster({change.key: FROM for change in changes})


async def test_what_moved_before_a_crash_and_is_taken_back_by_somebody_ends_its_wave() -> None:
    cluster = cluster_of(A)
    cluster.begin(A.key, A.after)
    context = begun(command_of(A), wave=1)
    ended = await run(cluster, context, lambda: cluster.take_back(A.key), *[idle] * 6)
    assert ended.outcome is Outcome.FAILED
    assert "a-0: was taken back by somebody else" in ended.message
    assert cluster.asked == []
