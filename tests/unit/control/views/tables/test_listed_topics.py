"""Topics and their partitions as the brokers list them: what a row says."""

from typing import Final

from control.kafka.ports import PartitionMetadata, TopicMetadata
from control.views.tables.topics import listed_topic_rows, topic_partition_rows


def _partition(number: int, leader: int, isr: tuple[int, ...], more: int = 0) -> PartitionMetadata:
    adding = tuple(range(104, 104 + more))
    return PartitionMetadata(
        topic="orders", partition=number, leader=leader, leader_epoch=0,
        replicas=(101, 102, 103, *adding), isr=isr, adding_replicas=adding,
        removing_replicas=(103,) if more else (),
    )  # fmt: skip


ORDERS: Final = TopicMetadata(
    name="orders",
    topic_id=None,
    is_internal=False,
    partitions=(
        _partition(0, 101, (101, 102, 103)),
        _partition(1, 102, (102,)),
        _partition(2, -1, (), more=2),
    ),
)


def test_a_topic_counts_the_replicas_that_it_is_to_have() -> None:
    (row,) = listed_topic_rows([ORDERS])
    told = [row.topic.text, row.partitions.text, row.replicas.text]
    assert told == ["orders", "3", "3–4"], "partition 2 moves to a fourth replica"


def test_a_partition_says_its_preferred_leader_and_who_is_missing() -> None:
    rows = topic_partition_rows(ORDERS)
    assert [row.leader.text for row in rows] == ["★ 101", "102", "none"]
    assert [row.isr.text for row in rows][:2] == ["3/3", "1/3 (−101, −103)"]
    assert rows[2].path == "topics/orders/partitions/2"
