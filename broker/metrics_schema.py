"""The window of the broker: samples, as they travel through the metrics topic.

A *round* is one pass of a source (a bundled broker, or the collector on behalf of one broker
of an external cluster) over everything that it can read at once. A round is cut into records of
at most ``ROWS_PER_RECORD_MAX`` rows; each record carries the envelope, so it can be understood
alone, and ``part``/``parts``, so a reader knows when it has seen the whole round (only then does
a partition that is missing mean a partition that is gone).

Every row carries ``read_ms``, the wall clock at which it was read: a group's coordinator and a
partition's leader are different brokers, and lag is only true when a committed offset is paired
with an end offset read at or after it. A source that did not read a row anew repeats it with the
time of its reading: what its newest complete round lacks is gone. Rows of brokers are the
exception: a round carries them only when they were read in it.

A partition is an *orphan* when no broker of its replicas is alive: nobody who holds it can tell
that it is there. Whoever knows metadata (the active controller; of a watched cluster the collector)
tells of all orphans in records of their own, in rounds that say so: what such a round lacks does
not exist any more.

**Version 2** is two lines of JSON. The first is the envelope with the rows of brokers and groups;
the second holds replicas and commits as columns (``metrics.columns``). **Version 3**, which the
records of large rounds are written in, says in its head that it is ``packed``: its second line
holds only what repeats, and the columns follow as bytes (``metrics.packed``).
Unknown values are absent, never 0. A later version only adds keys; ``v`` tells which one wrote the
record.

**Buckets.** Cluster, topic and range of partitions put a row into one of ``BUCKETS``
(``bucket_of``), so that readers can share the work. The more rows a round has, the finer it is cut:
cut into 16 it puts bucket 21 of 64 into records of bucket 5 of 16 (``"bucket_of":[5,16]``), and its
``"parts_of"`` tell how many records there are of each bucket, 0 included. So who reads some buckets
alone knows whether the round is whole there. Records without ``bucket_of`` concern all buckets:
those of small rounds, and the first ones of others, which list groups and brokers.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Final, TypeVar
from zlib import crc32

from broker.metrics.columns import from_columns, to_columns
from broker.metrics.packed import pack, parts_of, unpack

METRICS_TOPIC: Final = "__partiscope_metrics"
SCHEMA_VERSION: Final = 2
PACKED_VERSION: Final = 3
ROWS_PER_RECORD_MAX: Final = 500
JOB_ROWS_PER_S: Final = 60_000
"""What sources together give the metrics job at most: they grow their interval instead."""
BUCKETS: Final = 64
"""It never changes, however many of them one reader takes."""
RANGE_PARTITIONS: Final = 256
"""So many partitions of a topic are in one bucket; a topic with more is in several."""
BUCKETED_ROWS_MIN: Final = 1_000
"""A round of fewer rows is not cut by bucket: its records would be many and small."""
PACKED_BUCKETS_MIN: Final = 8
"""Columns of a round cut into so many are packed (4,000 rows); any tool reads those of others."""
NO_COMMIT: Final = -1
"""As a committed offset, what OffsetFetch answers where there is none."""
LOG_POINTS_MAX: Final = 8
"""At most this many points of a log's times per replica."""
SEGMENT_SIZES_MAX: Final = 100
"""At most this many segment sizes per replica, the newest; ``segments`` counts them all."""


