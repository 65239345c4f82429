"""Messages as files: JSON lines, or CSV that a spreadsheet opens."""

import csv
import io
import re
from collections.abc import Callable
from typing import Final

from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import Decoded
from control.views.messages.details import message_json
from control.views.printable import json_text, told_bytes

_COLUMNS: Final = (
    "topic", "partition", "offset", "timestamp_ms", "key", "value", "headers", "error",
)  # fmt: skip
_FORMULA: Final = re.compile(r"[=+\-@\t\r]")


def json_line(record: FetchedRecord, decoder: Decoder) -> str:
    """A document, raw and decoded."""
    return json_text(message_json(record, decoder.record(record))) + "\n"


def csv_line(record: FetchedRecord, decoder: Decoder) -> str:
    """Keys and values as decoded; text that a spreadsheet would take for a formula gets a ``'``."""
    decoded = decoder.record(record)
    headers = [[name, told_bytes(value)] for name, value in record.headers]
    errors = [it.error for it in (decoded.key, decoded.value) if it is not None and it.error]
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(
        (
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms,
            _cell(decoded.key),
            _cell(decoded.value),
            json_text(headers),
            "; ".join(errors),
        )
    )
    return line.getvalue()


def _cell(decoded: Decoded | None) -> str:
    text = "" if decoded is None else decoded.text
    return f"'{text}" if _FORMULA.match(text) else text


WRITERS: Final[dict[str, Callable[[FetchedRecord, Decoder], str]]] = {
    "jsonl": json_line,
    "csv": csv_line,
}
HEADS: Final = {"jsonl": "", "csv": ",".join(_COLUMNS) + "\n"}
"""What stands above the lines."""
