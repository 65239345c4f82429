"""Records of samples -> rows for the fold: judged, and at most one per replica or commit. Pure.

Of a record in which some rows are bad the good rows count, and the driver learns which records
those are. A step usually has one round of each source, so no row comes twice; where it does (a
batch that catches up, a record that was sent again) the newest counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.metrics.columns import TEXTS
from broker.metrics_schema import BUCKETS, RANGE_PARTITIONS, hash_of
from spark_metrics.arrow_tables import with_column
from spark_metrics.decode.checks import (
    AHEAD_MS_MAX,
    complaint,
    is_out_of_range,
    with_readable,
)
from spark_metrics.decode.json_columns import Body, Rows, read_bodies
from spark_metrics.decode.record_head import Head, NumberedHeads
from spark_metrics.keys import coded, key_codes
from spark_metrics.schema import ROWS, coded_schema
from spark_metrics.state.rounds import source_of
from spark_metrics.state.source_clocks import Shift

NAMED_MAX: Final = 5
"""Bad rows of a kind that are named."""
_TIMES: Final = ("read_ms", "since_ms", "round_ms")
_IDS: Final = {
    "replicas": ("cluster", "topic", "partition", "source"),
    "commits": ("cluster", "group_id", "topic", "partition"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The rows of one kind (``schema.ROWS``), and the records that have bad rows.

    Texts are places in dictionaries.
    """

    rows: pa.Table
    bad_numbers: frozenset[int]
    named: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The first bad rows of these records: which, and why."""


def parse_rows(kind: str, heads: NumberedHeads) -> Parsed:
    """The newest rows of this kind (``replicas`` or ``commits``) in records with their numbers."""
    with_rows = [(number, head) for number, head in heads if (head.rows or {}).get(kind)]
    schema = coded_schema(ROWS[kind])
    if not with_rows:
        return Parsed(rows=schema.empty_table(), bad_numbers=frozenset())
    bodies = [_body(number, head) for number, head in with_rows]
    read = read_bodies(kind, bodies)
    is_out = is_out_of_range(kind, read.table)
    rows = _set_right(
        replace(read, table=with_readable(read.table)), [head for _, head in with_rows]
    )
    for name, column in _envelopes(with_rows).items():
        rows = rows.append_column(name, column.take(pa.array(read.place)))
    is_bad = _bad(kind, rows) | is_out.to_numpy(zero_copy_only=False)
    numbers = np.array([body.number for body in bodies])
    bad = {int(number) for number in np.unique(numbers[read.place[is_bad]])}
    bad |= {bodies[place].number for place in read.unreadable}
    named = _named(kind, rows, is_bad, numbers[read.place])
    if is_bad.any():
        rows = rows.filter(pa.array(~is_bad))
    if kind == "commits":
        rows = _committed(rows)
    return Parsed(rows=_newest(kind, rows, schema), bad_numbers=frozenset(bad), named=named)


def _named(kind: str, rows: pa.Table, is_bad: Any, numbers: Any) -> dict[int, list[str]]:
    """The first bad rows in words, by the number of their record."""
    places = np.flatnonzero(is_bad)[:NAMED_MAX]
    complaints: dict[int, list[str]] = {}
    for number, row in zip(numbers[places], rows.take(pa.array(places)).to_pylist(), strict=True):
        whose = f"group {row['group_id']}" if kind == "commits" else f"broker {row['source']}"
        name = f"{whose}, {row['topic']}-{row['partition']}: {complaint(row)}"
        complaints.setdefault(int(number), []).append(name)
    return complaints


def _body(number: int, head: Head) -> Body:
    assert head.part is not None
    return Body(
        number=number,
        round_ms=head.part.round_ms + head.shift_ms,
        is_packed=head.is_packed,
        text=head.body,
    )


def _set_right(read: Rows, heads: Sequence[Head]) -> pa.Table:
    """The rows with the times that they tell by the job's clock; usually they are already."""
    rows = read.table
    if not any(head.shift for head in heads):
        return rows
    shifts = [head.shift or Shift(skew_ms=0, since_ms=0, before_ms=0) for head in heads]
    by_ms, skew, since, before = (
        pa.array([numbers[place] for numbers in _numbers(heads, shifts)], pa.int64()).take(
            pa.array(read.place)
        )
        for place in range(4)
    )
    for name in (it for it in ("read_ms", "commit_ms") if it in rows.column_names):
        rows = with_column(rows, name, pc.subtract(rows[name], by_ms))
    told = rows["since_ms"]
    ahead = pc.if_else(pc.greater_equal(told, since), skew, before)
    return with_column(rows, "since_ms", pc.subtract(told, ahead))


