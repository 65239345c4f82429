"""The next step of a drain."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from control.kafka.ports import ClusterPort, LogDir, PartitionMetadata, ReplicaLog
from control.move.state import OperationState, Phase
from control.operations.catalogue.brokers.cordon import Cordon
from control.operations.catalogue.brokers.drain import Drain
from control.operations.catalogue.operation import OperationContext
from control.operations.errors import NotDrainedError
from control.operations.reassignment.draining import (
    DrainState,
    DrainStep,
    emptying_move,
    replicas_on,
    staying_on,
)
from control.operations.reassignment.planning import Planning
from planner.proposal import PartitionChange, Proposal
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import FakeCluster, key_of
from tests.unit.planner.clusters import cluster

STOPPED = DrainState(broker=3, is_alive=False, is_registered=True, replicas=0, may_receive=False)
EMPTY = replace(STOPPED, is_alive=True)


@pytest.mark.parametrize(
    ("state", "step"),
    [
        (replace(EMPTY, replicas=7, may_receive=True), DrainStep.EMPTY),
        (replace(EMPTY, may_receive=True), DrainStep.EMPTY),
        (replace(EMPTY, replicas=7), DrainStep.EMPTY),
        (replace(EMPTY, replicas=7, move="mv-1"), DrainStep.MOVING),
        (EMPTY, DrainStep.STOP),
        (replace(STOPPED, replicas=1), DrainStep.EMPTY),
        (STOPPED, DrainStep.UNREGISTER),
        (replace(STOPPED, is_registered=False), DrainStep.DONE),
    ],
)
def test_each_state_has_one_next_step(state: DrainState, step: DrainStep) -> None:
    assert state.step is step


@pytest.mark.parametrize(
    ("others", "running", "may_stop"),
    [(None, 0, True), (3, 3, True), (3, 2, False), (2, 2, True), (1, 1, False), (0, 0, False)],
)
def test_a_majority_of_all_voters_must_run_beside_it(
    others: int | None, running: int, *, may_stop: bool
) -> None:
    state = replace(EMPTY, other_voters=others, voters_running=running)
    assert state.has_majority_beside is may_stop


def _partition(number: int, *replicas: int) -> PartitionMetadata:
    return PartitionMetadata(
        topic="t", partition=number, leader=replicas[0], leader_epoch=0,
        replicas=replicas, isr=replicas,
    )  # fmt: skip


def test_a_reassignment_that_empties_it_is_found_also_before_it_begins() -> None:
    lie = [_partition(0, 3, 1), _partition(1, 1, 2), _partition(2, 2, 3)]
    partitions = {it.key: it for it in lie}
    assert replicas_on(3, lie) == 2
    changes = [
        PartitionChange(topic="t", partition=number, before=before, after=after, size_bytes=1)
        for number, before, after in ((0, (3, 1), (2, 1)), (2, (2, 3), (2, 1)))
    ]
    waits = OperationState(operation_id="mv-all", changes=tuple(changes))
    some = OperationState(operation_id="mv-some", changes=tuple(changes[:1]))
    runs = OperationState(operation_id="mv-runs", empties=(3,))
    ended = replace(runs, phase=Phase.FINISHED)
    assert emptying_move(3, [some, waits], partitions) == "mv-all"
    assert emptying_move(3, [ended, runs], partitions) == "mv-runs"
    assert emptying_move(3, [some, ended], partitions) == ""
    assert emptying_move(1, [waits], partitions) == ""


def test_what_a_plan_leaves_on_the_broker_is_named() -> None:
    before = cluster({1: None, 2: None, 3: None}, [(3, 1), (1, 2), (2, 3)])
    one = PartitionChange(topic="t", partition=0, before=(3, 1), after=(2, 1), size_bytes=1)
    other = PartitionChange(topic="t", partition=2, before=(2, 3), after=(2, 1), size_bytes=1)
    half, whole = (Proposal(name="p", changes=changes) for changes in ((one,), (one, other)))
    assert not lacking(staying_on(3, before, half), "t-2", "stays", "broker 3")
    assert staying_on(3, before, whole) == ""


async def test_a_broker_that_cannot_be_emptied_wholly_is_refused_before_it_is_cordoned() -> None:
    """t-0 has a place on 2, t-1 has none; the other brokers keep 5 % free."""
    fake = FakeCluster({key_of("t", 0): (1,), key_of("t", 1): (1,), key_of("t", 2): (2,)})
    fake.alive = {1, 2}
    sizes = {1: ((0, 30), (1, 80)), 2: ((2, 10),)}
    fake.logs = tuple(
        LogDir(
            broker=broker,
            path="/d",
            total_bytes=1000,
            usable_bytes=100,
            replicas=tuple(
                ReplicaLog(
                    broker=broker,
                    topic="t",
                    partition=number,
                    size_bytes=size,
                    offset_lag=0,
                    is_future=False,
                    log_dir="/d",
                )
                for number, size in held
            ),
        )
        for broker, held in sizes.items()
    )
    planning = Planning(cast(ClusterPort, fake))
    context = cast(OperationContext, SimpleNamespace(admin=fake, planning=planning))
    drain = Drain(broker=1, state=replace(EMPTY, broker=1, replicas=2), cordon=Cordon(broker=1))
    with pytest.raises(NotDrainedError) as refused:
        await drain._emptying(context)
    assert not lacking(str(refused.value), "broker 1", "was not drained", "95 B")
    assert fake.configs == {}
