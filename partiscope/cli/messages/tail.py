"""``partiscope tail``: browse and follow a topic."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final

import typer

from control.kafka.records.following import Followed, Notice, TopicFollower
from control.kafka.records.log_bounds import LogExtent
from control.kafka.records.reader import Looking, RecordReader, Start, StartKind
from control.kafka.records.record import (
    KEPT_BYTES,
    FetchedRecord,
    Gap,
    Isolation,
    Transaction,
)
from control.kafka.records.scan_progress import NO_LIMIT, Scan
from control.messages.decoding.decoder import Decoder
from control.messages.decoding.formats import FORMATS
from control.messages.message_filters import (
    FILTER_HELP,
    FilterTexts,
    MessageFilter,
    build_filter,
)
from control.messages.message_search import MessageSearch, chosen_partitions
from control.messages.patterns import FilterError
from control.messages.starts import outside_start_words, parse_start
from control.model.ids import TopicPartition
from control.views.format import plural_text
from control.views.messages.details import message_json
from control.views.printable import json_text, printable, visible
from control.views.tables.messages import (
    gap_words,
    moment_text,
    part_words,
    progress_words,
    unjudged_words,
)
from partiscope.cli.messages.record_format import FORMAT_HELP, record_writer
from partiscope.cli.shared.arguments import TIME_HELP, moment_of, zone_text
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Json,
    SchemaRegistry,
    now_ms,
    read_from,
)

SHOWN_CHARACTERS_MAX: Final = 2_000
"""Of a key or value; --json has it whole."""
PROGRESS_EVERY_S: Final = 2.0
_NEVER_EMPTY: Final = ("header", "json_path", "cel")


Topic = Annotated[str, typer.Argument(help="Topic to read.")]
Partitions = Annotated[str | None, typer.Option(metavar="N,N-N", help="Only these: 3 or 0-3,7.")]
Offset = Annotated[
    str | None,
    typer.Option(help="latest (the default), earliest, N, or -N: the last N."),
]
Since = Annotated[str | None, typer.Option(metavar="TIME", help=TIME_HELP)]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Only records before this time.")]
Held = Annotated[
    str | None,
    typer.Option("--filter", help="Only records whose key, value or a header contains this."),
]
Regex = Annotated[str | None, typer.Option(help=FILTER_HELP["regex"])]
Key = Annotated[str | None, typer.Option(help=FILTER_HELP["key"])]
Header = Annotated[str | None, typer.Option(help=FILTER_HELP["header"])]
JsonPath = Annotated[str | None, typer.Option(help=FILTER_HELP["json_path"])]
Cel = Annotated[str | None, typer.Option(help=FILTER_HELP["cel"])]
ScanLimit = Annotated[
    int | None, typer.Option(min=1, help="Stop after scanning this many records.")
]
Count = Annotated[
    int | None, typer.Option(min=1, help="Stop after this many records; default: follow for ever.")
]
ExitAtEnd = Annotated[
    bool, typer.Option("--exit-at-end", "-e", help="Stop at the end, as it is now.")
]
_FORMATS_HELP: Final = f"{', '.join(FORMATS)}; default: as chosen for the topic, else detected."
KeyFormat = Annotated[str, typer.Option(metavar="NAME", help=f"Of keys: {_FORMATS_HELP}")]
ValueFormat = Annotated[str, typer.Option(metavar="NAME", help=f"Of values: {_FORMATS_HELP}")]
Format = Annotated[str | None, typer.Option("--format", "-f", metavar="TEXT", help=FORMAT_HELP)]
Isolated = Annotated[
    Isolation,
    typer.Option(help="read_uncommitted marks aborted records, read_committed hides them."),
]


def tail(
    *,
    topic: Topic,
    partition: Partitions = None,
    offset: Offset = None,
    since: Since = None,
    until: Until = None,
    text: Held = None,
    regex: Regex = None,
    key: Key = None,
    header: Header = None,
    json_path: JsonPath = None,
    cel: Cel = None,
    scan_limit: ScanLimit = None,
    count: Count = None,
    exit_at_end: ExitAtEnd = False,
    format_: Format = None,
    isolation: Isolated = Isolation.READ_UNCOMMITTED,
    key_format: KeyFormat = "",
    value_format: ValueFormat = "",
    schema_registry: SchemaRegistry = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show records as they lie in the log; leaves no trace in any group.

    Keys and values are decoded; --json has them raw as well, --format has them raw alone.

    A lost leader, deleted records and damaged batches are told on standard error; reading goes on.
    With --exit-at-end, a partition that cannot be read to its end makes the exit status 1.

    Example: partiscope tail orders --offset earliest -e --cel "value.status == 'failed'"
    """
    if format_ is not None and as_json:
        raise CommandError("give --format or --json, not both", Exit.WRONG_USE)
    if partition is not None and not partition.strip():
        words = "--partition is empty; leave it out to read all partitions"
        raise CommandError(words, Exit.WRONG_USE)
    if offset is not None and since is not None:
        raise CommandError("give --offset or --since, not both", Exit.WRONG_USE)
    start = _start(offset, since)
    address = read_from(topic, bootstrap=bootstrap, schema_registry=schema_registry)
    decoder = decoder_for(address, topic, key=key_format, value=value_format)
    filters = {"text": text, "regex": regex, "key": key, "header": header}
    filters |= {"json_path": json_path, "cel": cel}
    until_ms = None if until is None else moment_of(until, "--until")
    tested = _filter_of(filters, decoder, until_ms)
    looking = replace(
        tested.looking,
        isolation=isolation,
        kept_bytes=KEPT_BYTES if format_ is None and not as_json else None,
    )
    usual = partial(_write_json if as_json else _write_text, decoder)
    write = usual if format_ is None else record_writer(format_)
    reading = Reading(
        topic=topic,
        partition=partition or "",
        start=start,
        looking=looking,
        tested=tested,
        count=count,
        scan_limit=scan_limit,
        exits_at_end=exit_at_end,
    )
    with tested:
        try:
            asyncio.run(_show(address, reading, write))
        except FilterError as error:
            raise CommandError(str(error)) from error


