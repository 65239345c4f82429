"""A lasting file in stretches of its key: some row groups each, with a footer of their own.

    PAR1 stretch footer PAR1 | PAR1 stretch footer PAR1 | … | index | end | PAR1 whole footer PAR1

The last footer names the row groups of all stretches, so the file is Parquet for everybody. But of
16 million rows in groups of 8,192 it takes 30 ms to read and 35 MB in memory. Who wants one key
reads the index (the first key of each stretch, and where its footer lies), and then one small
footer; who merges files reads them stretch by stretch. A file of one stretch is as it always was.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

GROUPS: Final = 32
"""Row groups to a stretch: 260,000 rows whose footer is read in half a millisecond."""
_END: Final = struct.Struct("<q8s")
"""How long the index is, and that it is one."""
_MARK: Final = b"PTSCIDX1"
_LENGTH: Final = struct.Struct("<i4s")
"""How long a footer is; Parquet's own end of a file."""
_MAGIC: Final = b"PAR1"
_NOTHING: Final = memoryview(bytes(1 << 20))
_AT: Final = "footer_at"
_SIZE: Final = "footer_size"


class StretchWriter:
    """Writes row group after row group; the rows come sorted by ``key``."""

    def __init__(
        self, sink: Any, schema: Any, key: Sequence[str], options: Mapping[str, Any]
    ) -> None:
        """``sink``: an open output stream. ``options``: of ``pyarrow.parquet.ParquetWriter``."""
        self._sink = sink
        self._schema = schema
        self._key = list(key)
        self._options = options
        self._writer: Any = None
        self._groups = 0
        self._firsts: list[dict[str, Any]] = []
        self._whole: Any = None
        self._places: list[tuple[int, int]] = []
        self._ended: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._close()

    def write(self, table: Any) -> None:
        """One row group."""
        if self._groups == GROUPS:
            self._end_stretch()
        if self._writer is None:
            self._firsts.append({name: table[name][0].as_py() for name in self._key})
        self._begun().write_table(table, row_group_size=max(1, table.num_rows))
        self._groups += 1

    def _begun(self) -> Any:
        if self._writer is None:
            stretch = _Stretch(self._sink)
            stream = pa.PythonFile(stretch, "w")
            self._writer = pq.ParquetWriter(
                stream, self._schema, metadata_collector=self._ended, **self._options
            )
            stretch.count_before(stream)
        return self._writer

    def _end_stretch(self) -> None:
        self._begun().close()
        footer = self._ended.pop()
        size = len(_as_file(footer))
        self._places.append((self._sink.tell() - size, size))
        if self._whole is None:
            self._whole = footer
        else:
            self._whole.append_row_groups(footer)
        self._writer, self._groups = None, 0

    def _close(self) -> None:
        self._end_stretch()
        if len(self._places) == 1:
            return
        value = _as_stream(self._index())
        self._sink.write(value)
        self._sink.write(_END.pack(value.size, _MARK))
        self._sink.write(_as_file(self._whole))

    def _index(self) -> Any:
        firsts = {name: [first[name] for first in self._firsts] for name in self._key}
        at, size = zip(*self._places, strict=True)
        schema = pa.schema([self._schema.field(name) for name in self._key])
        schema = schema.append(pa.field(_AT, pa.int64())).append(pa.field(_SIZE, pa.int64()))
        return pa.table({**firsts, _AT: at, _SIZE: size}, schema=schema)


class _Stretch:
    """The sink, for the writer of one stretch: it counts from the beginning of the whole.

    Parquet's writer begins where nothing was written, and counts what it writes to know where it
    is. So once it has begun it is told of as many bytes more as lie before, which go nowhere.
    """

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._before = int(sink.tell())
        self._is_counting = False

    def count_before(self, stream: Any) -> None:
        """``stream``: Arrow's, which writes here. (Kept here it would never be let go of.)"""
        self._is_counting = True
        for at in range(0, self._before, len(_NOTHING)):
            stream.write(_NOTHING[: self._before - at])
        self._is_counting = False

    def write(self, value: Any) -> None:
        if not self._is_counting:
            self._sink.write(value)

    def flush(self) -> None:
        """The sink is flushed when the whole is closed."""


class Index:
    """Where the footers of a file's stretches are."""

    def __init__(self, table: Any) -> None:
        self._table = table

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return int(self._table.nbytes)

    def holding(self, keys: Mapping[str, object]) -> Sequence[int]:
        """The stretches that can hold these keys.

        Of stretches that begin with a, c and g, key ``c`` may be in the first two, ``d`` in the
        second.
        """
        names: list[str] = []
        for name in self._table.column_names:
            if name not in keys:
                break
            names.append(name)
        every = range(self._table.num_rows)
        if not names:
            return every
        wanted = tuple(keys[name] for name in names)

        def first(stretch: int) -> tuple[Any, ...]:
            return tuple(self._table[name][stretch].as_py() for name in names)

        begin = max(0, bisect_left(every, wanted, key=first) - 1)
        return range(begin, max(1, bisect_right(every, wanted, key=first)))

    def footer(self, source: Any, stretch: int) -> Any:
        """The footer of one stretch, as Parquet's own; places in it are those in the file."""
        place = self._table.slice(stretch, 1).select([_AT, _SIZE]).to_pylist()[0]
        return pq.read_metadata(pa.BufferReader(source.read_at(place[_SIZE], place[_AT])))


def read_index(source: Any) -> Index | None:
    """The index of an open file; None: it is of one stretch."""
    if source.size() < _LENGTH.size:
        return None
    length, magic = _LENGTH.unpack(source.read_at(_LENGTH.size, source.size() - _LENGTH.size))
    end_at = source.size() - _LENGTH.size - length - len(_MAGIC) - _END.size
    if magic != _MAGIC or length < 0 or end_at < 0:
        return None
    size, mark = _END.unpack(source.read_at(_END.size, end_at))
    if mark != _MARK:
        return None
    with pa.ipc.open_stream(source.read_at(size, end_at - size)) as stream:
        return Index(stream.read_all())


def footers(source: Any) -> Iterator[Any]:
    """The footers of an open file, stretch by stretch."""
    index = read_index(source)
    if index is None:
        yield pq.read_metadata(source)
        return
    for stretch in index.holding({}):
        yield index.footer(source, stretch)


def _as_stream(table: Any) -> Any:
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def _as_file(footer: Any) -> bytes:
    """The footer between Parquet's marks, as it is at the end of a file that holds nothing else."""
    stream = pa.BufferOutputStream()
    footer.write_metadata_file(stream)
    return bytes(stream.getvalue())
