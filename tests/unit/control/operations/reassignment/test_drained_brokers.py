"""A broker that is decommissioned while topics are made."""

from collections.abc import Mapping

from control.kafka.ports import PartitionMetadata
from control.model.ids import TopicPartition
from control.move.events import Outcome
from control.move.throttle import THROTTLE_NONE
from control.operations.reassignment.drained_brokers import drained_by, what_came
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    TO,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    key_of,
    run,
)

A, B, NEW = change("a"), key_of("b", 0), key_of("new", 0)


def placed(
    replicas: Mapping[TopicPartition, tuple[int, ...]],
) -> dict[TopicPartition, PartitionMetadata]:
    return {
        key: PartitionMetadata(
            topic=key.topic,
            partition=key.partition,
            leader=on[0],
            leader_epoch=0,
            replicas=on,
            isr=on,
        )
        for key, on in replicas.items()
    }


def test_a_broker_is_emptied_where_the_plan_has_all_that_it_holds() -> None:
    assert drained_by([A], placed({A.key: FROM})) == (1,)
    assert drained_by([A], placed({A.key: FROM, B: (1, 4)})) == ()
    assert drained_by([], placed({A.key: FROM})) == ()


def test_what_came_is_named_with_the_first_few() -> None:
    keys = {key_of("t", n): (1, 2) for n in range(5)}
    (line,) = what_came((1, 9), placed(keys).values())
    assert not lacking(line, "broker 1", "not empty", "5 replicas", "t-0, t-1, t-2 and 2 more")
    assert what_came((9,), placed(keys).values()) == ()


async def test_a_topic_made_meanwhile_on_a_broker_that_leaves_is_told_at_the_end() -> None:
    cluster = FakeCluster({A.key: FROM, B: (2, 4)})
    context = FakeContext(command_of(A, throttle=THROTTLE_NONE))

    def make_and_arrive() -> None:
        cluster.placed[NEW] = (1,)
        cluster.arrive()

    ended = await run(cluster, context, make_and_arrive)
    assert (ended.outcome, cluster.placed[A.key]) == (Outcome.DONE, TO)
    assert ended.empties == (1,)
    assert not lacking(ended.message, "broker 1", "not empty", "1 replica", "new-0")


async def test_of_a_broker_that_keeps_something_nothing_is_told() -> None:
    cluster = FakeCluster({A.key: FROM, B: (1, 4)})
    ended = await run(cluster, FakeContext(command_of(A, throttle=THROTTLE_NONE)), cluster.arrive)
    assert ended.empties == ()
    assert "not empty" not in ended.message
