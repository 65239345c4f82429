"""Footers of files of history, kept: a file never changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow.parquet as pq

from spark_metrics.read.file_cache import FileCache
from spark_metrics.store.indexed_parquet import Index, read_index

BYTES_MAX: Final = 64 << 20
"""Bytes of all footers that are kept."""
BYTES_OF_ONE: Final = 12
"""Bytes of memory that one byte of a footer in its file takes."""

Keys = Mapping[str, object]
Ends = tuple[Any, Any] | None


class Footer:
    """The row groups of a file, or of a stretch of one."""

    def __init__(self, metadata: Any) -> None:
        self.metadata = metadata
        self._ends: dict[str, list[Ends]] = {}
        self.columns = _columns(metadata)

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return int(self.metadata.serialized_size) * BYTES_OF_ONE

    def groups(self, keys: Keys) -> list[int]:
        """The row groups that can hold these keys.

        Of groups a…c, c…f and g…k, key ``c`` may be in the first two, ``h`` in the third.
        """
        groups = list(range(self.metadata.num_row_groups))
        for name, value in keys.items():
            ends = self._ends_of(name)
            groups = [group for group in groups if _is_between(value, ends[group])]
        return groups

    def unsure(self, groups: Sequence[int], keys: Keys) -> dict[str, object]:
        """The keys that may have other values in these groups, too."""
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
        ends = self._ends.get(name)
        if ends is None:
            groups = [*map(self.metadata.row_group, range(self.metadata.num_row_groups))]
            place = self.columns.index(name) if groups else 0
            ends = [_ends(group.column(place).statistics) for group in groups]
            self._ends[name] = ends
        return ends


class Whole:
    """Stands for the index of a file that has none: it is one stretch."""

    size = 0


class Footers(FileCache):
    """The index of each file, and the footers of its stretches."""

    def __init__(self) -> None:
        super().__init__(BYTES_MAX)

    def of(self, path: str, source: Any, keys: Keys) -> list[Footer]:
        """The footers of the stretches of an open file that can hold these keys.

        Raises:
            OSError, pyarrow.ArrowException: the file is gone or spoilt.
        """
        index: Index | Whole = self._known((path, None), lambda: read_index(source) or Whole())
        if isinstance(index, Whole):
            return [self._known((path, 0), lambda: Footer(pq.read_metadata(source)))]
        return [self._footer(path, source, index, each) for each in index.holding(keys)]

    def _footer(self, path: str, source: Any, index: Index, stretch: int) -> Footer:
        found: Footer = self._known((path, stretch), lambda: Footer(index.footer(source, stretch)))
        return found

    def _known(self, key: tuple[str, int | None], read: Callable[[], Any]) -> Any:
        if (known := self.find(key)) is None:
            known = read()
            self.keep(key, known, known.size)
        return known


def _columns(metadata: Any) -> list[str]:
    if not metadata.num_row_groups:
        return list(metadata.schema.names)
    # Not by `metadata.schema`: the two would hold each other, and megabytes, until Python's
    # collector comes by.
    columns = map(metadata.row_group(0).column, range(metadata.num_columns))
    return [column.path_in_schema for column in columns]


def _ends(statistics: Any) -> Ends:
    is_told = statistics is not None and statistics.has_min_max
    return (statistics.min, statistics.max) if is_told else None


def _is_between(value: Any, ends: Ends) -> bool:
    return ends is None or bool(ends[0] <= value <= ends[1])
