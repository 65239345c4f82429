"""Records of the metrics topic as the driver looks at them first: envelopes and verdicts.

The driver reads the head of each record (a few hundred bytes; of a record of version 1, which has
none, the whole) and leaves the rest to ``spark_metrics.parse``. A record is bad when it is not
JSON, lacks what every sample has, or claims a time far ahead of its own timestamp in the topic (it
would stay "the newest" for ever).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from broker.metrics_schema import BUCKETS, PACKED_VERSION, SCHEMA_VERSION
from spark_metrics.clocks import Clocks, Seen, Shift
from spark_metrics.memory import Observed, RegisteredBroker
from spark_metrics.registry import RegisteredGroup
from spark_metrics.rounds import RoundPart, SourceKey

AHEAD_MS_MAX: Final = 86_400_000
"""What claims to be read so much later than it was written is bad."""
SENT_MS_MAX: Final = 60_000
"""A record's timestamp is when it was sent, if it is so much after its round's begin at most."""
BAD_CHARS_MAX: Final = 4_000
WAVES_MAX: Final = 6
"""So many rounds of one source are told apart in one batch; older ones count as the oldest."""
WAVES_ROWS_MAX: Final = 20_000
"""A batch of more rows is one wave: who must catch up must not be made slower."""
_ENVELOPE: Final = ("cluster", "broker", "broker_epoch", "round_ms", "interval_ms")
_INTEGERS: Final = (*("v", "broker", "round_ms", "broker_epoch", "interval_ms", "part", "parts"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRecord:
    """A record as the topic has it; an empty value counts as no text."""

    partition: int
    offset: int
    timestamp_ms: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What the driver knows of one record; ``part`` is null when it is no sample."""

    record: KafkaRecord
    part: RoundPart | None = None
    is_bad: bool = False
    brokers: tuple[RegisteredBroker, ...] = ()
    groups: tuple[RegisteredGroup, ...] = ()
    rows: Mapping[str, int] | None = None
    """How many rows of which kind the body has."""
    bucket: int | None = None
    """The bucket of topics that all its rows are of, as it says."""
    body: bytes | memoryview = b""
    """One line of JSON: the rows, of version 1 the whole record; of version 3 the columns' bytes
    follow. No copy of the record."""
    version: int = SCHEMA_VERSION
    """1, 2, or 3 where columns are packed; what is newer is read as one of these."""
    shift: Shift | None = None
    """What the times of its body are still to be corrected by."""
    shift_ms: int = 0
    """By how much all other times were."""

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


def read_head(record: KafkaRecord) -> Head:
    """The head of one record, whatever it is."""
    try:
        end = record.value.find(b"\n")
        has_body = end >= 0
        document = json.loads((record.value[:end] if has_body else record.value).decode())
        body = memoryview(record.value)[end + 1 :] if has_body else b""
        if not document.get("packed"):
            record.value.decode()
            if document["v"] == 1 or (has_body and record.value.find(b"\n", end + 1) >= 0):
                document, body = json.loads(record.value), record.value
        if not _is_sample(document, record.timestamp_ms):
            return Head(record=record, is_bad=True)
        return _head(record, document, body)
    except (ValueError, TypeError, LookupError, AttributeError):
        return Head(record=record, is_bad=True)


def _is_sample(document: Mapping[str, Any], kafka_ms: int) -> bool:
    envelope = {"broker_epoch": -1, "interval_ms": 1_000, "part": 0, "parts": 1, **document}
    return (
        all(type(envelope[name]) is int for name in _INTEGERS)
        and envelope["v"] >= 1
        and isinstance(document["cluster"], str)
        and not set(document["cluster"]) & set("\t\n\r")
        and document["round_ms"] <= kafka_ms + AHEAD_MS_MAX
    )


def _head(record: KafkaRecord, document: Mapping[str, Any], body: bytes | memoryview) -> Head:
    brokers, bad_brokers = _readable(document, "brokers", _broker)
    groups, bad_groups = _readable(document, "groups", _group)
    part = RoundPart(
        **{"broker_epoch": -1, "interval_ms": 1_000}
        | {name: document[name] for name in _ENVELOPE if name in document},
        part=document.get("part", 0),
        parts=document.get("parts", 1),
        has_brokers=bool(document.get("brokers")),
        tells_orphans=document.get("tells_orphans") is True,
        of_orphans=document.get("of_orphans") is True,
    )
    return Head(
        record=record,
        part=part,
        is_bad=bad_brokers or bad_groups,
        brokers=brokers,
        groups=groups,
        rows={kind: _count(document.get(kind)) for kind in ("replicas", "commits")},
        bucket=_bucket(document.get("bucket")),
        body=body,
        version=PACKED_VERSION if document.get("packed") else min(document["v"], SCHEMA_VERSION),
    )


