"""A first picture before Spark starts: what samples say without any history.

A JVM, its session and the first, cold batch take ten seconds and more. The driver itself can read
the newest round of each source at once, and learns from it how large a JVM is wanted. What needs
two readings or more (rates, status, time lag) is null until the first batch, which knows nothing
of this and replaces it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    observed,
    read_head,
    seen_of,
    set_right,
)
from spark_metrics.decode.record_rows import parse_rows
from spark_metrics.fold.gather import gather
from spark_metrics.fold.now_tables import broker_table, group_table, replica_table
from spark_metrics.fold.sums import sums_of
from spark_metrics.job.kafka_source import SourceSettings
from spark_metrics.schema import LOG, ROWS, VIEW, arrow_schema
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import merge_groups
from spark_metrics.state.source_clocks import observe_clocks
from spark_metrics.store.files import conform
from spark_metrics.store.writer import Commit, StoreWriter, wall_clock_ms
from spark_metrics.window.tables import COMMITS, HEALTH, PARTITIONS

LOOK_BACK_MS: Final = 15_000
"""Older rounds are no news, and there may be many."""
POLL_MS: Final = 100
_KEY: Final = ["cluster", "topic", "partition"]
_MEMBER: Final = {
    "broker": "broker",
    "log_end_offset": "log_end_offset",
    "size_bytes": "size_bytes",
    "segments": "segments",
    "full_ms": "read_ms",
}
_IDS: Final = 1 << 32
"""Above any broker's id."""


def has_snapshot(writer: StoreWriter) -> bool:
    """Whether the store shows something already, or is to be left to the job."""
    return writer.manifest is not None or bool(writer.begun_afresh_because)


def show_first_snapshot(
    writer: StoreWriter, source: SourceSettings, *, is_over: Callable[[], bool]
) -> bool:
    """Commit a provisional version once every known broker's round is there.

    Gives up when ``is_over``, or when the topic cannot be read: the job itself tells why.
    Whether there is one now; a store that has figures, or is spoilt, is left to the job.
    """
    has_figures = writer.manifest is not None and not writer.manifest.is_provisional
    if has_figures or writer.begun_afresh_because:
        return False
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        heads = asyncio.run(_read(source, is_over))
    except (KafkaError, OSError, TimeoutError):
        return False
    if not heads:
        return False
    now_ms = wall_clock_ms()
    clocks = observe_clocks({}, seen_of(heads), seen_ms=now_ms, reached_ms=None)
    writer.commit(first_snapshot(set_right(heads, clocks)))
    heads.clear()
    pa.default_memory_pool().release_unused()
    return True


def first_snapshot(heads: Sequence[Head]) -> Commit:
    """The tables of "now" of these samples. Pure."""
    numbered = [(number, head) for number, head in enumerate(heads) if head.part is not None]
    memory = _memory_of(heads)
    rows = parse_rows("replicas", numbered).rows
    partitions = _partitions(gather(rows))
    told = conform(parse_rows("commits", numbered).rows, arrow_schema(ROWS["commits"]))
    commits = _commits(told, partitions)
    groups = merge_groups(
        (),
        (group for head in heads for group in head.groups),
        memory.complete_rounds(),
        memory.silent_sources(),
    )
    replicas = replica_table(partitions)
    sums = sums_of(conform(partitions, PARTITIONS), replicas, commits)
    return Commit(
        query_id="",
        batch_id=-1,
        interval_ms=memory.interval_ms,
        now={
            "partitions": conform(partitions, PARTITIONS),
            "replicas": replicas,
            "commits": commits,
            "groups": group_table(groups, sums),
            "brokers": broker_table(sums, memory),
            "health": HEALTH.empty_table(),
        },
        history={},
        state_rows=replicas.num_rows + commits.num_rows,
    )


def is_whole(heads: Sequence[Head]) -> bool:
    """Whether every live broker that is registered has told a complete round."""
    memory = _memory_of(heads)
    complete = {key for key, source in memory.sources.items() if source.complete_ms}
    wanted = {key for key, broker in memory.registry.items() if not broker.is_fenced}
    return bool(wanted) and wanted <= complete


def _memory_of(heads: Sequence[Head]) -> JobState:
    at_ms = max((head.record.timestamp_ms for head in heads), default=0)
    return JobState().observe(observed(heads, offsets_of=(), at_ms=at_ms))


