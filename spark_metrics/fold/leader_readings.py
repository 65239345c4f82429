"""A leader's readings of its log, newest first, after a batch. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from spark_metrics.figures.column import Column
from spark_metrics.figures.lists import Lists
from spark_metrics.schema import READING, READINGS_MAX

_KIND: Final = pa.struct(READING)


def reading(columns: Mapping[str, Column]) -> Any:
    """A reading of each row as Arrow has structs."""
    values = [columns[it.name].values.cast(it.type) for it in _KIND]
    return pa.StructArray.from_arrays(values, fields=list(_KIND))


def with_readings(before: Lists, *, same: Any, is_same: Any, full: Any, is_full: Any) -> Lists:
    """The newest readings of what was known and what a batch brings.

    ``same``, ``full``: readings (one for each row) that count where ``is_same`` and ``is_full``:
    read again unchanged, and told in full.
    """
    count = len(before.counts)
    earlier = before.packed()
    items = pa.concat_arrays([same, full, earlier])
    ranks = np.arange(READINGS_MAX)
    ends = np.cumsum(before.counts)
    places = np.hstack(
        [
            np.arange(count)[:, None],
            count + np.arange(count)[:, None],
            2 * count + (ends - before.counts)[:, None] + ranks,
        ]
    )
    is_there = np.hstack([is_same[:, None], is_full[:, None], ranks < before.counts[:, None]])
    _put_in_order(items, places, is_there)
    is_there &= np.cumsum(is_there, axis=1) <= READINGS_MAX
    counts = is_there.sum(axis=1)
    return Lists(items.take(pa.array(places[is_there])), np.cumsum(counts) - counts, counts)


def _put_in_order(items: Any, places: Any, is_there: Any) -> None:
    """Rows in which a reading came late, or twice, are sorted one by one."""
    read_ms = items.field("read_ms").to_numpy(zero_copy_only=False)
    if not len(read_ms):
        return
    brings = is_there[:, 0] | is_there[:, 1]
    each_ms = np.where(is_there, read_ms[np.where(is_there, places, 0)], 0)
    newest_so_far = np.minimum.accumulate(
        np.where(is_there, each_ms, np.iinfo(np.int64).max), axis=1
    )
    falls = each_ms[:, 1:] < newest_so_far[:, :-1]
    for row in np.flatnonzero(brings & (is_there[:, 1:] & ~falls).any(axis=1)):
        here = places[row][is_there[row]]
        different = {tuple(items[int(at)].as_py().values()): at for at in reversed(here)}
        newest = sorted(different, key=_newest_first, reverse=True)
        is_there[row] = np.arange(places.shape[1]) < len(newest)
        places[row, : len(newest)] = [different[it] for it in newest]


def _newest_first(values: tuple[int | None, ...]) -> tuple[tuple[bool, int], ...]:
    """Sort by the fields in their order; what is unknown comes before all that is known."""
    return tuple((it is not None, it or 0) for it in values)
