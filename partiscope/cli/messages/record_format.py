"""Output of records as somebody wants it: ``%t %p %o`` as kcat takes it."""

import re
import sys
from collections.abc import Callable
from typing import Final

from control.kafka.records.record import FetchedRecord
from control.views.printable import printable
from partiscope.cli.shared.arguments import escapes_decoded
from partiscope.cli.shared.exits import CommandError, Exit

FORMAT_HELP: Final = (
    "%t topic, %p partition, %o offset, %T timestamp in ms, %k key, %s value, %h headers, "
    "%K and %S their bytes, %% a %; \\\\n, \\\\t, \\\\xHH."
)
NULL: Final = b"NULL"
_PLACE: Final = re.compile(r"%(.?)", re.DOTALL)
_PARTS: Final[dict[str, Callable[[FetchedRecord], bytes]]] = {
    "t": lambda record: record.topic.encode(),
    "p": lambda record: b"%d" % record.partition,
    "o": lambda record: b"%d" % record.offset,
    "T": lambda record: b"%d" % record.timestamp_ms,
    "k": lambda record: NULL if record.key is None else record.key,
    "s": lambda record: NULL if record.value is None else record.value,
    "K": lambda record: b"%d" % (-1 if record.key is None else len(record.key)),
    "S": lambda record: b"%d" % (-1 if record.value is None else len(record.value)),
    "h": lambda record: b",".join(
        name.encode() + b"=" + (NULL if value is None else value) for name, value in record.headers
    ),
    "%": lambda record: b"%",
}


def record_writer(text: str) -> Callable[[FetchedRecord], None]:
    """Writes records by a format, byte for byte; on a terminal with what a terminal would obey
    made printable.

    Raises:
        CommandError: status 2; a letter after % that means nothing.
    """
    parts: list[bytes | Callable[[FetchedRecord], bytes]] = []
    end = 0
    for place in _PLACE.finditer(text):
        parts.append(_plain(text[end : place.start()]))
        if place[1] not in _PARTS:
            known = ", ".join(f"%{letter}" for letter in _PARTS)
            raise CommandError(
                f"--format: {place[0]!r} means nothing; there are {known}", Exit.WRONG_USE
            )
        parts.append(_PARTS[place[1]])
        end = place.end()
    parts.append(_plain(text[end:]))

    is_for_people = sys.stdout.isatty()

    def write(record: FetchedRecord) -> None:
        for part in parts:
            if isinstance(part, bytes):
                sys.stdout.buffer.write(part)
            else:
                told = part(record)
                sys.stdout.buffer.write(_harmless(told) if is_for_people else told)
        sys.stdout.buffer.flush()

    return write


def _harmless(told: bytes) -> bytes:
    return printable(told.decode(errors="backslashreplace")).encode()


def _plain(text: str) -> bytes:
    return escapes_decoded(text, "--format").encode()
