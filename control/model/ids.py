"""Names of things in a cluster. Plain values with a type each, so that they are not mixed up."""

from typing import Final, NamedTuple, NewType
from urllib.parse import quote

ClusterId = NewType("ClusterId", str)
BrokerId = NewType("BrokerId", int)
GroupId = NewType("GroupId", str)

NO_LEADER: Final = BrokerId(-1)


class TopicPartition(NamedTuple):
    """One partition of a topic; prints as Kafka's own logs name it (``orders-7``)."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def path_segment(name: str) -> str:
    """A name of any characters as one segment of a view's path: groups may be called ``a/b``."""
    return quote(name, safe="")


def no_partition_words(topic: str, partition: object, count: int) -> str:
    """``orders has no partition 99 (0–11)``; ``count`` is how many it has."""
    numbers = "0" if count == 1 else f"0–{count - 1}"
    return f"{topic} has no partition {partition} ({numbers})"
