"""Validates an append and plans its writes before the first byte goes out.

A leader gives offsets and its epoch to batches as they came: of each it replaces the first 16
bytes (base offset, length, leader epoch), which lie before the CRC's range, and leaves the rest
where the socket put it. Only LogAppendTime needs a new header and CRC, and a topic's own
compression.type the whole batch anew where its producer chose another codec.
Source: org.apache.kafka.storage.internals.log.{UnifiedLog,LogValidator} (Kafka 4.x).
"""

import struct
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import fastcrc

from broker.log.config import INT64_MAX, LogConfig
from broker.log.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTxnStateError,
    OffsetsOutOfOrderError,
    UnsupportedMagicError,
)
from broker.log.producer.producer_state import ProducerAppend, ProducerBatch, ProducerState
from broker.log.segment.segment_indexes import PlacedBatch
from broker.protocol.compression import CODEC_NAMES, decompress
from broker.protocol.control_records import Marker, read_marker
from broker.protocol.errors import MalformedRecordsError
from broker.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_FLAG,
    BatchHeader,
    batch_crc_is_valid,
    iter_batch_headers,
    iter_records,
    parse_batch_header,
)
from broker.protocol.rewrite import check_records, recompress_batch

_PATCH: Final = struct.Struct(">qii")
_PATCH_BYTES: Final = _PATCH.size
_AFTER_CRC: Final = struct.Struct(">hiqq")
_ATTRIBUTES_TO_TIMESTAMPS: Final = CRC_START + _AFTER_CRC.size
_MAGIC_POSITION: Final = 16
_CRC: Final = struct.Struct(">bI")


class AppendInfo(NamedTuple):
    """Result of an append as leader; times in ms, -1 where they do not apply.

    `duplicate`: an idempotent producer repeated a batch; the offsets are those of the original
    and nothing was written. `error`: why the records do not stand as asked; a value of broker.log
    or broker.replication that the handlers map to Kafka's codes.
    """

    base_offset: int = -1
    last_offset: int = -1
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    size_bytes: int = 0
    duplicate: bool = False
    error: Exception | None = None


@dataclass(slots=True, kw_only=True)
class AppendPlan:
    """Buffers to write in this order, and what they mean."""

    next_offset: int
    buffers: list[memoryview | bytes] = field(default_factory=list)
    batches: list[PlacedBatch] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    producers: ProducerAppend | None = None
    max_timestamp: int = NO_TIMESTAMP
    size_bytes: int = 0
    duplicate: ProducerBatch | None = None

    def place(self, header: BatchHeader, base_offset: int, max_timestamp: int) -> None:
        """Note where a batch goes."""
        last_offset = base_offset + header.last_offset_delta
        size_bytes = header.size_bytes
        self.batches.append(PlacedBatch(base_offset, last_offset, max_timestamp, size_bytes))
        self.next_offset = last_offset + 1
        self.size_bytes += size_bytes
        self.max_timestamp = max(self.max_timestamp, max_timestamp)

    def admit(
        self, state: ProducerState, header: BatchHeader, batch: memoryview, *, is_checked: bool
    ) -> None:
        """Take a producer's batch into account, at the plan's next offset."""
        if header.producer_id >= 0:
            if self.producers is None:
                self.producers = state.begin()
            marker = _marker_of(batch) if header.is_control else None
            self.producers.add(header, self.next_offset, marker, is_checked=is_checked)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderRules:
    """Rules by which a leader validates batches; `is_from_client` adds what only brokers may do."""

    config: LogConfig
    leader_epoch: int
    now_ms: int
    is_from_client: bool
    are_records_checked: bool = True
    """Of clients: whether records are decompressed, and their lengths followed."""
    verification: object = None
    """By which transactional batches of clients may enter (ProducerState.is_verified)."""


