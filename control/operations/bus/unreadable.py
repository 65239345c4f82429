"""Decodes records of the bus. Those that cannot be read are left out, counted and named."""

import logging
from dataclasses import replace
from typing import Final, Protocol

from control.model.units import counted
from control.move.commands import Command
from control.move.decoding import RecordError, decode_command, decode_event
from control.move.events import Event
from control.operations.bus.proof import Headers, is_proven

NAMED_MAX: Final = 5
KEPT_MAX: Final = 1000

_log: Final = logging.getLogger(__name__)


class BusRecord(Protocol):
    """As both clients read one."""

    @property
    def topic(self) -> str: ...

    @property
    def offset(self) -> int: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def headers(self) -> Headers: ...


class Unreadable:
    """Decodes records of one bus, and remembers those that are none."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], str] = {}

    def event(self, record: BusRecord) -> Event | None:
        """None: it is no event, which is remembered."""
        try:
            return replace(decode_event(record.value), is_foreign=_is_foreign(record))
        except RecordError as error:
            self._remember(record, error)
        return None

    def command(self, record: BusRecord) -> Command | None:
        """None: it is no command, which is remembered."""
        try:
            return replace(decode_command(record.value), is_foreign=_is_foreign(record))
        except RecordError as error:
            self._remember(record, error)
        return None

    def clear(self) -> None:
        """All is read anew."""
        self._found.clear()

    @property
    def words(self) -> str:
        """How many, where they are, and why the first cannot be read; empty: all can."""
        if not self._found:
            return ""
        (topic, _), why = next(iter(self._found.items()))
        offsets = [str(offset) for of, offset in self._found if of == topic]
        more = ", …" if len(offsets) > NAMED_MAX else ""
        count = counted(len(self._found), "record")
        least = "at least " if len(self._found) >= KEPT_MAX else ""
        named = ", ".join(offsets[:NAMED_MAX])
        return (
            f"{least}{count} of the bus cannot be read and {_are(len(self._found))} left out "
            f"({topic}, offset {named}{more}: {why})"
        )

    def _remember(self, record: BusRecord, error: RecordError) -> None:
        place = (record.topic, record.offset)
        if place not in self._found and len(self._found) < KEPT_MAX:
            self._found[place] = str(error)
            _log.warning("%s, offset %d, is left out: %s", *place, error)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _is_foreign(record: BusRecord) -> bool:
    return not is_proven(record.topic, record.key, record.value, record.headers)
