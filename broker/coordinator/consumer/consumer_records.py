"""Records of consumer groups in __consumer_offsets, as Kafka writes them.

| key | keeps                                                      |
|-----|------------------------------------------------------------|
| 3   | a group: its epoch                                         |
| 4   | partitions of its topics; Kafka up to 4.0; left alone      |
| 5   | a member: its client and subscription                      |
| 6   | the epoch of the target                                    |
| 7   | a member's part of the target                              |
| 8   | a member's epoch, state, and what it has                   |
| 16  | topics that a regular expression names                     |

Keys have strings with int16 lengths; values are version 0, flexible. A null value is a tombstone.
Sources: ConsumerGroup*Key.json and ConsumerGroup*Value.json of Kafka's group-coordinator.
"""

import struct
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from broker.coordinator.consumer.consumer_member import Assigned, ConsumerMember, MemberState
from broker.coordinator.errors import RecordFormatError
from broker.coordinator.wire import Reader, Writer
from broker.protocol.hot.cursor import encode_length, encode_string, encode_tagged, encode_uvarint

KeyValue = tuple[bytes, bytes | None]
GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX = 3, 5, 6, 7, 8, 16
KINDS: Final = frozenset({GROUP, MEMBER, TARGET_EPOCH, TARGET, CURRENT, REGEX})
_OF_MEMBERS: Final = frozenset({MEMBER, TARGET, CURRENT, REGEX})
_NO_TAGS: Final = b"\0"
_HASH_TAG: Final = 0


@dataclass(frozen=True, slots=True)
class ConsumerKey:
    """`name` is a member's id or a regular expression; empty where the record is about a group."""

    kind: int
    group_id: str
    name: str = ""

    def encode(self) -> bytes:
        """Bytes of the key."""
        writer = Writer().int16(self.kind).string(self.group_id)
        return (writer.string(self.name) if self.kind in _OF_MEMBERS else writer).to_bytes()

    @property
    def tombstone(self) -> KeyValue:
        """Deletes what this key keeps."""
        return self.encode(), None


def decode_key(kind: int, reader: Reader) -> ConsumerKey:
    """The rest of a key whose kind was read."""
    group_id = reader.string(False)
    return ConsumerKey(kind, group_id, reader.string(False) if kind in _OF_MEMBERS else "")


def group_record(group_id: str, epoch: int, metadata_hash: int) -> KeyValue:
    """ConsumerGroupMetadata; the hash is a tag that Kafka up to 4.0 passes over."""
    tags = _NO_TAGS
    if metadata_hash:
        tags = encode_uvarint(1) + encode_tagged(_HASH_TAG, metadata_hash.to_bytes(8, "big"))
    return ConsumerKey(GROUP, group_id).encode(), _value(Writer().int32(epoch).to_bytes(), tags)


def member_record(group_id: str, member: ConsumerMember) -> KeyValue:
    """ConsumerGroupMemberMetadata."""
    parts = [
        encode_string(member.instance_id, True),
        encode_string(member.rack_id, True),
        encode_string(member.client_id, True),
        encode_string(member.client_host, True),
        encode_length(len(member.topics), True),
        *(encode_string(topic, True) for topic in sorted(member.topics)),
        encode_string(member.regex, True),
        Writer().int32(member.rebalance_timeout_ms).to_bytes(),
        encode_string(member.assignor, True),
    ]
    return ConsumerKey(MEMBER, group_id, member.member_id).encode(), _value(b"".join(parts))


def target_epoch_record(group_id: str, epoch: int) -> KeyValue:
    """ConsumerGroupTargetAssignmentMetadata."""
    return ConsumerKey(TARGET_EPOCH, group_id).encode(), _value(Writer().int32(epoch).to_bytes())


def target_record(group_id: str, member_id: str, target: Assigned) -> KeyValue:
    """ConsumerGroupTargetAssignmentMember."""
    return ConsumerKey(TARGET, group_id, member_id).encode(), _value(_partitions(target))