def plan_as_leader(
    records: memoryview, next_offset: int, producers: ProducerState, rules: LeaderRules
) -> AppendPlan:
    """Give each batch its offsets, from `next_offset` on.

    :raises RecordsRejectedError: any batch is not fit; then none is written.
    """
    if len(records) > _MAGIC_POSITION and records[_MAGIC_POSITION] != MAGIC_V2:
        # Formats 0 and 1 have shorter headers, but the magic stands in the same place.
        raise UnsupportedMagicError(f"record format {records[_MAGIC_POSITION]} is not {MAGIC_V2}")
    plan = AppendPlan(next_offset=next_offset)
    end = 0
    for header, position in _headers(records):
        end = position + header.size_bytes
        batch = records[position:end]
        _check_batch(batch, header, rules)
        duplicate = producers.find_duplicate(header) if header.producer_id >= 0 else None
        if duplicate is not None:
            plan.duplicate = duplicate
            return plan
        if header.producer_id >= 0:
            _check_transaction(header, producers, rules)
            plan.admit(producers, header, batch, is_checked=True)
        if rules.config.codec_of(header.codec) != header.codec:
            batch = _recompressed(batch, header, rules)
            header = parse_batch_header(batch)
        timestamp = header.max_timestamp
        if rules.config.is_log_append_time:
            timestamp = rules.now_ms
            plan.buffers.append(_restamped(batch, header, plan.next_offset, rules))
            plan.buffers.append(batch[HEADER_BYTES:])
        else:
            patch = _PATCH.pack(plan.next_offset, header.batch_length, rules.leader_epoch)
            plan.buffers.append(patch)
            plan.buffers.append(batch[_PATCH_BYTES:])
        plan.place(header, plan.next_offset, timestamp)
    if end != len(records) or not plan.batches:
        raise InvalidRecordError(f"{len(records) - end} of {len(records)} bytes are not a batch")
    if plan.size_bytes > rules.config.segment_bytes:
        raise BatchTooLargeError(
            f"{plan.size_bytes} bytes exceed segment.bytes={rules.config.segment_bytes}"
        )
    plan.epochs.append((rules.leader_epoch, plan.batches[0].base_offset))
    return plan


def plan_as_follower(records: memoryview, next_offset: int, producers: ProducerState) -> AppendPlan:
    """Take over whole batches with the offsets and epochs that the leader gave them.

    A partial batch at the end (a fetch cut by its size limit) is left out.

    :raises RecordsRejectedError: a batch is damaged or does not follow the log's end.
    """
    plan = AppendPlan(next_offset=next_offset)
    end = 0
    for header, position in _headers(records):
        end = position + header.size_bytes
        batch = records[position:end]
        _check_format(batch, header)
        if header.base_offset < plan.next_offset:
            raise OffsetsOutOfOrderError(
                f"a batch at offset {header.base_offset} cannot follow {plan.next_offset - 1}"
            )
        plan.next_offset = header.base_offset
        plan.admit(producers, header, batch, is_checked=False)
        epoch = header.partition_leader_epoch
        if epoch >= 0 and (not plan.epochs or plan.epochs[-1][0] < epoch):
            plan.epochs.append((epoch, header.base_offset))
        plan.place(header, header.base_offset, header.max_timestamp)
    if end:
        plan.buffers.append(records[:end])
    return plan


def _marker_of(batch: memoryview) -> Marker | None:
    try:
        return read_marker(batch)
    except MalformedRecordsError as error:
        raise CorruptBatchError(str(error)) from error


def _check_transaction(header: BatchHeader, producers: ProducerState, rules: LeaderRules) -> None:
    """Where nobody knows of it, nobody ends it: readers and compaction would wait for ever."""
    is_verifiable = rules.is_from_client or rules.verification is not None
    if not header.is_transactional or header.is_control or not is_verifiable:
        return
    if not producers.is_verified(header, rules.verification):
        raise InvalidTxnStateError(
            f"the partition is not part of an ongoing transaction of producer {header.producer_id}"
        )


def _headers(records: memoryview) -> list[tuple[BatchHeader, int]]:
    try:
        return list(iter_batch_headers(records))
    except MalformedRecordsError as error:
        raise CorruptBatchError(str(error)) from error


def _check_format(batch: memoryview, header: BatchHeader) -> None:
    if header.magic != MAGIC_V2:
        raise UnsupportedMagicError(f"record format {header.magic}; this broker stores {MAGIC_V2}")
    if not batch_crc_is_valid(batch, header):
        raise CorruptBatchError(f"the CRC of the batch at offset {header.base_offset} is wrong")
    if header.last_offset_delta < 0:
        raise CorruptBatchError(f"a last offset delta of {header.last_offset_delta}")


def _check_batch(batch: memoryview, header: BatchHeader, rules: LeaderRules) -> None:
    _check_size(header.size_bytes, rules)
    _check_format(batch, header)
    if header.records_count != header.last_offset_delta + 1:
        raise InvalidRecordError(
            f"{header.records_count} records cannot span {header.last_offset_delta + 1} offsets"
        )
    if rules.is_from_client:
        _check_client_batch(batch, header, rules)


