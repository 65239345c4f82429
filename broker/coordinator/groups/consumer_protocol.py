"""Contents of the opaque bytes of the "consumer" protocol type (ConsumerProtocol of the clients).

The coordinator never needs it to run a group; it needs the subscription to know which offsets
are still in use, and the assignment to say who owns a partition.
"""

from typing import Final

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.wire import Reader

PROTOCOL_TYPE: Final = "consumer"


def subscribed_topics(subscription: bytes) -> frozenset[str] | None:
    """Topics of a ConsumerProtocolSubscription; None when the bytes are not one."""
    try:
        reader = Reader(subscription)
        reader.i16()
        return frozenset(reader.string(False) for _ in range(reader.count(False)))
    except RecordFormatError:
        return None


def assigned_partitions(assignment: bytes) -> list[tuple[str, int]]:
    """(topic, partition) pairs of a ConsumerProtocolAssignment; none when unreadable."""
    try:
        reader = Reader(assignment)
        reader.i16()
        return [
            (topic, reader.i32())
            for topic in (reader.string(False) for _ in range(reader.count(False)))
            for _ in range(reader.count(False))
        ]
    except RecordFormatError:
        return []
