"""``partiscope browse``: one message in full."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from control.kafka.records.reader import Bounds, Browsed, Looking, RecordReader, Start, StartKind
from control.kafka.records.record import FetchedRecord
from control.messages.decoding.decoder import DecodedRecord
from control.messages.message_search import chosen_partitions
from control.model.ids import TopicPartition
from control.views.messages.details import (
    decoded_words,
    message_facts,
    message_json,
    raw_words,
)
from control.views.printable import json_text, printable, readable
from control.views.tables.messages import skipped_words
from partiscope.cli.messages.record_format import record_writer
from partiscope.cli.messages.tail import KeyFormat, Topic, ValueFormat, decoder_for
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import (
    Bootstrap,
    Json,
    SchemaRegistry,
    read_from,
)

_WHOLE: Final = Looking(kept_bytes=None)
_ONE: Final = Bounds(records=1)


def browse(
    *,
    topic: Topic,
    partition: Annotated[int, typer.Option(min=0, help="Partition of the message.")],
    offset: Annotated[int, typer.Option(min=0, help="Offset of the message.")],
    key_format: KeyFormat = "",
    value_format: ValueFormat = "",
    schema_registry: SchemaRegistry = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the value's bytes to a file; -: standard output."),
    ] = None,
    bootstrap: Bootstrap = None,
    as_json: Json = False,
) -> None:
    """Show one message: key, value, headers, time, sizes, batch and producer; decoded and raw.

    Example: partiscope browse orders --partition 3 --offset 1200 --value-format msgpack
    """
    address = read_from(topic, bootstrap=bootstrap, schema_registry=schema_registry)
    decoder = decoder_for(address, topic, key=key_format, value=value_format)
    record = asyncio.run(_read(address, TopicPartition(topic, partition), offset))
    if output is not None:
        _write_value(record, output)
    elif as_json:
        sys.stdout.write(json_text(message_json(record, decoder.record(record)), indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(record, decoder.record(record))) + "\n")


async def _read(address: str, key: TopicPartition, offset: int) -> FetchedRecord:
    async with RecordReader(address) as reader:
        chosen_partitions(await reader.partitions(key.topic), str(key.partition))
        start = Start(kind=StartKind.OFFSET, value=offset)
        found = await reader.browse([key], start, limit=1, looking=_WHOLE, bounds=_ONE)
    for record in found.records:
        if record.offset == offset:
            return record
    raise CommandError(_missing(found, key, offset), Exit.FAILED)


def _missing(found: Browsed, key: TopicPartition, offset: int) -> str:
    told = "; ".join(skipped_words(found.skipped))
    if told:
        return told
    place = f"{printable(key.topic)}-{key.partition}"
    near = f"; the next one is at {found.records[0].offset}" if found.records else ""
    return (
        f"{place} has no message at offset {offset}{near}. "
        f"`partiscope partitions describe {printable(key.topic)} {key.partition}` shows its offsets"
    )


def _write_value(record: FetchedRecord, output: Path) -> None:
    if record.value is None:
        raise CommandError("the value is null: there are no bytes to write", Exit.FAILED)
    if output == Path("-"):
        record_writer("%s")(record)
        return
    try:
        output.write_bytes(record.value)
    except OSError as error:
        words = f"--output {output}: {error.strerror}. Choose another file"
        raise CommandError(words, Exit.WRONG_USE) from error


def _lines(record: FetchedRecord, decoded: DecodedRecord) -> list[str]:
    lines = [f"{name:<12} {words}" for name, words in message_facts(record)]
    lines += [
        f"header       {printable(name)}: {readable(value)}" for name, value in record.headers
    ]
    parts = (("key", record.key, decoded.key), ("value", record.value, decoded.value))
    for name, data, its in parts:
        lines += ["", name if its is None else f"{name} ({printable(its.label)})"]
        if its is not None and its.error:
            lines.append(f"▲ {printable(its.error)}; the bytes:")
        lines.append(decoded_words(its))
        if its is not None and its.is_document and its.schema_id is not None:
            lines += ["", f"{name}, raw", raw_words(data)]
    return lines
