"""Limits of a topic: its number of partitions, and the most bytes of a batch."""

import time
from dataclasses import dataclass, replace
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import answers_soon
from control.kafka.errors import IncompleteAnswerError, RecordTooLargeError, RefusedError
from control.kafka.ports import ConfigResource, ConfigScope
from control.kafka.records.producer import (
    REQUEST_MAX,
    OutgoingRecord,
    ProducerOptions,
    batch_bytes,
)

FRESH_S: Final = 10.0
KNOWN_MAX: Final = 100
_MOST_BYTES: Final = "max.message.bytes"
_POLICY: Final = "cleanup.policy"
_TIME_TYPE: Final = "message.timestamp.type"
_AHEAD: Final = "message.timestamp.after.max.ms"
_BEHIND: Final = "message.timestamp.before.max.ms"
_CONFIGS: Final = (_MOST_BYTES, _POLICY, _TIME_TYPE, _AHEAD, _BEHIND)
NO_KEY: Final = "a record without a key in a compacted topic"
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
    is_compacted: bool = False
    """It takes no record without a key."""
    ahead_ms_max: int | None = None
    behind_ms_max: int | None = None
    """How far a record's own time may be from now; None: as far as it likes, or it is not told."""

    def options(self, wanted: ProducerOptions) -> ProducerOptions:
        """Neither the client's own limit nor what it puts together goes by others than these."""
        if self.most_bytes is None:
            return wanted
        batch_max = min(wanted.batch_max, self.most_bytes)
        return replace(wanted, request_max=_REQUEST_MAX, batch_max=batch_max)

    def check(self, record: OutgoingRecord, compression: str) -> None:
        """Judge a record before it is sent.

        :raises RecordTooLargeError: it is larger than the topic takes.
        :raises RefusedError: it lacks a key that the topic wants, or its time is too far from now.
        """
        if self.is_compacted and record.key is None:
            raise RefusedError(ErrorCode.invalid_record, what="sending", message=NO_KEY)
        self._check_time(record.timestamp_ms)
        most = REQUEST_MAX if self.most_bytes is None else self.most_bytes
        if _at_most_bytes(record) <= most:
            return
        size_bytes = batch_bytes(record, "none" if self.most_bytes is None else compression)
        if size_bytes > most:
            raise RecordTooLargeError(record.topic, size_bytes=size_bytes, most_bytes=most)

    def _check_time(self, at_ms: int | None) -> None:
        if at_ms is None or at_ms < 0:
            return
        ahead_ms = at_ms - time.time_ns() // 1_000_000
        for distance_ms, most, name in (
            (ahead_ms, self.ahead_ms_max, _AHEAD),
            (-ahead_ms, self.behind_ms_max, _BEHIND),
        ):
            if most is not None and distance_ms > most:
                message = f"timestamp {at_ms} is further from now than {name}={most}"
                raise RefusedError(ErrorCode.invalid_timestamp, what="sending", message=message)


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
            entries = await admin.describe_configs(resource, _CONFIGS)
        except (RefusedError, IncompleteAnswerError):  # a right may lack that sending needs not
            return TopicLimits(partitions=partitions, most_bytes=None)
    told = {entry.name: entry.value or "" for entry in entries}
    keeps_times = told.get(_TIME_TYPE) != "LogAppendTime"
    return TopicLimits(
        partitions=partitions,
        most_bytes=_number(told.get(_MOST_BYTES)),
        is_compacted="compact" in told.get(_POLICY, ""),
        ahead_ms_max=_number(told.get(_AHEAD)) if keeps_times else None,
        behind_ms_max=_number(told.get(_BEHIND)) if keeps_times else None,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _at_most_bytes(record: OutgoingRecord) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    plain = len(record.key or b"") + len(record.value or b"") + headers
    return plain + _OVERHEAD_BYTES + _HEADER_OVERHEAD_BYTES * len(record.headers)
