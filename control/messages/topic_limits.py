"""Limits of a topic: its number of partitions, and the most bytes of a batch."""

import time
from dataclasses import dataclass, replace
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import answers_soon
from control.kafka.errors import IncompleteAnswerError, RecordTooLargeError, RefusedError
from control.kafka.ports import ConfigResource, ConfigScope
from control.kafka.records.producer import OutgoingRecord, ProducerOptions, batch_bytes

FRESH_S: Final = 10.0
KNOWN_MAX: Final = 100
_MOST_BYTES: Final = "max.message.bytes"
_REQUEST_MAX: Final = 1 << 27
"""Of the client, which guesses sizes from above and before compression: ours are measured."""
_OVERHEAD_BYTES: Final = 1_024
"""With so much less than the limit, and some for each header, a record needs no measuring."""
_HEADER_OVERHEAD_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLimits:
    """Limits of one topic."""

    partitions: int
    most_bytes: int | None
    """Of a batch; None: the cluster does not tell."""

    def options(self, wanted: ProducerOptions) -> ProducerOptions:
        """Neither the client's own limit nor what it puts together goes by others than these."""
        if self.most_bytes is None:
            return wanted
        batch_max = min(wanted.batch_max, self.most_bytes)
        return replace(wanted, request_max=_REQUEST_MAX, batch_max=batch_max)

    def check(self, record: OutgoingRecord, compression: str) -> None:
        """Judge a record before it is sent.

        :raises RecordTooLargeError: the topic would not take it.
        """
        most = self.most_bytes
        if most is None or _at_most_bytes(record) <= most:
            return
        size_bytes = batch_bytes(record, compression)
        if size_bytes > most:
            raise RecordTooLargeError(record.topic, size_bytes=size_bytes, most_bytes=most)


class KnownLimits:
    """Limits of topics, asked for again once they are ``FRESH_S`` old."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._known: dict[str, tuple[float, TopicLimits]] = {}

    async def of(self, topic: str) -> TopicLimits:
        """:raises KafkaPortError: there is no such topic, or no broker answers."""
        asked_s, limits = self._known.get(topic, (0.0, None))
        if limits is None or time.monotonic() - asked_s > FRESH_S:
            limits = await topic_limits(self._settings, topic)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[topic] = time.monotonic(), limits
        return limits


async def topic_limits(settings: KafkaSettings, name: str) -> TopicLimits:
    """Ask the cluster for the limits of a topic.

    :raises KafkaPortError: there is no such topic, or no broker answers.
    """
    resource = ConfigResource(scope=ConfigScope.TOPIC, name=name)
    async with KafkaAdmin.to(settings) as admin, answers_soon(settings):
        (topic,) = await admin.topics([name])
        partitions = len(topic.partitions)
        try:
            (entry,) = await admin.describe_configs(resource, [_MOST_BYTES])
        except (
            RefusedError,
            IncompleteAnswerError,
            ValueError,
        ):  # a right may lack that sending does not need
            return TopicLimits(partitions=partitions, most_bytes=None)
    most = entry.value or ""
    return TopicLimits(partitions=partitions, most_bytes=int(most) if most.isdecimal() else None)


def _at_most_bytes(record: OutgoingRecord) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    plain = len(record.key or b"") + len(record.value or b"") + headers
    return plain + _OVERHEAD_BYTES + _HEADER_OVERHEAD_BYTES * len(record.headers)