def _filter_of(
    texts: Mapping[str, str | None], decoder: Decoder, until_ms: int | None
) -> MessageFilter:
    given = {name: text for name, text in texts.items() if text is not None}
    empty = [name for name in _NEVER_EMPTY if given.get(name) == ""]
    if empty:
        words = f"--{empty[0].replace('_', '-')} is empty; leave it out to pass every record"
        raise CommandError(words, Exit.WRONG_USE)
    try:
        return build_filter(FilterTexts(**given), decoder, until_ms=until_ms)
    except FilterError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where reading a topic begins and ends."""

    topic: str
    partition: str
    start: Start
    looking: Looking
    tested: MessageFilter
    count: int | None
    scan_limit: int | None
    exits_at_end: bool


async def _show(address: str, wish: Reading, write: Callable[[FetchedRecord], None]) -> None:
    async with RecordReader(address) as reader:
        keys = await reader.partitions(wish.topic)
        try:
            chosen = chosen_partitions(keys, wish.partition)
        except FilterError as error:
            raise CommandError(str(error), Exit.WRONG_USE) from error
        if wish.start.kind is StartKind.OFFSET:
            extents, _ = await reader.extents.tolerant(chosen)
            _tell_outside(wish.start, extents)
    numbers = [key.partition for key in chosen] if wish.partition else None
    shown = Shown(wish, write)
    following = TopicFollower(
        address, wish.topic, partitions=numbers, looking=wish.looking, scan=shown.scan
    )
    async with following as follower:
        await follower.begin(wish.start)
        telling = asyncio.create_task(_tell_progress(shown))
        try:
            async for item in _items(follower, shown):
                if shown.is_last(item):
                    return
        finally:
            telling.cancel()
            # Also when a person ends it: nothing found is told apart from nothing read.
            shown.tell_end()
    if not shown.is_whole:
        raise CommandError(
            f"{wish.topic} was not read whole: the partitions named above are missing, wholly or "
            f"in part. `partiscope topics describe {wish.topic}` shows who leads them; read them "
            "again with --partition",
        )


def _tell_outside(start: Start, extents: Mapping[TopicPartition, LogExtent]) -> None:
    """Tells where the offset is outside a log; refuses one that is beyond all of them."""
    try:
        words = outside_start_words(start, extents, now_ms=now_ms(), time_form="--since {}")
    except FilterError as error:
        raise CommandError(error.words, Exit.WRONG_USE) from error
    if words:
        _tell(words)


class Shown:
    """Counts of a scan's records and of those written."""

    def __init__(self, wish: Reading, write: Callable[[FetchedRecord], None]) -> None:
        self.scan = Scan(records_max=wish.scan_limit or NO_LIMIT)
        self.wish = wish
        self.is_whole = True
        self._written = 0
        self._write = write

    def is_last(self, item: Followed) -> bool:
        """Write or tell one, and whether it is the last that is wanted."""
        if isinstance(item, Notice):
            _tell(printable(item.text))
            self.is_whole = self.is_whole and not item.is_trouble
            return False
        if isinstance(item, Gap):
            _tell(gap_words(item))
            return False
        if isinstance(item, FetchedRecord):
            self._write(item)
            self._written += 1
        return self._written == self.wish.count

    def tell_end(self) -> None:
        """How much was scanned, where some of it was left out."""
        scan, wish = self.scan, self.wish
        if wish.tested.unjudged_count:
            _tell(unjudged_words(wish.tested.unjudged_count, wish.tested.unjudged_reason))
        progress = scan.progress
        is_rest = progress.offsets_done < progress.offset_count or not wish.exits_at_end
        if not scan.records_left and is_rest:
            words = f"{scan.found_count:,} match; {self._scanned}"
            _tell(f"{words}; --scan-limit {wish.scan_limit} ends it here, the rest is not scanned")
        elif not scan.found_count and wish.looking.is_choosy:
            _tell(f"{plural_text(scan.record_count, 'record')} read, no match")

    def tell_progress(self) -> None:
        """How far it is."""
        _tell(f"{self.scan.found_count:,} match so far; {self._scanned}")

    @property
    def _scanned(self) -> str:
        progress = self.scan.progress
        if not progress.offset_count:
            return plural_text(progress.record_count, "record") + " scanned"
        return progress_words(progress)


