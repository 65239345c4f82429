"""What a search must find, from the documents alone: it imports nothing of what it judges."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from tests.oracle.messages.topics import Part, Written

_HEX = re.compile(r"0x([0-9a-fA-F*]+)")
_QUOTED = re.compile(r'"(|null|0x[0-9a-fA-F]*)"')


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def glob(text: str, data: bytes | None) -> bool:
    """A whole key or header value: ``*`` is any bytes, ``null`` is none, ``0x…`` is also bytes."""
    if text == "null" or data is None:
        return text == "null" and data is None
    if (quoted := _QUOTED.fullmatch(text)) and quoted[1].encode() == data:
        return True
    readings = [_bytes(text).split(b"*")]
    if found := _HEX.fullmatch(text):
        pieces = found[1].split("*")
        if any(pieces) and all(len(piece) % 2 == 0 for piece in pieces):
            readings.append([bytes.fromhex(piece) for piece in pieces])
    patterns = (b".*".join(map(re.escape, pieces)) for pieces in readings)
    return any(re.fullmatch(it, data, re.DOTALL) for it in patterns)


def parts_of(record: Written) -> list[bytes]:
    found = [record.key, record.value]
    for name, value in record.headers:
        found += [name.encode(), value]
    return [it for it in found if it is not None]


def _contains(text: str, data: bytes) -> bool:
    wanted = _bytes(text).decode(errors="surrogateescape")
    there = data.decode(errors="surrogateescape")
    if re.search(re.escape(wanted), there, re.IGNORECASE):
        return True
    return not _is_text(data) and text.lower() in "0x" + data.hex()


def _found_by(pattern: str, data: bytes) -> bool:
    if _is_text(data):
        return re.search(pattern, data.decode(), re.DOTALL) is not None
    return re.search(pattern.encode(), data, re.DOTALL) is not None


def _has_header(text: str, record: Written) -> bool:
    words = text.split("=")
    for count in range(1, len(words) + 1):
        name, value = "=".join(words[:count]), "=".join(words[count:])
        pattern = ".*".join(map(re.escape, name.split("*")))
        for its, content in record.headers:
            is_value = count == len(words) or glob(value, content)
            if is_value and re.fullmatch(pattern, its, re.DOTALL):
                return True
    return False


def _number(record: Written) -> Any:
    try:
        found = json.loads(record.value or b"")
    except ValueError:
        return None
    return found.get("n") if isinstance(found, dict) else None


def passes(query: Mapping[str, str], record: Written) -> bool:
    """Whether a record passes all filters of a search."""
    texts: dict[str, Callable[[str], bool]] = {
        "q": lambda text: any(_contains(text, part) for part in parts_of(record)),
        "regex": lambda text: any(_found_by(text, part) for part in parts_of(record)),
        "key": lambda text: glob(text, record.key),
        "header": lambda text: _has_header(text, record),
        "path": lambda _: _number(record) is not None,
        "cel": lambda text: (_number(record) or 0) > int(text.rpartition(" ")[2]),
        "until": lambda text: record.timestamp_ms < int(text),
    }
    return all(test(query[name]) for name, test in texts.items() if query.get(name))


def is_refused(query: Mapping[str, str], parts: Sequence[Part]) -> bool:
    """Whether reading would begin beyond the end of each log."""
    if not query.get("offset"):
        return False
    return all(int(query["offset"]) > parts[number].end for number in _chosen(query, parts))


def _chosen(query: Mapping[str, str], parts: Sequence[Part]) -> Sequence[int]:
    if query.get("partition"):
        return [int(it) for it in query["partition"].split(",")]
    return range(len(parts))


def started(query: Mapping[str, str], parts: Sequence[Part]) -> dict[int, list[Written]]:
    """The records of the asked partitions from the start on; ``-N``: all of them."""
    found = {}
    for number in _chosen(query, parts):
        records = parts[number].records
        if query.get("offset"):
            records = [it for it in records if it.offset >= int(query["offset"])]
        elif query.get("since", "")[:1].isdigit():
            times = parts[number].markers | {it.offset: it.timestamp_ms for it in records}
            late = [offset for offset, at_ms in times.items() if at_ms >= int(query["since"])]
            records = [it for it in records if late and it.offset >= min(late)]
        found[number] = records
    return found


def expected(query: Mapping[str, str], parts: Sequence[Part]) -> list[Written]:
    """All that the search finds, by partition and offset."""
    return [it for its in started(query, parts).values() for it in its if passes(query, it)]


def committed(records: Iterable[Written], parts: Sequence[Part]) -> list[Written]:
    """Those that a reader of committed records sees."""
    return [
        it
        for it in records
        if it.offset < parts[it.partition].stable
        and it.offset not in parts[it.partition].aborted_offsets
    ]


def in_order(records: Iterable[Written]) -> list[Written]:
    """By time, where the times of every partition are in order."""
    return sorted(records, key=attrgetter("timestamp_ms", "partition", "offset"))


def merged(records: Sequence[Written]) -> list[Written]:
    """By time as far as the order of offsets within a partition lets."""
    rows: dict[int, list[Written]] = {}
    for it in sorted(records, key=attrgetter("partition", "offset")):
        rows.setdefault(it.partition, []).append(it)
    out = []
    while rows:
        number = min(rows, key=lambda each: (rows[each][0].timestamp_ms, each))
        out.append(rows[number].pop(0))
        if not rows[number]:
            del rows[number]
    return out
