"""Records of the metrics topic as the driver looks at them first: envelopes and verdicts.

The driver reads the head of each record, its first line (a few hundred bytes), and leaves the rest
to ``decode.record_rows``. A record is bad when it is not JSON,
lacks what every sample has, says something out of range (``decode.checks``), or claims a time far
ahead of its own timestamp in the topic (it would stay "the newest" for ever).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.metrics_schema import BUCKETS, LogDirSample
from spark_metrics.decode.checks import (
    AHEAD_MS_MAX,
    ENVELOPE,
    INT_MAX,
    RECORD_ROWS_MAX,
    UNREADABLE,
    flag,
    json_object,
    text,
    whole,
    whole_or_none,
)
from spark_metrics.state.job_state import JobState, Observed, RegisteredBroker
from spark_metrics.state.known_groups import RegisteredGroup
from spark_metrics.state.rounds import RoundPart, SourceKey
from spark_metrics.state.source_clocks import Clocks, Seen, Shift

SENT_MS_MAX: Final = 60_000
"""A record's timestamp is when it was sent, if it is so much after its round's begin at most."""
BAD_CHARS_MAX: Final = 4_000
STEPS_MAX: Final = 6
"""Rounds of one source that are told apart in one batch; older ones count as the oldest."""
STEPS_ROWS_MAX: Final = 20_000
"""A batch of more rows is one step: who must catch up must not be made slower."""
LOG_DIRS_MAX: Final = 1_000
"""A row that tells more of one broker is bad."""
_DEFAULTS: Final = {"broker_epoch": -1, "interval_ms": 1_000, "part": 0, "parts": 1}
_BLANKS: Final = frozenset("\t\n\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRecord:
    """A record as the topic has it; an empty value counts as no text."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The head of one record; ``part`` is null when the record is no sample."""

    record: KafkaRecord
    part: RoundPart | None = None
    is_bad: bool = False
    brokers: tuple[RegisteredBroker, ...] = ()
    groups: tuple[RegisteredGroup, ...] = ()
    rows: Mapping[str, int] | None = None
    """How many rows of which kind the body has."""
    bucket_of: tuple[int, int] | None = None
    """The bucket that all its rows are of, and of how many, as it says."""
    body: bytes | memoryview = b""
    """One line of JSON: the rows; where they are packed the columns' bytes follow. No copy of the
    record."""
    is_packed: bool = False
    """Whether columns are bytes (version 3 of the samples) or JSON (version 2)."""
    shift: Shift | None = None
    """What the times of its body are still to be corrected by."""
    shift_ms: int = 0
    """Milliseconds by which all other times were corrected."""

    def buckets(self, count: int) -> range:
        """The buckets, of so many, that its rows may be of."""
        return buckets_within(*(self.bucket_of or (0, 1)), count)

    def shifted(self, shift: Shift) -> "Head":
        """The same by the job's clock."""
        assert self.part is not None
        by_ms = shift.of(self.part.round_ms)
        return replace(
            self,
            part=replace(self.part, round_ms=self.part.round_ms - by_ms),
            brokers=tuple(replace(it, read_ms=it.read_ms - by_ms) for it in self.brokers),
            groups=tuple(
                replace(it, round_ms=it.round_ms - by_ms, read_ms=it.read_ms - by_ms)
                for it in self.groups
            ),
            shift=shift,
            shift_ms=by_ms,
        )


NumberedHeads = Sequence[tuple[int, Head]]
"""Heads with the numbers of their records in the batch."""


def buckets_within(bucket: int, of: int, count: int) -> range:
    """The buckets, of ``count``, that share a partition with this one of ``of``."""
    if of % count == 0:
        return range(bucket % count, bucket % count + 1)
    return range(bucket, count, of) if count % of == 0 else range(count)


def read_head(record: KafkaRecord, *, with_groups: bool = True) -> Head:
    """The head of one record, whatever it is.

    Brokers and groups concern every bucket: those in a record of one bucket are passed over.
    """
    try:
        end = record.value.find(b"\n")
        line = record.value if end < 0 else record.value[:end]
        document = json_object(line)
        body = memoryview(record.value)[len(line) + 1 :]
        if not document.get("packed"):
            record.value.decode()
            if record.value.count(b"\n") > 1:
                raise ValueError("more than a head and a body")
        if document.get("bucket_of"):
            document |= {"brokers": (), "groups": ()}
        if not with_groups:
            document["groups"] = ()
        return _head(record, _part(document, record.timestamp_ms), document, body)
    except UNREADABLE:
        return Head(record=record, is_bad=True)


