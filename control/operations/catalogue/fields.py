"""Fields that several operations share."""

from collections.abc import Collection, Iterable
from typing import Final

from control.kafka.ports import TopicMetadata
from control.model.ids import TopicPartition, no_partition_words
from control.operations import checks
from control.operations.catalogue.forms import FieldKind, FormField
from control.operations.errors import InvalidInputError

TOPIC: Final = FormField(
    name="topic", label="Topic", kind=FieldKind.TOPIC, is_required=True, check=checks.topic_name
)
BROKER: Final = FormField(
    name="broker", label="Broker", kind=FieldKind.BROKER, is_required=True, check=checks.broker_id
)
GROUP: Final = FormField(name="group", label="Group", kind=FieldKind.GROUP, is_required=True)
PARTITIONS: Final = FormField(
    name="partitions",
    label="Partitions",
    help="empty: every partition; or some, like 0, 3-5",
    check=checks.partitions,
)
REASON: Final = FormField(name="reason", label="Reason", help="for the journal")


def named_partitions(topic: TopicMetadata, numbers: Iterable[int]) -> list[TopicPartition]:
    """The partitions that ``PARTITIONS`` names; without a number every one.

    :raises InvalidInputError: there is no such partition.
    """
    keys = [each.key for each in topic.partitions]
    wanted = [TopicPartition(topic.name, number) for number in numbers]
    for key in wanted:
        if key not in keys:
            words = no_partition_words(topic.name, key.partition, len(keys))
            raise InvalidInputError({"partitions": words})
    return wanted or keys


def partition_words(topic: str, numbers: Collection[int]) -> str:
    """``orders``, ``orders-3`` or ``orders 0, 3, 4``."""
    if len(numbers) == 1:
        return f"{topic}-{next(iter(numbers))}"
    return " ".join([topic, ", ".join(map(str, numbers))]).strip()
