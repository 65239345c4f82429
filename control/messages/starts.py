"""Where to begin reading, as people write it."""

import re
from collections.abc import Mapping
from typing import Final

from control.kafka.records.log_bounds import LogExtent
from control.kafka.records.reader import Start, StartKind
from control.messages.patterns import FilterError
from control.model.ids import TopicPartition
from control.model.moments import MOMENT_FORMS, TimeError, parse_moment
from control.model.offset_range import LogRange, outside_words

_NUMBER: Final = "[0-9]{1,19}"
"""Of a record or of records: more digits than an offset can have are none."""
START_HELP: Final = f"-50 (the last 50), earliest, latest, an offset, {MOMENT_FORMS}"


def parse_start(text: str, *, now_ms: int) -> Start:
    """A place in a topic. Times without a zone are of this machine; a number is an offset.

    >>> parse_start("-50", now_ms=0).value
    50

    :raises ValueError: with what can be written instead.
    """
    text = text.strip()
    if text in ("earliest", "latest"):
        return Start(kind=StartKind(text))
    if re.fullmatch(rf"-{_NUMBER}", text):
        return Start(kind=StartKind.LAST, value=int(text[1:]))
    if re.fullmatch(_NUMBER, text):
        return Start(kind=StartKind.OFFSET, value=int(text))
    try:
        at_ms = parse_moment(text, now_ms=now_ms)
    except TimeError:
        raise ValueError(f"{text!r} is none of: {START_HELP}") from None
    return Start(kind=StartKind.TIMESTAMP, value=at_ms)


def outside_start_words(
    start: Start, extents: Mapping[TopicPartition, LogExtent], *, now_ms: int, time_form: str
) -> str:
    """Which logs do not have the offset where reading begins; empty: all have it, or it is none.

    :raises FilterError: it is beyond the end of each of them.
    """
    if start.kind is not StartKind.OFFSET:
        return ""
    logs = {key: LogRange(it.first, it.end) for key, it in extents.items()}
    words = outside_words(start.value, logs, now_ms=now_ms, time_form=time_form)
    if words is None:
        return ""
    if all(start.value > log.end for log in logs.values()):
        raise FilterError("start", words)
    where, _, _ = words.partition("; ")
    return f"{where}: reading begins there at the nearest offset"
