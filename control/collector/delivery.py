"""Rounds into the metrics topic of the bus, reports beside it; it creates both topics."""

import asyncio
from collections.abc import Sequence
from typing import Final

from broker.metrics_schema import METRICS_TOPIC
from control.collector.report_writer import (
    REPORTS_CONFIGS,
    REPORTS_TOPIC,
    WatchReport,
    encode_report,
)
from control.kafka.admin.bus_topics import ensure_topic
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.records.producer import OutgoingRecord, ProducerOptions, RecordProducer

METRICS_PARTITIONS: Final = 3
METRICS_CONFIGS: Final = {
    "retention.ms": "3600000",
    "segment.ms": "600000",
    "segment.bytes": "67108864",
}
_OPTIONS: Final = ProducerOptions(acks="1", compression="zstd")


class Delivery:
    """Writes to the bus. Use as an async context manager."""

    def __init__(self, bus: KafkaSettings) -> None:
        self._bus = bus
        self._producer = RecordProducer(bus, _OPTIONS)
        self._partitions = METRICS_PARTITIONS

    async def __aenter__(self) -> "Delivery":
        async with KafkaAdmin.to(self._bus) as admin:
            self._partitions = await ensure_topic(
                admin, METRICS_TOPIC, partitions=METRICS_PARTITIONS, configs=METRICS_CONFIGS
            )
            await ensure_topic(admin, REPORTS_TOPIC, configs=REPORTS_CONFIGS)
        await self._producer.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.__aexit__()

    async def write(self, broker: int, values: Sequence[bytes], *, round_ms: int) -> None:
        """The records of one round, in order: a source's rounds share one partition.

        :raises KafkaPortError: the bus did not take it.
        """
        sent = [
            await self._producer.enqueue(
                OutgoingRecord(
                    topic=METRICS_TOPIC,
                    partition=broker % self._partitions,
                    value=value,
                    timestamp_ms=round_ms,
                )
            )
            for value in values
        ]
        await asyncio.gather(*sent)

    async def write_report(self, report: WatchReport) -> None:
        """The collector's own word.

        :raises KafkaPortError: the bus did not take it.
        """
        await self._producer.send(
            OutgoingRecord(
                topic=REPORTS_TOPIC,
                partition=0,
                key=report.cluster.encode(),
                value=encode_report(report),
            )
        )
