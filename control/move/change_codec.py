"""The changes of a plan as they travel in a record: a list where they are few, else packed.

A record of Kafka's usual size, 1 MiB, holds some 9,000 changes as a list and some 40,000 packed;
topics of the bus take records of 16 MiB.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from control.model.ids import TOPIC_NAME
from control.model.units import bytes_text
from planner.proposal import PartitionChange

LISTED_MAX: Final = 1000
INFLATED_BYTES_MAX: Final = 16 << 20
"""Size of a packed plan: some 350,000 partitions."""
REPLICAS_MAX: Final = 1000
"""Replicas of one partition."""

Packed = list[dict[str, Any]] | str
"""A JSON value: entries, or base64 of zlib of their columns as JSON."""


class PlanTooLargeError(ValueError):
    """One operation does not carry so many changes."""


def changes_document(changes: tuple[PartitionChange, ...]) -> list[dict[str, Any]]:
    """Changes as JSON values, one by one."""
    return [
        {
            "topic": c.topic,
            "partition": c.partition,
            "before": list(c.before),
            "after": list(c.after),
            "size": c.size_bytes,
            **({} if c.leader is None else {"leader": c.leader}),
            **({"stage": c.stage} if c.stage else {}),
        }
        for c in changes
    ]


def pack(changes: tuple[PartitionChange, ...]) -> Packed:
    """As a record carries them.

    :raises PlanTooLargeError: they are too many for one.
    """
    if len(changes) <= LISTED_MAX:
        return changes_document(changes)
    topics = {topic: number for number, topic in enumerate(sorted({c.topic for c in changes}))}
    columns: dict[str, list[Any]] = {
        "topics": list(topics),
        "topic": [topics[c.topic] for c in changes],
        "partition": [c.partition for c in changes],
        "before": [c.before for c in changes],
        "after": [c.after for c in changes],
        "size": [c.size_bytes for c in changes],
    }
    if any(c.leader is not None for c in changes):
        columns["leader"] = [c.leader for c in changes]
    if any(c.stage for c in changes):
        columns["stage"] = [c.stage for c in changes]
    text = json.dumps(columns, separators=(",", ":")).encode()
    if len(text) > INFLATED_BYTES_MAX:
        takes, room = bytes_text(len(text)), bytes_text(INFLATED_BYTES_MAX)
        words = f"its {len(changes):,} changes take {takes}, and one operation carries {room}"
        raise PlanTooLargeError(f"{words}: plan a part of the topics at a time")
    return b64encode(zlib.compress(text, level=9)).decode()


def unpack(packed: Packed) -> tuple[PartitionChange, ...]:
    """The inverse of pack; the shape of a list is judged by ``record_shapes``.

    :raises ValueError: it is no packed plan, or larger than INFLATED_BYTES_MAX.
    """
    if not isinstance(packed, str):
        return tuple(_of_entry(entry) for entry in packed)
    try:
        columns = json.loads(_inflated(packed))
    except RecursionError as error:
        raise ValueError("packed changes are nested too deep") from error
    return tuple(_of_columns(_judged(columns)))


def _inflated(packed: str) -> bytes:
    try:
        inflater = zlib.decompressobj()
        text = inflater.decompress(b64decode(packed, validate=True), INFLATED_BYTES_MAX)
    except zlib.error as error:
        raise ValueError(f"changes are not packed: {error}") from error
    if not inflater.eof:
        raise ValueError(f"packed changes end too early, or exceed {INFLATED_BYTES_MAX:,} bytes")
    return text


def _judged(columns: object) -> dict[str, list[Any]]:
    """The columns, once all are of one length and hold such values as they must."""
    if not isinstance(columns, dict):
        raise ValueError("packed changes must be an object")
    topics = columns.get("topics")
    if not isinstance(topics, list) or not all(map(_is_topic, topics)):
        raise ValueError("topics of packed changes must be names of topics")
    length = len(columns["size"]) if isinstance(columns.get("size"), list) else 0
    usual = {"leader": [None] * length, "stage": [0] * length}
    judged = {name: columns.get(name, usual.get(name)) for name in _COLUMNS}
    for name, column in judged.items():
        if not isinstance(column, list) or not all(map(_COLUMNS[name], column)):
            raise ValueError(f"{name} of packed changes is no column of such values")
        if len(column) != length:
            raise ValueError(f"columns of packed changes differ in length: {name}")
    if max(judged["topic"], default=-1) >= len(topics):
        raise ValueError("a packed change names a topic that is not listed")
    return {"topics": topics, **judged}


def _is_topic(value: object) -> bool:
    return isinstance(value, str) and TOPIC_NAME.fullmatch(value) is not None


def _is_whole(value: object, *, below: int) -> bool:
    return type(value) is int and 0 <= value < below


_is_id: Final = partial(_is_whole, below=1 << 31)


def _is_leader(value: object) -> bool:
    return value is None or _is_id(value)


def _are_replicas(value: object) -> bool:
    return isinstance(value, list) and 0 < len(value) <= REPLICAS_MAX and all(map(_is_id, value))


_COLUMNS: Final[Mapping[str, Callable[[object], bool]]] = {
    "topic": _is_id,
    "partition": _is_id,
    "before": _are_replicas,
    "after": _are_replicas,
    "size": partial(_is_whole, below=1 << 63),
    "leader": _is_leader,
    "stage": _is_id,
}


def _of_columns(columns: Mapping[str, Any]) -> list[PartitionChange]:
    return [
        PartitionChange(
            topic=columns["topics"][topic],
            partition=partition,
            before=tuple(before),
            after=tuple(after),
            size_bytes=size,
            leader=leader,
            stage=stage,
        )
        for topic, partition, before, after, size, leader, stage in zip(
            *(columns[name] for name in _COLUMNS), strict=True
        )
    ]


def _of_entry(entry: Mapping[str, Any]) -> PartitionChange:
    return PartitionChange(
        topic=entry["topic"],
        partition=entry["partition"],
        before=tuple(entry["before"]),
        after=tuple(entry["after"]),
        size_bytes=entry["size"],
        leader=entry.get("leader"),
        stage=entry.get("stage", 0),
    )
