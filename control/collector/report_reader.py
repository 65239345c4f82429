"""Reads what the collectors say of themselves; the documents are ``report``'s."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Final

from kio.schema.errors import ErrorCode

from control.collector.report_writer import (
    REPORT_INTERVAL_MS,
    REPORTS_TOPIC,
    WatchReport,
    decode_report,
)
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import RefusedError
from control.kafka.records.reader import FetchedRecord, Looking, RecordReader, Start, StartKind
from control.model.ids import TopicPartition

REPORTS_READ_MAX: Final = 100
_REPORTS: Final = TopicPartition(REPORTS_TOPIC, 0)
_NEWEST: Final = Start(kind=StartKind.LAST, value=REPORTS_READ_MAX)


async def read_reports(bus: KafkaSettings | str) -> dict[str, WatchReport]:
    """The newest report of each cluster, among the newest hundred; none where nobody collects.

    :raises KafkaPortError: the bus does not answer.
    """
    async with RecordReader(bus) as reader:
        try:
            found = await reader.browse(
                [_REPORTS], _NEWEST, limit=REPORTS_READ_MAX, looking=Looking(kept_bytes=None)
            )
        except RefusedError as error:
            if error.code is ErrorCode.unknown_topic_or_partition:
                return {}
            raise
    return {report.cluster: report for report in _decoded(found.records)}


async def follow_reports(bus: KafkaSettings | str) -> AsyncIterator[tuple[WatchReport, ...]]:
    """The newest hundred reports, then each as it is written, for ever and by connections that
    last; something (often nothing) at least every ``REPORT_INTERVAL_MS``.

    :raises KafkaPortError: the bus does not answer.
    """
    async with RecordReader(bus) as reader:
        while True:
            try:
                at = await reader.positions([_REPORTS], _NEWEST)
                while True:
                    chunks = await reader.fetch(at, max_wait_ms=REPORT_INTERVAL_MS)
                    at |= {key: chunk.next_offset for key, chunk in chunks.items()}
                    yield tuple(report for it in chunks.values() for report in _decoded(it.records))
            except RefusedError as error:
                if error.code is not ErrorCode.unknown_topic_or_partition:
                    raise
                yield ()
                await asyncio.sleep(REPORT_INTERVAL_MS / 1000)


def _decoded(records: Iterable[FetchedRecord]) -> Iterator[WatchReport]:
    for record in records:
        try:
            yield decode_report(record.value or b"")
        except ValueError:
            continue
