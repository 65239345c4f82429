"""Commits of groups without members, by an admin client."""

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.patience import WAIT_S
from tests.support.settle import wait_until


def commit(admin: AdminClient, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit offsets by topic and partition. While the offsets topic is still being made, the
    answer says so of each partition, or does not come."""
    wanted = [TopicPartition(topic, number, at) for (topic, number), at in offsets.items()]
    request = [ConsumerGroupTopicPartitions(group, wanted)]

    def is_committed() -> bool:
        (future,) = admin.alter_consumer_group_offsets(request).values()
        try:
            return all(each.error is None for each in future.result(WAIT_S).topic_partitions)
        except KafkaException:
            return False

    wait_until(is_committed, f"{group} has offsets")
