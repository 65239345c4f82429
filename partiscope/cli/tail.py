"""``partiscope tail``: browse and follow a topic."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from control.kafka.errors import NoSuchPartitionError
from control.kafka.following import Followed, Notice, TopicFollower
from control.kafka.reader import Looking, RecordReader, Start, StartKind
from control.kafka.records import KEPT_BYTES, FetchedRecord, Gap, Isolation, Transaction
from control.lab.starts import parse_start
from control.model.ids import TopicPartition
from control.views.format import plural_text
from control.views.messages import brief, gap_words, matcher, moment_text
from control.views.printable import json_text, printable, told_bytes
from partiscope.cli.exits import CommandError, Exit
from partiscope.cli.options import Bootstrap, Json, known_bootstrap, now_ms, settings_with
from partiscope.cli.record_format import FORMAT_HELP, record_writer
from partiscope.cli.words import TIME_HELP, moment_of, zone_text

SHOWN_CHARACTERS_MAX: Final = 2_000
"""Of a key or value; --json has it whole."""


def tail(
    *,
    topic: Annotated[str, typer.Argument(help="Topic to read.")],
    partition: Annotated[int | None, typer.Option(min=0, help="Only this one.")] = None,
    offset: Annotated[
        str | None, typer.Option(help="earliest, latest, N, or -N for the last N.")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help=TIME_HELP)] = None,
    text: Annotated[
        str | None,
        typer.Option("--filter", help="Only records whose key, value or a header contains this."),
    ] = None,
    count: Annotated[
        int | None, typer.Option(min=1, help="Stop after so many; default: follow for ever.")
    ] = None,
    exit_at_end: Annotated[
        bool, typer.Option("--exit-at-end", "-e", help="Stop at the end, as it is now.")
    ] = False,
    format_: Annotated[
        str | None, typer.Option("--format", "-f", metavar="TEXT", help=FORMAT_HELP)
    ] = None,
    isolation: Annotated[
        Isolation,
        typer.Option(help="read_uncommitted marks aborted records, read_committed hides them."),
    ] = Isolation.READ_UNCOMMITTED,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show records as they lie in the log; leaves no trace in any group.

    A lost leader, deleted records and damaged batches are told on standard error; reading goes on.
    With --exit-at-end, a partition that cannot be read to its end makes the exit status 1.

    Example: partiscope tail orders --offset earliest --exit-at-end --format '%p %o %s\\n'
    """
    if format_ is not None and as_json:
        raise CommandError("give --format or --json, not both", Exit.WRONG_USE)
    if offset is not None and since is not None:
        raise CommandError("give --offset or --since, not both", Exit.WRONG_USE)
    start = _start(offset, since)
    address = known_bootstrap(settings_with(bootstrap=bootstrap))
    looking = Looking(
        matches=matcher(text or ""),
        isolation=isolation,
        kept_bytes=KEPT_BYTES if format_ is None and not as_json else None,
    )
    usual = _write_json if as_json else _write_text
    write = usual if format_ is None else record_writer(format_)
    reading = Reading(topic=topic, partition=partition, start=start, looking=looking,
                      count=count, exits_at_end=exit_at_end)  # fmt: skip
    asyncio.run(_show(address, reading, write))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where reading a topic begins and ends."""

    topic: str
    partition: int | None
    start: Start
    looking: Looking
    count: int | None
    exits_at_end: bool


async def _show(address: str, wish: Reading, write: Callable[[FetchedRecord], None]) -> None:
    topic, partition = wish.topic, wish.partition
    async with RecordReader(address) as reader:
        partitions = await reader.partitions(topic)
    if partition is not None and TopicPartition(topic, partition) not in partitions:
        raise NoSuchPartitionError(topic, partition, count=len(partitions))
    read_count = shown = 0
    is_whole = True
    following = TopicFollower(address, topic, partition=partition, looking=wish.looking)
    async with following as follower:
        await follower.begin(wish.start)
        try:
            async for item in _items(follower, wish):
                if isinstance(item, Notice):
                    _tell(printable(item.text))
                    is_whole = is_whole and not item.is_trouble
                elif isinstance(item, Gap):
                    _tell(gap_words(item))
                else:
                    read_count += 1
                if isinstance(item, FetchedRecord):
                    write(item)
                    shown += 1
                    if shown == wish.count:
                        return
        finally:
            # Also when a person ends it: nothing found is told apart from nothing read.
            if not shown and wish.looking.accepts is not None:
                _tell(f"{plural_text(read_count, 'record')} read, none that is looked for")
    if not is_whole:
        raise CommandError(
            f"{topic} was not read whole: the partitions named above are missing, wholly or in "
            f"part. `partiscope topics describe {topic}` shows who leads them; read them again "
            "with --partition",
        )


def _items(follower: TopicFollower, wish: Reading) -> AsyncIterator[Followed]:
    return follower.backlog(is_all=True) if wish.exits_at_end else follower.items()


def _tell(words: str) -> None:
    sys.stderr.write(f"partiscope: {words}\n")


def _start(offset: str | None, since: str | None) -> Start:
    if since is not None:
        return Start(kind=StartKind.TIMESTAMP, value=moment_of(since, "--since"))
    text = offset or "latest"
    try:
        start = parse_start(text, now_ms=now_ms())
    except ValueError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error
    if start.kind is StartKind.TIMESTAMP:
        raise CommandError(f"--offset takes a place, not a time: {text!r}", Exit.WRONG_USE)
    return start


def _write_text(record: FetchedRecord) -> None:
    place = f"{printable(record.topic)}-{record.partition} @ {record.offset}"
    parts = [_moment(record.timestamp_ms), place]
    if record.transaction in (Transaction.ABORTED, Transaction.OPEN):
        parts.append(f"[{record.transaction}]")
    parts += (
        brief(record.key, record.key_bytes, SHOWN_CHARACTERS_MAX),
        brief(record.value, record.value_bytes, SHOWN_CHARACTERS_MAX),
    )
    sys.stdout.write("  ".join(parts) + "\n")
    sys.stdout.flush()


def _moment(at_ms: int) -> str:
    """A record's time in this machine's zone, with that zone. Records of format 0 have none."""
    return moment_text(at_ms) if at_ms < 0 else f"{moment_text(at_ms)}{zone_text(at_ms)}"


def _write_json(record: FetchedRecord) -> None:
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": told_bytes(record.key),
        "value": told_bytes(record.value),
        "headers": [[name, told_bytes(value)] for name, value in record.headers],
        "size_bytes": record.size_bytes,
        "codec": record.codec_name,
        "magic": record.batch.magic,
        "crc": record.batch.crc,
        "crc_is_valid": record.crc_is_valid,
        "transaction": record.transaction.value or None,
    }
    sys.stdout.write(json_text(document) + "\n")
    sys.stdout.flush()