class SampleDecodeError(ValueError):
    """A record of the metrics topic that is not a sample of a version we know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSample:
    """One replica as its broker sees it: the leader's row and each follower's row."""

    topic: str
    partition: int
    leader: int
    """Broker id, -1 when there is none."""
    leader_epoch: int
    replicas: Sequence[int]
    """In assignment order: the first is the preferred leader."""
    isr: Sequence[int]
    read_ms: int
    log_start_offset: int | None = None
    """Offsets are null where the protocol does not tell: of followers on watched clusters."""
    high_watermark: int | None = None
    log_end_offset: int | None = None
    size_bytes: int | None = None
    """Bytes of all segments' .log files; null when the source may not read it."""
    segments: int | None = None
    """Number of segments; null on clusters watched by the Kafka protocol alone."""
    segment_bytes: Sequence[int] | None = None
    """Sizes of the newest segments, oldest first."""
    segment_offsets: Sequence[int] | None = None
    """Base offsets of the same segments."""
    adding_replicas: Sequence[int] = ()
    removing_replicas: Sequence[int] = ()
    min_isr: int | None = None
    """min.insync.replicas of the topic."""
    bytes_in: int | None = None
    """Bytes appended by producers since the broker started (leaders only count)."""
    bytes_out: int | None = None
    """Bytes served to consumers since the broker started."""
    retention_ms: int | None = None
    """retention.ms of the topic, -1 for ever; null unless records are deleted by age."""
    retention_bytes: int | None = None
    """retention.bytes of the topic, -1 where size deletes nothing; null: not told."""
    log_points: Sequence[int] | None = None
    """Offsets and timestamps (ms) of records in the log by turns, oldest first: when was what
    written. Null where the source may not read the log, or has not looked at it since the last."""
    readable_offset: int | None = None
    """Behind it are only control records, records of aborted transactions, and open transactions:
    a consumer with ``isolation.level=read_committed`` gets none. Null: not looked at, or not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedReplica:
    """A replica that is the same as in its source's row read at ``since_ms``."""

    topic: str
    partition: int
    read_ms: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSample:
    """A group's committed offset of one partition, from the group's coordinator."""

    group_id: str
    topic: str
    partition: int
    committed_offset: int
    """Of a share group the start offset: every record before it is acknowledged or given up.
    ``NO_COMMIT``: a member owns the partition, and the group has committed nothing there."""
    read_ms: int
    commit_ms: int | None = None
    """When the group committed it; null where the protocol does not tell."""
    member_id: str | None = None
    """Who owns the partition now; null when nobody does."""
    told_lag: int | None = None
    """Records that a share group has not acknowledged, as its broker tells: end offset less start
    offset less what is acknowledged beyond it. Null for other groups and where it is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnchangedCommit:
    """A commit that is the same as in its source's row read at ``since_ms``."""

    group_id: str
    topic: str
    partition: int
    read_ms: int
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSample:
    """A group, whether or not it ever committed."""

    group_id: str
    state: str
    """Kafka's words: Stable, Empty, PreparingRebalance, CompletingRebalance, Dead."""
    members: int
    read_ms: int
    protocol: str = ""
    """Assignor chosen by the members, e.g. ``range``."""
    group_type: str = ""
    """``classic``, ``consumer``, ``share`` or ``streams``; empty: its coordinator does not tell."""
    group_epoch: int | None = None
    """Null for classic groups, which have none, and where nobody described the group."""
    assignment_epoch: int | None = None
    """Below the group's epoch while a rebalance computes the new assignment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirSample:
    """A log directory as its broker describes it. A failed one tells its path alone."""

    path: str
    total_bytes: int | None = None
    """Of its file system, which other directories may share; null: its broker does not tell."""
    usable_bytes: int | None = None
    size_bytes: int = 0
    """Of its replicas."""
    replicas: int = 0
    """Also those that are being copied here from another directory of the broker."""
    is_cordoned: bool = False
    """It takes no new replicas (KIP-1066); false where its broker does not tell (before 4.3)."""
    is_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSample:
    """A registered broker, as the sampling broker's metadata knows it."""

    id: int
    host: str
    """Empty, and the port -1: it runs, but lacks the listener by which the cluster is read."""
    port: int
    fenced: bool
    read_ms: int
    rack: str | None = None
    epoch: int | None = None
    is_controller: bool = False
    disk_total_bytes: int | None = None
    """Only on the row of the sampling broker itself; null on the others."""
    disk_usable_bytes: int | None = None
    directories: Sequence[LogDirSample] | None = None
    """Its log directories; like the disk, which leaves failed ones out, told of the sampling broker
    only. Null: not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Fields that every record of a round repeats."""

    cluster: str
    """Cluster id."""
    broker: int
    """Id of the broker that was sampled."""
    broker_epoch: int
    """Epoch of its registration: counters restart with it; -1 where unknown."""
    round_ms: int
    """Wall clock at which the round began; increases from round to round of one broker."""
    interval_ms: int
    part: int = 0
    parts: int = 1
    tells_orphans: bool = False
    """The round tells of every orphan."""
    of_orphans: bool = False
    """The rows of this record are of orphans, as metadata has them: the broker holds none."""
    bucket_of: Sequence[int] | None = None
    """The bucket that all rows are of, and how many of them the round is cut into."""
    parts_of: Sequence[int] | None = None
    """How many parts there are of each bucket: the last ones of the round, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleRecord:
    """One record of the metrics topic, decoded."""

    envelope: Envelope
    replicas: Sequence[ReplicaSample] = field(default=())
    commits: Sequence[CommitSample] = field(default=())
    groups: Sequence[GroupSample] = field(default=())
    brokers: Sequence[BrokerSample] = field(default=())
    unchanged: Sequence[UnchangedReplica | UnchangedCommit] = field(default=())


Row = ReplicaSample | UnchangedReplica | CommitSample | UnchangedCommit | GroupSample | BrokerSample
_ROW_KINDS: Final[dict[str, type[Any]]] = {
    "replicas": ReplicaSample,
    "commits": CommitSample,
    "groups": GroupSample,
    "brokers": BrokerSample,
}
_UNCHANGED: Final[dict[str, type[Any]]] = {
    "replicas": UnchangedReplica,
    "commits": UnchangedCommit,
}
_KIND_OF: Final = {
    row_type: kind for kinds in (_ROW_KINDS, _UNCHANGED) for kind, row_type in kinds.items()
}
_HEAD_KINDS: Final = ("brokers", "groups")
_BODY_KINDS: Final = ("replicas", "commits")


def encode_round(
    envelope: Envelope, rows: Iterable[Row], orphans: Sequence[Row] | None = None
) -> list[bytes]:
    """Cut one round into records; all but who reads what when is filled in here.

    A round without rows is still one record: it says that the source is alive. ``orphans``: rows of
    all orphans; None: the source does not tell of them.
    """
    return [encode_part(*part) for part in cut_round(envelope, rows, orphans)]


def cut_round(
    envelope: Envelope, rows: Iterable[Row], orphans: Sequence[Row] | None = None
) -> list[tuple[Envelope, Sequence[Row]]]:
    """Envelope and rows of each record of a round, for ``encode_part``.

    The rows of a round that is not small are parted by bucket; those of a large one, whose columns
    are packed, also by kind.
    """
    whole = rows if isinstance(rows, list) else list(rows)
    count = len(whole) + len(orphans or ())
    envelope = replace(envelope, tells_orphans=orphans is not None)
    if count >= BUCKETED_ROWS_MIN:
        return _cut(envelope, whole, orphans or (), _buckets_for(count))
    of_broker, of_orphans = _chunks(whole) or [[]], _chunks(orphans or ())
    parts = len(of_broker) + len(of_orphans)
    return [
        (replace(envelope, part=part, parts=parts, of_orphans=part >= len(of_broker)), chunk)
        for part, chunk in enumerate([*of_broker, *of_orphans])
    ]


def _buckets_for(rows: int) -> int:
    """Into how many buckets a round is cut: a power of two, and a record of each is about full."""
    return min(BUCKETS, 1 << (rows // ROWS_PER_RECORD_MAX).bit_length() - 1)


def _cut(
    envelope: Envelope, whole: Sequence[Row], orphans: Sequence[Row], buckets: int
) -> list[tuple[Envelope, Sequence[Row]]]:
    """The records of a round that is not small: those of no bucket, then those of each."""
    is_packed = buckets >= PACKED_BUCKETS_MIN
    sorted_rows: dict[tuple[int, bool, str], list[Row]] = {}
    for of_orphans, rows in ((False, whole), (True, orphans)):
        for row in rows:
            bucket = -1
            if not isinstance(row, (GroupSample, BrokerSample)):
                bucket = bucket_of(envelope.cluster, row.topic, row.partition) % buckets
            kind = type(row).__name__ if is_packed else ""
            sorted_rows.setdefault((bucket, of_orphans, kind), []).append(row)
    of_none = [chunk for key in sorted(sorted_rows) if key[0] < 0 for chunk in sorted_rows[key]]
    cut = [(-1, False, chunk) for chunk in _chunks(of_none) or [[]]]
    for bucket, of_orphans, name in sorted(key for key in sorted_rows if key[0] >= 0):
        rows = sorted_rows[bucket, of_orphans, name]
        cut += [(bucket, of_orphans, chunk) for chunk in _chunks(rows)]
    parts_of = [0] * buckets
    for bucket, _, _ in cut:
        if bucket >= 0:
            parts_of[bucket] += 1
    tells = replace(envelope, parts=len(cut), parts_of=parts_of)
    return [
        (
            replace(
                tells,
                part=part,
                of_orphans=of_orphans,
                bucket_of=None if bucket < 0 else (bucket, buckets),
            ),
            chunk,
        )
        for part, (bucket, of_orphans, chunk) in enumerate(cut)
    ]


def bucket_of(cluster: str, topic: str, partition: int) -> int:
    """The bucket of a partition, from 0 to ``BUCKETS`` - 1; ranges of a topic follow each other."""
    return (hash_of(cluster) + hash_of(topic) + partition // RANGE_PARTITIONS) % BUCKETS


@lru_cache(maxsize=65_536)
def hash_of(name: str) -> int:
    """A name's share of ``bucket_of``."""
    return crc32(name.encode()) % BUCKETS


