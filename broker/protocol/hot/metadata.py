"""Metadata responses joined from topics that are encoded once per change.

kio takes 12 µs per partition to encode; a cluster asks for the same topics again and again. So
each topic is encoded on its own, kept by the caller, and spliced into a response whose other
fields kio encodes with an empty list of topics. The list is the last field but for these:

    version   behind the topics
    0-7       nothing
    8         cluster_authorized_operations i32
    9-10      cluster_authorized_operations i32, tags
    11-12     tags
    13        error_code i16, tags
"""

import struct
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from kio.static.constants import uuid_zero

from broker.protocol import codec
from broker.protocol.hot.cursor import encode_length, encode_string

API_KEY = 3
FIRST_WITH_INTERNAL = 1
FIRST_WITH_OFFLINE = 5
FIRST_WITH_LEADER_EPOCH = 7
FIRST_WITH_OPERATIONS = 8
FIRST_FLEXIBLE = 9
FIRST_WITH_TOPIC_ID = 10
_TRAILER_BYTES = {8: 4, 9: 5, 10: 5, 11: 1, 12: 1, 13: 3}
_NO_TAGS = b"\x00"
OPERATIONS_OMITTED = -(2**31)

_ERROR = struct.Struct(">h")
_PARTITION = struct.Struct(">hii")
_PARTITION_WITH_EPOCH = struct.Struct(">hiii")
_INT32 = struct.Struct(">i")


def encode_topic(version: int, topic: Mapping[str, Any]) -> bytes:
    """One element of the list of topics, from the fields that build_response takes."""
    is_flexible = version >= FIRST_FLEXIBLE
    partitions = topic["partitions"]
    parts = [
        _ERROR.pack(topic.get("error_code", 0)),
        encode_string(topic.get("name"), is_flexible),
    ]
    if version >= FIRST_WITH_TOPIC_ID:
        parts.append((topic.get("topic_id") or uuid_zero).bytes)
    if version >= FIRST_WITH_INTERNAL:
        parts.append(b"\x01" if topic.get("is_internal") else b"\x00")
    parts.append(encode_length(len(partitions), is_flexible))
    parts += [_encode_partition(version, partition) for partition in partitions]
    if version >= FIRST_WITH_OPERATIONS:
        parts.append(_INT32.pack(topic.get("topic_authorized_operations", OPERATIONS_OMITTED)))
    if is_flexible:
        parts.append(_NO_TAGS)
    return b"".join(parts)


def _encode_partition(version: int, partition: Mapping[str, Any]) -> bytes:
    is_flexible = version >= FIRST_FLEXIBLE
    error, number = partition.get("error_code", 0), partition["partition_index"]
    if version >= FIRST_WITH_LEADER_EPOCH:
        epoch = partition.get("leader_epoch", -1)
        head = _PARTITION_WITH_EPOCH.pack(error, number, partition["leader_id"], epoch)
    else:
        head = _PARTITION.pack(error, number, partition["leader_id"])
    parts = [
        head,
        _encode_ids(tuple(partition["replica_nodes"]), is_flexible),
        _encode_ids(tuple(partition["isr_nodes"]), is_flexible),
    ]
    if version >= FIRST_WITH_OFFLINE:
        parts.append(_encode_ids(tuple(partition["offline_replicas"]), is_flexible))
    if is_flexible:
        parts.append(_NO_TAGS)
    return b"".join(parts)


@cache
def _layout(count: int) -> struct.Struct:
    return struct.Struct(f">{count}i")


def _encode_ids(ids: tuple[int, ...], is_flexible: bool) -> bytes:
    return encode_length(len(ids), is_flexible) + _layout(len(ids)).pack(*ids)


def encode_metadata(
    version: int, correlation_id: int, topics: Sequence[bytes], **fields: object
) -> bytes:
    """A whole response, led by its 4-byte size; `fields` are all but the topics."""
    message = codec.build_response(API_KEY, version, topics=(), **fields)
    frame = codec.encode_response(API_KEY, version, correlation_id, message)
    trailer = _TRAILER_BYTES.get(version, 0)
    count_bytes = 1 if version >= FIRST_FLEXIBLE else 4
    end = len(frame) - trailer
    parts = (
        frame[4 : end - count_bytes],
        encode_length(len(topics), version >= FIRST_FLEXIBLE),
        *topics,
        frame[end:],
    )
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body
