"""``partiscope produce``: produce."""

import asyncio
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeGuard

import typer

from broker.named_file import check_readable
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.records.producer import (
    ACKS,
    COMPRESSIONS,
    OutgoingRecord,
    ProducerOptions,
)
from control.messages.forecast import KEYS_PREVIEWED, Forecast, keys_to_preview
from control.messages.keys import KeySpecError, bytes_of, is_description
from control.messages.lines import LineFormat, LinesError, lines_in
from control.messages.partitioners import KeyRule, partitions_for_key
from control.messages.produce_session import ProduceJob, RecordSource
from control.model.moments import iso_text, time_meant
from control.operations.catalogue.topics.produce import Produce
from control.operations.checks import PARTITIONS_MAX
from control.operations.protected_topics import check_topic
from control.views.messages.key_spread import spread_figures, spread_of, spread_words
from control.views.printable import told_bytes
from partiscope.cli.messages.produce_run import send
from partiscope.cli.messages.standard_input import Lines
from partiscope.cli.shared.arguments import TIME_HELP, escapes_decoded, moment_of
from partiscope.cli.shared.confirm import require_change
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.operations import Reason
from partiscope.cli.shared.options import (
    Bootstrap,
    Json,
    known_bootstrap,
    note,
    now_ms,
    settings_with,
    target_with,
    write_json,
)
from partiscope.cli.shared.streams import is_piped
from partiscope.cli.shared.tables import figure, write_table

TOMBSTONE: Final = "null"