async def _tell_progress(shown: Shown) -> None:
    """To a person who waits for a search, not to a file or another program."""
    while True:
        await asyncio.sleep(PROGRESS_EVERY_S)
        if sys.stderr.isatty() and shown.wish.exits_at_end and shown.wish.looking.is_choosy:
            shown.tell_progress()


def _items(follower: TopicFollower, shown: Shown) -> AsyncIterator[Followed]:
    if shown.wish.exits_at_end:
        return follower.backlog(is_all=True)
    return follower.items()


def _tell(words: str) -> None:
    sys.stderr.write(f"partiscope: {visible(words)}\n")


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


def decoder_for(address: str, topic: str, *, key: str, value: str) -> Decoder:
    """A decoder by the flags, else by what was chosen for the topic on any screen.

    :raises CommandError: status 2; there is no format of this name.
    """
    search = MessageSearch(topic=topic, key_format=key, value_format=value)
    try:
        return search.decoder(address)
    except FilterError as error:
        raise CommandError(
            f"--{error.field.replace('_', '-')}: {error.words}", Exit.WRONG_USE
        ) from (error)


def _write_text(decoder: Decoder, record: FetchedRecord) -> None:
    place = f"{printable(record.topic)}-{record.partition} @ {record.offset}"
    parts = [_moment(record.timestamp_ms), place]
    if record.transaction in (Transaction.ABORTED, Transaction.OPEN):
        parts.append(f"[{record.transaction}]")
    decoded = decoder.record(record)
    parts += (
        part_words(record.key, record.key_bytes, decoded.key, SHOWN_CHARACTERS_MAX),
        part_words(record.value, record.value_bytes, decoded.value, SHOWN_CHARACTERS_MAX),
    )
    sys.stdout.write("  ".join(parts) + "\n")
    sys.stdout.flush()


def _moment(at_ms: int) -> str:
    """A record's time in this machine's zone, with that zone. Records of format 0 have none."""
    return moment_text(at_ms) if at_ms < 0 else f"{moment_text(at_ms)}{zone_text(at_ms)}"


def _write_json(decoder: Decoder, record: FetchedRecord) -> None:
    sys.stdout.write(json_text(message_json(record, decoder.record(record))) + "\n")
    sys.stdout.flush()
