"""Footers of files of history, kept: a file never changes."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from threading import Lock
from typing import Any, Final

import pyarrow.parquet as pq

from spark_metrics.store.indexed_parquet import Index, read_index

BYTES_MAX: Final = 64 << 20
"""Of all that are kept."""
BYTES_OF_ONE: Final = 12
"""So many bytes of memory are taken by one byte of a footer in its file."""

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
        found = list(range(self.metadata.num_row_groups))
        for name, value in keys.items():
            ends = self._ends_of(name)
            found = [group for group in found if _is_between(value, ends[group])]
        return found

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
        known = self._ends.get(name)
        if known is None:
            groups = [*map(self.metadata.row_group, range(self.metadata.num_row_groups))]
            place = self.columns.index(name) if groups else 0
            known = [_ends(group.column(place).statistics) for group in groups]
            self._ends[name] = known
        return known


class Whole:
    """Stands for the index of a file that has none: it is one stretch."""

    size = 0


class Footers:
    """The least recently asked for go first. Safe to share between threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int | None], Any] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def forget_all_but(self, paths: Collection[str]) -> None:
        """Those of other files: they were merged, or have grown too old."""
        with self._lock:
            for key in [key for key in self._kept if key[0] not in paths]:
                self._bytes -= self._kept.pop(key).size

    def of(self, path: str, source: Any, keys: Keys) -> list[Footer]:
        """Those of the stretches of an open file that can hold these keys.

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
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                self._kept.move_to_end(key)
                return known
        found = read()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = found
                self._bytes += found.size
            while self._bytes > BYTES_MAX and len(self._kept) > 1:
                self._bytes -= self._kept.popitem(last=False)[1].size
        return found


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
