"""One micro-batch becomes one version of the store.

Spark hands over the records; the driver folds them and writes the files.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from spark_metrics.backlog import newest_rounds
from spark_metrics.clocks import corrections, decode_clocks, observe_clocks
from spark_metrics.decode.record_head import (
    Head,
    KafkaRecord,
    bad_value,
    cut_waves,
    observed,
    read_head,
    seen_of,
    set_right,
    without_taken,
)
from spark_metrics.feed import Answer, Feed, State, Wave
from spark_metrics.memory import Memory, decode_memory, encode_memory
from spark_metrics.phases import Phases
from spark_metrics.readings import (
    Clocks,
    commit_points,
    job_points,
    partition_points,
    sum_points,
)
from spark_metrics.registry import RegisteredGroup, merge_groups
from spark_metrics.rollup import (
    broker_table,
    decode_groups,
    group_table,
    hot_flags,
    replica_table,
)
from spark_metrics.source import RECORDS_PER_BATCH_MAX
from spark_metrics.store.layout import Manifest
from spark_metrics.store.writer import Commit, StoreWriter, wall_clock_ms
from spark_metrics.tables import HEALTH

BAD_TEXTS_MAX: Final = 20
"""Per batch; the store keeps the newest files of them."""
REACHED_SHARE: Final = 0.9
"""A batch of fewer of the records that it may have has read the topic to its end."""
_RECORDS: Final = (
    *("partition", "offset", "unix_millis(timestamp) AS timestamp_ms"),
    "coalesce(value, CAST('' AS BINARY)) AS value",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """What a batch did, for the log and the `ready` line."""

    batch_id: int
    records: int
    bad_records: int
    lost_records: int
    duration_ms: int
    """Of computing and writing its tables; the manifest comes on top."""
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    """Where the time went, with history and manifest."""


@dataclass(slots=True, kw_only=True)
class _Pass:
    """What the waves of one batch leave behind."""

    memory: Memory
    groups: list[RegisteredGroup]
    state: State
    answers: list[Answer] = field(default_factory=list)
    partition_points: list[pa.Table] = field(default_factory=list)
    commit_points: list[pa.Table] = field(default_factory=list)
    bad: dict[int, dict[str, Any]] = field(default_factory=dict)
    """What is kept of records that could not be read, by their number in the batch."""


class StoreSink:
    """``foreachBatch`` of the job: idempotent by offsets, and the store's only writer."""

    def __init__(
        self,
        writer: StoreWriter,
        *,
        query_id: Callable[[], str],
        records_max: int = RECORDS_PER_BATCH_MAX,
        clock: Callable[[], int] = wall_clock_ms,
        on_batch: Callable[[BatchReport], None] = lambda report: None,
        on_notice: Callable[[str], None] = lambda text: None,
    ) -> None:
        """``query_id`` is asked at each batch: the checkpoint has an identity only then.
        ``records_max`` bounds each; clocks of sources are compared with ``clock``."""
        self._writer = writer
        self._query_id = query_id
        self._records_max = records_max
        self._clock = clock
        self._on_batch = on_batch
        self._on_notice = on_notice
        self._threads = ThreadPoolExecutor(2)
        self._feed = Feed(self._threads)

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
        """What the batch before left; what was shown before the first one is not gone on with."""
        found = self._writer.manifest
        return None if found is None or found.is_provisional else found

    @property
    def _memory_before(self) -> Memory:
        """The memory of the batch before; of a state that was lost, how far the topic was read."""
        manifest = self._writer.manifest
        known = decode_memory(manifest.memory if manifest else {})
        return known if self._batch_before else known.of_the_topic()

    def _commit(
        self, batch: DataFrame, query_id: str, batch_id: int, began_ms: int
    ) -> BatchReport | None:
        """What it did; None: all of its records are in the store already."""
        phases = Phases()
        seen_ms = self._clock()
        before = self._memory_before
        read = _read_heads(batch, phases)
        heads = without_taken(read, before)
        if read and not heads:
            return None
        records = len(heads)
        before, heads = self._set_right(before, heads, seen_ms)
        done = self._waves(heads, before, phases)
        with phases.of("tables"):
            now, written = self._tables(done)
        with phases.of("points"):
            sums = sum_points(
                [answer.partitions for answer in done.answers], now, _clocks(before, done.memory)
            )
        report = BatchReport(
            batch_id=batch_id,
            records=records,
            bad_records=len(done.bad),
            lost_records=done.memory.lost_records_total - before.lost_records_total,
            duration_ms=wall_clock_ms() - began_ms,
        )
        health = self._health(report, done)
        made = Commit(
            query_id=query_id,
            batch_id=batch_id,
            interval_ms=done.memory.interval_ms,
            now={**now, "health": health},
            written=written,
            history={
                **sums,
                "job_history": job_points(health, done.memory.interval_ms),
                "partition_history": pa.concat_tables(done.partition_points),
                "commit_history": pa.concat_tables(done.commit_points),
            },
            memory=encode_memory(done.memory),
            state_rows=done.state.rows,
            bad_records=len(done.bad),
            bad_values=[done.bad[number] for number in sorted(done.bad)[:BAD_TEXTS_MAX]],
        )
        with phases.of("history"):
            self._writer.commit(made)
        return replace(report, phases_ms=phases.ms)

    def _set_right(
        self, memory: Memory, heads: list[Head], seen_ms: int
    ) -> tuple[Memory, list[Head]]:
        """The memory with what this batch says of clocks, and the samples by the job's own."""
        clocks = observe_clocks(
            memory.clocks, seen_of(heads), seen_ms=seen_ms, reached_ms=memory.reached_ms
        )
        has_reached = len(heads) < REACHED_SHARE * self._records_max
        memory = replace(
            memory, clocks=clocks, reached_ms=seen_ms if has_reached else memory.reached_ms
        )
        return memory, set_right(heads, clocks)

    def _waves(self, heads: list[Head], before: Memory, phases: Phases) -> _Pass:
        """Fold one round of every source after the other.

        Records are let go of as soon as their rows are read: of a large round they are 75 MB.
        """
        done = self._begin(before)
        waves = [newest_rounds(it) for it in cut_waves(heads)]
        every = chain(enumerate(heads), *waves)
        done.bad = {number: bad_value(head) for number, head in every if head.is_bad}
        for number, wave in enumerate(waves):
            is_last = number == len(waves) - 1
            earlier = done.memory
            _observe(done, [head for _, head in wave], offsets_of=heads if is_last else ())
            if is_last:
                heads.clear()
            self._run(done, wave, number, phases)
            clocks = _clocks(earlier, done.memory)
            with phases.of("points"):
                of_partitions = self._threads.map(
                    lambda it, clocks=clocks: partition_points(it.partitions, clocks), done.answers
                )
                done.commit_points += map(commit_points, (it.commits for it in done.answers))
                done.partition_points += of_partitions
        return done

    def _begin(self, before: Memory) -> _Pass:
        manifest = self._batch_before
        known = manifest.now.get("groups") if manifest else None
        groups = self._writer.files.read_whole(known[0]) if known else None
        self._alive = {} if groups is None else _alive(groups)
        return _Pass(
            memory=before,
            groups=[] if groups is None else decode_groups(groups),
            state=_state_of(manifest, before),
        )

    def _run(self, done: _Pass, wave: list[tuple[int, Head]], number: int, phases: Phases) -> None:
        given = Wave(
            records=wave,
            known=done.memory.known_brokers(),
            alive=self._alive,
            state=done.state,
            files=self._writer.files,
            put=partial(self._put, number),
        )
        with phases.of("fold"):
            answers = self._feed.run(given)
        done.bad |= given.bad
        done.answers = answers
        done.state = State(
            partitions=[answer.partitions_path for answer in answers],
            commits=[it.commits_path for it in answers]
            if any(answer.commits.num_rows for answer in answers)
            else [],
            rows=sum(_rows(answer) for answer in answers),
        )

    def _put(self, wave: int, table: str, part: str, rows: pa.Table) -> str:
        if table == "partitions":
            rows = rows.append_column("is_hot", hot_flags(rows))
        return self._writer.put(table, f"{wave}-{part}", rows)

    def _tables(self, done: _Pass) -> tuple[dict[str, pa.Table], dict[str, Sequence[str]]]:
        """The small tables of "now", and the files of the large ones."""
        partitions = [answer.partitions for answer in done.answers]
        commits = [answer.commits for answer in done.answers]
        replicas = list(self._threads.map(replica_table, partitions))
        written: dict[str, Sequence[str]] = {
            "partitions": [answer.partitions_path for answer in done.answers],
            "commits": [answer.commits_path for answer in done.answers],
            "replicas": list(
                self._threads.map(
                    partial(self._writer.put, "replicas"), map(str, range(len(replicas))), replicas
                )
            ),
        }
        now = {
            "groups": group_table(done.groups, commits),
            "brokers": broker_table(partitions, replicas, done.memory),
        }
        return now, written

    def _health(self, report: BatchReport, done: _Pass) -> pa.Table:
        now_ms = wall_clock_ms()
        newest_ms = done.memory.newest_round_ms
        manifest = self._batch_before
        span_ms = now_ms - manifest.written_ms if manifest else None
        row = {
            "batch_id": report.batch_id,
            "batch_ms": report.duration_ms,
            "records": report.records,
            "bad_records": report.bad_records,
            "bad_records_total": self._writer.bad_records_total + report.bad_records,
            "lost_records_total": done.memory.lost_records_total,
            "late_rounds_total": done.memory.late_rounds_total,
            "records_per_s": report.records * 1_000 / span_ms if span_ms else None,
            "delay_ms": None if newest_ms is None else now_ms - newest_ms,
            "state_rows": done.state.rows,
            "newest_round_ms": newest_ms,
            "written_ms": now_ms,
        }
        return pa.Table.from_pylist([row], schema=HEALTH)


