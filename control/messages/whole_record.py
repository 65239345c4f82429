"""A record that was cut while a list was read, read again with all its bytes."""

from typing import Final

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.kafka.records.reader import Bounds, Looking, RecordReader, Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.model.ids import TopicPartition

_WHOLE: Final = Looking(kept_bytes=None)
_ONE: Final = Bounds(records=1)


class RecordGoneError(KafkaPortError):
    """The log does not hold the record any more."""


async def whole_record(settings: KafkaSettings | str, record: FetchedRecord) -> FetchedRecord:
    """All of it.

    :raises RecordGoneError: it was deleted meanwhile.
    :raises KafkaPortError: the cluster refuses or does not answer.
    """
    if record.whole is None:
        return record
    key = TopicPartition(record.topic, record.partition)
    start = Start(kind=StartKind.OFFSET, value=record.offset)
    async with RecordReader(settings) as reader:
        found = await reader.browse([key], start, limit=1, looking=_WHOLE, bounds=_ONE)
    for each in found.records:
        if each.offset == record.offset:
            return each
    raise RecordGoneError(
        f"{key} @ {record.offset} cannot be read whole",
        reason="the log does not hold it any more",
        next_step="read the topic again",
    )
