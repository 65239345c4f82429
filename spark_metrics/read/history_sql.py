"""SQL over the files of history, by DuckDB: it reads the six tables, and reaches nothing else.

Each table is a view of the files that the newest version names, with the column ``span`` beside
its own, as in an export. The connection has no other file, no network, no extension and no
Python; its settings are locked before the SQL is parsed.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.read.open_store import OpenedStore, QueryError
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import HistoryFile, Manifest
from spark_metrics.window.errors import SqlError, SqlLimitError
from spark_metrics.window.history_points import SHAPES

if TYPE_CHECKING:
    import duckdb

SPAN: Final = "span"
BATCH_ROWS: Final = 8_192
END_WAIT_S: Final = 5.0
"""How long an interrupted statement may take to end before it is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlLimits:
    """Limits of one statement."""

    seconds: float = 60.0
    memory_bytes: int = 1 << 30
    """Memory of DuckDB while it computes, and again of the rows that are answered."""
    rows: int | None = None
    """The answer ends after so many; None: it has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlAnswer:
    """Rows, and the files that they were computed without."""

    rows: pa.Table
    is_cut: bool
    """There are more rows than the limit of rows."""
    damaged_files: Mapping[str, str]
    """Files of these tables that are spoilt or gone, and why."""


def ask_history(store: str, sql: str, limits: SqlLimits | None = None) -> SqlAnswer | None:
    """The answer of one ``SELECT`` over the newest version of a store; None: there is no store.

    Ctrl-C interrupts the statement and is raised as usual.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
        SqlError: DuckDB refuses the SQL, or it is no single SELECT.
        SqlLimitError: it takes longer, or needs more memory, than it may.
    """
    return _Statement(OpenedStore(store), sql, limits or SqlLimits()).run()


class _Statement:
    """One statement with its limits. DuckDB works in a thread, so that a clock and Ctrl-C reach
    it at any time."""

    def __init__(self, opened: OpenedStore, sql: str, limits: SqlLimits) -> None:
        self._opened = opened
        self._sql = sql
        self._limits = limits
        self._opening = Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None
        """While it is open: a closed one cannot be interrupted. Changed under `_opening`."""
        self._is_ended = False

    def run(self) -> SqlAnswer | None:
        results: SimpleQueue[SqlAnswer | BaseException | None] = SimpleQueue()

        def work() -> None:
            try:
                results.put(self._answer())
            except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
                results.put(error)

        thread = Thread(target=work, name="history-sql", daemon=True)
        thread.start()
        try:
            result = results.get(timeout=self._limits.seconds)
        except Empty:
            raise SqlLimitError(
                f"its {self._limits.seconds:g} s are over",
                what_next="Ask for fewer days, for a coarser span (`span = 'hour'`) or for fewer "
                "columns, or allow it more time",
            ) from None
        finally:
            self._end(thread)
        if isinstance(result, BaseException):
            raise result
        return result

    def _end(self, thread: Thread) -> None:
        """Interrupt what still runs."""
        self._is_ended = True
        until_s = time.monotonic() + END_WAIT_S
        while thread.is_alive() and time.monotonic() < until_s:
            with self._opening:
                if self._connection is not None:
                    self._connection.interrupt()
            thread.join(0.05)

    def _answer(self) -> SqlAnswer | None:
        require_select(self._sql)
        return self._opened.again(self._read)

    def _read(self, manifest: Manifest) -> SqlAnswer:
        wanted = {name: list(manifest.history.get(name, ())) for name in named_tables(self._sql)}
        files = {file.path: file for each in wanted.values() for file in each}

        def ask(whole: Sequence[str]) -> tuple[pa.Table, bool]:
            kept = set(whole)
            return self._ask(
                {name: [it for it in each if it.path in kept] for name, each in wanted.items()}
            )

        try:
            rows, is_cut = self._opened.around_damage(list(files), ask)
        except QueryError as error:
            newest = self._opened.manifest()
            if _is_of_file(error) or newest is None or newest.version != manifest.version:
                raise  # it is asked again
            raise _refused(error, self._sql) from error
        damaged = {path: why for path, why in self._opened.damaged.items() if path in files}
        return SqlAnswer(rows=rows, is_cut=is_cut, damaged_files=damaged)

    def _ask(self, files: Mapping[str, Sequence[HistoryFile]]) -> tuple[pa.Table, bool]:
        import duckdb

        memory = f"{self._limits.memory_bytes}B"
        try:
            with (
                duckdb.connect(config={**_ISOLATED, "memory_limit": memory}) as connection,
                self._interruptible(connection),
            ):
                _open_tables(connection, self._opened.files, files)
                reader = connection.sql(self._sql).to_arrow_reader(BATCH_ROWS)
                return self._taken(reader)
        except duckdb.OutOfMemoryException as error:
            raise _out_of_memory(self._limits.memory_bytes) from error
        except _faults_of_sql() as error:
            raise _refused(error, self._sql) from error
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise QueryError(str(error)) from error

    @contextmanager
    def _interruptible(self, connection: "duckdb.DuckDBPyConnection") -> Iterator[None]:
        with self._opening:
            self._connection = connection
        try:
            yield
        finally:
            with self._opening:
                self._connection = None

    def _taken(self, reader: pa.RecordBatchReader) -> tuple[pa.Table, bool]:
        """The rows, within the limits of rows and of bytes."""
        taken: list[pa.RecordBatch] = []
        rows = size = 0
        rows_max = self._limits.rows
        for batch in reader:
            taken.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if size > self._limits.memory_bytes:
                raise _out_of_memory(self._limits.memory_bytes)
            if self._is_ended or (rows_max is not None and rows > rows_max):
                break
        table = pa.Table.from_batches(taken, reader.schema)
        return (table, False) if rows_max is None else (table[:rows_max], rows > rows_max)


_ISOLATED: Final[dict[str, Any]] = {
    "threads": 2,
    "temp_directory": "",  # what does not fit into memory is not written to a disk
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_persistent_secrets": False,
    "python_enable_replacements": False,  # else SQL may name variables of Python
}


def require_select(sql: str) -> None:
    """Refuse what is not exactly one statement that reads.

    Raises:
        SqlError: it cannot be parsed, is none or several, or may change something.
    """
    import duckdb

    if not sql.isascii() and sql.encode(errors="ignore").decode() != sql:
        raise SqlError("it holds bytes that are not UTF-8", what_next="Write the SELECT as UTF-8")
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _refused(error, sql) from error
    if [it.type for it in statements] != [duckdb.StatementType.SELECT]:
        raise SqlError(
            "it is not one SELECT, and history is only read",
            what_next="Write one SELECT (also FROM, WITH, DESCRIBE or SHOW TABLES)",
        )


def named_tables(sql: str) -> list[str]:
    """The tables of history that occur in the SQL; those that it may list are all of them."""
    lowered = sql.lower()
    if re.search(r"\b(show|describe|information_schema|duckdb_\w+|pg_\w+)\b", lowered):
        return list(SHAPES)
    return [name for name in SHAPES if name in lowered]


def schema_of(table: str) -> Any:
    """Columns of a table of history as SQL sees it: those of its shape, then ``span``."""
    return SHAPES[table].schema.append(pa.field(SPAN, pa.string()))


def _open_tables(
    connection: "duckdb.DuckDBPyConnection",
    files: StoreFiles,
    tables: Mapping[str, Sequence[HistoryFile]],
) -> None:
    """Views of these tables, then nothing else can be reached any more."""
    for name, each in tables.items():
        if files.is_local and each:
            connection.execute(_local_view(name, each, files))
        else:
            connection.register(name, _arrow_view(name, each, files))
    connection.execute("SET TimeZone = 'UTC'")
    paths = [files.absolute(it.path) for each in tables.values() for it in each]
    if files.is_local and paths:
        connection.execute(f"SET allowed_paths = {_list(paths)}")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _local_view(name: str, each: Sequence[HistoryFile], files: StoreFiles) -> str:
    """SQL of a view whose condition on ``span`` leaves out the files of other spans."""
    columns = ", ".join(SHAPES[name].schema.names)
    spans = dict.fromkeys(it.span for it in each)
    paths = {span: [files.absolute(it.path) for it in each if it.span == span] for span in spans}
    parts = [
        f"SELECT {columns}, '{span}' AS {SPAN} FROM read_parquet({_list(of)})"  # noqa: S608
        for span, of in paths.items()
    ]
    return f"CREATE VIEW {name} AS " + " UNION ALL ".join(parts)


def _arrow_view(name: str, each: Sequence[HistoryFile], files: StoreFiles) -> Any:
    """The same where pyarrow reads the files: in a bucket."""
    if not each:
        return schema_of(name).empty_table()
    import pyarrow.dataset as ds

    return ds.FileSystemDataset.from_paths(
        [files.absolute(it.path) for it in each],
        schema=schema_of(name),
        format=ds.ParquetFileFormat(),
        filesystem=files.system,
        partitions=[pc.field(SPAN) == it.span for it in each],
    )


def _list(paths: Sequence[str]) -> str:
    return "[" + ", ".join("'" + path.replace("'", "''") + "'" for path in paths) + "]"


def _faults_of_sql() -> tuple[type[Exception], ...]:
    """Errors of DuckDB that no file can be the cause of."""
    import duckdb

    return (
        *(duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException),
        *(duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.PermissionException),
        *(duckdb.TypeMismatchException, duckdb.NotImplementedException),
    )


def _is_of_file(error: QueryError) -> bool:
    import duckdb

    return isinstance(error.__cause__, duckdb.IOException | OSError)


def _out_of_memory(memory_bytes: int) -> SqlLimitError:
    return SqlLimitError(
        f"it needs more than its {memory_bytes >> 20} MiB of memory",
        what_next="Aggregate, ask for fewer columns, days or rows (LIMIT), or allow it more memory",
    )


def _refused(error: Exception, sql: str) -> SqlError:
    """DuckDB's first line, and the tables and columns that there are."""
    import duckdb

    cause = error.__cause__ if isinstance(error, QueryError) else error
    why = str(error).strip().splitlines()[0].rstrip(".!")
    if isinstance(cause, duckdb.PermissionException):
        next_step = f"SQL reads the tables of history alone: {', '.join(SHAPES)}"
    elif isinstance(cause, duckdb.CatalogException):
        next_step = f"The tables are {', '.join(SHAPES)}"
    elif isinstance(cause, duckdb.BinderException) and (tables := named_tables(sql)):
        next_step = ". ".join(
            f"The columns of {it} are {', '.join(schema_of(it).names)}" for it in tables
        )
    else:
        next_step = "Correct the SQL: its dialect is DuckDB's"
    return SqlError(why, what_next=next_step)