def encode_part(envelope: Envelope, rows: Sequence[Row]) -> bytes:
    """One record of a round that the caller cuts, so that a long round can be encoded in steps."""
    kinds: dict[str, list[Row]] = {}
    for row in rows:
        kinds.setdefault(_KIND_OF[type(row)], []).append(row)
    body: dict[str, list[Row]] = {kind: kinds[kind] for kind in _BODY_KINDS if kind in kinds}
    is_packed = bool(body) and len(envelope.parts_of or ()) >= PACKED_BUCKETS_MIN
    head: dict[str, Any] = {
        "v": PACKED_VERSION if is_packed else SCHEMA_VERSION,
        **({"packed": True} if is_packed else {}),
        **{name: it for name, it in _told(envelope) if it is not False},
        **{kind: len(found) for kind, found in body.items()},
        **{
            kind: [dict(_told(row)) for row in kinds[kind]] for kind in _HEAD_KINDS if kind in kinds
        },
    }
    if not body:
        return _dumps(head)
    columns = {
        f"{kind}_columns": to_columns(kind, found, envelope.round_ms)
        for kind, found in body.items()
    }
    if not is_packed:
        return b"\n".join((_dumps(head), _dumps(columns)))
    packed = {name: pack(found) for name, found in columns.items()}
    layouts = {name: layout for name, (layout, _) in packed.items()}
    return b"\n".join((_dumps(head), _dumps(layouts), b"".join(it for _, it in packed.values())))


