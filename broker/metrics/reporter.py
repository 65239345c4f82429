"""Samples of this broker, every interval, into the metrics topic.

A round reads everything that the broker knows (samples), encodes it (metrics_schema) and
writes it (delivery). A round that fails is counted and logged now and then; the next one
says the same and more, so nothing is kept for a second try, and nothing here can hold up or end
the broker.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

from broker.background import Tasks, log_failure
from broker.handlers.services import NodeServices
from broker.metrics.delivery import Connect, MetricsDelivery
from broker.metrics.log_ages import LogAges
from broker.metrics.orphans import Orphans
from broker.metrics.pace import Pace
from broker.metrics.round_times import RoundTimes
from broker.metrics.samples import Repeats, slice_rows
from broker.metrics_schema import Envelope, Row, cut_round, encode_part

_LOG = logging.getLogger(__name__)
COMPLAINT_INTERVAL_MS: Final = 60_000
FULL_CLUSTER_WAIT_MS: Final = 5_000
"""How long the first rounds wait for all brokers before the topic is made with fewer replicas."""


@dataclass(slots=True, kw_only=True)
class ReporterCounters:
    """Rounds since the start."""

    rounds_written: int = 0
    rounds_failed: int = 0


class MetricsReporter:
    """One background task; `start` needs a running loop."""

    def __init__(
        self, node: NodeServices, *, node_id: int, pace: Pace, voters: int, connect: Connect
    ) -> None:
        self.counters = ReporterCounters()
        self._node = node
        self._node_id = node_id
        self.pace = pace
        self._voters = voters
        self._delivery = MetricsDelivery(node, node_id, connect)
        self._times = RoundTimes()
        self._repeats = Repeats()
        self._orphans = Orphans()
        self._ages = LogAges(node.clock.wall_ms)
        self._started_ms = node.clock.monotonic_ms()
        self._complained_ms: int | None = None
        self._tasks = Tasks("metrics reporter", log_failure)

    def start(self) -> None:
        """Report from now on."""
        self._started_ms = self._node.clock.monotonic_ms()
        self._tasks.keep(self._run)

    async def stop(self) -> None:
        """End the task and its connection."""
        await self._tasks.stop()
        await self._delivery.close()

    async def _run(self) -> None:
        while True:
            begun_ms = self._node.clock.monotonic_ms()
            await self._try_round()
            wait_ms = self._times.wait_ms(
                now_ms=self._node.clock.wall_ms(),
                took_ms=self._node.clock.monotonic_ms() - begun_ms,
                interval_ms=self.pace.interval_ms,
            )
            await asyncio.sleep(wait_ms / 1000)

    async def _try_round(self) -> None:
        try:
            if await self._has_topic():
                await self.report()
        except Exception as error:  # noqa: BLE001  # samples are never worth a broker
            self.counters.rounds_failed += 1
            self._repeats.forget()
            self._orphans.forget()
            self._ages.forget()
            self._complain(error)

    async def _has_topic(self) -> bool:
        if self._delivery.has_topic():
            return True
        waited_ms = self._node.clock.monotonic_ms() - self._started_ms
        all_known = max(self._voters, len(self._node.metadata.image.brokers))
        expected = all_known if waited_ms < FULL_CLUSTER_WAIT_MS else 1
        await self._delivery.maybe_create_topic(expected_brokers=expected)
        return self._delivery.has_topic()

    async def report(self) -> None:
        """Read, encode and write one round, giving way to others after every record's worth."""
        round_ms = self._node.clock.wall_ms()
        rows: list[Row] = []
        pieces = slice_rows(self._node, self._node_id, self._repeats, self._ages)
        while True:
            with self.pace.work():
                piece = next(pieces, None)
            if piece is None:
                break
            rows.extend(piece)
            await asyncio.sleep(0)
        orphans = await self._orphan_rows()
        values = [value async for value in self._encode(rows, orphans, round_ms)]
        self.pace.end_round(
            rows=len(rows) + len(orphans or ()), brokers=len(self._node.metadata.image.brokers)
        )
        await self._delivery.write(values, round_ms=round_ms)
        present = self._node.replicas.partitions()
        self._ages.end_round({(it.log.topic, it.log.partition) for it in present})
        self.counters.rounds_written += 1

    async def _orphan_rows(self) -> list[Row] | None:
        """Rows of partitions that no living broker holds; None unless this node is the
        controller."""
        if self._node.metadata.controller_id != self._node_id:
            return None
        rows: list[Row] = []
        pieces = self._orphans.slices(self._node)
        while True:
            with self.pace.work():
                piece = next(pieces, None)
            if piece is None:
                return rows
            rows.extend(piece)
            await asyncio.sleep(0)

    async def _encode(
        self, rows: Sequence[Row], orphans: Sequence[Row] | None, round_ms: int
    ) -> AsyncIterator[bytes]:
        envelope = Envelope(
            cluster=self._node.metadata.image.cluster_id,
            broker=self._node_id,
            broker_epoch=self._node.metadata.broker_epoch,
            round_ms=round_ms,
            interval_ms=self.pace.interval_ms,
        )
        with self.pace.work():
            parts = cut_round(envelope, rows, orphans)
        for part, chunk in parts:
            with self.pace.work():
                value = encode_part(part, chunk)
            yield value
            await asyncio.sleep(0)

    def _complain(self, error: Exception) -> None:
        now_ms = self._node.clock.monotonic_ms()
        is_due = (
            self._complained_ms is None or now_ms - self._complained_ms >= COMPLAINT_INTERVAL_MS
        )
        if is_due:
            self._complained_ms = now_ms
            failed = self.counters.rounds_failed
            _LOG.warning("a round of samples was not written (%d so far): %s", failed, error)