def current_record(group_id: str, member: ConsumerMember) -> KeyValue:
    """ConsumerGroupCurrentMemberAssignment."""
    head = Writer().int32(member.epoch).int32(member.previous_epoch).to_bytes()
    body = head + bytes([member.state]) + _partitions(member.assigned)
    key = ConsumerKey(CURRENT, group_id, member.member_id).encode()
    return key, _value(body + _partitions(member.revoking))


def regex_record(
    group_id: str, regex: str, topics: frozenset[str], version: int, now_ms: int
) -> KeyValue:
    """ConsumerGroupRegularExpression; `version` is the metadata offset that it was resolved by."""
    names = b"".join(encode_string(topic, True) for topic in sorted(topics))
    body = encode_length(len(topics), True) + names
    body += Writer().int64(version).int64(now_ms).to_bytes()
    return ConsumerKey(REGEX, group_id, regex).encode(), _value(body)


def decode_group(value: bytes) -> tuple[int, int]:
    """Epoch and hash of the metadata, 0 where none was written."""
    reader = _reader(value)
    epoch, metadata_hash = reader.i32(), 0
    for _ in range(reader.uvarint()):
        tag, size = reader.uvarint(), reader.uvarint()
        payload = bytes(reader.take(size))
        if tag == _HASH_TAG:
            metadata_hash = int.from_bytes(payload, "big", signed=False)
    return epoch, metadata_hash


def decode_member(member: ConsumerMember, value: bytes) -> ConsumerMember:
    """The member with its client and subscription."""
    reader = _reader(value)
    instance_id, rack_id = reader.nullable_string(True), reader.nullable_string(True)
    client_id, client_host = reader.string(True), reader.string(True)
    topics = frozenset(reader.string(True) for _ in range(reader.count(True)))
    return replace(
        member,
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        topics=topics,
        regex=reader.nullable_string(True) or "",
        rebalance_timeout_ms=reader.i32(),
        assignor=reader.nullable_string(True),
    )


def decode_target_epoch(value: bytes) -> int:
    """Epoch of the target."""
    return _reader(value).i32()


def decode_target(value: bytes) -> Assigned:
    """A member's part of the target."""
    return _read_partitions(_reader(value))


def decode_current(member: ConsumerMember, value: bytes) -> ConsumerMember:
    """The member with its epoch, state and partitions."""
    reader = _reader(value)
    epoch, previous_epoch, number = reader.i32(), reader.i32(), reader.take(1)[0]
    try:
        state = MemberState(number)
    except ValueError as error:
        raise RecordFormatError(f"a member in state {number}") from error
    return replace(
        member,
        epoch=epoch,
        previous_epoch=previous_epoch,
        state=state,
        assigned=_read_partitions(reader),
        revoking=_read_partitions(reader),
    )


def decode_regex(value: bytes) -> frozenset[str]:
    """Topics that the expression named."""
    reader = _reader(value)
    return frozenset(reader.string(True) for _ in range(reader.count(True)))


def _value(body: bytes, tags: bytes = _NO_TAGS) -> bytes:
    return b"\0\0" + body + tags


def _reader(value: bytes) -> Reader:
    reader = Reader(value)
    if (version := reader.i16()) != 0:
        raise RecordFormatError(f"a value of unknown version {version}")
    return reader


def _partitions(assigned: Assigned) -> bytes:
    parts = [encode_length(len(assigned), True)]
    for topic, partitions in assigned.items():
        numbers = struct.pack(f">{len(partitions)}i", *sorted(partitions))
        parts += [topic.bytes, encode_length(len(partitions), True), numbers, _NO_TAGS]
    return b"".join(parts)


def _read_partitions(reader: Reader) -> Assigned:
    found: dict[UUID, frozenset[int]] = {}
    for _ in range(reader.count(True)):
        topic = UUID(bytes=bytes(reader.uuid()))
        count = reader.count(True)
        found[topic] = frozenset(struct.unpack(f">{count}i", reader.take(4 * count)))
        reader.skip_tags()
    return {topic: partitions for topic, partitions in found.items() if partitions}
