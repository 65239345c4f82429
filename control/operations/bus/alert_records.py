"""The alerts topic: silences, alerts with what receivers have taken, and how delivery fares.

One compacted partition on the bus. Its keys: ``alert/EPISODE``, ``silence/ID`` and ``delivery``.
Only proven records count: nobody else may silence an alert, or end one.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from control.alerts.alert import Alert
from control.alerts.rules import RuleReport
from control.alerts.silences import SILENCES_MAX, Silence
from control.kafka.admin.bus_topics import ensure_topic
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.operations.bus.proof import is_proven
from control.operations.bus.topics import COMPACTED, Bus
from control.operations.bus.unreadable import BusRecord
from control.operations.errors import InvalidInputError

ALERTS_TOPIC: Final = "__partiscope_alerts"
ALERTS: Final = TopicPartition(ALERTS_TOPIC, 0)
VERSION: Final = 1
_ALERT: Final = "alert/"
_SILENCE: Final = "silence/"
_DELIVERY: Final = "delivery"
_CONFIGS: Final = {
    **COMPACTED,
    "max.message.bytes": str(1 << 20),
    "segment.bytes": str(4 << 20),
    "delete.retention.ms": "86400000",
}

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """How the process that delivers alerts fares, as it says itself every few seconds."""

    at_ms: int
    rules: int
    """0: nothing is to be delivered any more."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why receivers do not take what is due to them, by name."""
    failing_since_ms: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows that match beyond the limit of one rule, by the rule's name."""
    open_rules: Mapping[str, RuleReport] = field(default_factory=dict)
    """Rules that have alerts, by name."""
    windows: Sequence[Silence] = ()
    """Maintenance windows of the settings that last now."""


@dataclass(slots=True)
class AlertRecords:
    """Everything that the topic holds."""

    alerts: dict[str, Alert] = field(default_factory=dict)
    """By episode."""
    silences: dict[str, Silence] = field(default_factory=dict)
    delivery: DeliveryReport | None = None
    next_offset: int = 0
    foreign: int = 0
    """Records that no known installation has written."""

    def take(self, record: BusRecord) -> None:
        """One more record; what is not proven, or cannot be read, counts for nothing."""
        self.next_offset = record.offset + 1
        if not is_proven(record.topic, record.key, record.value, record.headers):
            self.foreign += 1
            if self.foreign == 1:  # whoever floods the topic must not flood the log
                _log.warning("%s holds records that are not proven: left out", record.topic)
            return
        try:
            self._take((record.key or b"").decode(), record.value)
        except (ValidationError, UnicodeDecodeError) as error:
            what = type(error).__name__
            _log.warning("%s, offset %d, cannot be read: %s", record.topic, record.offset, what)

    def _take(self, key: str, value: bytes | None) -> None:
        if key.startswith(_ALERT):
            _put(self.alerts, key.removeprefix(_ALERT), value, _ALERTS)
        elif key.startswith(_SILENCE):
            _put(self.silences, key.removeprefix(_SILENCE), value, _SILENCES)
        elif key == _DELIVERY:
            self.delivery = None if value is None else _REPORTS.validate_json(value)


class AlertsTopic:
    """Reads and writes the topic of one bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def ensure(self) -> None:
        """Create it where it lacks."""
        async with KafkaAdmin.to(self._bus.settings) as admin:
            await ensure_topic(admin, ALERTS_TOPIC, configs=_CONFIGS)

    async def read(self, known: AlertRecords | None = None) -> AlertRecords:
        """All that it holds; of what is ``known`` the news alone."""
        records = known or AlertRecords()
        async for record in self._bus.read_from(ALERTS, records.next_offset):
            records.take(record)
        return records

    async def save_alert(self, alert: Alert) -> None:
        """Durable when it returns."""
        await self._save(_ALERT + alert.episode, _ALERTS.dump_json(alert))

    async def drop_alert(self, episode: str) -> None:
        """It is over, and all have been told."""
        await self._save(_ALERT + episode, None)

    async def save_silence(self, silence: Silence) -> None:
        """:raises InvalidInputError: there are too many already."""
        known = (await self.read()).silences
        if silence.id not in known and len(known) >= SILENCES_MAX:
            raise InvalidInputError({"silence": f"there are {SILENCES_MAX:,} already: end some"})
        await self._save(_SILENCE + silence.id, _SILENCES.dump_json(silence))

    async def drop_silence(self, silence_id: str) -> None:
        """It ends at once."""
        await self._save(_SILENCE + silence_id, None)

    async def report(self, report: DeliveryReport) -> None:
        """Say how delivery fares."""
        await self._save(_DELIVERY, _REPORTS.dump_json(report))

    async def _save(self, key: str, value: bytes | None) -> None:
        if value is not None:
            value = json.dumps({"v": VERSION, **json.loads(value)}, separators=(",", ":")).encode()
        await self._bus.send(ALERTS, key.encode(), value)


def _put(known: dict[str, Any], key: str, value: bytes | None, kind: TypeAdapter[Any]) -> None:
    if value is None:
        known.pop(key, None)
    else:
        known[key] = kind.validate_json(value)


_ALERTS: Final = TypeAdapter(Alert)
_SILENCES: Final = TypeAdapter(Silence)
_REPORTS: Final = TypeAdapter(DeliveryReport)