def _numbers(heads: Sequence[Head], shifts: Sequence[Shift]) -> list[tuple[int, int, int, int]]:
    pairs = zip(heads, shifts, strict=True)
    return [(head.shift_ms, it.skew_ms, it.since_ms, it.before_ms) for head, it in pairs]


def _envelopes(told: NumberedHeads) -> dict[str, pa.Array]:
    """The fields that hold for all rows of a record, one entry per record."""
    parts = [head.part for _, head in told if head.part is not None]
    return {
        "cluster": pa.array([it.cluster for it in parts], pa.string()).dictionary_encode(),
        "source": pa.array([source_of(it) for it in parts], pa.int64()),
        "broker_epoch": pa.array([it.broker_epoch for it in parts], pa.int64()),
        "round_ms": pa.array([it.round_ms for it in parts], pa.int64()),
        "bucket": pa.array([(head.bucket_of or (0, 1))[0] for _, head in told], pa.int64()),
        "buckets": pa.array([(head.bucket_of or (0, 1))[1] for _, head in told], pa.int64()),
    }


def _bad(kind: str, rows: pa.Table) -> Any:
    """Judge for each row whether it lacks what it needs, claims to be read in the future, or is of
    another bucket than its record says."""
    needed = [name for name in TEXTS[kind] if name != "member_id"]
    is_bad = pc.greater(rows["read_ms"], pc.add(rows["round_ms"], AHEAD_MS_MAX))
    for name in (*needed, "partition", "read_ms"):
        is_bad = pc.or_kleene(is_bad, pc.is_null(rows[name]))
    bucket, buckets = (rows[name].to_numpy() for name in ("bucket", "buckets"))
    if buckets.max(initial=1) > 1:
        is_bad = pc.or_kleene(is_bad, pa.array(_buckets_of(rows) % buckets != bucket))
    if kind == "replicas":
        leads = pc.equal(rows["leader"], rows["source"])
        ends = pc.or_(pc.is_null(rows["high_watermark"]), pc.is_null(rows["log_end_offset"]))
        # Only a leader must tell offsets: those of a watched cluster's followers cannot be known.
        lacks = pc.or_(pc.is_null(rows["leader"]), pc.is_null(rows["leader_epoch"]))
        lacks = pc.or_kleene(lacks, pc.and_kleene(leads, ends))
    else:
        lacks = pc.is_null(rows["committed_offset"])
    is_bad = pc.or_kleene(is_bad, pc.and_kleene(pc.is_null(rows["since_ms"]), lacks))
    return pc.fill_null(is_bad, True).to_numpy(zero_copy_only=False)


def _committed(rows: pa.Table) -> pa.Table:
    """Put null for ``NO_COMMIT``; leave out what neither is a commit nor has an owner."""
    is_commit = pc.fill_null(pc.greater_equal(rows["committed_offset"], 0), True)
    if pc.all(is_commit, min_count=0).as_py():
        return rows
    known = pc.if_else(is_commit, rows["committed_offset"], pa.scalar(None, pa.int64()))
    rows = with_column(rows, "committed_offset", known)
    return rows.filter(pc.or_(is_commit, pc.is_valid(rows["member_id"])))


