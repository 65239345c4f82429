"""One micro-batch becomes one version of the store.

what is known before -> the batch's buckets, each judged, folded and written
    -> their sums as tables -> a version
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_metrics.buckets.bucket_rows import buckets_for
from spark_metrics.buckets.judged_batch import StateBefore, clocks_of
from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.buckets.plan import BucketFold, FoldPlan, Phases
from spark_metrics.decode.record_rows import NAMED_MAX
from spark_metrics.fold.new_points import job_points, sum_points
from spark_metrics.fold.now_tables import broker_table, decode_groups, group_table
from spark_metrics.fold.sums import added_sums
from spark_metrics.job.host_clock import host_tick
from spark_metrics.job.kafka_source import RECORDS_PER_BATCH_MAX
from spark_metrics.state.job_clock import JobClock, Tick
from spark_metrics.state.job_state import JobState, decode_job_state, encode_job_state
from spark_metrics.state.known_groups import RegisteredGroup
from spark_metrics.state.source_clocks import TOLERATED_MS
from spark_metrics.store.layout import Manifest
from spark_metrics.store.writer import Commit, StoreWriter, monotonic_ms
from spark_metrics.window.tables import HEALTH

BAD_TEXTS_MAX: Final = 20
"""Bad records kept of a batch; the store keeps the newest files of them."""
RATE_BATCHES: Final = 8
"""The catch-up rate is that of so many batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """A batch in numbers, for the log and the `ready` line."""

    batch_id: int
    records: int
    bad_records: int
    lost_records: int
    duration_ms: int
    """Milliseconds of computing and writing its tables; the manifest comes on top."""
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    """Where the time went, with history and manifest."""