def _part(document: Mapping[str, Any], kafka_ms: int) -> RoundPart:
    """The envelope, judged.

    Raises:
        UNREADABLE: it is none.
    """
    fields = {**_DEFAULTS, **document}
    numbers = {name: whole(fields[name], of) for name, of in ENVELOPE.items()}
    del numbers["v"]
    if numbers["part"] >= numbers["parts"]:
        raise ValueError("no part of a round")
    if numbers["round_ms"] > kafka_ms + AHEAD_MS_MAX or _BLANKS & set(text(document["cluster"])):
        raise ValueError("no sample")
    return RoundPart(
        cluster=document["cluster"],
        **numbers,
        has_brokers=bool(document.get("brokers")),
        tells_orphans=document.get("tells_orphans") is True,
        of_orphans=document.get("of_orphans") is True,
        parts_of=_parts_of(document.get("parts_of"), numbers["parts"]),
        needed=None,
    )


def _head(
    record: KafkaRecord,
    part: RoundPart,
    document: Mapping[str, Any],
    body: bytes | memoryview,
) -> Head:
    brokers, bad_brokers = _readable(part, document.get("brokers"), _broker)
    groups, bad_groups = _readable(part, document.get("groups"), _group)
    return Head(
        record=record,
        part=part,
        is_bad=bad_brokers or bad_groups,
        brokers=brokers,
        groups=groups,
        rows={
            kind: whole(document.get(kind) or 0, (0, RECORD_ROWS_MAX))
            for kind in ("replicas", "commits")
        },
        bucket_of=_bucket_of(document.get("bucket_of")),
        body=body,
        is_packed=bool(document.get("packed")),
    )


def _bucket_of(told: Any) -> tuple[int, int] | None:
    """A bucket and how many there are; None: the rows may be of all."""
    try:
        bucket, buckets = told
        whole(bucket, (0, whole(buckets, (1, BUCKETS)) - 1))
    except UNREADABLE:
        return None
    return bucket, buckets


def _parts_of(told: Any, parts: int) -> tuple[int, ...] | None:
    """How many parts a round has of each bucket; None: it is not told, or cannot be."""
    if not isinstance(told, list) or not 0 < len(told) <= BUCKETS:
        return None
    is_told = all(type(it) is int and 0 <= it <= parts for it in told) and sum(told) <= parts
    return tuple(told) if is_told else None


def _readable(
    part: RoundPart, rows: Any, read: Callable[[RoundPart, Any], Any]
) -> tuple[tuple[Any, ...], bool]:
    """The rows that can be read, and whether some could not."""
    found, is_bad = [], False
    for row in rows or ():
        try:
            found.append(read(part, row))
        except UNREADABLE:
            is_bad = True
    return tuple(found), is_bad


def _read_ms(part: RoundPart, row: Mapping[str, Any]) -> int:
    return whole(row["read_ms"], (0, part.round_ms + AHEAD_MS_MAX))


def _broker(part: RoundPart, row: Mapping[str, Any]) -> RegisteredBroker:
    return RegisteredBroker(
        cluster=part.cluster,
        broker=whole(row["id"], (0, INT_MAX)),
        host=text(row["host"]),
        port=whole(row["port"], (-1, 65_535)),
        rack=None if row.get("rack") is None else text(row["rack"]),
        is_fenced=flag(row["fenced"]),
        is_controller=flag(row.get("is_controller", False)),
        broker_epoch=whole_or_none(row.get("epoch"), ENVELOPE["broker_epoch"]),
        disk_total_bytes=whole_or_none(row.get("disk_total_bytes")),
        disk_usable_bytes=whole_or_none(row.get("disk_usable_bytes")),
        directories=_directories(row.get("directories")),
        read_ms=_read_ms(part, row),
    )


def _directories(told: Any) -> tuple[LogDirSample, ...] | None:
    """The log directories of a broker; None: not told."""
    if told is None:
        return None
    if not isinstance(told, list) or len(told) > LOG_DIRS_MAX:
        raise ValueError("no list of log directories")
    return tuple(
        LogDirSample(
            path=text(it["path"]),
            total_bytes=whole_or_none(it.get("total_bytes")),
            usable_bytes=whole_or_none(it.get("usable_bytes")),
            size_bytes=whole(it.get("size_bytes", 0)),
            replicas=whole(it.get("replicas", 0), (0, INT_MAX)),
            is_cordoned=flag(it.get("is_cordoned", False)),
            is_failed=flag(it.get("is_failed", False)),
        )
        for it in told
    )


def _group(part: RoundPart, row: Mapping[str, Any]) -> RegisteredGroup:
    return RegisteredGroup(
        cluster=part.cluster,
        group_id=text(row["group_id"]),
        source=part.broker,
        round_ms=part.round_ms,
        state=text(row["state"]),
        protocol=text(row.get("protocol") or ""),
        members=whole(row.get("members") or 0, (0, INT_MAX)),
        read_ms=_read_ms(part, row),
        group_type=text(row.get("group_type") or ""),
        group_epoch=whole_or_none(row.get("group_epoch"), (0, INT_MAX)),
        assignment_epoch=whole_or_none(row.get("assignment_epoch"), (0, INT_MAX)),
    )