def _check_client_batch(batch: memoryview, header: BatchHeader, rules: LeaderRules) -> None:
    config = rules.config
    if header.base_offset:
        raise InvalidRecordError(f"a batch comes with base offset {header.base_offset}, not 0")
    if header.producer_id >= 0 > header.base_sequence:
        raise InvalidRecordError(
            f"sequence {header.base_sequence} cannot be of producer id {header.producer_id}"
        )
    if header.codec not in CODEC_NAMES:
        raise InvalidRecordError(f"compression codec {header.codec} is none that Kafka knows")
    if header.is_control:
        raise InvalidRecordError("clients may not write control records")
    if header.is_transactional and header.producer_id < 0:
        raise InvalidRecordError("a transactional batch names no producer")
    if header.is_log_append_time:
        raise InvalidTimestampError("clients may not mark a batch as LogAppendTime")
    if rules.are_records_checked:
        _check_records(batch, header)
    times = _Times.of(config, rules.now_ms)
    if config.is_compacted or times.may_exclude(header):
        _check_each_record(batch, header, times, config)


def _check_records(batch: memoryview, header: BatchHeader) -> None:
    """A batch that cannot be opened would stop each of its consumers for ever."""
    try:
        plain = decompress(header.codec, batch[HEADER_BYTES : header.size_bytes])
        check_records(plain, header.records_count)
    except MalformedRecordsError as error:
        raise InvalidRecordError(str(error)) from error


def _check_size(size_bytes: int, rules: LeaderRules) -> None:
    limit = rules.config.max_message_bytes
    if rules.is_from_client and size_bytes > limit:
        raise BatchTooLargeError(f"a batch of {size_bytes} bytes exceeds max.message.bytes={limit}")


def _recompressed(batch: memoryview, header: BatchHeader, rules: LeaderRules) -> memoryview:
    """The batch in the codec of the topic, which may be larger than the one that came."""
    codec = rules.config.codec_of(header.codec)
    try:
        stored = recompress_batch(batch, header, codec, rules.config.compression_level(codec))
    except MalformedRecordsError as error:
        raise InvalidRecordError(str(error)) from error
    _check_size(len(stored), rules)
    return memoryview(stored)


class _Times(NamedTuple):
    """The timestamps that a topic takes, in ms; both are within."""

    first: int = -INT64_MAX
    last: int = INT64_MAX

    @classmethod
    def of(cls, config: LogConfig, now_ms: int) -> "_Times":
        if config.is_log_append_time:
            return cls()
        return cls(
            now_ms - config.message_timestamp_before_max_ms,
            now_ms + config.message_timestamp_after_max_ms,
        )

    def may_exclude(self, header: BatchHeader) -> bool:
        """Whether the batch may hold a record that is too old or too new: a header does not tell
        its oldest one."""
        return self.first > 0 or header.max_timestamp > self.last


def _check_each_record(
    batch: memoryview, header: BatchHeader, times: _Times, config: LogConfig
) -> None:
    """Each record that this topic may not hold is told, in Kafka's words."""
    refused: dict[int, str] = {}
    is_late = False
    try:
        for number, record in enumerate(iter_records(batch)):
            if config.is_compacted and record.key is None:
                refused[number] = "Compacted topic cannot accept message without key"
            elif record.timestamp != NO_TIMESTAMP and not (
                times.first <= record.timestamp <= times.last
            ):
                is_late = True
                refused[number] = (
                    f"Timestamp {record.timestamp} of message with offset {number} is out of "
                    f"range. The timestamp should be within [{times.first}, {times.last}]"
                )
    except MalformedRecordsError as error:
        raise InvalidRecordError(str(error)) from error
    if is_late:
        reason = "One or more records have been rejected due to invalid timestamp"
        raise InvalidTimestampError(reason, refused)
    if refused:
        first = "; ".join(f"record {number}: {why}" for number, why in [*refused.items()][:3])
        raise InvalidRecordError(
            f"One or more records have been rejected due to {len(refused)} record errors in total, "
            f"and only showing the first three errors at most: {first}",
            refused,
        )
    if header.max_timestamp > times.last:
        raise InvalidTimestampError(
            f"the batch tells a timestamp of {header.max_timestamp}, which none of its records has"
        )


def _restamped(
    batch: memoryview, header: BatchHeader, base_offset: int, rules: LeaderRules
) -> bytes:
    """The 61 header bytes with the broker's time, and the CRC that follows from it."""
    checked = _AFTER_CRC.pack(
        header.attributes | TIMESTAMP_TYPE_FLAG,
        header.last_offset_delta,
        header.base_timestamp,
        rules.now_ms,
    ) + bytes(batch[_ATTRIBUTES_TO_TIMESTAMPS:HEADER_BYTES])
    crc: int = fastcrc.crc32.iscsi(batch[HEADER_BYTES:], fastcrc.crc32.iscsi(checked))
    patch = _PATCH.pack(base_offset, header.batch_length, rules.leader_epoch)
    return patch + _CRC.pack(header.magic, crc) + checked