Topic = Annotated[str, typer.Argument(help="Topic to send to.")]
Key = Annotated[
    str | None,
    typer.Option(help="A key, or `seq`, `uniform:N`, `zipf:N[:S]`; {n} is the number."),
]
Value = Annotated[
    str | None,
    typer.Option(
        help="A value; {n} {key} {now} {uuid} {random:1-9}; null: tombstone. "
        "Without one: the lines of standard input, or {n} at a terminal.",
    ),
]
Partition = Annotated[
    int | None, typer.Option(min=0, help="Send to this partition; the key is ignored.")
]
Rule = Annotated[KeyRule, typer.Option(help="Rule that turns a key into a partition.")]
Header = Annotated[list[str] | None, typer.Option(help="name=value; repeatable.")]
Timestamp = Annotated[
    str | None, typer.Option(metavar="TIME", help="Timestamp of the records: " + TIME_HELP)
]
TimestampMs = Annotated[
    int | None,
    typer.Option(min=-1, max=2**63 - 1, help="The same in milliseconds since 1970; -1: no time."),
]
File = Annotated[
    Path | None,
    typer.Option(help="File with a record a line, KEY<tab>VALUE or VALUE; -: standard input."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option(
        "--key-separator",
        "-K",
        help="Separator of key and value, \\t for a tab; none: a line is a value.  "
        "[default: \\t, or none with --key]",
    ),
]
JsonLines = Annotated[
    bool,
    typer.Option(
        "--json-lines", help="Lines are JSON: key, value, headers, partition, timestamp_ms."
    ),
]


def _finite(rate: float | None) -> float | None:
    if rate is not None and not math.isfinite(rate):
        raise CommandError(f"--rate '{rate}' is no number of records per second", Exit.WRONG_USE)
    return rate


Rate = Annotated[float | None, typer.Option(min=0.01, callback=_finite, help="Records per second.")]
Count = Annotated[
    int | None, typer.Option(min=1, help="How many records of --value.  [default: 1]")
]
Acks = Annotated[str, typer.Option(help="0, 1 or all.")]
Compression = Annotated[str, typer.Option(help="|".join(COMPRESSIONS))]
Idempotent = Annotated[bool, typer.Option("--idempotent", help="No duplicates.")]
KeysFrom = Annotated[Path | None, typer.Option(help="Keys, one a line.")]
Preview = Annotated[
    bool,
    typer.Option("--preview", help="Only show where the keys, or 10,000 keys, would land."),
]
Then = Annotated[
    int | None,
    typer.Option(
        "--if-partitions",
        min=1,
        max=PARTITIONS_MAX,
        help="With --preview: also with so many partitions, and which keys move.",
    ),
]


def produce(
    *,
    topic: Topic,
    key: Key = None,
    value: Value = None,
    partition: Partition = None,
    rule: Rule = KeyRule.MURMUR2,
    header: Header = None,
    timestamp: Timestamp = None,
    timestamp_ms: TimestampMs = None,
    file: File = None,
    key_separator: KeySeparator = None,
    json_lines: JsonLines = False,
    rate: Rate = None,
    count: Count = None,
    acks: Acks = "all",
    compression: Compression = "none",
    idempotent: Idempotent = False,
    keys_from: KeysFrom = None,
    preview: Preview = False,
    if_partitions: Then = None,
    reason: Reason = "",
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Send test messages: one, many by a template, or the lines of standard input or a file.

    The partition that a key will hit is shown before, the offsets of each partition after. Ctrl-C
    ends it and tells what was acknowledged.

    For example: tail -f app.log | partiscope produce logs
    """
    address = known_bootstrap(settings_with(bootstrap=bootstrap))
    keys = () if keys_from is None else _keys_in(keys_from)
    if preview:
        described = keys or _keys_of(key, count)
        _preview(address, topic, described, then=if_partitions, as_json=as_json)
        return
    if if_partitions is not None:
        raise CommandError("--if-partitions goes with --preview", Exit.WRONG_USE)
    check_topic("produce", topic)
    lines = _lines_source(file, is_generated=any((value is not None, count, keys)))
    require_change(bootstrap)
    job = ProduceJob(
        topic=topic,
        value=None if value == TOMBSTONE else "{n}" if value is None else value,
        keys=key,
        key_list=keys,
        partition=partition,
        rule=rule,
        count=count or 1,
        rate=rate,
        headers=tuple(_header(pair) for pair in header or ()),
        timestamp_ms=_timestamp(timestamp, timestamp_ms),
        options=_options(acks, compression, is_idempotent=idempotent),
    )
    if lines is None and _is_one_key(key) and job.count == 1 and not as_json:
        _say_where(address, topic, key)
    usual = "none" if key is not None else r"\t"
    separator = _separator(usual if key_separator is None else key_separator)
    form = LineFormat(topic=topic, separator=separator, is_json=json_lines)
    source = None
    if lines is not None:
        source = RecordSource(read=partial(_records, lines, form), is_file=lines.is_file)
    target = target_with(bootstrap=bootstrap)
    raise typer.Exit(send(target, Produce(job=job, source=source, reason=reason), as_json=as_json))


def _lines_source(file: Path | None, *, is_generated: bool) -> Lines | None:
    """Where lines come from; None: records are made by a template."""
    if file is None:
        return Lines.of_standard_input() if is_piped() and not is_generated else None
    if is_generated:
        message = "lines have values of their own; leave --value, --keys-from and --count out"
        raise CommandError(message, Exit.WRONG_USE)
    if file == Path("-"):
        return Lines.of_standard_input()
    check_readable(file, "--file", takes_pipes=True)
    return Lines(str(file), file)


def _options(acks: str, compression: str, *, is_idempotent: bool) -> ProducerOptions:
    if acks not in ACKS or compression not in COMPRESSIONS:
        words = f"acks is {', '.join(ACKS)}; compression {', '.join(COMPRESSIONS)}"
        raise CommandError(words, Exit.WRONG_USE)
    return ProducerOptions(acks=acks, compression=compression, is_idempotent=is_idempotent)


def _timestamp(moment: str | None, milliseconds: int | None) -> int | None:
    if moment is not None:
        if milliseconds is not None:
            raise CommandError("give --timestamp or --timestamp-ms, not both", Exit.WRONG_USE)
        return moment_of(moment, "--timestamp")
    if milliseconds is not None:
        meant = time_meant(milliseconds, now_ms=now_ms(), units=("s", "µs", "ns"))
        if meant is not None:
            words = f"--timestamp-ms {milliseconds} is no time of these years in milliseconds"
            hint = f"write {meant} if {iso_text(meant)} is meant"
            raise CommandError(
                f"{words}: {hint}. --json-lines take any timestamp_ms", Exit.WRONG_USE
            )
    return milliseconds


def _separator(text: str) -> bytes | None:
    """As typed: ``\\t`` is a tab, ``none`` is none."""
    if text in ("", "none"):
        return None
    return escapes_decoded(text, "--key-separator").encode()


async def _records(lines: Lines, form: LineFormat) -> AsyncGenerator[list[OutgoingRecord], None]:
    """Records of lines, as they come; those before a bad line come before its error."""
    number = 0
    async with aclosing(lines.batches()) as batches:
        async for batch in batches:
            records = []
            for number, line in enumerate(batch, number + 1):  # noqa: B020  # counts through
                try:
                    records.append(form.record(line, number))
                except LinesError as error:
                    yield records
                    raise CommandError(str(error), Exit.WRONG_USE) from error
            yield records


async def _partition_count(address: str, topic: str) -> int:
    async with KafkaAdmin.to(address) as admin:
        (found,) = await admin.topics([topic])
        return len(found.partitions)


def _is_one_key(key: str | None) -> TypeGuard[str]:
    return key is not None and "{n}" not in key and not is_description(key)


def _say_where(address: str, topic: str, key: str) -> None:
    partitions = asyncio.run(_partition_count(address, topic))
    places = partitions_for_key(bytes_of(key), partitions)
    note(" · ".join(f"{rule} → {place}" for rule, place in places.items()))


def _keys_of(key: str | None, count: int | None) -> tuple[bytes | None, ...]:
    """One fixed key is asked for itself."""
    if _is_one_key(key):
        return (bytes_of(key),)
    try:
        return keys_to_preview(key, count or KEYS_PREVIEWED)
    except KeySpecError as error:
        raise CommandError(f"--key {error}", Exit.WRONG_USE) from error


def _preview(
    address: str,
    topic: str,
    keys: tuple[bytes | None, ...],
    *,
    then: int | None,
    as_json: bool,
) -> None:
    found = spread_of(keys, asyncio.run(_partition_count(address, topic)), then)
    if as_json:
        write_json({"topic": topic, "forecasts": list(map(_forecast_document, found))})
        return
    heads, rows = spread_figures(found)
    write_table(list(map(figure, heads)), rows)
    for item in found:
        note(spread_words(item))


def _forecast_document(item: Forecast) -> dict[str, Any]:
    moves = [
        {"key": told_bytes(move.key), "partition": move.now, "partition_then": move.then}
        for move in item.moves
    ]
    return {
        "rule": str(item.rule),
        "records": list(item.records),
        "distinct_keys": item.distinct_keys,
        "skew": item.skew,
        **({"records_then": list(item.records_then), "moves": moves} if item.records_then else {}),
    }


def _keys_in(path: Path) -> tuple[bytes, ...]:
    try:
        return tuple(lines_in(path, "--keys-from", takes_pipes=True))
    except LinesError as error:
        raise CommandError(str(error), Exit.WRONG_USE) from error


def _header(pair: str) -> tuple[str, bytes]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise CommandError(f"--header {pair!r} is not name=value", Exit.WRONG_USE)
    name.encode()  # bytes that are not UTF-8 are no name
    return name, bytes_of(value)
