"""Markers that end transactions: batches of one control record, which consumers never see.

Key: version int16 = 0, type int16 (0 abort, 1 commit). Value: version int16 = 0, coordinator epoch
int32. Newer versions add fields behind these. The batch carries the producer's id and epoch.
Source: org.apache.kafka.common.record.internal.{ControlRecordType,EndTransactionMarker}.
"""

import struct
from typing import Final, NamedTuple

from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import Buffer, NewRecord, build_batch, iter_records

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0
_ABORT: Final = 0
_COMMIT: Final = 1


class Marker(NamedTuple):
    """The end of a transaction; `coordinator_epoch` is the leader epoch of its coordinator."""

    is_commit: bool
    coordinator_epoch: int


def read_marker(batch: Buffer) -> Marker | None:
    """The marker of a control batch; None where compaction left none, or of another kind.

    :raises MalformedRecordsError: the record cannot be read.
    """
    record = next(iter_records(memoryview(batch)), None)
    if record is None:
        return None
    try:
        _, kind = _KEY.unpack_from(record.key or b"")
        if kind not in (_ABORT, _COMMIT):
            return None
        _, coordinator_epoch = _VALUE.unpack_from(record.value or b"")
    except struct.error as error:
        raise MalformedRecordsError(f"a control record is cut short: {error}") from error
    return Marker(kind == _COMMIT, coordinator_epoch)


def build_marker(
    producer_id: int, producer_epoch: int, marker: Marker, *, timestamp_ms: int
) -> bytes:
    """The batch that ends the open transaction of a producer."""
    record = NewRecord(
        key=_KEY.pack(_VERSION, _COMMIT if marker.is_commit else _ABORT),
        value=_VALUE.pack(_VERSION, marker.coordinator_epoch),
        timestamp=timestamp_ms,
    )
    return build_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_control=True,
        is_transactional=True,
    )
