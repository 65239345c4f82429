"""``partiscope segments``: the segment files of a partition, their indexes, one message."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from broker.log.dump_log import (
    RecordView,
    SegmentView,
    find_record,
    list_segments,
    read_index,
    read_time_index,
)
from broker.log.errors import OffsetOutOfRangeError, StorageError
from control.access.login import acting
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import NoSuchPartitionError
from control.kafka.records.masks import mask_of
from control.model.units import counted
from control.views.format import bytes_text
from control.views.printable import printable, told_bytes
from control.views.tables.cells import bytes_cell, count_cell
from control.views.tables.messages import brief
from control.views.tables.rows import Cell
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import Data, Json, settings_with, write_json, write_lines
from partiscope.cli.shared.tables import figure, words, write_table

VALUE_CHARACTERS_MAX: Final = 2000
"""As much of a value is shown to people; --json has it whole."""


def segments(
    *,
    topic: Annotated[str, typer.Argument(help="Topic.")],
    partition: Annotated[int, typer.Argument(min=0, help="Partition.")],
    index: Annotated[
        bool, typer.Option("--index", help="List the entries of the segments' indexes.")
    ] = False,
    offset: Annotated[
        int | None, typer.Option(min=0, help="Show the message at this offset, and where it lies.")
    ] = None,
    log_dir: Annotated[
        Path | None, typer.Option(help="A broker's log directory; default: every local one's.")
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Base offsets, sizes, records, times and index entries, read from this machine's disk.

    Example: partiscope segments orders 0 --offset 1234 --json
    """
    settings = settings_with(data=data)
    if offset is not None:
        _check_readable(topic)
    places = [log_dir] if log_dir is not None else sorted(settings.data.glob("broker-*/"))
    found = [place / f"{topic}-{partition}" for place in places]
    directories = [directory for directory in found if directory.is_dir()]
    if not directories:
        if count := _partitions_below(places, topic):
            raise NoSuchPartitionError(topic, partition, count=count)
        raise CommandError(
            f"no directory {topic}-{partition} in {', '.join(map(str, places)) or settings.data}. "
            "Segments are read from disk: run this where the broker runs, or name --log-dir.",
            Exit.FAILED,
        )
    named = {"topic": topic, "partition": partition}
    try:
        if offset is not None:
            _show_message(directories, offset, named if as_json else None)
            return
        for directory in directories[: 1 if as_json else None]:
            facts = list_segments(str(directory))
            if as_json:
                rows = [_document(directory, item, is_with_index=index) for item in facts]
                write_json({**named, "segments": rows})
            else:
                _print(directory, facts)
                if index:
                    _print_indexes(directory, facts)
    except StorageError as error:
        raise CommandError(str(error)) from error


def _check_readable(topic: str) -> None:
    """:raises CommandError: who acts may not read these records, or not all of them."""
    mask, login = mask_of(KafkaSettings(bootstrap=""), topic), acting()
    why = "" if login is None else login.why_no_records("", topic)
    if why or mask is not None:
        told = why or "masking rules hold for this topic, and a file on disk shows all of a record"
        raise CommandError(
            f"the message is not shown: {told}. `partiscope browse {topic} --partition N "
            "--offset N` shows what may be seen",
        )


def _partitions_below(places: Sequence[Path], topic: str) -> int:
    """How many partitions a topic has, as far as these log directories know."""
    names = (path.name for place in places if place.is_dir() for path in place.iterdir())
    numbers = (name.removeprefix(f"{topic}-") for name in names if name.startswith(f"{topic}-"))
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)


def _document(directory: Path, facts: SegmentView, *, is_with_index: bool) -> dict[str, Any]:
    document = asdict(facts)
    document["active"] = document.pop("is_active")
    if is_with_index:
        base = facts.base_offset
        document["index"] = [
            {"relative_offset": entry.offset - base, "position": entry.position}
            for entry in read_index(str(directory), base)
        ]
        document["time_index"] = [
            {"timestamp_ms": entry.timestamp_ms, "relative_offset": entry.offset - base}
            for entry in read_time_index(str(directory), base)
        ]
    return document


def _print(directory: Path, facts: tuple[SegmentView, ...]) -> None:
    write_lines(str(directory))
    heads = [
        figure("base offset"),
        figure("bytes"),
        figure("records"),
        figure("index", rank=3),
        figure("time index", rank=3),
        words("first UTC", rank=3),
        words("last UTC", rank=2),
        words("state", is_long=True),
    ]
    rows: list[list[str | Cell]] = [
        [
            str(item.base_offset),
            bytes_cell(item.size_bytes),
            count_cell(item.records),
            str(item.index_entries),
            str(item.time_index_entries),
            _time(item.first_timestamp_ms),
            _time(item.largest_timestamp_ms),
            item.damage or ("active" if item.is_active else "closed"),
        ]
        for item in facts
    ]
    write_table(heads, rows)


