"""Rows of messages for all screens: one record of a topic, as it can be read."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from control.kafka.records.browsing import GAPS_TOLD_MAX, Browsed, Skipped
from control.kafka.records.record import FetchedRecord, Gap, Isolation, Transaction
from control.kafka.records.scan_progress import Progress
from control.messages.decoding.decoder import DecodedRecord
from control.messages.decoding.formats import Decoded, Format
from control.messages.result_pages import ResultPages
from control.views import format as text
from control.views.printable import printable, readable
from control.views.tables import cells, units
from control.views.tables.column import Table, column, worded
from control.views.tables.rows import SHAPES, Cell, Row, Tone

ISOLATION_WORDS: Final = f"{Isolation.READ_UNCOMMITTED}: aborted and open records are marked"
"""How the screens read."""
SHOWN_CHARACTERS_MAX: Final = 400
"""Of a key or value in a list; the whole of it stands in its details."""


_TRANSACTION_TONES: Final = {
    Transaction.ABORTED: Tone.WARNING,
    Transaction.OPEN: Tone.NOTICE,
    Transaction.COMMITTED: Tone.PLAIN,
    Transaction.NONE: Tone.MUTED,
}


def gap_words(gap: Gap) -> str:
    """Where nothing could be read, how much that is, and why."""
    if gap.first_offset == gap.last_offset:
        where = f"offset {gap.first_offset}"
    else:
        where = f"offsets {gap.first_offset} to {gap.last_offset}"
    count = text.plural_text(gap.count, "record")
    most = "" if gap.count == 1 else "at most "
    place = f"{printable(gap.topic)}-{gap.partition}"
    return f"{place} {where} skipped ({most}{count}): {printable(gap.reason)}"


def skipped_words(skipped: Skipped) -> Iterator[str]:
    """A line for everything that could not be read."""
    for unread in skipped.unread:
        yield f"{printable(str(unread.partition))} not read: {printable(unread.reason)}"
    yield from map(gap_words, skipped.gaps)
    if skipped.gap_count > GAPS_TOLD_MAX:
        more = skipped.gap_count - len(skipped.gaps)
        records = text.plural_text(skipped.record_count, "record")
        yield f"and {text.plural_text(more, 'further gap')}; {records} skipped in all"


def read_words(browsed: Browsed, *, is_search: bool) -> str:
    """How much was read, and whether there is more."""
    if is_search:
        return _search_words(browsed)
    words = f"{text.plural_text(browsed.read_count, 'record')} read"
    if browsed.rest:
        words += ", older ones not read yet" if browsed.is_backward else ", later ones not read yet"
    elif browsed.skipped.unread:
        words += ", not all partitions"
    else:
        words += ": all of them" if browsed.read_count else ""
    return words + _late_words(browsed)


def _search_words(browsed: Browsed) -> str:
    progress = browsed.progress
    words = f"{progress.found_count:,} match; {progress_words(progress)}"
    if browsed.rest:
        older = "older" if browsed.is_backward else "later"
        at = moment_text(-1 if progress.at_ms is None else progress.at_ms)
        way = "back to" if browsed.is_backward else "up to"
        why = "stopped by hand" if browsed.was_stopped else f"scanned {way} {at}"
        words += f"; {why}, {older} ones not scanned yet"
    elif browsed.skipped.unread:
        words += ", not all partitions"
    elif browsed.behind_count:
        behind = text.plural_text(browsed.behind_count, "offset")
        words += f"; not {behind} behind the end in time, where earlier times may be: read from "
        words += "the start to scan them"
    else:
        words += ": all of them"
    return words + _late_words(browsed)


def _late_words(browsed: Browsed) -> str:
    if browsed.since_ms is None or not browsed.records:
        return ""
    first_ms = browsed.records[0].timestamp_ms
    is_late = first_ms > browsed.since_ms
    return f"; the first is of {moment_text(first_ms)}" if is_late else ""


def progress_words(progress: Progress) -> str:
    """How far a scan has come: records, bytes and partitions, of how many.

    Records are told by offsets: where compaction or transactions left some out there are fewer.
    """
    done, total = progress.offsets_done, progress.offset_count
    part = "" if done == total else f" ({_part_text(progress.part)})"
    size = text.bytes_text(progress.read_bytes)
    about = "" if done == total else f" of about {text.bytes_text(progress.estimated_bytes)}"
    partitions = text.plural_text(progress.partition_count, "partition")
    records = text.plural_text(progress.record_count, "record")
    return (
        f"{records} scanned, {done:,} of {text.plural_text(total, 'offset')}{part}, "
        f"{size}{about}, {progress.partitions_done} of {partitions} whole"
    )


def _part_text(part: float) -> str:
    percent = 100 * part
    return f"{percent:.1f} %" if percent < 10 else f"{min(percent, 99):.0f} %"


def summary(browsed: Browsed, *, is_search: bool) -> tuple[str, Sequence[str]]:
    """The line above a list of records, and the lines about what could not be read."""
    words = read_words(browsed, is_search=is_search)
    told = [*skipped_words(browsed.skipped)]
    if browsed.outside_words:
        told.insert(0, printable(browsed.outside_words))
    if browsed.unjudged_count:
        told.append(unjudged_words(browsed.unjudged_count, browsed.unjudged_reason))
    return words, told


def shown_words(pages: ResultPages) -> str:
    """``3 records shown``; of several pages ``101–200 shown``."""
    count, first = len(pages.shown.records) if pages.shown else 0, pages.first
    if not count or not (pages.has_previous or pages.has_next or first > 1):
        return f"{text.plural_text(count, 'record')} shown"
    return f"{first:,}–{first + count - 1:,} shown" if count > 1 else f"{first:,} shown"


def unjudged_words(count: int, reason: str) -> str:
    """The count of records that a filter could not judge, in words."""
    records = text.plural_text(count, "record")
    return f"{records} could not be judged and left out; the first: {printable(reason)}"


def moment_text(at_ms: int) -> str:
    """Date and time to the millisecond, local time of this machine; – where there is none.

    A producer that counts in another unit writes times beyond every calendar: the number as it is.
    """
    if at_ms < 0:
        return text.NONE
    try:
        at = datetime.fromtimestamp(at_ms / 1000, tz=UTC).astimezone()
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    return f"{at:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def headers_text(record: FetchedRecord) -> str:
    """All of them, in their order, the same name as often as it stands there."""
    pairs = (f"{printable(name)}={readable(value)}" for name, value in record.headers)
    return ", ".join(pairs) or text.NONE


def brief(value: bytes | None, whole_bytes: int, characters_max: int = SHOWN_CHARACTERS_MAX) -> str:
    """The beginning of a key or value in one line, and its size where there is more."""
    head = value if value is None else value[: 4 * characters_max]
    is_cut = len(head or b"") < whole_bytes
    words = readable(head, is_cut=is_cut)
    if is_cut or len(words) > characters_max:
        return f"{words[:characters_max]}… ({text.bytes_text(whole_bytes)} in all)"
    return words


def part_words(
    data: bytes | None,
    whole_bytes: int,
    decoded: Decoded | None,
    characters_max: int = SHOWN_CHARACTERS_MAX,
) -> str:
    """A key or value in one line, decoded; where that failed, its bytes and the reason."""
    if decoded is None or decoded.format is Format.STRING or decoded.error:
        words = brief(data, whole_bytes, characters_max)
        error = "" if decoded is None else decoded.error
        return f"{words}  {SHAPES[Tone.WARNING]} {printable(error)}" if error else words
    words = printable(decoded.text[: 2 * characters_max])
    if len(words) > characters_max:
        return f"{words[:characters_max]}… ({text.bytes_text(whole_bytes)} in all)"
    return words


def _part_cell(data: bytes | None, whole_bytes: int, decoded: Decoded | None) -> Cell:
    words = part_words(data, whole_bytes, decoded)
    if decoded is not None and decoded.error:
        return Cell(words, words, Tone.WARNING)
    return Cell(words, words, Tone.MUTED if data is None else Tone.PLAIN)


def _value_cell(record: FetchedRecord, decoded: Decoded | None) -> Cell:
    cell = _part_cell(record.value, record.value_bytes, decoded)
    if record.transaction in (Transaction.ABORTED, Transaction.OPEN):
        words = f"[{record.transaction}] {cell.text}"
        return Cell(words, words, _TRANSACTION_TONES[record.transaction])
    return cell


class _Shown(NamedTuple):
    record: FetchedRecord
    decoded: DecodedRecord


def message_row(record: FetchedRecord, decoded: DecodedRecord | None = None) -> Row:
    """A record in one line. One that was aborted says so in its value, which is always shown."""
    return MESSAGES.row(_Shown(record, decoded or DecodedRecord(key=None, value=None)))


def _key_cell(shown: _Shown) -> Cell:
    record = shown.record
    return _part_cell(record.key, record.key_bytes, shown.decoded.key)


def _transaction_cell(shown: _Shown) -> Cell:
    it = shown.record.transaction
    return Cell(it.value, it.value or text.NONE, _TRANSACTION_TONES[it])


def _at_cell(shown: _Shown) -> Cell:
    at_ms = shown.record.timestamp_ms
    return Cell(at_ms, moment_text(at_ms))


def _path(shown: _Shown) -> str:
    record = shown.record
    return f"browse/{record.topic}?partition={record.partition}&offset={record.offset}"


MESSAGES: Final = Table(
    name="messages",
    about="A row per record of a topic",
    key=lambda it: f"{it.record.topic}-{it.record.partition}@{it.record.offset}",
    path=_path,
    columns=(
        column("partition", "partition", units.ID, rank=1,
               cell=lambda it: cells.id_cell(it.record.partition)),
        column("offset", "offset", units.OFFSET, rank=1,
               cell=lambda it: cells.count_cell(it.record.offset)),
        column("at", "time", units.TIME, "Of the record, local time", rank=2, cell=_at_cell),
        column("record_key", "key", rank=2, cell=_key_cell),
        column("record_value", "value", rank=1, is_elastic=True,
               cell=lambda it: _value_cell(it.record, it.decoded.value)),
        column("size", "size", units.BYTES, "Key and value, without overhead",
               cell=lambda it: cells.bytes_cell(it.record.size_bytes)),
        column("codec", "codec", units.TEXT, "Compression of its batch",
               cell=worded(lambda it: it.record.codec_name)),
        column("headers", "headers",
               cell=lambda it: Cell(len(it.record.headers), headers_text(it.record))),
        column("transaction", "transaction", units.TEXT,
               "Aborted: consumers that read committed records never see it",
               cell=_transaction_cell),
    ),
)  # fmt: skip
