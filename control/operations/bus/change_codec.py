"""The changes of a plan as they travel in a record: a list where they are few, else packed.

A record of Kafka's usual size, 1 MiB, holds some 9,000 changes as a list and some 40,000 packed;
topics of the bus take records of 16 MiB.
"""

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from control.model.units import bytes_text
from control.operations.bus.record_bounds import INFLATED_BYTES_MAX
from control.operations.errors import InvalidInputError
from planner.proposal import PartitionChange

LISTED_MAX: Final = 1000

Packed = list[dict[str, Any]] | str
"""A JSON value: entries, or base64 of zlib of their columns as JSON."""


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

    :raises InvalidInputError: they are too many for one.
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
        raise InvalidInputError({"plan": f"{words}: plan a part of the topics at a time"})
    return b64encode(zlib.compress(text, level=9)).decode()


def unpack(packed: Packed) -> tuple[PartitionChange, ...]:
    """The inverse of pack; a list has been judged by ``record_shapes``.

    :raises ValueError: it is no packed plan.
    """
    from control.operations.bus.record_shapes import columns_of

    if isinstance(packed, str):
        return tuple(_of_columns(columns_of(packed)))
    return tuple(_of_entry(entry) for entry in packed)


def _of_columns(columns: Mapping[str, Any]) -> list[PartitionChange]:
    names = columns["topics"]
    leaders = columns.get("leader") or [None] * len(columns["size"])
    stages = columns.get("stage") or [0] * len(columns["size"])
    listed = (columns[name] for name in ("topic", "partition", "before", "after", "size"))
    return [
        PartitionChange(
            topic=names[topic],
            partition=partition,
            before=tuple(before),
            after=tuple(after),
            size_bytes=size,
            leader=leader,
            stage=stage,
        )
        for topic, partition, before, after, size, leader, stage in zip(
            *listed, leaders, stages, strict=True
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