class MicroBatchSink:
    """``foreachBatch`` of the job: idempotent by offsets, and the store's only writer."""

    def __init__(
        self,
        writer: StoreWriter,
        *,
        query_id: Callable[[], str],
        buckets: BucketFold | None = None,
        records_max: int = RECORDS_PER_BATCH_MAX,
        tick: Callable[[], Tick] = host_tick,
        compares_clocks: bool = True,
        on_batch: Callable[[BatchReport], None] = lambda report: None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``query_id`` is asked at each batch: the checkpoint has an identity only then.
        ``buckets``: who folds them, threads of the driver if nobody is told.
        ``records_max`` bounds each. ``tick`` tells the host's clocks; ``compares_clocks``: records
        come as they are written, so that they tell how far clocks are off."""
        self._writer = writer
        self._query_id = query_id
        self._records_max = records_max
        self._tick = tick
        self._compares_clocks = compares_clocks
        self._on_batch = on_batch
        self._on_notice = on_notice
        self._buckets = buckets or DriverFold()
        self._bad_rows: list[str] = []
        self._ends = deque[tuple[int, int]](maxlen=RATE_BATCHES + 1)
        """Of the last batches: begin of the newest round, and the job's time."""

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Commit what is not in the store already of the batch.

        Raises:
            StoreTakenError: another job writes the same store.
        """
        began_ms = monotonic_ms()
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
        newest = self._writer.manifest
        return None if newest is None or newest.is_provisional else newest

    @property
    def _memory_before(self) -> JobState:
        """The memory of the batch before; of a state that was lost, how far the topic was read."""
        manifest = self._writer.manifest
        memory = decode_job_state(manifest.memory if manifest else {})
        return memory if self._batch_before else memory.of_the_topic()

    def _commit(
        self, batch: DataFrame, query_id: str, batch_id: int, began_ms: int
    ) -> BatchReport | None:
        """Commit a batch; None: all of its records are in the store already."""
        phases = Phases()
        plan = self._plan()
        folded = self._buckets.fold(plan, batch, phases)
        if folded is None:
            return None
        before, memory = plan.before.memory, folded.judged.memory
        buckets, bad = folded.buckets, folded.bad
        with phases.of("tables"):
            sums = added_sums([it.sums for it in buckets])
            now = {
                "groups": group_table(folded.judged.groups, sums),
                "brokers": broker_table(sums, memory),
            }
        with phases.of("points"):
            points = sum_points(sums, now, clocks_of(before, memory))
            for table in ("partition_history", "commit_history"):
                if each := [it.points[table] for it in buckets if table in it.points]:
                    points[table] = pa.concat_tables(each)
        report = BatchReport(
            batch_id=batch_id,
            records=folded.records,
            bad_records=len(bad),
            lost_records=memory.lost_records_total - before.lost_records_total,
            duration_ms=monotonic_ms() - began_ms,
        )
        state_rows = sum(it.state_rows for it in buckets)
        self._bad_rows = [it for each in bad for it in each["bad_rows"]] or self._bad_rows
        assert memory.clock is not None, "the batch has begun"
        clock = memory.clock.at(self._tick())
        health = self._health(report, memory, clock, state_rows)
        made = Commit(
            at_ms=clock.now_ms,
            clock_skew_ms=_skew_ms(clock),
            watermark_ms=clock.watermark_ms,
            query_id=query_id,
            batch_id=batch_id,
            interval_ms=memory.interval_ms,
            now={**now, "health": health},
            written={name: [it.paths[name] for it in buckets] for name in buckets[0].paths},
            history={**points, "job_history": job_points(health, memory.interval_ms)},
            history_files={
                table: [file for it in buckets for file in it.history.get(table, ())]
                for table in ("partition_history", "commit_history")
            },
            memory=encode_job_state(memory),
            state_rows=state_rows,
            bad_records=len(bad),
            bad_values=bad[:BAD_TEXTS_MAX],
        )
        with phases.of("history"):
            self._writer.commit(made)
        return replace(report, phases_ms=phases.ms)

    def _groups_before(self) -> tuple[list[RegisteredGroup], dict[tuple[str, str], int]]:
        """The groups that are known, and when each of them committed anything last."""
        manifest = self._batch_before
        if manifest is None or "groups" not in manifest.now:
            return [], {}
        table = self._writer.files.read_whole(manifest.now["groups"][0])
        return decode_groups(table), _alive(table)

    def _plan(self) -> FoldPlan:
        """The plan of a batch that begins now, the same for all buckets."""
        manifest = self._batch_before
        now = manifest.now if manifest else {}
        groups, alive = self._groups_before()
        newest = self._writer.manifest
        memory = self._memory_before.begun(self._tick())
        assert memory.clock is not None, "the batch has begun"
        return FoldPlan(
            store=self._writer.store,
            version=self._writer.version,
            buckets=buckets_for(
                newest.state_rows if newest else 0, so_far=max(1, len(now.get("partitions", ())))
            ),
            now=now,
            before=StateBefore(
                memory=memory,
                groups=groups,
                alive=alive,
                at_ms=memory.clock.now_ms,
                records_max=self._records_max,
                compares_clocks=self._compares_clocks,
            ),
        )

    def _health(
        self, report: BatchReport, memory: JobState, clock: JobClock, state_rows: int
    ) -> pa.Table:
        now_ms = clock.now_ms
        newest_ms = memory.newest_round_ms
        manifest = self._batch_before
        span_ms = now_ms - manifest.written_ms if manifest else None
        if newest_ms is not None:
            self._ends.append((newest_ms, now_ms))
        row = {
            "batch_id": report.batch_id,
            "batch_ms": report.duration_ms,
            "records": report.records,
            "bad_records": report.bad_records,
            "bad_records_total": self._writer.bad_records_total + report.bad_records,
            "bad_rows": self._bad_rows[:NAMED_MAX],
            "lost_records_total": memory.lost_records_total,
            "late_rounds_total": memory.late_rounds_total,
            "records_per_s": report.records * 1_000 / span_ms if span_ms else None,
            "delay_ms": None if newest_ms is None else now_ms - newest_ms,
            "catch_up_rate": _rate(self._ends),
            "state_rows": state_rows,
            "newest_round_ms": newest_ms,
            "clock_skew_ms": _skew_ms(clock),
            "written_ms": now_ms,
        }
        return pa.Table.from_pylist([row], schema=HEALTH)


def _skew_ms(clock: JobClock) -> int:
    """The wall clock of the job's host less the job's time, where it is off."""
    return clock.skew_ms if abs(clock.skew_ms) > TOLERATED_MS else 0


def _rate(ends: Sequence[tuple[int, int]]) -> float | None:
    """Event time per time of the job, between the first and the last of these batches."""
    if len(ends) < 2:
        return None
    (from_ms, began_ms), (until_ms, now_ms) = ends[0], ends[-1]
    return (until_ms - from_ms) / (now_ms - began_ms) if now_ms > began_ms else None


def _alive(groups: pa.Table) -> dict[tuple[str, str], int]:
    rows = groups.select(["cluster", "group_id", "committed_ms"]).to_pylist()
    return {
        (row["cluster"], row["group_id"]): row["committed_ms"]
        for row in rows
        if row["committed_ms"] is not None
    }