def _read_heads(batch: DataFrame, phases: Phases) -> list[Head]:
    with phases.of("fetch"):
        rows = batch.selectExpr(*_RECORDS).toArrow().to_pylist()
    with phases.of("decode"):
        return [read_head(KafkaRecord(**row)) for row in rows]


def _observe(done: _Pass, seen: Sequence[Head], *, offsets_of: Sequence[Head]) -> None:
    """What the heads of a wave say of sources, brokers and groups."""
    done.memory = done.memory.observe(observed(seen, offsets_of=offsets_of, at_ms=wall_clock_ms()))
    done.groups = merge_groups(
        done.groups,
        [group for head in seen for group in head.groups],
        done.memory.complete_rounds(),
        done.memory.silent_sources(),
    )


def _clocks(before: Memory, after: Memory) -> Clocks:
    return Clocks(before_ms=before.newest_rounds(), now_ms=after.newest_rounds())


def _rows(answer: Answer) -> int:
    """About how many replicas and commits an answer has."""
    members = answer.partitions["members"].combine_chunks()
    return int(len(members.flatten()) + answer.commits.num_rows)


def _alive(groups: pa.Table) -> dict[tuple[str, str], int]:
    rows = groups.select(["cluster", "group_id", "committed_ms"]).to_pylist()
    return {
        (row["cluster"], row["group_id"]): row["committed_ms"]
        for row in rows
        if row["committed_ms"] is not None
    }


def _state_of(manifest: Manifest | None, memory: Memory) -> State:
    """What the job goes on from; ``memory``: with what this batch says of clocks."""
    if manifest is None:
        return State()
    return State(
        partitions=manifest.now.get("partitions", ()),
        commits=manifest.now.get("commits", ()),
        rows=manifest.state_rows,
        corrections=corrections(decode_clocks(manifest.memory.get("clocks", ())), memory.clocks),
    )
