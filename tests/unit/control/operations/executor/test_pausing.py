"""A pause while partitions are copied: how many still are, and what is held."""

from control.move.events import EventKind, Outcome
from control.move.state import Phase
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    idle,
    run,
)

A, B, C = change("a"), change("b"), change("c")


def paused_context() -> tuple[FakeCluster, FakeContext]:
    """A and B move in the first wave, C in the second."""
    cluster = FakeCluster({it.key: FROM for it in (A, B, C)})
    return cluster, FakeContext(command_of(A, B, C, waves=WaveRules(partitions=2)))


async def test_a_pause_counts_what_is_still_copied_and_holds_what_has_not_begun() -> None:
    cluster, context = paused_context()
    seen: list[tuple[str, str]] = []

    def look() -> None:
        seen.append((context.state().phase.value, context.state().message))

    def pause() -> None:
        context.script.is_paused = True

    def arrive_one() -> None:
        look()
        cluster.arrive(A.key)

    def arrive_other() -> None:
        look()
        cluster.arrive(B.key)

    def resume() -> None:
        look()
        assert C.key not in cluster.targets
        context.script.is_paused = False

    steps = (idle, pause, arrive_one, arrive_other, resume, cluster.arrive)
    ended = await run(cluster, context, *steps)
    told = [("pausing", "2 partitions"), ("pausing", "1 partition"), ("paused", "1 partition")]
    for (activity, message), (expected, count) in zip(seen, told, strict=True):
        assert activity == expected
        assert not lacking(message, expected, count), message
    assert ended.outcome is Outcome.DONE


async def test_a_pause_while_it_copies_may_be_taken_back() -> None:
    cluster, context = paused_context()

    def pause() -> None:
        context.script.is_paused = True

    def resume() -> None:
        state = context.state()
        assert state.may("resume")
        assert not state.may("pause")
        context.script.is_paused = False

    def arrive() -> None:
        assert context.state().phase is Phase.RUNNING
        cluster.arrive()

    await run(cluster, context, idle, pause, resume, arrive, cluster.arrive)
    assert context.said(EventKind.RESUMED) == ["resumed"]


async def test_a_note_does_not_hide_what_is_still_copied() -> None:
    cluster, context = paused_context()

    def pause() -> None:
        context.script.is_paused = True

    def note() -> None:
        context.told(EventKind.NOTE, "topic x was deleted meanwhile")
        assert not lacking(context.state().message, "pausing", "2 partitions", "copied")
        assert context.state().notes[-1] == "topic x was deleted meanwhile"
        context.script.is_paused = False

    await run(cluster, context, idle, pause, note, cluster.arrive, cluster.arrive)
