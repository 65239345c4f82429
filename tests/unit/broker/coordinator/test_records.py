"""Kafka's records of __consumer_offsets: exact bytes, round trips, damaged input."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.coordinator.errors import RecordFormatError
from broker.coordinator.records import (
    CommittedOffset,
    GroupSnapshot,
    MemberSnapshot,
    OffsetKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_group_key,
    encode_group_value,
    encode_offset_key,
    encode_offset_value,
)

TEXT = st.text(max_size=20)
INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)


def test_the_bytes_are_kafkas() -> None:
    key = encode_offset_key(OffsetKey(group_id="g", topic="top", partition=7))
    assert key == bytes.fromhex("0001 0001 67 0003 746f70 00000007")
    assert encode_group_key("g") == bytes.fromhex("0002 0001 67")
    value = encode_offset_value(
        CommittedOffset(offset=5, leader_epoch=2, metadata="m", commit_ms=9)
    )
    assert value == bytes.fromhex("0003 0000000000000005 00000002 0001 6d 0000000000000009")
    group = GroupSnapshot(
        group_id="g",
        protocol_type="c",
        generation_id=1,
        protocol_name=None,
        leader_id=None,
        state_ms=3,
    )
    assert encode_group_value(group) == bytes.fromhex(
        "0003 0001 63 00000001 ffff ffff 0000000000000003 00000000"
    )


def test_an_explicit_expiry_is_kept_by_version_1() -> None:
    committed = CommittedOffset(offset=5, metadata="", commit_ms=9, expire_ms=99)
    encoded = encode_offset_value(committed)
    assert encoded[:2] == b"\x00\x01"
    assert decode_offset_value(encoded) == committed


@settings(deadline=None)
@given(
    committed=st.builds(
        CommittedOffset, offset=INT64, leader_epoch=INT32, metadata=TEXT, commit_ms=INT64
    ),
    key=st.builds(OffsetKey, group_id=TEXT, topic=TEXT, partition=INT32),
)
def test_offsets_round_trip(committed: CommittedOffset, key: OffsetKey) -> None:
    assert decode_offset_value(encode_offset_value(committed)) == committed
    assert decode_key(encode_offset_key(key)) == key


MEMBERS = st.builds(
    MemberSnapshot,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout_ms=INT32,
    session_timeout_ms=INT32,
    subscription=st.binary(max_size=30),
    assignment=st.binary(max_size=30),
)
GROUPS = st.builds(
    GroupSnapshot,
    group_id=TEXT,
    protocol_type=TEXT,
    generation_id=INT32,
    protocol_name=st.none() | TEXT,
    leader_id=st.none() | TEXT,
    state_ms=INT64,
    members=st.lists(MEMBERS, max_size=3).map(tuple),
)


@settings(deadline=None)
@given(group=GROUPS)
def test_groups_round_trip_and_a_cut_value_is_refused(group: GroupSnapshot) -> None:
    encoded = encode_group_value(group)
    assert decode_group_value(group.group_id, encoded) == group
    assert decode_key(encode_group_key(group.group_id)) == group.group_id
    with pytest.raises(RecordFormatError):
        decode_group_value(group.group_id, encoded[:-1])


@settings(deadline=None)
@given(data=st.binary(max_size=60))
def test_noise_is_refused_in_no_other_way(data: bytes) -> None:
    for decode in (decode_key, decode_offset_value, lambda d: decode_group_value("g", d)):
        try:
            decode(data)
        except RecordFormatError:
            continue


def test_offsets_of_kafka_4_1_are_read() -> None:
    """Version 4: compact metadata "m", and the topic id as tag 0."""
    value = bytes.fromhex(
        "0004 0000000000000005 00000002 026d 0000000000000009"
        "01 00 10 000102030405060708090a0b0c0d0e0f"
    )
    assert decode_offset_value(value) == CommittedOffset(
        offset=5, leader_epoch=2, metadata="m", commit_ms=9
    )


def test_keys_of_newer_protocols_are_left_alone() -> None:
    assert decode_key(bytes.fromhex("0011 0001 67")) is None
