"""Records of internal topics as our coordinator writes them; tests/contract has Kafka's own."""

import base64

import pytest

from broker.coordinator import records
from control.messages.decoding.internal_topics import InternalRecordError, decode_key, decode_value

OFFSETS = "__consumer_offsets"


def test_a_committed_offset() -> None:
    key = records.encode_offset_key(records.OffsetKey(group_id="g", topic="t", partition=3))
    committed = records.CommittedOffset(offset=7, leader_epoch=2, metadata="m", commit_ms=1)
    value = records.encode_offset_value(committed)
    data = {"group": "g", "topic": "t", "partition": 3}
    assert decode_key(OFFSETS, key) == {"type": 1, "name": "OffsetCommitKey", "data": data}
    assert decode_value(OFFSETS, key, value) == {
        "version": 3,
        "name": "OffsetCommitValue",
        "data": {"offset": 7, "leaderEpoch": 2, "metadata": "m", "commitTimestamp": 1},
    }


def test_a_group_with_a_member() -> None:
    member = records.MemberSnapshot(
        member_id="m",
        group_instance_id=None,
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout_ms=1,
        session_timeout_ms=2,
        subscription=b"\xff",
        assignment=b"",
    )
    group = records.GroupSnapshot(
        group_id="g",
        protocol_type="consumer",
        generation_id=4,
        protocol_name="range",
        leader_id="m",
        state_ms=5,
        members=(member,),
    )
    told = decode_value(OFFSETS, records.encode_group_key("g"), records.encode_group_value(group))
    assert told["data"]["members"] == [
        {
            "memberId": "m",
            "groupInstanceId": None,
            "clientId": "c",
            "clientHost": "/127.0.0.1",
            "rebalanceTimeout": 1,
            "sessionTimeout": 2,
            "subscription": base64.b64encode(b"\xff").decode(),
            "assignment": "",
        }
    ]


def test_bytes_that_fit_no_schema_are_refused() -> None:
    for data in (b"", b"\0", b"\0\x63", b"\0\x01\0\x05ab"):
        with pytest.raises(InternalRecordError):
            decode_key(OFFSETS, data)
    with pytest.raises(InternalRecordError, match="has no version 99"):
        decode_value(OFFSETS, b"\0\x01", b"\0\x63")
    huge = b"\0\x03\0\x08consumer\0\0\0\x01\xff\xff\xff\xff" + b"\0" * 8 + b"\x7f\xff\xff\xff"
    with pytest.raises(InternalRecordError, match="claims"):
        decode_value(OFFSETS, b"\0\x02", huge)
