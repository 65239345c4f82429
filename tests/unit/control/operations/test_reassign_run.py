"""Runs that are started again within a wave, and others who move what we move."""

from control.operations.events import EventKind, Outcome
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


async def test_after_a_crash_the_wave_that_is_the_last_still_arrives() -> None:
    cluster = cluster_of(A, B, C)
    cluster.placed[A.key] = A.after
    cluster.begin(B.key, B.after)
    context = begun(command_of(A, B, C), wave=2)
    context.script.is_last_wave = True
    ended = await run(cluster, context, cluster.arrive, idle)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.placed == {A.key: A.after, B.key: B.after, C.key: C.before}
    assert cluster.asked == [], "nothing was taken back, nothing begun"


async def test_after_a_crash_a_pause_holds_what_comes_after_the_wave_under_way() -> None:
    cluster = cluster_of(A, B, C)
    cluster.placed[A.key] = A.after
    cluster.begin(B.key, B.after)
    context = begun(command_of(A, B, C), wave=2)
    context.script.is_paused = True
    seen: list[str] = []

    def arrive() -> None:
        seen.extend(context.said(EventKind.PAUSED))
        cluster.arrive()

    def resume() -> None:
        assert cluster.asked == []
        context.script.is_paused = False

    ended = await run(cluster, context, arrive, idle, resume, cluster.arrive)
    assert seen == ["paused: wave 2 of 3 arrives, no new one starts"]
    assert context.said(EventKind.WAVE_DONE) == [f"wave {n} done" for n in (1, 2, 3)]
    assert (ended.outcome, cluster.asked) == (Outcome.DONE, [{C.key: C.after}])


async def test_after_a_crash_a_cancel_takes_back_what_moves_at_once() -> None:
    cluster = cluster_of(A, B)
    cluster.begin(A.key, A.after)
    context = begun(command_of(A, B), wave=1)
    context.script.is_cancelled = True
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.placed == {A.key: FROM, B.key: FROM}
