"""Rows of the metrics schema as columns, and back: the body of a version 2 record.

A column of numbers is a fifth of the bytes of as many JSON objects, and a tenth of the work to
read. What repeats (names, lists of brokers) stands once in a dictionary of the record, and a row
names its place there:

    {"topics":["orders"],"topic":[0,0],"partition":[0,1],"lists":[[101,102]],"replicas":[0,0],…}

A column in which nothing is known is left out; a single unknown value is null. Times of reading
count from the round's begin. Rows with ``since_ms`` are *unchanged*: they repeat nothing but
who they are and when they were read again, and refer to the row read at ``since_ms``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

NUMBERS: Final = {
    "replicas": (
        *("partition", "leader", "leader_epoch", "log_start_offset", "high_watermark"),
        *("log_end_offset", "size_bytes", "segments", "min_isr"),
        *("bytes_in", "bytes_out", "retention_ms", "retention_bytes", "readable_offset"),
        *("since_ms", "read_ms"),
    ),
    "commits": ("partition", "committed_offset", "commit_ms", "told_lag", "since_ms", "read_ms"),
}
TEXTS: Final = {
    "replicas": {"topic": "topics"},
    "commits": {"group_id": "groups", "topic": "topics", "member_id": "members"},
}
"""Columns of places in a dictionary of texts."""
LISTS: Final = ("replicas", "isr", "adding_replicas", "removing_replicas")
"""Columns of places in ``lists``."""
TOLD_EMPTY: Final = ("replicas", "isr")
"""Of these an empty list is known to be empty: no replica of an orphan may be in sync any more."""
NESTED: Final = ("segment_bytes", "segment_offsets", "log_points")


def _struct(kind: str) -> str:
    columns = dict.fromkeys(TEXTS[kind].values(), "ARRAY<STRING>")
    columns |= dict.fromkeys((*TEXTS[kind], *NUMBERS[kind]), "ARRAY<BIGINT>")
    if kind == "replicas":
        columns |= {"lists": "ARRAY<ARRAY<INT>>", **dict.fromkeys(LISTS, "ARRAY<BIGINT>")}
        columns |= dict.fromkeys(NESTED, "ARRAY<ARRAY<BIGINT>>")
    return f"STRUCT<{', '.join(f'{name}: {type_}' for name, type_ in columns.items())}>"


BODY_DDL: Final = ", ".join(f"{kind}_columns {_struct(kind)}" for kind in NUMBERS)
"""The body's schema for Spark SQL's ``from_json``: whoever has Spark reads samples without us."""


def to_columns(kind: str, rows: Sequence[Any], round_ms: int) -> dict[str, Any]:
    """The rows (all of one kind) as columns."""
    columns: dict[str, Any] = {}
    for name, dictionary in TEXTS[kind].items():
        _encode(columns, name, dictionary, [getattr(row, name, None) for row in rows])
    if kind == "replicas":
        for name in LISTS:
            values = [getattr(row, name, None) for row in rows]
            is_told = name in TOLD_EMPTY
            kept = [tuple(it) if it or (is_told and it is not None) else None for it in values]
            _encode(columns, name, "lists", kept)
        for name in NESTED:
            _keep(columns, name, [getattr(row, name, None) or None for row in rows])
    for name in NUMBERS[kind]:
        values = [getattr(row, name, None) for row in rows]
        if name in ("read_ms", "since_ms"):
            values = [None if value is None else value - round_ms for value in values]
        _keep(columns, name, values)
    return columns


def from_columns(kind: str, columns: Mapping[str, Any], round_ms: int) -> list[dict[str, Any]]:
    """Inverse of ``to_columns``: the rows as mappings without what is unknown.

    Raises:
        ValueError, TypeError, LookupError: these are no such columns.
    """
    count = len(columns["partition"])
    decoded: dict[str, Sequence[Any]] = {}
    for name, dictionary in TEXTS[kind].items():
        decoded[name] = _decode(columns, name, dictionary)
    if kind == "replicas":
        decoded |= {name: _decode(columns, name, "lists") for name in LISTS}
        decoded |= {name: columns.get(name, ()) for name in NESTED}
    decoded |= {name: columns.get(name, ()) for name in NUMBERS[kind]}
    if any(len(values) not in (0, count) for values in decoded.values()):
        raise ValueError("columns of different lengths")
    rows = []
    for place in range(count):
        row = {name: values[place] for name, values in decoded.items() if values}
        row = {name: value for name, value in row.items() if value is not None}
        rows.append(
            {n: v + round_ms if n in ("read_ms", "since_ms") else v for n, v in row.items()}
        )
    return rows


def _encode(columns: dict[str, Any], name: str, dictionary: str, values: list[Any]) -> None:
    known = columns.setdefault(dictionary, [])
    places = {_key(value): place for place, value in enumerate(known)}
    column: list[int | None] = []
    for value in values:
        if value is None:
            column.append(None)
            continue
        place = places.get(value)
        if place is None:
            place = places[value] = len(known)
            known.append(value)
        column.append(place)
    _keep(columns, name, column)


def _key(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _decode(columns: Mapping[str, Any], name: str, dictionary: str) -> list[Any]:
    known = columns.get(dictionary, ())
    return [None if place is None else known[place] for place in columns.get(name, ())]


def _keep(columns: dict[str, Any], name: str, values: list[Any]) -> None:
    if any(value is not None for value in values):
        columns[name] = values
