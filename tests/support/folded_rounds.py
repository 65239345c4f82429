"""Rounds of samples, folded batch by batch as the job does it, in this process without Spark."""

from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from broker.metrics_schema import Envelope, Row, encode_round
from spark_metrics.buckets.bucket_files import read_state
from spark_metrics.buckets.bucket_rows import read_rows
from spark_metrics.buckets.judged_batch import Judged, StateBefore, judge
from spark_metrics.buckets.plan import FoldPlan
from spark_metrics.decode.record_head import KafkaRecord, read_head
from spark_metrics.fold.bucket import NO_COMMITS, NO_PARTITIONS, BucketState, Folded, fold_bucket
from spark_metrics.fold.now_tables import decode_groups, group_table
from spark_metrics.fold.sums import Sums
from spark_metrics.state.job_clock import Tick
from spark_metrics.state.job_state import JobState, decode_job_state, encode_job_state
from spark_metrics.state.known_groups import RegisteredGroup
from spark_metrics.state.source_clocks import corrections
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import Manifest, decode_manifest, encode_manifest
from spark_metrics.store.table_files import write_now

CLUSTER: Final = "c"
RECORDS_MAX: Final = 1_000_000


@dataclass
class FoldedRounds:
    """Rounds of sources; times are milliseconds since 1970."""

    memory: JobState = field(default_factory=JobState)
    state: BucketState = field(
        default_factory=lambda: BucketState(partitions=NO_PARTITIONS, commits=NO_COMMITS)
    )
    groups: list[RegisteredGroup] = field(default_factory=list)
    alive: dict[tuple[str, str], int] = field(default_factory=dict)
    bad_records: int = 0
    boot: str = "boot"
    """Which boot of the job's host it is."""
    _values: list[tuple[int | None, bytes]] = field(default_factory=list)
    _offset: int = 0
    _sums: Sums | None = None

    def round(
        self,
        broker: int,
        at_ms: int,
        *rows: Row,
        cluster: str = CLUSTER,
        broker_epoch: int = 1,
        sent_ms: int | None = None,
    ) -> None:
        """A whole round of a broker, which the next batch takes in. ``sent_ms``: by its own clock;
        None: as the job's."""
        envelope = Envelope(
            cluster=cluster,
            broker=broker,
            broker_epoch=broker_epoch,
            round_ms=at_ms,
            interval_ms=1_000,
        )
        self._values += [(sent_ms, value) for value in encode_round(envelope, rows)]

    def batch(self, at_ms: int, *, wall_off_ms: int = 0) -> Folded:
        """Fold what was told since the last batch; ``wall_off_ms``: how far the wall clock of the
        job's host is off by then."""
        before = self.memory.clocks
        judged = self.judged(at_ms, wall_off_ms=wall_off_ms)
        steps = []
        for step in judged.steps:
            rows, bad = read_rows(step.records)
            self.bad_records += len(bad)
            steps.append((rows, step.around))
        folded = fold_bucket(self.state, corrections(before, judged.memory.clocks), steps)
        self.state, self._sums = folded.state, folded.sums
        self.alive = _alive(group_table(judged.groups, folded.sums))
        return folded

    def judged(self, at_ms: int, *, wall_off_ms: int = 0) -> Judged:
        """Judge clocks and rounds of what was told since the last batch, without its figures."""
        heads = [
            read_head(
                KafkaRecord(
                    partition=0,
                    offset=self._offset + number,
                    timestamp_ms=at_ms if sent_ms is None else sent_ms,
                    value=value,
                )
            )
            for number, (sent_ms, value) in enumerate(self._values)
        ]
        self._offset += len(heads)
        self._values.clear()
        found = judge(self._before(at_ms, wall_off_ms), heads)
        self.memory, self.groups = found.memory, found.groups
        return found

    def restart(self, at_ms: int) -> None:
        """Write what the job keeps as a version of its store, and read it as the next job does.

        What was told since the last batch waits in the topic.
        """
        assert self._sums is not None, "it has folded a batch"
        tables = {
            "partitions": self.state.partitions,
            "commits": self.state.commits,
            "groups": group_table(self.groups, self._sums),
        }
        with TemporaryDirectory() as store:
            files = StoreFiles(store)
            files.make_folders("now")
            written = Manifest(
                version=1,
                written_ms=at_ms,
                query_id="q",
                batch_id=1,
                interval_ms=self.memory.interval_ms,
                now={name: [write_now(files, name, it, 1, "0")] for name, it in tables.items()},
                history={},
                memory=encode_job_state(self.memory),
            )
            manifest = decode_manifest(encode_manifest(written))
            groups = files.read_whole(manifest.now["groups"][0])
            self.memory = decode_job_state(manifest.memory)
            self.groups, self.alive = decode_groups(groups), _alive(groups)
            plan = FoldPlan(
                store=store,
                version=2,
                buckets=1,
                now=manifest.now,
                before=self._before(at_ms),
            )
            self.state = read_state(files, plan, 0)

    def _before(self, at_ms: int, wall_off_ms: int = 0) -> StateBefore:
        tick = Tick(wall_ms=at_ms + wall_off_ms, boot=self.boot, steady_ms=at_ms)
        memory = self.memory.begun(tick)
        assert memory.clock is not None
        return StateBefore(
            memory=memory,
            groups=self.groups,
            alive=self.alive,
            at_ms=memory.clock.now_ms,
            records_max=RECORDS_MAX,
        )

    def group_rows(self, folded: Folded) -> list[dict[str, Any]]:
        """The figures of groups after a batch."""
        found: list[dict[str, Any]] = group_table(self.groups, folded.sums).to_pylist()
        return found


def _alive(groups: pa.Table) -> dict[tuple[str, str], int]:
    return {
        (row["cluster"], row["group_id"]): row["committed_ms"]
        for row in groups.to_pylist()
        if row["committed_ms"] is not None
    }
