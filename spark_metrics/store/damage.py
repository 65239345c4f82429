"""Tells a file that is no table any more from one that the system cannot read just now."""

from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_metrics.store.files import StoreFiles

GONE: Final = "it is gone"
ROWS: Final = 8_192
"""Rows that are read at a time."""


def damage(files: StoreFiles, path: str) -> str:
    """Why the file is no table that anybody could read; empty: nothing proves that.

    It is read anew, to its end. What is wrong with it is proven only where the system has
    given all that was asked for: a disk, a network or a limit may be better in a minute.
    """
    try:
        with files.open(path) as source:
            watched = _WatchedReads(source)
            try:
                file = pq.ParquetFile(pa.PythonFile(watched, mode="r"), pre_buffer=False)
                for _ in file.iter_batches(ROWS, use_threads=False):
                    pass
            except MemoryError:
                raise
            except (OSError, pa.ArrowException) as error:
                return "" if watched.has_failed else _first_line(error)
    except FileNotFoundError:
        return _gone(files, path)
    except (OSError, MemoryError):
        return ""
    return ""


def _gone(files: StoreFiles, path: str) -> str:
    """Proven where its folder is the store's own, can be listed, and does not have it. A listing of
    an object store may be late: whoever gives a file up for that looks once more."""
    folder = path.rpartition("/")[0]
    try:
        listed = files.list_files(folder)
        is_own = files.is_marked(folder)
    except OSError:
        return ""
    return GONE if is_own and path not in listed else ""


class _WatchedReads:
    """An open file that remembers whether the system failed to read it."""

    closed = False

    def __init__(self, source: Any) -> None:
        self._source = source
        self.has_failed = False

    def read(self, size: int = -1) -> bytes:
        try:
            return bytes(self._source.read(None if size < 0 else size))
        except OSError:
            self.has_failed = True
            raise

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._source.seek(offset, whence))

    def tell(self) -> int:
        return int(self._source.tell())

    def size(self) -> int:
        return int(self._source.size())

    def flush(self) -> None:
        """Do nothing: the file is only read."""

    def close(self) -> None:
        """Do nothing: the file is closed where it was opened."""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
