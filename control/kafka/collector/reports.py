"""Reads what the collectors say of themselves; the documents are ``report``'s."""

from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.collector.report import REPORTS_TOPIC, WatchReport, decode_report
from control.kafka.errors import RefusedError
from control.kafka.reader import RecordReader, Start, StartKind
from control.kafka.settings import KafkaSettings
from control.model.ids import TopicPartition

REPORTS_READ_MAX: Final = 100
_REPORTS: Final = TopicPartition(REPORTS_TOPIC, 0)


async def read_reports(bus: KafkaSettings | str) -> dict[str, WatchReport]:
    """The newest report of each cluster, among the newest hundred; none where nobody collects.

    :raises KafkaPortError: the bus does not answer.
    """
    reports: dict[str, WatchReport] = {}
    async with RecordReader(bus) as reader:
        start = Start(kind=StartKind.LAST, value=REPORTS_READ_MAX)
        try:
            records = await reader.browse([_REPORTS], start, limit=REPORTS_READ_MAX)
        except RefusedError as error:
            if error.code is ErrorCode.unknown_topic_or_partition:
                return {}
            raise
    for record in records:
        try:
            report = decode_report(record.value or b"")
        except ValueError:
            continue
        reports[report.cluster] = report
    return reports