def _count(rows: Any) -> int:
    return rows if isinstance(rows, int) else len(rows or ())


def _bucket(told: Any) -> int | None:
    return told if type(told) is int and 0 <= told < BUCKETS else None


def _readable(document: Mapping[str, Any], kind: str, read: Any) -> tuple[tuple[Any, ...], bool]:
    """The rows that can be read, and whether some could not."""
    found, is_bad = [], False
    for row in document.get(kind) or ():
        try:
            found.append(read(document, row))
        except (TypeError, LookupError, ValueError):
            is_bad = True
    return tuple(found), is_bad


def _broker(document: Mapping[str, Any], row: Mapping[str, Any]) -> RegisteredBroker:
    if row["read_ms"] > document["round_ms"] + AHEAD_MS_MAX:
        raise ValueError("read in the future")
    return RegisteredBroker(
        cluster=document["cluster"],
        broker=int(row["id"]),
        host=str(row["host"]),
        port=int(row["port"]),
        rack=row.get("rack"),
        is_fenced=bool(row["fenced"]),
        is_controller=bool(row.get("is_controller")),
        broker_epoch=row.get("epoch"),
        disk_total_bytes=row.get("disk_total_bytes"),
        disk_usable_bytes=row.get("disk_usable_bytes"),
        read_ms=int(row["read_ms"]),
    )


def _group(document: Mapping[str, Any], row: Mapping[str, Any]) -> RegisteredGroup:
    return RegisteredGroup(
        cluster=document["cluster"],
        group_id=str(row["group_id"]),
        source=document["broker"],
        round_ms=document["round_ms"],
        state=str(row["state"]),
        protocol=str(row.get("protocol") or ""),
        members=int(row.get("members") or 0),
        read_ms=int(row["read_ms"]),
    )


def seen_of(heads: Iterable[Head]) -> dict[SourceKey, Seen]:
    """What there is of each source, by its own clock."""
    found: dict[SourceKey, Seen] = {}
    for head in heads:
        if head.part is not None:
            key, round_ms = SourceKey(head.part.cluster, head.part.broker), head.part.round_ms
            so_far = found.get(key, Seen(first_ms=round_ms, sent_ms=0))
            found[key] = Seen(
                first_ms=min(so_far.first_ms, round_ms), sent_ms=max(so_far.sent_ms, _sent_ms(head))
            )
    return found


def _sent_ms(head: Head) -> int:
    assert head.part is not None
    late_ms = head.record.timestamp_ms - head.part.round_ms
    return head.part.round_ms + (late_ms if 0 <= late_ms <= SENT_MS_MAX else 0)


def set_right(heads: Sequence[Head], clocks: Clocks) -> list[Head]:
    """The same samples with their times by the job's clock."""
    shifts = {key: clock.shift for key, clock in clocks.items()}
    return [
        head
        if head.part is None
        or (shift := shifts.get(SourceKey(head.part.cluster, head.part.broker))) is None
        else head.shifted(shift)
        for head in heads
    ]


def observed(heads: Sequence[Head], *, offsets_of: Sequence[Head], at_ms: int) -> Observed:
    """What the memory takes from a wave of samples; ``offsets_of``: all that was read with it;
    ``at_ms``: the time now."""
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


def bad_value(head: Head) -> dict[str, Any]:
    """What is kept of a record that could not be read."""
    return {
        "kafka_partition": head.record.partition,
        "kafka_offset": head.record.offset,
        "kafka_ms": head.record.timestamp_ms,
        "bad_text": head.record.value.decode(errors="replace")[:BAD_CHARS_MAX],
    }


def cut_waves(heads: Sequence[Head]) -> list[list[tuple[int, Head]]]:
    """The samples of a batch, numbered, as waves of at most one round of each source.

    A batch that catches up after a pause has many rounds of one source. Each is worth a look of
    its own (speeds, points of history); the newest rounds of all sources are the last wave.
    """
    samples = [(number, head) for number, head in enumerate(heads) if head.part is not None]
    rows = sum(sum((head.rows or {}).values()) for _, head in samples)
    rounds: dict[tuple[str, int], set[int]] = {}
    for _, head in samples:
        assert head.part is not None
        key = (head.part.cluster, head.part.broker)
        rounds.setdefault(key, set()).add(head.part.round_ms)
    deepest = max(map(len, rounds.values()), default=1)
    count = 1 if rows > WAVES_ROWS_MAX else min(deepest, WAVES_MAX)
    ranks = {
        key: {at: n for n, at in enumerate(sorted(found, reverse=True))}
        for key, found in rounds.items()
    }
    waves: list[list[tuple[int, Head]]] = [[] for _ in range(count)]
    for number, head in samples:
        assert head.part is not None
        rank = ranks[head.part.cluster, head.part.broker][head.part.round_ms]
        waves[max(0, count - 1 - rank)].append((number, head))
    return waves
