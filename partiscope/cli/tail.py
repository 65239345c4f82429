"""``partiscope tail``: browse and follow a topic."""

import asyncio
import json
import sys
import time
from typing import Annotated, Any

import typer

from control.kafka.errors import NoSuchPartitionError
from control.kafka.reader import FetchedRecord, RecordReader, Start, StartKind
from control.lab.starts import parse_start
from control.model.ids import TopicPartition
from control.views.messages import moment_text
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, settings_with


def tail(
    *,
    topic: Annotated[str, typer.Argument(help="Topic to read.")],
    partition: Annotated[int | None, typer.Option(min=0, help="Only this one.")] = None,
    offset: Annotated[
        str | None, typer.Option(help="earliest, latest, N, or -N for the last N.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="30s, 10m, 2h, 1d ago, or 2026-11-21T09:00:00Z.")
    ] = None,
    text: Annotated[
        str | None, typer.Option("--filter", help="Only records whose key or value contains this.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many; default: follow for ever.")
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show records as they lie in the log; leaves no trace in any group."""
    if offset is not None and since is not None:
        raise CommandError("give --offset or --since, not both", Exit.WRONG_USE)
    start = _start(offset, since)
    address = known_bootstrap(settings_with(bootstrap=bootstrap))
    wanted = text.encode() if text is not None else None
    asyncio.run(
        _show(
            address,
            topic,
            partition=partition,
            start=start,
            wanted=wanted,
            count=count,
            as_json=as_json,
        )
    )


async def _show(
    address: str,
    topic: str,
    *,
    partition: int | None,
    start: Start,
    wanted: bytes | None,
    count: int | None,
    as_json: bool,
) -> None:
    async with RecordReader(address) as reader:
        partitions = await reader.partitions(topic)
        if partition is not None:
            if TopicPartition(topic, partition) not in partitions:
                raise NoSuchPartitionError(topic, partition, count=len(partitions))
            partitions = (TopicPartition(topic, partition),)
        shown = 0
        async for record in reader.follow(await reader.positions(partitions, start)):
            if wanted is not None and not _contains(record, wanted):
                continue
            sys.stdout.write(_as_json(record) if as_json else _as_text(record))
            sys.stdout.flush()
            shown += 1
            if shown == count:
                return


def _contains(record: FetchedRecord, wanted: bytes) -> bool:
    return wanted in (record.key or b"") or wanted in (record.value or b"")


def _start(offset: str | None, since: str | None) -> Start:
    text = since or offset or "latest"
    try:
        start = parse_start(text, now_ms=time.time_ns() // 1_000_000)
    except ValueError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error
    if (start.kind is StartKind.TIMESTAMP) != (since is not None):
        flag, wants = ("--since", "10m or a date") if since else ("--offset", "a place, not a time")
        raise CommandError(f"{flag} takes {wants}: {text!r}", Exit.WRONG_USE)
    return start


def _as_text(record: FetchedRecord) -> str:
    at = moment_text(record.timestamp_ms)
    place = f"{record.topic}-{record.partition} @ {record.offset}"
    return f"{at}  {place}  {_shown(record.key)}  {_shown(record.value)}\n"


def _shown(data: bytes | None) -> str:
    return "null" if data is None else data.decode(errors="backslashreplace")


def _as_json(record: FetchedRecord) -> str:
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": None if record.key is None else _shown(record.key),
        "value": None if record.value is None else _shown(record.value),
        "headers": {name: None if v is None else _shown(v) for name, v in record.headers},
        "size_bytes": record.size_bytes,
        "codec": record.codec_name,
        "magic": record.batch.magic,
        "crc": record.batch.crc,
        "crc_is_valid": record.crc_is_valid,
    }
    return json.dumps(document, ensure_ascii=False) + "\n"
