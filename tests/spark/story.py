"""Tells a history by hand: rounds of samples, cut into batches, as the job would see them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    Row,
    encode_round,
)
from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.buckets.plan import BucketFold
from spark_metrics.job.host_clock import host_tick
from spark_metrics.job.micro_batch import BatchReport, MicroBatchSink
from spark_metrics.state.job_clock import Tick
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.aggregates import AggregatesReader

CLUSTER = "story"
T0_MS = 1_800_000_000_000
"""Times in a story count from here."""
_SCHEMA = "value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP"
FOREVER_MS = 100 * 365 * 86_400_000


@dataclass
class Story:
    """A store that is fed batch by batch; times are milliseconds after ``T0_MS``."""

    session: SparkSession
    store: Path
    records: list[bytes | None] = field(default_factory=list)
    offset: int = 0
    batch_id: int = -1
    reports: list[BatchReport] = field(default_factory=list)
    clock_ms: int = 0
    """The clocks of the job's host, wall and steady; 0: those that it has."""
    compares_clocks: bool = False
    buckets: BucketFold = field(default_factory=DriverFold)

    def __post_init__(self) -> None:
        self.sink = self.make_sink()

    def make_sink(self) -> MicroBatchSink:
        """A sink as a job that was just started has it."""
        self.writer = StoreWriter(str(self.store), retention_ms=FOREVER_MS)
        return MicroBatchSink(
            self.writer,
            query_id=lambda: "story",
            buckets=self.buckets,
            tick=self.tick,
            compares_clocks=self.compares_clocks,
            on_batch=self.reports.append,
        )

    def tick(self) -> Tick:
        """The clocks of the job's host."""
        if not self.clock_ms:
            return host_tick()
        return Tick(wall_ms=self.clock_ms, boot="story", steady_ms=self.clock_ms)

    def round(
        self,
        broker: int,
        at_ms: int,
        *rows: Row,
        epoch: int = 1,
        orphans: Sequence[Row] | None = None,
    ) -> None:
        """One complete round of a broker's samples; ``orphans``: it tells of all of them."""
        self.records += encode_round(envelope(broker, at_ms, epoch), rows, orphans)

    def batch(self) -> dict[str, list[dict[str, Any]]]:
        """Commit what was told since the last batch; the now-tables after it."""
        self.commit()
        return self.now()

    def commit(self) -> None:
        """Commit what was told since the last batch."""
        self.batch_id += 1
        frame = self.frame(self.records)
        self.records = []
        self.sink(frame, self.batch_id)

    def frame(self, values: Sequence[bytes | None]) -> DataFrame:
        """The values as the Kafka source gives them."""
        at = datetime.fromtimestamp(T0_MS / 1_000, tz=UTC)
        rows = [
            (None if value is None else bytearray(value), 0, self.offset + index, at)
            for index, value in enumerate(values)
        ]
        self.offset += len(rows)
        return self.session.createDataFrame(rows, _SCHEMA)

    def commit_at(self, records: Sequence[tuple[int, bytes]], batch_id: int) -> None:
        """A batch of records at these offsets."""
        at = datetime.fromtimestamp(T0_MS / 1_000, tz=UTC)
        rows = [(bytearray(value), 0, offset, at) for offset, value in records]
        self.sink(self.session.createDataFrame(rows, _SCHEMA), batch_id)

    def now(self) -> dict[str, list[dict[str, Any]]]:
        found = AggregatesReader(str(self.store)).now()
        assert found is not None
        return {name: table.to_pylist() for name, table in found.tables.items()}


def round_values(broker: int, at_ms: int, *rows: Row) -> list[bytes]:
    return encode_round(envelope(broker, at_ms), rows)


def envelope(broker: int, at_ms: int, epoch: int = 1, **further: Any) -> Envelope:
    return Envelope(
        cluster=CLUSTER,
        broker=broker,
        broker_epoch=epoch,
        round_ms=T0_MS + at_ms,
        interval_ms=1_000,
        **further,
    )


def replica(at_ms: int, end: int, **further: Any) -> ReplicaSample:
    """Partition t-0, led by 101 with a follower on 102, unless told otherwise."""
    fields: dict[str, Any] = {
        "topic": "t",
        "partition": 0,
        "leader": 101,
        "leader_epoch": 1,
        "replicas": (101, 102),
        "isr": (101, 102),
        "log_start_offset": 0,
        "high_watermark": end,
        "log_end_offset": end,
        "size_bytes": 100 * end,
        "segments": 1,
        "read_ms": T0_MS + at_ms,
    }
    return ReplicaSample(**{**fields, **further})


def commit(at_ms: int, offset: int, **further: Any) -> CommitSample:
    fields: dict[str, Any] = {"group_id": "g", "topic": "t", "partition": 0}
    return CommitSample(**{**fields, **further}, committed_offset=offset, read_ms=T0_MS + at_ms)


def group(at_ms: int, **further: Any) -> GroupSample:
    fields: dict[str, Any] = {"group_id": "g", "state": "Stable", "members": 1}
    return GroupSample(**{**fields, **further}, read_ms=T0_MS + at_ms)


def broker(at_ms: int, broker_id: int, **further: Any) -> BrokerSample:
    fields: dict[str, Any] = {"host": "127.0.0.1", "port": 9_000 + broker_id, "fenced": False}
    return BrokerSample(**{**fields, **further}, id=broker_id, read_ms=T0_MS + at_ms)