def _newest(kind: str, rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """One row per replica or commit: the newest full one, and when it was read again since.

    In a row that only says that nothing has changed, all but ``again_…`` is unknown.
    """
    (codes,) = key_codes([rows], _IDS[kind])
    ordered = np.sort(codes)
    if (ordered[1:] == ordered[:-1]).any():
        return _merged(kind, rows, codes, schema)
    is_again = pc.is_valid(rows["since_ms"])
    return _told(rows, is_again, rows, pc.invert(is_again), schema)


def _told(
    full: pa.Table, is_again: Any, again: pa.Table, is_full: Any, schema: pa.Schema
) -> pa.Table:
    """Rows of ``ROWS``: figures of full rows beside the times of unchanged ones."""
    columns = {name: full[name] for name in full.column_names if name != "since_ms"}
    columns |= {name: _where(is_full, full[name]) for name in _TIMES if name != "since_ms"}
    columns |= {f"again_{name}": _where(is_again, again[name]) for name in _TIMES}
    return pa.table([_cast(columns[item.name], item.type) for item in schema], schema=schema)


def _where(condition: Any, values: Any) -> Any:
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def _cast(column: Any, to: pa.DataType) -> Any:
    return column if column.type == to else column.cast(to)


def _merged(kind: str, rows: pa.Table, codes: Any, schema: pa.Schema) -> pa.Table:
    """The same where some rows are of the same replica or commit, by these codes."""
    order, which = _by_time(rows, codes)
    is_again = pc.is_valid(rows["since_ms"]).to_numpy()[order]
    full, again = (
        _last(order[wanted], which[wanted], int(which[-1]) + 1) for wanted in (~is_again, is_again)
    )
    told, same = (rows.take(pa.array(place, mask=place < 0)) for place in (full, again))
    keys = rows.take(pa.array(np.where(full < 0, again, full)))
    for name in _IDS[kind]:
        told = with_column(told, name, keys[name])
    return _told(told, pa.array(again >= 0), same, pa.array(full >= 0), schema)


def _by_time(rows: pa.Table, codes: Any) -> tuple[Any, Any]:
    """Places of the rows by code, within it the newest last; and of each which code it has."""
    times = [rows[name].to_numpy() for name in ("round_ms", "read_ms")]
    order = np.argsort(codes, kind="stable")
    is_other = codes[order][1:] != codes[order][:-1]
    earlier, later = ([each[order][part] for each in times] for part in (_BUT_LAST, _BUT_FIRST))
    is_on = (later[1] > earlier[1]) | ((later[1] == earlier[1]) & (later[0] >= earlier[0]))
    if not (is_other | is_on).all():
        order = np.lexsort((*times, codes))
    return order, np.concatenate([[0], np.cumsum(is_other)])


_BUT_LAST: Final = slice(None, -1)
_BUT_FIRST: Final = slice(1, None)


def _last(places: Any, which: Any, count: int) -> Any:
    """The last place of each; -1: there is none."""
    found = np.full(count, -1)
    found[which] = places
    return found


def _buckets_of(rows: pa.Table) -> Any:
    """``metrics_schema.bucket_of`` of each row's partition, as a NumPy array."""
    bucket = pc.fill_null(rows["partition"], 0).to_numpy().astype(np.int64) // RANGE_PARTITIONS
    for name in ("cluster", "topic"):
        names = coded(rows[name])
        hashes = [hash_of(it or "") for it in names.dictionary.to_pylist()]
        bucket = bucket + np.array([*hashes, 0])[pc.fill_null(names.indices, -1).to_numpy()]
    return bucket % BUCKETS


def cut_rows(rows: pa.Table, buckets: int) -> list[pa.Table]:
    """The rows of each bucket."""
    if buckets == 1:
        return [rows]
    if not rows.num_rows:
        return [rows] * buckets
    bucket = _buckets_of(rows) % buckets
    return [rows.filter(pa.array(bucket == number)) for number in range(buckets)]
