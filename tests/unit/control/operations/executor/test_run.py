"""Runs that are started again within a wave, and others who move what we move."""

import pytest

from control.move.events import EventKind, Outcome
from control.operations.executor.debounce import LASTING_READINGS, LASTING_S
from planner.proposal import PartitionChange
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import (
    ELSEWHERE,
    FROM,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

A, B, C = change("a"), change("b"), change("c")


def cluster_of(*changes: PartitionChange) -> FakeCluster:
    return FakeCluster({change.key: FROM for change in changes})


async def test_what_moved_before_a_crash_and_is_taken_back_by_somebody_ends_its_wave(
    pass_s: PassS,
) -> None:
    cluster = cluster_of(A)
    cluster.begin(A.key, A.after)
    context = begun(command_of(A), wave=1)
    steps = [pass_s(LASTING_S / LASTING_READINGS)] * (LASTING_READINGS + 1)
    ended = await run(cluster, context, lambda: cluster.cancel_begun(A.key), *steps)
    assert ended.outcome is Outcome.FAILED
    assert "a-0: was cancelled by another tool" in ended.message
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("readings", "each_s"),
    [(LASTING_READINGS * 10, LASTING_S / LASTING_READINGS / 20), (LASTING_READINGS - 1, LASTING_S)],
    ids=["often but not for long", "for long but not often"],
)
async def test_what_a_broker_has_not_heard_of_yet_was_not_taken_back(
    pass_s: PassS, readings: int, each_s: float
) -> None:
    """It has arrived, and metadata tells where it was."""
    cluster, context = cluster_of(A), FakeContext(command_of(A))

    def arrive_unheard() -> None:
        cluster.cancel_begun(A.key)

    def hear() -> None:
        cluster.placed[A.key] = A.after

    ended = await run(cluster, context, arrive_unheard, *[pass_s(each_s)] * (readings - 1), hear)
    assert (ended.outcome, ended.message) == (Outcome.DONE, "done: 1 of 1 partition moved")
    assert ended.refused == {}


async def test_what_counted_as_taken_back_and_is_there_at_the_end_fails_nothing(
    pass_s: PassS,
) -> None:
    cluster, context = cluster_of(A, B), FakeContext(command_of(A, B))

    def hear() -> None:
        cluster.placed[A.key] = A.after
        cluster.arrive(B.key)

    steps = [pass_s(LASTING_S / LASTING_READINGS)] * (LASTING_READINGS + 1)
    ended = await run(cluster, context, lambda: cluster.cancel_begun(A.key), *steps, hear)
    assert context.said(EventKind.INTERFERED) == ["a-0: was cancelled by another tool"]
    assert (ended.outcome, ended.message) == (Outcome.DONE, "done: 2 of 2 partitions moved")


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
    (told,) = seen
    assert not lacking(told, "paused", "in flight arrive")
    assert context.said(EventKind.WAVE_DONE) == [f"wave {n} done" for n in (1, 2, 3)]
    assert (ended.outcome, cluster.asked) == (Outcome.DONE, [{C.key: C.after}])


async def test_what_somebody_else_brings_there_does_not_begin_a_wave_of_ours() -> None:
    cluster = cluster_of(A, B)
    cluster.begin(A.key, A.after)
    context = begun(command_of(A, B), wave=1)
    context.script.is_last_wave = True

    def others() -> None:
        cluster.begin(B.key, B.after)
        cluster.arrive(A.key)

    ended = await run(cluster, context, others)
    assert ended.outcome is Outcome.CANCELLED
    assert context.said(EventKind.WAVE_DONE) == ["wave 1 done"]
    assert cluster.targets == {B.key: B.after}


async def test_after_a_crash_a_cancel_takes_back_what_moves_at_once() -> None:
    cluster = cluster_of(A, B)
    cluster.begin(A.key, A.after)
    context = begun(command_of(A, B), wave=1)
    context.script.is_cancelled = True
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.placed == {A.key: FROM, B.key: FROM}


async def test_what_somebody_else_moves_meanwhile_is_left_to_them() -> None:
    """B is on its way elsewhere when its turn comes, C was moved elsewhere; also after a crash."""
    cluster = cluster_of(A, B, C)
    context = FakeContext(command_of(A, B, C))

    def others() -> None:
        cluster.arrive()
        cluster.begin(B.key, ELSEWHERE)
        cluster.placed[C.key] = ELSEWHERE

    ended = await run(cluster, context, others, idle, idle)
    assert ended.outcome is Outcome.FAILED
    assert not lacking(ended.message, "b-0", "moved elsewhere", "c-0", "on [4, 2]", "somebody else")
    assert cluster.asked == [{A.key: A.after}]
    assert cluster.targets == {B.key: ELSEWHERE}

    again = FakeContext(context.command)
    for event in context.events[1:-1]:
        again.told(event.kind, event.message, **event.data)
    cluster.arrive()
    assert (await run(cluster, again)).message == ended.message
    assert cluster.asked == [{A.key: A.after}]


async def test_a_cancel_leaves_waves_alone_that_never_began() -> None:
    """Somebody else brings C to where we would, and has put D into another order."""
    d = change("d")
    cluster = cluster_of(A, B, C, d)
    context = FakeContext(command_of(A, B, C, d))

    def cancel() -> None:
        cluster.begin(C.key, C.after)
        cluster.placed[d.key] = (2, 1)
        context.script.is_cancelled = True

    ended = await run(cluster, context, cluster.arrive, cancel)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.targets == {C.key: C.after}
    assert cluster.placed[d.key] == (2, 1)
    assert cluster.placed[B.key] == B.before


async def test_a_plan_that_has_nothing_to_do_is_not_refused_for_its_throttle() -> None:
    cluster = cluster_of(A)
    cluster.placed[A.key] = A.after
    ended = await run(cluster, FakeContext(command_of(A, throttle=100)))
    assert ended.message == "done: 1 of 1 partition moved"


async def test_what_others_moved_while_we_were_away_stays_though_it_was_asked_for() -> None:
    """B is told of on both sets of replicas still, as a broker does that lags."""
    together = WaveRules(partitions=3)
    cluster = cluster_of(A, B, C)
    context = begun(command_of(A, B, C, waves=together), wave=1)
    cluster.placed[A.key] = ELSEWHERE
    cluster.placed[B.key] = (3, 2, 1)
    cluster.begin(C.key, C.after)

    def hear() -> None:
        cluster.arrive(C.key)
        cluster.placed[B.key] = B.after

    ended = await run(cluster, context, hear)
    assert cluster.placed == {A.key: ELSEWHERE, B.key: B.after, C.key: C.after}
    assert not lacking(ended.message, "a-0", "on [4, 2]", "somebody else")
    assert ended.outcome is Outcome.FAILED
