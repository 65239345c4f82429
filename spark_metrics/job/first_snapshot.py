"""A first picture before Spark starts: what samples say without any history.

A JVM, its session and the first, cold batch take ten seconds and more. The driver itself can read
the newest round of each source at once. What needs two readings or more (rates, most verdicts) is
null until the first batch, which knows nothing of this and replaces it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from spark_metrics.arrow_tables import conform
from spark_metrics.buckets.bucket_rows import read_rows
from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    observed,
    read_head,
    seen_of,
    set_right,
)
from spark_metrics.fold.bucket import NO_COMMITS, NO_PARTITIONS, Around, BucketState, fold_bucket
from spark_metrics.fold.new_points import Clocks
from spark_metrics.fold.now_tables import broker_table, group_table
from spark_metrics.job.host_clock import host_tick
from spark_metrics.job.kafka_source import SourceSettings
from spark_metrics.state.job_clock import JobClock
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import merge_groups
from spark_metrics.state.source_clocks import compare_clocks
from spark_metrics.store.writer import Commit, StoreWriter, wall_clock_ms
from spark_metrics.window.tables import COMMITS, HEALTH, PARTITIONS

LOOK_BACK_MS: Final = 15_000
"""Older rounds are no news, and there may be many."""
POLL_MS: Final = 100


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
    clock = JobClock.begun(host_tick())
    _, clocks = compare_clocks(clock, {}, seen_of(heads), reached_ms=None)
    writer.commit(first_snapshot(set_right(heads, clocks)))
    heads.clear()
    pa.default_memory_pool().release_unused()
    return True


def first_snapshot(heads: Sequence[Head]) -> Commit:
    """The tables of "now" of these samples. Pure."""
    memory = _memory_of(heads)
    rows, _ = read_rows([(number, head) for number, head in enumerate(heads) if head.part])
    around = Around(brokers=memory.known_brokers(), alive={}, clocks=Clocks(before_ms={}))
    nothing = BucketState(partitions=NO_PARTITIONS, commits=NO_COMMITS)
    folded = fold_bucket(nothing, (), [(rows, around)])
    groups = merge_groups(
        (),
        (group for head in heads for group in head.groups),
        memory.complete_rounds(),
        memory.silent_sources(),
    )
    return Commit(
        query_id="",
        batch_id=-1,
        interval_ms=memory.interval_ms,
        now={
            "partitions": conform(folded.state.partitions, PARTITIONS),
            "replicas": folded.replicas,
            "commits": conform(folded.state.commits, COMMITS),
            "groups": group_table(groups, folded.sums),
            "brokers": broker_table(folded.sums, memory),
            "health": HEALTH.empty_table(),
        },
        history={},
        state_rows=folded.state.rows,
    )


def is_whole(heads: Sequence[Head]) -> bool:
    """Whether every live broker that is registered, and has an address, has told a complete
    round."""
    memory = _memory_of(heads)
    complete = {key for key, source in memory.sources.items() if source.complete_ms}
    registry = memory.registry.items()
    wanted = {key for key, broker in registry if broker.host and not broker.is_fenced}
    return bool(wanted) and wanted <= complete


def _memory_of(heads: Sequence[Head]) -> JobState:
    at_ms = max((head.record.timestamp_ms for head in heads), default=0)
    return JobState().observe(observed(heads, offsets_of=(), at_ms=at_ms))


async def _read(source: SourceSettings, is_over: Callable[[], bool]) -> list[Head]:
    """The samples of the last seconds as soon as they are whole; none when it is over before."""
    consumer = AIOKafkaConsumer(
        source.topic,
        bootstrap_servers=source.bootstrap,
        enable_auto_commit=False,
        **source.client.of_aiokafka(),
    )
    await consumer.start()
    try:
        await _look_back(consumer)
        heads: list[Head] = []
        while not is_over() and len(heads) < source.records_per_batch_max:
            fetched = await consumer.getmany(timeout_ms=POLL_MS)
            new = [read_head(_record(it)) for records in fetched.values() for it in records]
            heads += new
            if new and is_whole(heads):
                return heads
        return []
    finally:
        await consumer.stop()


async def _look_back(consumer: Any) -> None:
    """Go to the records of the last seconds."""
    since_ms = wall_clock_ms() - LOOK_BACK_MS
    offsets = await consumer.offsets_for_times(dict.fromkeys(consumer.assignment(), since_ms))
    for place, first in offsets.items():
        if first is not None:
            consumer.seek(place, first.offset)


def _record(record: Any) -> KafkaRecord:
    return KafkaRecord(
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp,
        value=record.value or b"",
    )
