"""What a group's member claims to own is read as far as it is what it claims to be."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.groups.consumer_protocol import assigned_partitions, subscribed_topics
from control.kafka.admin.groups import parse_assignment
from control.model.ids import TopicPartition


def topic(name: bytes, *partitions: int) -> bytes:
    numbers = struct.pack(f">{len(partitions) + 1}i", len(partitions), *partitions)
    return struct.pack(">h", len(name)) + name + numbers


def test_an_assignment_is_read() -> None:
    data = struct.pack(">hi", 1, 2) + topic(b"a", 0, 5) + topic(b"b", 1) + struct.pack(">i", -1)
    owned = [("a", 0), ("a", 5), ("b", 1)]
    assert list(parse_assignment(data)) == [TopicPartition(*each) for each in owned]
    assert assigned_partitions(data) == owned


def test_lengths_that_lead_back_do_not_hold_up_anybody() -> None:
    """A name of -6 bytes: each of two billion topics would be read at the same place."""
    data = struct.pack(">hi", 0, 2**31 - 1) + struct.pack(">hi", -6, 0)
    assert list(parse_assignment(data)) == []
    assert assigned_partitions(data) == []


@given(st.binary(max_size=80))
def test_any_bytes_are_an_assignment_or_none(data: bytes) -> None:
    for found in (parse_assignment(data), assigned_partitions(data)):
        assert len(list(found)) <= len(data)
    assert len(subscribed_topics(data) or ()) <= len(data)


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**15), 2**15 - 1), st.binary(max_size=40))
def test_any_counts_are_an_assignment_or_none(count: int, length: int, rest: bytes) -> None:
    data = struct.pack(">hih", 1, count, length) + rest
    assert len(list(parse_assignment(data))) <= len(data)
    assert len(assigned_partitions(data)) <= len(data)
