"""The files of a store, wherever it is: a folder, or a URL that pyarrow reaches (s3, gs, hdfs).

Nothing here knows what the files mean.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

BUFFER_BYTES: Final = 1 << 20
ROWS_PER_GROUP_SQUARED: Final = 667
"""Rows that are read in the time in which a row group is found to hold nothing that is wanted:
a query for one key reads one group of each file, and looks at all."""
NOW_GROUP_ROWS: Final = 131_072


class StoreFiles:
    """Reads and writes the files under one folder or URL; paths are relative to it."""

    def __init__(self, store: str) -> None:
        if "://" in store:
            self.system, self.root = fs.FileSystem.from_uri(store)
        else:
            self.system, self.root = fs.LocalFileSystem(), str(Path(store).absolute())
        self.root = self.root.rstrip("/")
        self.is_local: bool = isinstance(self.system, fs.LocalFileSystem)
        self._scheme = store.split("://", 1)[0] if "://" in store else "file"

    def absolute(self, path: str) -> str:
        return f"{self.root}/{path}"

    def hadoop_url(self, path: str) -> str:
        """The same file as Spark names it."""
        scheme = {"s3": "s3a"}.get(self._scheme, self._scheme)
        return f"{scheme}://{self.absolute(path)}"

    def read_bytes(self, path: str) -> bytes | None:
        """The whole file; None where there is none."""
        try:
            with self.system.open_input_stream(self.absolute(path)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def replace(self, path: str, value: bytes) -> None:
        """Put the file in one step: renamed into place, or a single put on an object store."""
        target = self.absolute(path)
        written = f"{target}.new" if self.is_local else target
        with self.system.open_output_stream(written) as stream:
            stream.write(value)
        if written != target:
            self.system.move(written, target)

    def make_folders(self, *folders: str) -> None:
        for folder in folders:
            self.system.create_dir(self.absolute(folder), recursive=True)

    def write_table(self, path: str, table: Any, *, is_lasting: bool = True) -> None:
        """Write the table; what does not last is written fast, the rest small."""
        texts = [item.name for item in table.schema if item.type == pa.string()]
        pq.write_table(
            table,
            self.absolute(path),
            filesystem=self.system,
            compression="zstd" if is_lasting else "lz4",
            row_group_size=group_rows(table.num_rows) if is_lasting else NOW_GROUP_ROWS,
            use_dictionary=True if is_lasting else texts,
        )

    def write_batches(
        self, path: str, batches: Iterable[Any], schema: Any, *, measured: str, rows_max: int
    ) -> tuple[int, tuple[int, int]]:
        """Write a lasting table of at most so many rows piece by piece.

        Answers its rows, and the ends of one column of times.
        """
        rows, ends = 0, (1 << 62, 0)
        with pq.ParquetWriter(
            self.absolute(path), schema, filesystem=self.system, compression="zstd"
        ) as writer:
            for batch in batches:
                table = conform(pa.Table.from_batches([batch]), schema)
                writer.write_table(table, row_group_size=group_rows(rows_max))
                found = pc.min_max(table[measured]).as_py()
                rows += table.num_rows
                ends = (min(ends[0], found["min"]), max(ends[1], found["max"]))
        return rows, ends

    def is_readable(self, path: str) -> bool:
        """Whether the file is there, and a whole table."""
        try:
            pq.read_metadata(self.absolute(path), filesystem=self.system)
        except (OSError, pa.ArrowException):
            return False
        return True

    def read_table(self, paths: str | Sequence[str], schema: Any) -> Any:
        """The files as one table of exactly this schema (columns they lack become null)."""
        each = [paths] if isinstance(paths, str) else paths
        tables = [self._read_one(path, schema) for path in each]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def read_whole(self, path: str) -> Any:
        """The file with all its columns."""
        with self.system.open_input_file(self.absolute(path)) as source:
            return pq.ParquetFile(source).read()

    def _read_one(self, path: str, schema: Any) -> Any:
        with self.system.open_input_file(self.absolute(path)) as source:
            return conform(pq.ParquetFile(source).read(columns=schema.names), schema)

    def list_files(self, folder: str) -> list[str]:
        """Relative paths of the files in one folder, sorted by name."""
        selector = fs.FileSelector(self.absolute(folder), allow_not_found=True)
        found = self.system.get_file_info(selector)
        return sorted(f"{folder}/{info.base_name}" for info in found if info.is_file)

    def delete(self, path: str) -> None:
        """Remove the file; one that is gone already is no error."""
        try:
            self.system.delete_file(self.absolute(path))
        except FileNotFoundError:
            return


def group_rows(rows: int) -> int:
    """Rows to a row group of a lasting file: as dear to read as all the others are to skip.

    Of 10,000 rows 2,582 to each of four groups; of 2,560,000 rows 41,322 to each of 62.
    """
    return max(1, math.isqrt(ROWS_PER_GROUP_SQUARED * rows))


def conform(table: Any, schema: Any) -> Any:
    """The table with exactly the columns of ``schema``, in its order and types."""
    columns = [
        table[item.name].cast(item.type)
        if item.name in table.column_names
        else pa.nulls(table.num_rows, item.type)
        for item in schema
    ]
    return pa.table(columns, schema=schema)
