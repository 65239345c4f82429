"""One micro-batch becomes one version of the store.

heads of records -> waves, and what is known around each -> buckets, each folded and written
    -> their sums as tables -> a version
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from broker.metrics_schema import BUCKETS
from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.buckets.plan import RECORD, BucketFold, FoldPlan, Wave
from spark_metrics.buckets.shares import buckets_for, rows_told
from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    cut_waves,
    observed,
    read_head,
    seen_of,
    set_right,
    without_taken,
)
from spark_metrics.fold.bucket import Around
from spark_metrics.fold.new_points import Clocks, job_points, sum_points
from spark_metrics.fold.now_tables import broker_table, decode_groups, group_table
from spark_metrics.fold.sums import added_sums
from spark_metrics.job.kafka_source import RECORDS_PER_BATCH_MAX
from spark_metrics.state.job_state import JobState, decode_job_state, encode_job_state
from spark_metrics.state.known_groups import RegisteredGroup, merge_groups
from spark_metrics.state.source_clocks import corrections, decode_clocks, observe_clocks
from spark_metrics.store.layout import Manifest
from spark_metrics.store.writer import Commit, StoreWriter, wall_clock_ms
from spark_metrics.window.tables import HEALTH

BAD_TEXTS_MAX: Final = 20
"""Per batch; the store keeps the newest files of them."""
REACHED_SHARE: Final = 0.9
"""A batch of fewer of the records that it may have has read the topic to its end."""


class Phases:
    """Times by name, in order of first use; what is entered again adds up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the time spent within."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            spent_s = time.perf_counter() - began_s
            self._seconds[name] = self._seconds.get(name, 0.0) + spent_s

    @property
    def ms(self) -> dict[str, int]:
        return {name: round(1_000 * spent_s) for name, spent_s in self._seconds.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """A batch in numbers, for the log and the `ready` line."""

    batch_id: int
    records: int
    bad_records: int
    lost_records: int
    duration_ms: int
    """Of computing and writing its tables; the manifest comes on top."""
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    """Where the time went, with history and manifest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The heads of a batch, read."""

    memory: JobState
    groups: list[RegisteredGroup]
    waves: list[Wave]


class MicroBatchSink:
    """``foreachBatch`` of the job: idempotent by offsets, and the store's only writer."""

    def __init__(
        self,
        writer: StoreWriter,
        *,
        query_id: Callable[[], str],
        buckets: BucketFold | None = None,
        records_max: int = RECORDS_PER_BATCH_MAX,
        clock: Callable[[], int] = wall_clock_ms,
        on_batch: Callable[[BatchReport], None] = lambda report: None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``query_id`` is asked at each batch: the checkpoint has an identity only then.
        ``buckets``: who folds them, threads of the driver if nobody is told.
        ``records_max`` bounds each; clocks of sources are compared with ``clock``."""
        self._writer = writer
        self._query_id = query_id
        self._records_max = records_max
        self._clock = clock
        self._on_batch = on_batch
        self._on_notice = on_notice
        self._buckets = buckets or DriverFold()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Commit what is not in the store already of the batch.

        Raises:
            StoreTakenError: another job writes the same store.
        """
        began_ms = wall_clock_ms()
        self._writer.check()
        if self._writer.begun_afresh_because:
            self._on_notice(f"beginning a fresh store: {self._writer.begun_afresh_because}")
        report = self._commit(batch, self._query_id(), batch_id, began_ms)
        if report is None:
            return
        pa.default_memory_pool().release_unused()
        self._on_batch(report)

    @property
    def _batch_before(self) -> Manifest | None:
        """The version of the batch before; None where only a first sight was shown."""
        found = self._writer.manifest
        return None if found is None or found.is_provisional else found

    @property
    def _memory_before(self) -> JobState:
        """The memory of the batch before; of a state that was lost, how far the topic was read."""
        manifest = self._writer.manifest
        known = decode_job_state(manifest.memory if manifest else {})
        return known if self._batch_before else known.of_the_topic()

    def _commit(
        self, batch: DataFrame, query_id: str, batch_id: int, began_ms: int
    ) -> BatchReport | None:
        """Commit a batch; None: all of its records are in the store already."""
        phases = Phases()
        seen_ms = self._clock()
        before = self._memory_before
        read = self._read_heads(batch, phases)
        heads = without_taken(read, before)
        if read and not heads:
            return None
        records = len(heads)
        memory, heads = self._set_right(before, heads, seen_ms)
        seen = self._look(heads, memory)
        del read
        with phases.of("fold"):
            plan = self._plan(seen, before)
            folded = self._buckets.fold(plan, batch, heads, seen.waves)
        buckets, bad = folded.buckets, folded.bad
        with phases.of("tables"):
            sums = added_sums([it.sums for it in buckets])
            now = {
                "groups": group_table(seen.groups, sums),
                "brokers": broker_table(sums, seen.memory),
            }
        with phases.of("points"):
            points = sum_points(sums, now, _clocks(memory, seen.memory))
            for table in ("partition_history", "commit_history"):
                if each := [it.points[table] for it in buckets if table in it.points]:
                    points[table] = pa.concat_tables(each)
        report = BatchReport(
            batch_id=batch_id,
            records=records,
            bad_records=len(bad),
            lost_records=seen.memory.lost_records_total - memory.lost_records_total,
            duration_ms=wall_clock_ms() - began_ms,
        )
        state_rows = sum(it.state_rows for it in buckets)
        health = self._health(report, seen.memory, state_rows)
        made = Commit(
            query_id=query_id,
            batch_id=batch_id,
            interval_ms=seen.memory.interval_ms,
            now={**now, "health": health},
            written={name: [it.paths[name] for it in buckets] for name in buckets[0].paths},
            history={**points, "job_history": job_points(health, seen.memory.interval_ms)},
            history_files={
                table: [file for it in buckets for file in it.history.get(table, ())]
                for table in ("partition_history", "commit_history")
            },
            memory=encode_job_state(seen.memory),
            state_rows=state_rows,
            bad_records=len(bad),
            bad_values=bad[:BAD_TEXTS_MAX],
        )
        with phases.of("history"):
            self._writer.commit(made)
        return replace(report, phases_ms=phases.ms)

    def _set_right(
        self, memory: JobState, heads: list[Head], seen_ms: int
    ) -> tuple[JobState, list[Head]]:
        """The memory with what this batch says of clocks, and the samples by the job's own."""
        kept = {key: it for key, it in memory.clocks.items() if key in memory.sources}
        clocks = observe_clocks(kept, seen_of(heads), seen_ms=seen_ms, reached_ms=memory.reached_ms)
        has_reached = len(heads) < REACHED_SHARE * self._records_max
        memory = replace(
            memory, clocks=clocks, reached_ms=seen_ms if has_reached else memory.reached_ms
        )
        return memory, set_right(heads, clocks)

    def _look(self, heads: list[Head], memory: JobState) -> _Seen:
        """Read the heads, one round of every source after the other."""
        cut = cut_waves(heads)
        groups, alive = self._groups_before()
        waves = []
        for number, records in enumerate(cut):
            told = [head for _, head in records]
            offsets_of = heads if number == len(cut) - 1 else ()
            earlier = memory
            memory = memory.observe(observed(told, offsets_of=offsets_of, at_ms=wall_clock_ms()))
            groups = merge_groups(
                groups,
                [group for head in told for group in head.groups],
                memory.complete_rounds(),
                memory.silent_sources(),
            )
            around = Around(
                brokers=memory.known_brokers(), alive=alive, clocks=_clocks(earlier, memory)
            )
            waves.append(Wave(records=records, around=around))
        return _Seen(memory=memory, groups=groups, waves=waves)

    def _groups_before(self) -> tuple[list[RegisteredGroup], dict[tuple[str, str], int]]:
        """The groups that are known, and when each of them committed anything last."""
        manifest = self._batch_before
        if manifest is None or "groups" not in manifest.now:
            return [], {}
        table = self._writer.files.read_whole(manifest.now["groups"][0])
        return decode_groups(table), _alive(table)

    def _read_heads(self, batch: DataFrame, phases: Phases) -> list[Head]:
        with phases.of("fetch"):
            records = batch.selectExpr(*RECORD, f"{self._buckets.value} AS value")
            rows = records.toArrow().to_pylist()
        with phases.of("decode"):
            return [read_head(KafkaRecord(**row)) for row in rows]

    def _plan(self, seen: _Seen, before: JobState) -> FoldPlan:
        """The plan of the batch, the same for all buckets."""
        manifest = self._batch_before
        now = manifest.now if manifest else {}
        told = rows_told(record for wave in seen.waves for record in wave.records)
        clocks = decode_clocks(manifest.memory.get("clocks", ())) if manifest else {}
        return FoldPlan(
            store=self._writer.store,
            version=self._writer.version,
            buckets=buckets_for(
                max(manifest.state_rows if manifest else 0, told),
                so_far=max(1, len(now.get("partitions", ()))),
            ),
            now=now,
            is_cut_alike=manifest is not None and manifest.memory.get("buckets") == BUCKETS,
            before=before,
            clocks=seen.memory.clocks,
            corrections=corrections(clocks, seen.memory.clocks),
            arounds=[wave.around for wave in seen.waves],
        )

    def _health(self, report: BatchReport, memory: JobState, state_rows: int) -> pa.Table:
        now_ms = wall_clock_ms()
        newest_ms = memory.newest_round_ms
        manifest = self._batch_before
        span_ms = now_ms - manifest.written_ms if manifest else None
        row = {
            "batch_id": report.batch_id,
            "batch_ms": report.duration_ms,
            "records": report.records,
            "bad_records": report.bad_records,
            "bad_records_total": self._writer.bad_records_total + report.bad_records,
            "lost_records_total": memory.lost_records_total,
            "late_rounds_total": memory.late_rounds_total,
            "records_per_s": report.records * 1_000 / span_ms if span_ms else None,
            "delay_ms": None if newest_ms is None else now_ms - newest_ms,
            "state_rows": state_rows,
            "newest_round_ms": newest_ms,
            "written_ms": now_ms,
        }
        return pa.Table.from_pylist([row], schema=HEALTH)


def _clocks(before: JobState, after: JobState) -> Clocks:
    return Clocks(before_ms=before.newest_rounds(), now_ms=after.newest_rounds())


def _alive(groups: pa.Table) -> dict[tuple[str, str], int]:
    rows = groups.select(["cluster", "group_id", "committed_ms"]).to_pylist()
    return {
        (row["cluster"], row["group_id"]): row["committed_ms"]
        for row in rows
        if row["committed_ms"] is not None
    }
