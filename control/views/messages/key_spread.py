"""Where many keys land by each client's rule, now and with more partitions, for all faces."""

from collections.abc import Sequence

from control.messages.forecast import Forecast, forecast, keys_to_preview, moving_words
from control.messages.keys import KeySpecError
from control.messages.partitioners import KeyRule
from control.messages.produce_session import KeyAndValue
from control.operations.checks import PARTITIONS_MAX, whole
from control.operations.errors import InvalidInputError
from control.views.printable import printable
from control.views.tables.cells import NOTHING, count_cell, id_cell
from control.views.tables.rows import Cell


def spread_of(
    keys: Sequence[bytes | None], partitions: int, then: int | None = None
) -> list[Forecast]:
    """A forecast by each rule. The number of partitions now is no addition."""
    added = None if then == partitions else then
    return [forecast(keys, partitions=partitions, rule=rule, then=added) for rule in KeyRule]


def keys_spread(
    partitions: int, key: str, then: str, records: Sequence[KeyAndValue] = ()
) -> list[Forecast]:
    """The spread of what a form describes; of the lines of a file where it has chosen one. Empty:
    the topic is not known.

    :raises InvalidInputError: a key or a number that cannot be read.
    """
    refused = whole(1, PARTITIONS_MAX)(then) if then else None
    if refused:
        raise InvalidInputError({"partitions": refused})
    try:
        keys = tuple(key for key, _ in records) or keys_to_preview(key or None)
    except KeySpecError as error:
        raise InvalidInputError({"key": str(error)}) from error
    return spread_of(keys, partitions, int(then) if then else None) if partitions else []


def spread_heads(found: Sequence[Forecast]) -> list[str]:
    """Heads of the table: the partition, then each rule with its client."""
    return ["partition", *(f"{item.rule} ({item.rule.client})" for item in found)]


def spread_rows(found: Sequence[Forecast]) -> list[list[str]]:
    """A row for each partition: how many records land there by each rule, ``now → then``."""
    partitions = max(max(len(item.records), len(item.records_then)) for item in found)
    return [
        [str(number), *(_records(item, number) for item in found)] for number in range(partitions)
    ]


def spread_figures(found: Sequence[Forecast]) -> tuple[list[str], list[list[Cell]]]:
    """The same as heads and figures, with what lands there ``then`` in columns of its own."""
    heads, columns = ["partition"], []
    partitions = range(len(spread_rows(found)))
    for item in found:
        title = f"{item.rule} ({item.rule.client})"
        told = ((title, item.records), (f"{title} then", item.records_then))
        for head, records in (it for it in told if it[1]):
            heads.append(head)
            columns.append([_landing(records, number) for number in partitions])
    rows = zip(map(id_cell, partitions), *columns, strict=True)
    return heads, [list(row) for row in rows]


def _landing(records: Sequence[int], number: int) -> Cell:
    return count_cell(records[number]) if number < len(records) else NOTHING


def spread_words(item: Forecast) -> str:
    """``murmur2 (Java): fullest partition +4 % against the mean; 5,012 of 10,000 keys move …``."""
    moving = f"; {printable(moving_words(item))}" if item.records_then else ""
    skew = f"fullest partition {item.skew:+.0%} against the mean".replace("%", " %")
    empty = f", {item.empty_partitions:,} empty" if item.empty_partitions else ""
    return f"{item.rule} ({item.rule.client}): {skew}{empty}{moving}"


def _records(item: Forecast, number: int) -> str:
    now = f"{item.records[number]:,}" if number < len(item.records) else "–"
    if not item.records_then:
        return now
    then = f"{item.records_then[number]:,}" if number < len(item.records_then) else "–"
    return f"{now} → {then}"
