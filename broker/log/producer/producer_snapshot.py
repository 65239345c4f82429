"""The `.snapshot` file: producers as they stood at the offset in its name.

Layout: version int16 = 1, crc uint32 (CRC-32C of all that follows), count int32, then per
producer: id int64, epoch int16, last sequence int32, last offset int64, offset delta int32,
timestamp int64, coordinator epoch int32, current transaction's first offset int64.
Only the newest batch of each producer is kept in it.
Source: ProducerSnapshot.json, ProducerStateManager.writeSnapshot (Kafka 4.x).
"""

import os
import struct
from collections.abc import Iterable, Sequence
from typing import Final

import fastcrc

from broker.log.checkpoint.checkpoint_format import read_file, write_file
from broker.log.errors import StorageError, storage_error
from broker.log.names import SNAPSHOT_SUFFIX, base_offset_of, segment_path
from broker.log.producer.producer_state import ProducerBatch, ProducerEntry, ProducerState

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")


def encode_snapshot(state: ProducerState) -> bytes:
    """The bytes of a snapshot file."""
    body = b"".join([_COUNT.pack(len(state.entries)), *map(_encode, state.entries.values())])
    return _HEAD.pack(_VERSION, fastcrc.crc32.iscsi(body)) + body


def _encode(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else ProducerBatch(-1, -1, 0, entry.last_timestamp)
    return _ENTRY.pack(
        entry.producer_id,
        entry.epoch,
        last.last_sequence,
        last.last_offset,
        last.offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def decode_snapshot(path: str, content: bytes) -> ProducerState:
    """The producers of a snapshot file.

    :raises StorageError: version, CRC or length do not hold.
    """
    body = content[_HEAD.size :]
    count = _COUNT.unpack_from(body)[0] if len(body) >= _COUNT.size else -1
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise _damaged(path, f"{len(content)} bytes do not hold {count} producers")
    version, crc = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise _damaged(path, f"version {version} is not {_VERSION}")
    if fastcrc.crc32.iscsi(body) != crc:
        raise _damaged(path, "its CRC does not hold")
    state = ProducerState()
    for fields in _ENTRY.iter_unpack(body[_COUNT.size :]):
        entry = _decode(fields)
        state.restore(entry)
    return state


def _decode(fields: tuple[int, ...]) -> ProducerEntry:
    producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_start = fields
    entry = ProducerEntry(
        producer_id=producer_id,
        epoch=epoch,
        last_timestamp=timestamp,
        coordinator_epoch=coordinator_epoch,
        current_txn_first_offset=txn_start,
    )
    if sequence >= 0:
        entry.batches.append(ProducerBatch(sequence, offset, delta, timestamp))
    return entry


def _damaged(path: str, reason: str) -> StorageError:
    return StorageError(f"{path} is damaged", reason, "It is made anew from the segments")


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among the files of a partition, rising."""
    found = (base_offset_of(n, SNAPSHOT_SUFFIX) for n in names if n.endswith(SNAPSHOT_SUFFIX))
    return sorted(offset for offset in found if offset is not None)


def list_snapshots(directory: str) -> list[int]:
    """The offsets of the snapshots in a partition's directory, rising.

    :raises StorageError: it cannot be read.
    """
    try:
        return snapshot_offsets(os.listdir(directory))
    except OSError as error:
        raise storage_error(f"Reading {directory} failed", error) from error


def write_snapshot(directory: str, offset: int, state: ProducerState) -> None:
    """Keep the producers as they stand at `offset`.

    :raises StorageError: the disk refused.
    """
    # A damaged one is made anew from the batches.
    path = segment_path(directory, offset, SNAPSHOT_SUFFIX)
    write_file(path, encode_snapshot(state), is_forced=False)


def load_newest_snapshot(
    directory: str, offsets: Sequence[int], *, offset_max: int
) -> tuple[ProducerState, int]:
    """The newest whole snapshot of `offsets` at or below a bound; damaged ones are removed.

    Without one: no producers, at offset 0.

    :raises StorageError: the disk refused.
    """
    for offset in sorted(offsets, reverse=True):
        if offset > offset_max:
            continue
        path = segment_path(directory, offset, SNAPSHOT_SUFFIX)
        content = read_file(path) or b""
        try:
            return decode_snapshot(path, content), offset
        except StorageError:
            remove_snapshots(directory, {offset})
    return ProducerState(), 0


def remove_snapshots(directory: str, offsets: set[int]) -> None:
    """Delete snapshots; missing ones are fine.

    :raises StorageError: the disk refused.
    """
    for offset in offsets:
        path = segment_path(directory, offset, SNAPSHOT_SUFFIX)
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise storage_error(f"Deleting {path} failed", error) from error