def _print_indexes(directory: Path, facts: tuple[SegmentView, ...]) -> None:
    for item in facts:
        base = item.base_offset
        write_lines("", f"{base:020d}.index (relative offset → position in bytes)")
        entries = read_index(str(directory), base)
        rows = [[str(entry.offset - base), str(entry.position)] for entry in entries]
        write_table([figure("relative offset"), figure("position")], rows)
        write_lines("", f"{base:020d}.timeindex (timestamp → relative offset)")
        times = read_time_index(str(directory), base)
        rows = [[_time(entry.timestamp_ms), str(entry.offset - base)] for entry in times]
        write_table([words("up to"), figure("relative offset")], rows)


def _show_message(directories: Sequence[Path], offset: int, named: dict[str, Any] | None) -> None:
    """From the first broker's directory that has it; `named` is what JSON begins with."""
    missing: OffsetOutOfRangeError | None = None
    for directory in directories:
        try:
            view = find_record(str(directory), offset)
        except OffsetOutOfRangeError as error:
            missing = error
            continue
        if named is None:
            _print_message(view)
        else:
            write_json({**named, "message": _message(view)})
        return
    assert missing is not None
    is_within = missing.log_start_offset <= offset < missing.log_end_offset
    raise CommandError(
        f"there is no message at offset {offset}: this partition holds offsets "
        f"{missing.log_start_offset} to {missing.log_end_offset - 1}"
        + (", and this one was compacted away or never written" if is_within else "")
        + ". Name another --offset."
    )


def _message(view: RecordView) -> dict[str, Any]:
    record, batch = view.record, view.batch
    return {
        "offset": record.offset,
        "timestamp_ms": record.timestamp if record.timestamp >= 0 else None,
        "key": told_bytes(record.key),
        "value": told_bytes(record.value),
        "headers": [[name, told_bytes(value)] for name, value in record.headers],
        "key_bytes": None if record.key is None else len(record.key),
        "value_bytes": None if record.value is None else len(record.value),
        "file": view.segment_path,
        "index_entry": None if view.index_entry is None else asdict(view.index_entry),
        "batch": {
            "base_offset": batch.header.base_offset,
            "last_offset": batch.header.last_offset,
            "position": batch.position,
            "size_bytes": batch.size_bytes,
            "records": batch.header.records_count,
            "codec": batch.codec,
            "crc32c": f"{batch.header.crc:08x}",
            "is_crc_valid": batch.is_crc_valid,
            "format_version": batch.header.magic,
            "leader_epoch": batch.header.partition_leader_epoch,
        },
    }


def _print_message(view: RecordView) -> None:
    record, batch = view.record, view.batch
    timestamp_type = "set by the broker" if batch.header.is_log_append_time else "by the producer"
    verdict = "holds" if batch.is_crc_valid else "DOES NOT HOLD"
    entry = view.index_entry
    way = "no index entry before it: read from the file's start"
    if entry is not None:
        way = f"index entry: offset {entry.offset} at position {entry.position}"
    lines = {
        "offset": str(record.offset),
        "timestamp": f"{_time(record.timestamp)} UTC ({record.timestamp} ms, {timestamp_type})",
        "key": _shown(record.key),
        "value": _shown(record.value),
        "headers": ", ".join(f"{printable(n)}={_shown(v)}" for n, v in record.headers) or "none",
        "batch": (
            f"offsets {batch.header.base_offset} to {batch.header.last_offset}, "
            f"{counted(batch.header.records_count, 'record')}, "
            f"{bytes_text(batch.size_bytes)} on disk, codec {batch.codec}"
        ),
        "checksum": f"CRC-32C {batch.header.crc:08x}, {verdict}",
        "format": f"record format {batch.header.magic}, "
        f"leader epoch {batch.header.partition_leader_epoch}",
        "file": f"{view.segment_path}, position {batch.position}",
        "found by": way,
    }
    width = max(map(len, lines))
    write_lines(*(f"{name.ljust(width)}  {text}" for name, text in lines.items()))


def _shown(content: bytes | None) -> str:
    words = brief(content, len(content or b""), VALUE_CHARACTERS_MAX)
    return words if content is None else f"{words} ({bytes_text(len(content))})"


def _time(at_ms: int | None) -> str:
    if at_ms is None or at_ms < 0:
        return "n/a"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"  # a producer that counts in another unit
