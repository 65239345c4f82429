"""Kafka's records of __consumer_offsets, so that Kafka's own tools can read the topic.

Keys start with an int16 that names their kind: 0 and 1 an OffsetCommitKey (group, topic,
partition), 2 a GroupMetadataKey (group), 3 to 16 those of groups of the consumer protocol
(`consumer_records`); others are left alone. Values start with an int16 version. Offsets and classic
groups are written as version 3, the newest that every Kafka since 2.1 reads. Offsets are read up to
version 4, which Kafka 4.1 writes: flexible, with the topic's id as a tag. A null value is a
tombstone.

Sources: OffsetCommitKey/Value.json and GroupMetadataKey/Value.json of Kafka's group-coordinator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.coordinator.consumer.consumer_records import KINDS, ConsumerKey
from broker.coordinator.consumer.consumer_records import decode_key as decode_consumer_key
from broker.coordinator.errors import RecordFormatError
from broker.coordinator.wire import Reader, Writer

_OFFSET_COMMIT_KEY: Final = 1
_GROUP_METADATA_KEY: Final = 2
_VALUE_VERSION: Final = 3
_OFFSET_VERSION_MAX: Final = 4
NO_EXPIRY_MS: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetKey:
    """Key of a committed offset."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """Value of a committed offset; `metadata` is whatever the client wants to keep."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_ms: int
    expire_ms: int = NO_EXPIRY_MS
    """An explicit expiry (OffsetCommit up to v4), -1 for the broker's retention."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSnapshot:
    """A member as the log keeps it."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSnapshot:
    """A group's metadata as the log keeps it; no members means Empty."""

    group_id: str
    protocol_type: str
    generation_id: int
    protocol_name: str | None
    leader_id: str | None
    state_ms: int
    """Wall clock at which the group reached this state, -1 when unknown."""
    members: Sequence[MemberSnapshot] = field(default=())


def encode_offset_key(key: OffsetKey) -> bytes:
    """OffsetCommitKey, version 1."""
    writer = Writer().int16(_OFFSET_COMMIT_KEY).string(key.group_id)
    return writer.string(key.topic).int32(key.partition).to_bytes()


def encode_offset_value(committed: CommittedOffset) -> bytes:
    """OffsetCommitValue, version 3 (version 1 when it carries an explicit expiry)."""
    if committed.expire_ms != NO_EXPIRY_MS:
        writer = Writer().int16(1).int64(committed.offset).string(committed.metadata)
        return writer.int64(committed.commit_ms).int64(committed.expire_ms).to_bytes()
    writer = Writer().int16(_VALUE_VERSION).int64(committed.offset).int32(committed.leader_epoch)
    return writer.string(committed.metadata).int64(committed.commit_ms).to_bytes()


def encode_group_key(group_id: str) -> bytes:
    """GroupMetadataKey, version 2."""
    return Writer().int16(_GROUP_METADATA_KEY).string(group_id).to_bytes()


def encode_group_value(group: GroupSnapshot) -> bytes:
    """GroupMetadataValue, version 3."""
    writer = Writer().int16(_VALUE_VERSION).string(group.protocol_type).int32(group.generation_id)
    writer.string(group.protocol_name).string(group.leader_id).int64(group.state_ms)
    writer.int32(len(group.members))
    for member in group.members:
        writer.string(member.member_id).string(member.group_instance_id)
        writer.string(member.client_id).string(member.client_host)
        writer.int32(member.rebalance_timeout_ms).int32(member.session_timeout_ms)
        writer.blob(member.subscription).blob(member.assignment)
    return writer.to_bytes()


def decode_key(data: bytes) -> OffsetKey | ConsumerKey | str | None:
    """An OffsetKey, one of a consumer group, a group id (of a GroupMetadataKey), or None for a kind
    that nobody here keeps."""
    reader = Reader(data)
    kind = reader.i16()
    if kind <= _OFFSET_COMMIT_KEY:
        return OffsetKey(
            group_id=reader.string(False), topic=reader.string(False), partition=reader.i32()
        )
    if kind in KINDS:
        return decode_consumer_key(kind, reader)
    return reader.string(False) if kind == _GROUP_METADATA_KEY else None


def decode_offset_value(data: bytes) -> CommittedOffset:
    """Inverse of `encode_offset_value`, versions 0 to 4.

    Raises:
        RecordFormatError: an unknown version or a value cut short.
    """
    reader = Reader(data)
    version = _version(reader, _OFFSET_VERSION_MAX)
    offset = reader.i64()
    leader_epoch = reader.i32() if version >= 3 else -1
    metadata = reader.nullable_string(True) if version >= 4 else reader.nullable_string(False)
    commit_ms = reader.i64()
    expire_ms = reader.i64() if version == 1 else NO_EXPIRY_MS
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=metadata or "",
        commit_ms=commit_ms,
        expire_ms=expire_ms,
    )


def decode_group_value(group_id: str, data: bytes) -> GroupSnapshot:
    """Inverse of `encode_group_value`, versions 0 to 3.

    Raises:
        RecordFormatError: an unknown version or a value cut short.
    """
    reader = Reader(data)
    version = _version(reader, _VALUE_VERSION)
    protocol_type = reader.nullable_string(False) or ""
    generation_id = reader.i32()
    protocol_name, leader_id = reader.nullable_string(False), reader.nullable_string(False)
    state_ms = reader.i64() if version >= 2 else -1
    members = tuple(_decode_member(reader, version) for _ in range(reader.count(False)))
    return GroupSnapshot(
        group_id=group_id,
        protocol_type=protocol_type,
        generation_id=generation_id,
        protocol_name=protocol_name,
        leader_id=leader_id,
        state_ms=state_ms,
        members=members,
    )


def _decode_member(reader: Reader, version: int) -> MemberSnapshot:
    member_id = reader.string(False)
    group_instance_id = reader.nullable_string(False) if version >= 3 else None
    client_id, client_host = reader.string(False), reader.string(False)
    rebalance_timeout_ms = reader.i32() if version >= 1 else -1
    session_timeout_ms = reader.i32()
    return MemberSnapshot(
        member_id=member_id,
        group_instance_id=group_instance_id,
        client_id=client_id,
        client_host=client_host,
        # Version 0 knew one timeout for both.
        rebalance_timeout_ms=rebalance_timeout_ms if version >= 1 else session_timeout_ms,
        session_timeout_ms=session_timeout_ms,
        subscription=reader.blob(),
        assignment=reader.blob(),
    )


def _version(reader: Reader, newest: int) -> int:
    version = reader.i16()
    if not 0 <= version <= newest:
        raise RecordFormatError(f"a value of unknown version {version}")
    return version
