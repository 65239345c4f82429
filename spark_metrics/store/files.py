"""The files of a store, wherever it is: a folder, or the URL of an object store.

Nothing here knows what the files mean.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from spark_metrics.arrow_tables import conform
from spark_metrics.store.indexed_parquet import StretchWriter

ROWS_PER_GROUP_SQUARED: Final = 667
"""Rows that are read in the time in which a row group is found to hold nothing that is wanted:
a query for one key reads one group of each file, and looks at all."""
GROUP_ROWS_MAX: Final = 8_192
"""A stretch of so many row groups of a large file is looked at (``indexed_parquet``), not all."""
NOW_GROUP_ROWS: Final = 131_072
MARKER: Final = ".partiscope"
"""Proves that a folder is that of the store, and not what stands there while its disk is away."""
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How the rows of a lasting table lie."""

    key: Sequence[str]
    measured: str
    """A column of times whose ends are wanted."""
    rows_max: int
    """The most rows: the size of row groups goes by it."""


class StoreFiles:
    """Reads and writes the files under one folder or URL; paths are relative to it."""

    def __init__(self, store: str) -> None:
        if "://" in store:
            self.system, self.root = fs.FileSystem.from_uri(store)
        else:
            self.system, self.root = fs.LocalFileSystem(), str(Path(store).absolute())
        self.root = self.root.rstrip("/")
        self.is_local: bool = isinstance(self.system, fs.LocalFileSystem)
        self.url = store

    def absolute(self, path: str) -> str:
        return f"{self.root}/{path}"

    def url_of(self, path: str) -> str:
        """The file as another engine names it: its whole path, or its URL in a bucket."""
        return self.absolute(path) if self.is_local else f"{_without_options(self.url)}/{path}"

    def read_bytes(self, path: str) -> bytes | None:
        """The whole file, of one moment; None where there is none."""
        try:
            if not self.is_local:
                return _of_objects(self.url, lambda store: bytes(store.get(path).bytes()))
            with self.system.open_input_stream(self.absolute(path)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def replace(self, path: str, value: bytes) -> None:
        """Put the file in one step, forced to disk: renamed into place, or a single put on an
        object store."""
        if not self.is_local:
            _of_objects(self.url, lambda store: store.put(path, value, use_multipart=False))
            return
        target = self.absolute(path)
        written = f"{target}.new"
        with self.system.open_output_stream(written) as stream:
            stream.write(value)
        force(written)
        self.system.move(written, target)
        force(str(Path(target).parent))

    def put_object(self, path: str, value: bytes) -> bool:
        """Put the object unless there is one (``If-None-Match: *``); whether it was put."""
        from obstore.exceptions import AlreadyExistsError

        def put(store: Any) -> bool:
            try:
                store.put(path, value, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            return True

        # What is there may be ours: where an answer is lost, the request is sent again.
        return _of_objects(self.url, put) or self.read_bytes(path) == value

    def make_folders(self, *folders: str) -> None:
        for folder in folders:
            self.system.create_dir(self.absolute(folder), recursive=True)

    def is_marked(self, folder: str) -> bool:
        """Whether it is the store's own; an object store has no folders that could be another."""
        return not self.is_local or Path(self.absolute(folder), MARKER).exists()

    def mark(self, folder: str) -> None:
        """Tell the folder's own files from those of another that may stand in its place."""
        if self.is_local:
            Path(self.absolute(folder), MARKER).touch()

    def open(self, path: str) -> Any:
        """The file, to read any part of it."""
        return self.system.open_input_file(self.absolute(path))

    def write_table(self, path: str, table: Any) -> None:
        """Write a table that does not last: fast rather than small."""
        pq.write_table(
            table,
            self.absolute(path),
            filesystem=self.system,
            compression="lz4",
            row_group_size=NOW_GROUP_ROWS,
            use_dictionary=[item.name for item in table.schema if _is_text(item.type)],
        )

    def write_sorted(
        self, path: str, tables: Iterable[Any], schema: Any, *, order: Order
    ) -> tuple[int, tuple[int, int]]:
        """Write a lasting table piece by piece, small; the pieces come sorted by ``order.key``.

        Answers its rows, and the ends of the column ``order.measured``.
        """
        rows, ends = 0, (1 << 62, 0)
        size = group_rows(order.rows_max)
        sorting = pq.SortingColumn.from_ordering(schema, [(it, "ascending") for it in order.key])
        options = {
            # What lies in order is small as differences. LZ4 would be read a little faster, but
            # Trino does not read Parquet's (LZ4_RAW).
            "compression": "snappy",
            "use_dictionary": [it.name for it in schema if _is_text(it.type)],
            "column_encoding": {
                it.name: "DELTA_BINARY_PACKED" for it in schema if pa.types.is_integer(it.type)
            },
            "sorting_columns": sorting,
            # Nobody asks by other columns, and footers are kept in memory.
            "write_statistics": [*order.key, order.measured],
        }
        with (
            self.system.open_output_stream(self.absolute(path), compression=None) as sink,
            StretchWriter(sink, schema, order.key, options) as writer,
        ):
            for table in _of_size(tables, size):
                writer.write(conform(table, schema))
                between = pc.min_max(table[order.measured]).as_py()
                rows += table.num_rows
                ends = (min(ends[0], between["min"]), max(ends[1], between["max"]))
        return rows, ends

    def read_table(self, paths: str | Sequence[str], schema: Any) -> Any:
        """The files as one table of exactly this schema (columns they lack become null)."""
        each = [paths] if isinstance(paths, str) else paths
        tables = [self._read_one(path, schema) for path in each]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def read_whole(self, path: str) -> Any:
        """The file with all its columns."""
        with self.open(path) as source:
            return pq.ParquetFile(source).read()

    def read_texts(self, path: str, columns: Sequence[str]) -> Any:
        """Read those of the columns that the file has, texts as places in dictionaries."""
        with self.open(path) as source:
            footer = pq.read_metadata(source)
            wanted = [name for name in columns if name in footer.schema.names]
            file = pq.ParquetFile(source, metadata=footer, read_dictionary=wanted)
            return file.read(columns=wanted)

    def _read_one(self, path: str, schema: Any) -> Any:
        with self.open(path) as source:
            return conform(pq.ParquetFile(source).read(columns=schema.names), schema)

    def list_files(self, folder: str, of: Any = fs.FileType.File) -> list[str]:
        """Relative paths of the files in one folder, or its folders, sorted by name."""
        selector = fs.FileSelector(self.absolute(folder), allow_not_found=True)
        entries = self.system.get_file_info(selector)
        names = [it.base_name for it in entries if it.type == of and it.base_name != MARKER]
        return sorted(f"{folder}/{name}" for name in names)

    def set_aside(self, paths: Iterable[str], into: str) -> None:
        """Move the files, with their folders, into this folder."""
        for path in paths:
            target = f"{into}/{path}"
            self.make_folders(target.rpartition("/")[0])
            self.system.move(self.absolute(path), self.absolute(target))

    def delete(self, path: str) -> None:
        """Remove the file; one that is gone already is no error."""
        try:
            self.system.delete_file(self.absolute(path))
        except FileNotFoundError:
            return


def _without_options(url: str) -> str:
    """A URL without what pyarrow alone reads: ``?region=…``."""
    return url.partition("?")[0].rstrip("/")


def _of_objects(url: str, ask: Callable[[Any], _T]) -> _T:
    """Ask for single objects, or put them. pyarrow cannot put only if absent, and reads of an
    object that is replaced meanwhile no more than the one before was long.

    Raises:
        OSError: the object store does not answer, or refuses.
    """
    from obstore.exceptions import BaseError

    try:
        return ask(_objects(url))
    except BaseError as error:
        raise OSError(str(error).splitlines()[0]) from error


@lru_cache(4)
def _objects(url: str) -> Any:
    from obstore.store import from_url

    # An address of one's own (AWS_ENDPOINT_URL) may be plain HTTP.
    return from_url(url, client_options={"allow_http": True})


def force(path: str) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def group_rows(rows: int) -> int:
    """Rows to a row group of a lasting file: as dear to read as all the others are to skip.

    Of 10,000 rows 2,582 to each of four groups; of 2,560,000 rows 41,322 to each of 62.
    """
    return max(1, min(math.isqrt(ROWS_PER_GROUP_SQUARED * rows), GROUP_ROWS_MAX))


def is_sorted_by(footer: Any, key: Sequence[str]) -> bool:
    """Whether the file says of itself that its rows are sorted by this key."""
    names = [footer.schema.column(n).name for n in range(footer.num_columns)]
    groups = range(footer.num_row_groups)
    return all(
        [names[it.column_index] for it in footer.row_group(n).sorting_columns] == list(key)
        for n in groups
    )


def _of_size(tables: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows, cut and put together into tables of so many; the last may be smaller."""
    held: list[Any] = []
    for table in tables:
        held.append(table)
        if sum(each.num_rows for each in held) >= rows:
            whole = pa.concat_tables(held)
            count = whole.num_rows // rows
            yield from (whole.slice(n * rows, rows) for n in range(count))
            held = [whole.slice(count * rows)]
    if any(each.num_rows for each in held):
        yield pa.concat_tables(held)


def _is_text(of: Any) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_dictionary(of))