async def _read(source: SourceSettings, is_over: Callable[[], bool]) -> list[Head]:
    """The samples of the last seconds as soon as they are whole; none when it is over before."""
    consumer = AIOKafkaConsumer(
        source.topic, bootstrap_servers=source.bootstrap, enable_auto_commit=False
    )
    await consumer.start()
    try:
        await _look_back(consumer)
        heads: list[Head] = []
        while not is_over() and len(heads) < source.records_per_batch_max:
            fetched = await consumer.getmany(timeout_ms=POLL_MS)
            found = [read_head(_record(it)) for records in fetched.values() for it in records]
            heads += found
            if found and is_whole(heads):
                return heads
        return []
    finally:
        await consumer.stop()


async def _look_back(consumer: Any) -> None:
    """Go to the records of the last seconds."""
    since_ms = wall_clock_ms() - LOOK_BACK_MS
    found = await consumer.offsets_for_times(dict.fromkeys(consumer.assignment(), since_ms))
    for place, first in found.items():
        if first is not None:
            consumer.seek(place, first.offset)


def _record(record: Any) -> KafkaRecord:
    return KafkaRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        value=record.value or b"",
    )


def _partitions(gathered: pa.Table) -> pa.Table:
    """``PARTITIONS``, with what ``rollup.replica_table`` asks of an answer."""
    told = gathered.filter(pc.is_valid(gathered["view"])).combine_chunks()
    view, log, rows = (_whole(told[name]) for name in ("view", "log", "rows"))
    of_log = [name for name in LOG if name in PARTITIONS.names and name not in VIEW]
    owners, members = pc.list_parent_indices(rows), rows.flatten()
    counts = np.concatenate([[0], np.cumsum(rows.value_lengths().to_numpy())])
    each = pa.StructArray.from_arrays(
        [pc.struct_field(members, name) for name in _MEMBER], list(_MEMBER.values())
    )
    in_sync = np.isin(
        _pairs(owners, pc.struct_field(members, "broker")), _listed_pairs(view, "isr")
    )

    def by_partition(values: pa.Array) -> pa.ListArray:
        return pa.ListArray.from_arrays(pa.array(counts, pa.int32()), values)

    return pa.table(
        {
            **{name: told[name] for name in _KEY},
            **{name: pc.struct_field(view, name) for name in VIEW},
            **{name: pc.struct_field(log, name) for name in of_log},
            "read_ms": pc.struct_field(log, "read_ms"),
            "in_bytes_per_s": pa.nulls(told.num_rows, pa.float64()),
            "out_bytes_per_s": pa.nulls(told.num_rows, pa.float64()),
            "members": by_partition(each),
            "in_sync": by_partition(pa.array(in_sync)),
            "behind": by_partition(pa.nulls(len(members), pa.int64())),
        }
    )


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _pairs(owners: Any, brokers: Any) -> Any:
    """Numbers for (row, broker)."""
    return owners.to_numpy().astype(np.int64) * _IDS + brokers.to_numpy()


def _listed_pairs(view: Any, name: str) -> Any:
    listed = pc.struct_field(view, name)
    return _pairs(pc.list_parent_indices(listed), pc.list_flatten(listed))


def _commits(rows: pa.Table, partitions: pa.Table) -> pa.Table:
    """``COMMITS``: lag where the end was read at or after the commit."""
    ends = partitions.select([*_KEY, "high_watermark", "log_start_offset", "read_ms"])
    ends = ends.rename_columns([*_KEY, "end", "start", "end_read_ms"])
    known = rows.filter(pc.is_valid(rows["read_ms"]))
    both = known.join(ends, keys=_KEY, join_type="left outer")
    is_later = pc.fill_null(pc.greater_equal(both["end_read_ms"], both["read_ms"]), False)
    committed, nothing = both["committed_offset"], pa.scalar(None, pa.int64())
    end = pc.if_else(is_later, both["end"], nothing)
    lag = pc.max_element_wise(pc.subtract(end, committed), 0, skip_nulls=False)
    lost = pc.max_element_wise(pc.subtract(both["start"], committed), 0, skip_nulls=False)
    told = both.append_column("end_offset", end).append_column("lag", lag)
    told = told.append_column("lost_records", pc.min_element_wise(lost, lag, skip_nulls=False))
    return conform(told, COMMITS)
