"""Committed offsets as lines of CSV, as kafka-consumer-groups exports and takes them.

``topic,partition,offset`` for one group, ``group,topic,partition,offset`` for several; no header.
Source: ConsumerGroupCommand.resetOffsets and CsvUtils.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Final

from control.model.ids import TopicPartition

FORM: Final = "topic,partition,offset"
_OFFSET_MAX: Final = 2**63 - 1
_PARTITION_MAX: Final = 2**31 - 1


class OffsetLinesError(ValueError):
    """A line that holds no offset; the text says which and why."""


def offset_lines(groups: Mapping[str, Mapping[TopicPartition, int]]) -> str:
    """The offsets of these groups; a group is named in each line where they are several."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for group, offsets in groups.items():
        named = (group,) if len(groups) > 1 else ()
        for key, offset in sorted(offsets.items()):
            writer.writerow((*named, key.topic, key.partition, offset))
    return text.getvalue()


def read_offset_lines(text: str, group: str) -> dict[TopicPartition, int]:
    """The offsets of one group; lines of others are left out.

    :raises OffsetLinesError: a line is of another form, a partition stands twice, or none is of
        this group.
    """
    found: dict[TopicPartition, int] = {}
    others: set[str] = set()
    for number, fields in _lines(text):
        named, (topic, partition, offset) = fields[:-3], fields[-3:]
        if named and named[0] != group:
            others.add(named[0])
            continue
        key = TopicPartition(topic, _number(partition, _PARTITION_MAX, number, "partition"))
        if key in found:
            raise OffsetLinesError(f"line {number}: {key} stands twice")
        found[key] = _number(offset, _OFFSET_MAX, number, "offset")
    if not found:
        of = f"; there are lines of {', '.join(sorted(others))}" if others else ""
        raise OffsetLinesError(f"no line holds an offset of {group}{of}")
    return found


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    rows: Iterable[list[str]] = csv.reader(StringIO(text.removeprefix("\ufeff")), strict=True)
    number = 0
    try:
        for number, fields in enumerate(rows, 1):
            if not any(field.strip() for field in fields):
                continue
            if len(fields) not in (3, 4):
                raise OffsetLinesError(f"line {number} is not {FORM}, nor group,{FORM}")
            yield number, fields
    except csv.Error as error:
        raise OffsetLinesError(f"line {number + 1}: {error}; write {FORM}") from error


def _number(text: str, most: int, line: int, what: str) -> int:
    words = text.strip()
    if not (words.isascii() and words.isdecimal() and len(words) < 20 and int(words) <= most):
        raise OffsetLinesError(f"line {line}: {text!r} is no {what}")
    return int(words)
