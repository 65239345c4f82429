"""A rollback restores what was: the replicas, in the order in which the operation found them."""

from dataclasses import replace
from typing import Any

from control.move.commands import ReassignCommand
from control.move.events import Outcome
from control.move.state import OperationState
from control.operations.reassignment.facts import read_facts
from control.operations.reassignment.planning import Preview, preview_of
from planner.waves import WaveRules
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    run,
)

MIB = 1 << 20
CHANGES = tuple(change("t", number, size_bytes=MIB) for number in range(6))
FOUND = FROM[::-1]
"""The plan was made when the replicas were in the order of FROM."""
TOGETHER = WaveRules(partitions=6)


def cluster_of(order: tuple[int, ...]) -> FakeCluster:
    return FakeCluster({it.key: order for it in CHANGES})


def back_of(ended: OperationState) -> ReassignCommand:
    """The rollback, as a client asks for it."""
    changes = tuple(it.inverse() for it in ended.changes)
    return command_of(*changes, rollback_of="mv-1", is_strict=False, waves=TOGETHER)


async def previewed(cluster: FakeCluster, back: ReassignCommand, *, is_settled: bool) -> Preview:
    known: Any = cluster
    facts = replace(await read_facts(known, changes=back.changes), is_settled=is_settled)
    return preview_of(facts, back.proposal, throttle="none", rolled_back="mv-1")


async def test_the_order_that_was_found_is_restored_and_not_that_of_the_plan() -> None:
    cluster = cluster_of(FOUND)
    ended = await run(cluster, FakeContext(command_of(*CHANGES, waves=TOGETHER)), cluster.arrive)
    assert ended.outcome is Outcome.DONE
    assert {it.before for it in ended.changes} == {FOUND}
    back = await run(cluster, FakeContext(back_of(ended)), cluster.arrive)
    assert back.outcome is Outcome.DONE
    assert set(cluster.placed.values()) == {FOUND}


async def test_an_order_that_changes_before_its_wave_is_the_one_that_was() -> None:
    cluster = cluster_of(FROM)
    context = FakeContext(command_of(*CHANGES[:2]))

    def arrive_reordered() -> None:
        cluster.placed[CHANGES[1].key] = FOUND
        cluster.arrive()

    ended = await run(cluster, context, arrive_reordered, cluster.arrive)
    assert [it.before for it in ended.changes] == [FROM, FOUND]


async def test_a_cancel_restores_the_order_that_was_found() -> None:
    cluster, context = cluster_of(FOUND), FakeContext(command_of(*CHANGES, waves=TOGETHER))

    def cancel() -> None:
        context.script.is_cancelled = True

    assert (await run(cluster, context, cancel)).outcome is Outcome.CANCELLED
    assert set(cluster.placed.values()) == {FOUND}


async def test_a_preview_counts_what_has_to_go_back_and_the_rollback_moves_just_that() -> None:
    """Five were moved, one never began; the plan knew it in another order."""
    cluster, context = cluster_of(FOUND), FakeContext(command_of(*CHANGES))

    def cancel() -> None:
        context.script.is_cancelled = True

    ended = await run(cluster, context, *[cluster.arrive] * 5, cancel)
    assert ended.outcome is Outcome.CANCELLED
    back = back_of(ended)
    preview = await previewed(cluster, back, is_settled=True)
    moved = [it.key for it in CHANGES[:5]]
    assert [it.key for it in preview.proposal.changes] == moved
    assert preview.proposal.moved_bytes == 5 * MIB
    cluster.asked.clear()
    await run(cluster, FakeContext(back), cluster.arrive)
    assert [sorted(asked) for asked in cluster.asked] == [moved]


async def test_what_is_at_home_in_another_order_copies_nothing() -> None:
    cluster = cluster_of(FROM)
    ended = await run(cluster, FakeContext(command_of(*CHANGES, waves=TOGETHER)), cluster.arrive)
    cluster.placed[CHANGES[0].key] = FOUND
    preview = await previewed(cluster, back_of(ended), is_settled=True)
    assert len(preview.proposal.changes) == 6
    assert preview.proposal.moved_bytes == 5 * MIB


async def test_a_partition_that_somebody_gave_more_replicas_is_not_promised() -> None:
    """Just after its end a broker that lags tells of both sets; later it is what it is."""
    cluster = cluster_of(FROM)
    ended = await run(cluster, FakeContext(command_of(*CHANGES, waves=TOGETHER)), cluster.arrive)
    cluster.placed[CHANGES[0].key] = (1, 2, 3)
    back = back_of(ended)
    counts = [
        len((await previewed(cluster, back, is_settled=is_so)).proposal.changes)
        for is_so in (False, True)
    ]
    assert counts == [6, 5]
