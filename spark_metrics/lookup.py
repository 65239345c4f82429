"""Rows of some keys out of files of history, without reading the rest of them.

A file is sorted by its key, so one key lies in one of its row groups, seldom in two: their
statistics tell which. Footers are kept, because a file never changes, and of questions that find
few rows these as well: a chart that is drawn again reads one group of each new file and nothing
else. (DuckDB reads and judges the footers of all files for each question; that was most of what a
day of one partition cost.)
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from threading import Lock
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from spark_metrics.files import StoreFiles, conform
from spark_metrics.kept_rows import KeptRows

THREADS: Final = 2
FOOTER_BYTES_MAX: Final = 8 << 20
"""Of the footers that are kept, as they lie in their files; in memory they are eight times that."""
ROWS_MAX: Final = 4_000_000
"""A question that finds more is not one for some keys."""

Keys = Mapping[str, object]
Ends = tuple[Any, Any] | None


class Footer:
    """What a file tells of its row groups."""

    def __init__(self, metadata: Any) -> None:
        self.metadata = metadata
        self._ends: dict[str, list[Ends]] = {}

    def groups(self, keys: Keys) -> list[int]:
        """The row groups that can hold these keys.

        Of groups a…c, c…f and g…k, key ``c`` may be in the first two, ``h`` in the third.
        """
        found = list(range(self.metadata.num_row_groups))
        for name, value in keys.items():
            ends = self._ends_of(name)
            found = [group for group in found if _is_between(value, ends[group])]
        return found

    def unsure(self, groups: Sequence[int], keys: Keys) -> dict[str, object]:
        """The keys of which these groups may hold other values, too."""
        return {
            name: value
            for name, value in keys.items()
            if any(self._ends_of(name)[group] != (value, value) for group in groups)
        }

    def sure_rows(self, groups: Sequence[int]) -> int:
        """How many have the keys for sure: of groups in a row the first and the last may not."""
        return sum(self.metadata.row_group(group).num_rows for group in groups[1:-1])

    def _ends_of(self, name: str) -> list[Ends]:
        """Least and greatest value of a column in each group; None: not told."""
        known = self._ends.get(name)
        if known is None:
            groups = [*map(self.metadata.row_group, range(self.metadata.num_row_groups))]
            place = self._place_of(name) if groups else 0
            known = [_ends(group.column(place).statistics) for group in groups]
            self._ends[name] = known
        return known

    def _place_of(self, name: str) -> int:
        # Not by `metadata.schema`: the two would hold each other, and megabytes, until Python's
        # collector comes by.
        columns = map(self.metadata.row_group(0).column, range(self.metadata.num_columns))
        return [column.path_in_schema for column in columns].index(name)


class Lookup:
    """Safe to share between threads."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._footers: OrderedDict[str, Footer] = OrderedDict()
        self._kept = KeptRows()
        self._lock = Lock()

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
                self._kept.keep((path, asked), part)
                found[path] = part
        table = pa.concat_tables([wanted.empty_table(), *found.values()], promote_options="default")
        for name, value in keys.items():
            same = pa.repeat(pa.scalar(value, schema.field(name).type), table.num_rows)
            table = table.append_column(name, same)
        return conform(table, schema)

    def _footer(self, path: str) -> Footer:
        with self._lock:
            known = self._footers.get(path)
            if known is not None:
                self._footers.move_to_end(path)
                return known
        with self._files.open(path) as source:
            footer = Footer(pq.read_metadata(source))
        with self._lock:
            self._footers[path] = footer
            held = sum(each.metadata.serialized_size for each in self._footers.values())
            while held > FOOTER_BYTES_MAX and len(self._footers) > 1:
                held -= self._footers.popitem(last=False)[1].metadata.serialized_size
        return footer

    def _read(self, keys: Keys, wanted: Sequence[str], path: str) -> pa.Table | None:
        """From one file: keys first, where the groups hold others as well; then the figures."""
        footer = self._footer(path)
        groups = footer.groups(keys)
        if footer.sure_rows(groups) > ROWS_MAX:
            return None
        unsure = footer.unsure(groups, keys)
        with self._files.open(path) as source:
            file = pq.ParquetFile(source, metadata=footer.metadata, read_dictionary=list(unsure))
            places = file.read_row_groups(groups, columns=list(unsure), use_threads=False)
            is_wanted = [_equal(places[name], value) for name, value in unsure.items()]
            if any(not pc.any(each).as_py() for each in is_wanted):
                groups = []
            named = set(file.schema_arrow.names)
            columns = [name for name in wanted if name in named]
            rows = file.read_row_groups(groups, columns=columns, use_threads=False)
        return rows.filter(reduce(pc.and_, is_wanted)) if groups and is_wanted else rows


def _ends(statistics: Any) -> Ends:
    is_told = statistics is not None and statistics.has_min_max
    return (statistics.min, statistics.max) if is_told else None


def _is_between(value: Any, ends: Ends) -> bool:
    return ends is None or bool(ends[0] <= value <= ends[1])


def _equal(column: Any, value: object) -> Any:
    """Which rows have this value; of texts it is looked for in their dictionary."""
    if not pa.types.is_dictionary(column.type):
        return pc.equal(column, value)
    places = [pc.equal(it.indices, pc.index(it.dictionary, value)) for it in column.chunks]
    return pa.chunked_array(places, pa.bool_())
