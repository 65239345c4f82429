"""Many files that are sorted by key, read side by side as one: in bounded memory, without a disk.

Of each file a few thousand rows are held. The least of their last keys is a bound: no file has
more rows of the keys below it, so those rows are a *slice*, which can be sorted and merged by
itself, and slices come in the order of keys.

Of three files that hold a…d, a…f and c…k the bound is d: the slice has a, b and c of all three.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_metrics.arrow_tables import conform
from spark_metrics.keys import sorted_by
from spark_metrics.schema import TEXT
from spark_metrics.store.files import is_sorted_by
from spark_metrics.store.indexed_parquet import footers

HELD_ROWS: Final = 131_072
"""Rows held of all files together, about."""
BATCH_ROWS: Final = 8_192

Key = tuple[Any, ...]


class Run:
    """One file: what is held of it, and what follows."""

    def __init__(self, following: Iterator[pa.Table], key: Sequence[str]) -> None:
        self._following = following
        self._key = key
        self._held: pa.Table | None = None
        self.is_over = False

    @property
    def rows(self) -> int:
        """How many are held."""
        return 0 if self._held is None else self._held.num_rows

    @property
    def last(self) -> Key:
        """The greatest key that is held."""
        return self._key_at(self.rows - 1)

    def grow(self) -> None:
        """Hold more."""
        more = next(self._following, None)
        if more is None:
            self.is_over = True
        else:
            self._held = more if self._held is None else pa.concat_tables([self._held, more])

    def take_below(self, bound: Key | None) -> pa.Table | None:
        """The rows of smaller keys, which are held no longer; without a bound all."""
        if self._held is None or not self.rows:
            return None
        place = self.rows
        if bound is not None:
            place = bisect_left(range(self.rows), bound, key=self._key_at)
        taken, self._held = self._held.slice(0, place), self._held.slice(place)
        return taken

    def _key_at(self, place: int) -> Key:
        assert self._held is not None
        return tuple(self._held[name][place].as_py() for name in self._key)


def slices(runs: Iterable[Run]) -> Iterator[pa.Table]:
    """All rows of the runs, by slices of keys; within a slice in no order."""
    left = list(runs)
    while left:
        for run in left:
            while run.rows < HELD_ROWS // len(left) and not run.is_over:
                run.grow()
        bound = min((run.last for run in left if not run.is_over), default=None)
        taken = [part for run in left if (part := run.take_below(bound)) is not None]
        if any(part.num_rows for part in taken):
            yield pa.concat_tables(taken).unify_dictionaries()
        else:
            for run in left:
                if not run.is_over and run.last == bound:
                    run.grow()
        left = [run for run in left if run.rows or not run.is_over]


def open_run(source: Any, key: Sequence[str], schema: Any) -> Run:
    """An open file of history, texts as places in dictionaries.

    One that is not sorted by its key is read whole and sorted.
    """
    texts = [item.name for item in schema if item.type == pa.string()]
    schema = pa.schema([(it.name, TEXT if it.name in texts else it.type) for it in schema])
    return Run((conform(part, schema) for part in _sorted_parts(source, key, texts)), key)


def _sorted_parts(source: Any, key: Sequence[str], texts: Sequence[str]) -> Iterator[pa.Table]:
    for footer in footers(source):
        there = [name for name in texts if name in footer.schema.names]
        file = pq.ParquetFile(source, metadata=footer, pre_buffer=False, read_dictionary=there)
        if is_sorted_by(footer, key):
            batches = file.iter_batches(BATCH_ROWS, use_threads=False)
            yield from map(pa.table, batches)
        else:
            yield sorted_by(file.read(), key)
