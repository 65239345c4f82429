"""Topics that the product keeps for itself on the bus."""

from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaTopics
from control.kafka.errors import RefusedError
from control.kafka.ports import NewTopic

REPLICATION_FACTOR_MAX: Final = 3


async def ensure_topic(
    admin: KafkaTopics, name: str, *, partitions: int = 1, configs: Mapping[str, str]
) -> int:
    """Create the topic where it lacks, on up to three brokers; answers its partitions.

    :raises KafkaPortError: the bus does not answer, or refuses.
    """
    brokers = len((await admin.describe_cluster()).brokers)
    topic = NewTopic(
        name=name,
        partitions=partitions,
        replication_factor=min(REPLICATION_FACTOR_MAX, brokers),
        configs=configs,
    )
    try:
        await admin.create_topic(topic)
    except RefusedError as error:
        if error.code is not ErrorCode.topic_already_exists:
            raise
    (found,) = await admin.topics([name])
    return len(found.partitions)