def seen_of(heads: Iterable[Head]) -> dict[SourceKey, Seen]:
    """The first and the last time of each source, by its own clock."""
    times: dict[SourceKey, Seen] = {}
    for head in heads:
        if head.part is not None:
            key, round_ms = head.part.source, head.part.round_ms
            so_far = times.get(key, Seen(first_ms=round_ms, sent_ms=0))
            times[key] = Seen(
                first_ms=min(so_far.first_ms, round_ms), sent_ms=max(so_far.sent_ms, _sent_ms(head))
            )
    return times


def _sent_ms(head: Head) -> int:
    assert head.part is not None
    late_ms = head.record.timestamp_ms - head.part.round_ms
    return head.part.round_ms + (late_ms if 0 <= late_ms <= SENT_MS_MAX else 0)


def without_taken(heads: Sequence[Head], memory: JobState) -> list[Head]:
    """Leave out the records that earlier batches have taken in.

    A checkpoint that is older than the store reads them once more. A topic that was begun anew has
    the same offsets, but its rounds are newer than all that is known of their source.
    """
    return [head for head in heads if not _is_taken(head, memory)]


def _is_taken(head: Head, memory: JobState) -> bool:
    if head.record.offset >= memory.next_offsets.get(head.record.partition, 0):
        return False
    if head.part is None:
        return True
    key, round_ms = head.part.source, head.part.round_ms
    clock, source = memory.clocks.get(key), memory.sources.get(key)
    if clock is not None and clock.shift is not None:
        round_ms -= clock.shift.of(round_ms)
    return source is not None and round_ms <= source.newest_ms


def set_right(heads: Sequence[Head], clocks: Clocks) -> list[Head]:
    """The same samples with their times by the job's clock."""
    shifts = {key: clock.shift for key, clock in clocks.items()}
    return [
        head
        if head.part is None or (shift := shifts.get(head.part.source)) is None
        else head.shifted(shift)
        for head in heads
    ]


def observed(heads: Sequence[Head], *, offsets_of: Sequence[Head], at_ms: int) -> Observed:
    """The part of a step of samples that the memory takes.

    ``offsets_of``: all that was read with it; ``at_ms``: the time now."""
    samples = [head for head in heads if head.part is not None]
    return Observed(
        parts=tuple(head.part for head in samples if head.part is not None),
        brokers=tuple(broker for head in samples for broker in head.brokers),
        offsets=_offsets(head.record for head in offsets_of),
        at_ms=at_ms,
    )


def _offsets(records: Iterable[KafkaRecord]) -> dict[int, tuple[int, int]]:
    ends: dict[int, tuple[int, int]] = {}
    for record in records:
        first, last = ends.get(record.partition, (record.offset, record.offset))
        ends[record.partition] = (min(first, record.offset), max(last, record.offset))
    return ends


def bad_value(head: Head, bad_rows: Sequence[str] = ()) -> dict[str, Any]:
    """The fields that are kept of a record that could not be read, wholly or in its bad rows."""
    return {
        "bad_rows": list(bad_rows),
        "kafka_partition": head.record.partition,
        "kafka_offset": head.record.offset,
        "kafka_ms": head.record.timestamp_ms,
        "bad_text": head.record.value.decode(errors="replace")[:BAD_CHARS_MAX],
    }


def cut_steps(heads: Sequence[Head]) -> list[list[tuple[int, Head]]]:
    """The samples of a batch, numbered, as steps of at most one round of each source.

    A batch that catches up after a pause has many rounds of one source. Each is worth a look of
    its own (speeds, points of history); the newest rounds of all sources are the last step.
    """
    samples = [(number, head) for number, head in enumerate(heads) if head.part is not None]
    rows = sum(sum((head.rows or {}).values()) for _, head in samples)
    rounds: dict[SourceKey, set[int]] = {}
    for _, head in samples:
        assert head.part is not None
        rounds.setdefault(head.part.source, set()).add(head.part.round_ms)
    deepest = max(map(len, rounds.values()), default=1)
    count = 1 if rows > STEPS_ROWS_MAX else min(deepest, STEPS_MAX)
    ranks = {
        key: {at: n for n, at in enumerate(sorted(found, reverse=True))}
        for key, found in rounds.items()
    }
    steps: list[list[tuple[int, Head]]] = [[] for _ in range(count)]
    for number, head in samples:
        assert head.part is not None
        rank = ranks[head.part.source][head.part.round_ms]
        steps[max(0, count - 1 - rank)].append((number, head))
    return steps
