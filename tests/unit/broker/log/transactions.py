"""Transactions in a log, and a consumer that reads committed records as Kafka's client does."""

from collections.abc import Iterable

from broker.log.partition_log import PartitionLog
from broker.protocol.control_records import Marker, build_marker, read_marker
from broker.protocol.records import (
    NewRecord,
    Record,
    build_batch,
    iter_batch_headers,
    iter_records,
)
from tests.unit.broker.log.helpers import NOW_MS

KeyValue = tuple[str, str | None]


def pairs(*found: KeyValue) -> list[NewRecord]:
    """Records of these keys and values."""
    return [
        NewRecord(key=k.encode(), value=None if v is None else v.encode(), timestamp=NOW_MS)
        for k, v in found
    ]


def begin(log: PartitionLog, producer_id: int, *records: KeyValue, epoch: int = 0) -> int:
    """Append records of a producer's transaction, which was verified; answers their offset."""
    entry = log.producers.state.entries.get(producer_id)
    is_same = entry is not None and entry.epoch == epoch
    sequence = entry.last_sequence + 1 if entry is not None and is_same else 0
    batch = build_batch(
        pairs(*records),
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    token = log.producers.state.begin_verification(producer_id)
    return log.append_as_leader(
        memoryview(batch), leader_epoch=0, now_ms=NOW_MS, is_from_client=True, verification=token
    ).base_offset


def end(
    log: PartitionLog, producer_id: int, *, is_commit: bool, epoch: int = 0, coordinator: int = 1
) -> int:
    """Append the marker; answers its offset."""
    marker = Marker(is_commit, coordinator)
    batch = build_marker(producer_id, epoch, marker, timestamp_ms=NOW_MS)
    return log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS).base_offset


def committed(log: PartitionLog, *, max_bytes: int = 1 << 20) -> list[Record]:
    """All that a consumer of committed records sees, in fetches of so many bytes."""
    found: list[Record] = []
    offset, stable = log.log_start_offset, log.last_stable_offset(log.log_end_offset)
    while offset < stable:
        read = log.read(offset, max_bytes=max_bytes, max_offset=stable)
        if not read.size_bytes:
            break
        content = memoryview(read.read())
        found += _visible(content, log.aborted_within(read))
        offset = max(header.last_offset for header, _ in iter_batch_headers(content)) + 1
    return [record for record in found if record.offset >= log.log_start_offset]


def _visible(content: memoryview, aborted: Iterable[tuple[int, int]]) -> list[Record]:
    """Kafka's CompletedFetch.nextFetchedRecord."""
    to_come = sorted(aborted, key=lambda each: each[1])
    aborting: set[int] = set()
    found: list[Record] = []
    for header, position in iter_batch_headers(content):
        batch = content[position : position + header.size_bytes]
        while to_come and to_come[0][1] <= header.last_offset:
            aborting.add(to_come.pop(0)[0])
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and not marker.is_commit:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            found += iter_records(batch)
    return found
