"""Rows of some keys out of files of history, without reading the rest of them.

A file is sorted by its key, so one key lies in one of its row groups, seldom in two: their
statistics tell which. Footers are kept, because a file never changes, and of questions that find
few rows these as well: a chart that is drawn again reads one group of each new file and nothing
else. (DuckDB reads and judges the footers of all files for each question; that was most of what a
day of one partition cost.)
"""

from collections.abc import Collection, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spark_metrics.arrow_tables import conform
from spark_metrics.read.file_cache import FileCache
from spark_metrics.read.footer_cache import Footers, Keys
from spark_metrics.store.files import StoreFiles

THREADS: Final = 2
ROWS_MAX: Final = 4_000_000
"""A question that finds more is not one for some keys."""
KEPT_BYTES_MAX: Final = 8 << 20
"""Bytes of all rows that are kept: some hundred charts of ten minutes."""
KEPT_SHARE_MAX: Final = 8
"""A question that finds more than one part in so many of all that may be kept is asked again."""
TABLE_BYTES: Final = 1_000
COLUMN_BYTES: Final = 500
"""What Arrow takes beside the values, about."""


class Lookup:
    """Safe to share between threads."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._footers = Footers()
        self._kept = FileCache(KEPT_BYTES_MAX)

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Drop what is kept of all files but these."""
        self._footers.forget_all_but(paths)
        self._kept.forget_all_but(paths)

    def rows(self, paths: Sequence[str], keys: Keys, schema: Any) -> pa.Table | None:
        """The columns of ``schema`` of the rows with these keys; None: too many to look at.

        Raises:
            OSError, pyarrow.ArrowException: a file is gone or spoilt.
        """
        wanted = pa.schema([item for item in schema if item.name not in keys])
        asked = (*keys.items(), *wanted.names)
        found = {path: self._kept.find((path, asked)) for path in paths}
        unread = [path for path in paths if found[path] is None]
        rows_left = ROWS_MAX - sum(part.num_rows for part in found.values() if part is not None)
        with ThreadPoolExecutor(THREADS, thread_name_prefix="lookup") as threads:
            parts = threads.map(partial(self._read, keys, wanted.names), unread)
            for path, part in zip(unread, parts, strict=True):
                rows_left -= 0 if part is None else part.num_rows
                if part is None or rows_left < 0:
                    threads.shutdown(cancel_futures=True)
                    return None
                self._keep((path, asked), part)
                found[path] = part
        table = pa.concat_tables([wanted.empty_table(), *found.values()], promote_options="default")
        for name, value in keys.items():
            same = pa.repeat(pa.scalar(value, schema.field(name).type), table.num_rows)
            table = table.append_column(name, same)
        return conform(table, schema)

    def _keep(self, key: tuple[str, Hashable], rows: pa.Table) -> None:
        size = rows.nbytes + TABLE_BYTES + COLUMN_BYTES * rows.num_columns
        if size * KEPT_SHARE_MAX <= KEPT_BYTES_MAX:
            self._kept.keep(key, rows, size)

    def _read(self, keys: Keys, wanted: Sequence[str], path: str) -> pa.Table | None:
        parts, rows_left = [], ROWS_MAX
        with self._files.open(path) as source:
            for footer in self._footers.of(path, source, keys):
                groups = footer.groups(keys)
                rows_left -= footer.sure_rows(groups)
                if rows_left < 0:
                    return None
                unsure = footer.unsure(groups, keys)
                # Ranges are worth putting together where a read is a request.
                file = pq.ParquetFile(
                    source,
                    metadata=footer.metadata,
                    read_dictionary=list(unsure),
                    pre_buffer=not self._files.is_local,
                )
                columns = [name for name in wanted if name in footer.columns]
                parts.append(_rows(file, groups, unsure, columns))
        return pa.concat_tables(parts)


def _rows(file: Any, groups: Sequence[int], unsure: Keys, columns: Sequence[str]) -> pa.Table:
    """Read some row groups: keys first, where they hold others as well; then the figures."""
    if not groups or not unsure:
        return file.read_row_groups(groups, columns=columns, use_threads=False)
    keys = file.read_row_groups(groups, columns=list(unsure), use_threads=False)
    is_wanted = reduce(np.logical_and, [_equal(keys[it], value) for it, value in unsure.items()])
    places = np.flatnonzero(is_wanted)
    if not len(places):
        return file.read_row_groups([], columns=columns, use_threads=False)
    rows = file.read_row_groups(groups, columns=columns, use_threads=False)
    # Of a key by which the file is sorted all rows lie together.
    near = slice(int(places[0]), int(places[-1]) + 1)
    return rows[near].filter(pa.array(is_wanted[near]))


def _equal(column: pa.ChunkedArray, value: object) -> Any:
    """Rows that have this value, as a NumPy array; a text is looked for in its dictionary.

    Arrow's own comparisons cost more than these rows.
    """
    if not pa.types.is_dictionary(column.type):
        return column.to_numpy() == value
    same = [_equal_texts(chunk, value) for chunk in column.chunks]
    return np.concatenate(same)


def _equal_texts(chunk: pa.DictionaryArray, value: object) -> Any:
    texts = chunk.dictionary.to_pylist()
    place = texts.index(value) if value in texts else -1
    return chunk.indices.to_numpy() == place