def decode_record(value: bytes) -> SampleRecord:
    """Inverse of ``encode_round`` for one record, of version 2 or 3.

    Keys that this version does not know are ignored, so that newer sources can be read.

    Raises:
        SampleDecodeError: not JSON, not a sample, or a required key is missing.
    """
    try:
        head, _, rest = value.partition(b"\n")
        document = json.loads(head)
        if document["v"] < SCHEMA_VERSION:
            raise ValueError(f"version {document['v']}")
        columns = json.loads(rest) if rest.strip() and not document.get("packed") else {}
        if rest and document.get("packed"):
            body, _, packed = rest.partition(b"\n")
            parts = parts_of(json.loads(body), packed)
            columns = {name: unpack(*part) for name, part in parts.items()}
        document |= _rows_of(columns, document["round_ms"])
        envelope = _from_keys(Envelope, document)
        rows = {
            kind: [_from_keys(row_type, row) for row in document.get(kind) or ()]
            for kind, row_type in _ROW_KINDS.items()
        }
        unchanged = [
            _from_keys(row_type, row)
            for kind, row_type in _UNCHANGED.items()
            for row in document[f"unchanged_{kind}"]
        ]
    except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError) as error:
        raise SampleDecodeError(f"not a metrics sample: {error}") from error
    return SampleRecord(envelope=envelope, **rows, unchanged=unchanged)


def _rows_of(columns: dict[str, Any], round_ms: int) -> dict[str, Any]:
    """The rows of a body, the unchanged ones apart."""
    found: dict[str, Any] = {}
    for kind in _BODY_KINDS:
        name = f"{kind}_columns"
        rows = from_columns(kind, columns[name], round_ms) if name in columns else []
        found[kind] = [row for row in rows if "since_ms" not in row]
        found[f"unchanged_{kind}"] = [row for row in rows if "since_ms" in row]
    return found


def _chunks(rows: Sequence[Row]) -> list[Sequence[Row]]:
    size = ROWS_PER_RECORD_MAX
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _told(of: Row | LogDirSample | Envelope) -> Iterator[tuple[str, Any]]:
    """Its fields without what is unknown or empty (absent keys read as null)."""
    for name in of.__dataclass_fields__:
        if (value := getattr(of, name)) is not None and value != ():
            is_nested = name == "directories"
            yield name, [dict(_told(it)) for it in value] if is_nested else value


def _dumps(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


_T = TypeVar("_T")


def _from_keys(row_type: type[_T], document: dict[str, Any]) -> _T:
    known = {name: document[name] for name in _names(row_type) if name in document}
    if "directories" in known:
        found = known["directories"] or ()
        known["directories"] = tuple(_from_keys(LogDirSample, it) for it in found)
    return row_type(**known)


def _names(row_type: type[Any]) -> list[str]:
    return [item.name for item in fields(row_type)]
