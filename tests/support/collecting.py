"""A collector in this process, and the figures of its newest rounds."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    GroupSample,
    ReplicaSample,
    SampleRecord,
    decode_record,
)
from control.collector.collector import Collector, CollectorSettings
from control.collector.report_writer import WatchReport
from control.kafka.connection.settings import KafkaSettings
from control.model.ids import TopicPartition
from control.operations.catalogue import NEEDED_RIGHTS
from tests.support.patience import WAIT_S
from tests.support.settle import eventually

ENDS_KEPT = 50


@dataclass
class Collected:
    """Where the collector under test delivers: the newest round of each broker."""

    rounds: dict[int, list[SampleRecord]] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    reports: list[WatchReport] = field(default_factory=list)
    lags_below_zero: list[str] = field(default_factory=list)
    _ends: dict[TopicPartition, list[tuple[int, int]]] = field(default_factory=dict)

    async def write(self, broker: int, values: Sequence[bytes], *, round_ms: int) -> None:
        self.rounds[broker] = [decode_record(value) for value in values]
        for row in self._of(broker):
            if isinstance(row, ReplicaSample) and row.high_watermark is not None:
                key = TopicPartition(row.topic, row.partition)
                ends = self._ends.setdefault(key, [])
                ends.append((row.read_ms, row.high_watermark))
                del ends[:-ENDS_KEPT]
        self._judge_lags()

    async def write_report(self, report: WatchReport) -> None:
        self.reports.append(report)

    @property
    def leaders(self) -> dict[TopicPartition, ReplicaSample]:
        """The leaders' rows."""
        return {
            TopicPartition(row.topic, row.partition): row
            for broker in self.rounds
            for row in self._of(broker)
            if isinstance(row, ReplicaSample) and row.leader == broker
        }

    @property
    def replicas(self) -> dict[tuple[TopicPartition, int], ReplicaSample]:
        """Every replica's row, by partition and broker."""
        return {
            (TopicPartition(row.topic, row.partition), broker): row
            for broker in self.rounds
            for row in self._of(broker)
            if isinstance(row, ReplicaSample)
        }

    @property
    def commits(self) -> dict[tuple[str, TopicPartition], CommitSample]:
        """Committed offsets, by group and partition."""
        return {
            (row.group_id, TopicPartition(row.topic, row.partition)): row
            for broker in self.rounds
            for row in self._of(broker)
            if isinstance(row, CommitSample)
        }

    @property
    def groups(self) -> dict[str, GroupSample]:
        """Groups by name."""
        rows = (row for broker in self.rounds for row in self._of(broker))
        return {row.group_id: row for row in rows if isinstance(row, GroupSample)}

    @property
    def brokers(self) -> dict[int, BrokerSample]:
        """Brokers as the newest row of any source tells."""
        rows = [row for broker in self.rounds for row in self._of(broker)]
        brokers = [row for row in rows if isinstance(row, BrokerSample)]
        return {row.id: row for row in sorted(brokers, key=lambda row: row.read_ms)}

    @property
    def disks(self) -> tuple[int, ...]:
        """Brokers that told their own disk."""
        rows = ((id_, row) for id_ in sorted(self.rounds) for row in self._of(id_))
        return tuple(
            id_
            for id_, row in rows
            if isinstance(row, BrokerSample) and row.id == id_ and row.disk_total_bytes
        )

    @property
    def orphans(self) -> dict[TopicPartition, ReplicaSample]:
        """Partitions that no broker which answers holds, of the newest round that tells them."""
        telling = [records for records in self.rounds.values() if records[0].envelope.tells_orphans]
        newest = max(telling, key=lambda records: records[0].envelope.round_ms, default=[])
        return {
            TopicPartition(row.topic, row.partition): row
            for record in newest
            if record.envelope.of_orphans
            for row in record.replicas
        }

    def _of(self, broker: int) -> list[ReplicaSample | CommitSample | GroupSample | BrokerSample]:
        return [
            row
            for record in self.rounds[broker]
            if not record.envelope.of_orphans
            for rows in (record.replicas, record.commits, record.groups, record.brokers)
            for row in rows
        ]

    def _judge_lags(self) -> None:
        """Lag as the metrics job pairs it: the earliest end read at or after the commit."""
        for (group, key), commit in self.commits.items():
            ends = [end for read_ms, end in self._ends.get(key, ()) if read_ms >= commit.read_ms]
            if ends and ends[0] < commit.committed_offset:
                self.lags_below_zero.append(f"{group} {key}: {ends[0]} - {commit}")


@asynccontextmanager
async def collecting(
    watched: KafkaSettings, *, interval_ms: int = 300
) -> AsyncIterator[tuple[Collector, Collected]]:
    """A running collector; its defects fail the test that uses it."""
    collected = Collected()
    settings = CollectorSettings(
        watched=watched, bus=watched, interval_ms=interval_ms, needed_rights=NEEDED_RIGHTS
    )
    collector = Collector(settings, collected, collected.said.append)
    running = asyncio.create_task(collector.run())
    try:
        await asyncio.wait(
            (running, asyncio.ensure_future(collector.is_complete.wait())),
            timeout=WAIT_S,
            return_when=asyncio.FIRST_COMPLETED,
        )
        yield collector, collected
    finally:
        if running.done():
            running.result()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def becomes(question: Callable[[], object], wanted: object) -> None:
    """Wait until the collected figures are the wanted ones."""

    async def ask() -> object:
        return question()

    await eventually(ask, wanted)
