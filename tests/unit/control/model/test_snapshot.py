"""Taking one cluster out of the store, and the cluster as a move will leave it."""

from control.model.ids import ClusterId, TopicPartition
from control.model.snapshot import ClusterSnapshot
from tests.unit.control import clusters


def test_the_larger_of_two_clusters_is_taken() -> None:
    other = {**clusters.broker(1), "cluster": "a"}
    both = clusters.tables(brokers=[other, clusters.broker(1), clusters.broker(2)])

    assert ClusterSnapshot.from_tables(both).cluster == "c"
    assert ClusterSnapshot.from_tables(both, cluster=ClusterId("a")).broker_ids == (1,)


def test_an_empty_store_is_an_empty_cluster() -> None:
    empty = ClusterSnapshot.from_tables({})

    assert empty.cluster == ""
    assert empty.broker_ids == ()
    assert empty.sampled_ms is None
    assert empty.partition(TopicPartition("t", 0)) is None


def test_a_move_keeps_the_leader_that_keeps_its_replica() -> None:
    now = clusters.snapshot(
        partitions=[
            clusters.partition("t", 0, [1, 2], leader=2),
            clusters.partition("t", 1, [1, 2]),
            clusters.partition("t", 2, [1, 2], leader=-1),
        ]
    )
    names = [TopicPartition("t", number) for number in range(3)]

    planned = now.with_move({name: [3, 2] for name in names})

    rows = [planned.partition(name) for name in names]
    assert [row and row["replicas"] for row in rows] == [[3, 2]] * 3
    assert [row and row["leader"] for row in rows] == [2, 3, -1]
    before = now.partition(names[1])
    assert before is not None
    assert before["replicas"] == [1, 2], "the present stays as it is"


def test_a_move_of_an_unknown_partition_changes_nothing() -> None:
    now = clusters.snapshot(partitions=[clusters.partition("t", 0, [1])])

    assert now.with_move({TopicPartition("x", 0): [2]}).partitions.equals(now.partitions)
