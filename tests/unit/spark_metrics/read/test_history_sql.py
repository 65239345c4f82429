"""SQL over history: what it answers, what it cannot reach, and where it ends."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from spark_metrics.read.history_sql import SqlAnswer, SqlLimits, ask_history
from spark_metrics.read.open_store import OpenedStore
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import Manifest
from spark_metrics.window.aggregates import HISTORY_TABLES, AggregatesReader, HistoryFiles
from spark_metrics.window.errors import SqlError, SqlLimitError
from spark_metrics.window.history_points import SPANS_MS
from tests.support.at_once import AtOnce
from tests.support.store_builder import StoreBuilder, SyntheticSizes

AT_MS = 1_790_000_000_000
SIZES = SyntheticSizes(topics=1, partitions=2)
ENDLESS = "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b"


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> StoreBuilder:
    """Two hours in each span: files were merged."""
    builder = StoreBuilder(tmp_path_factory.mktemp("sql") / "store", executor=AtOnce())
    for step in range(24):
        builder.write_synthetic(SIZES, history_s=299, at_ms=AT_MS + 300_000 * step)
    return builder


@pytest.fixture
def store(builder: StoreBuilder) -> str:
    return str(builder.folder)


def rows_of(store: str, sql: str, **limits: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = answered(store, sql, **limits).rows.to_pylist()
    return rows


def answered(store: str, sql: str, **limits: Any) -> SqlAnswer:
    answer = ask_history(store, sql, SqlLimits(**limits))
    assert answer is not None
    return answer


def named(reader: AggregatesReader, table: str, **asked: Any) -> HistoryFiles:
    found = reader.history_files(table, **asked)
    assert found is not None
    return found


def manifest_of(store: str) -> Manifest:
    manifest = OpenedStore(store).manifest()
    assert manifest is not None
    return manifest


@pytest.mark.parametrize("table", HISTORY_TABLES)
def test_each_table_has_the_rows_of_its_files_by_span(store: str, table: str) -> None:
    told = rows_of(store, f"SELECT span, count(*) AS rows FROM {table} GROUP BY ALL")
    found = {row["span"]: row["rows"] for row in told}
    files = manifest_of(store).history[table]
    assert found == {
        span: sum(it.rows for it in files if it.span == span) for span in {it.span for it in files}
    }
    assert set(found) == set(SPANS_MS)
    described = [row["column_name"] for row in rows_of(store, f"DESCRIBE {table}")]
    assert described == [*HISTORY_TABLES[table].names, "span"]


def test_tables_are_listed(store: str) -> None:
    assert [row["name"] for row in rows_of(store, "SHOW TABLES")] == sorted(HISTORY_TABLES)


def test_no_store_is_no_answer(tmp_path: Path) -> None:
    assert ask_history(str(tmp_path / "later"), "SELECT 1") is None


@pytest.mark.parametrize(
    "sql",
    [
        "FROM '/etc/passwd'",
        "FROM read_text('/etc/passwd')",
        "FROM read_csv('/etc/passwd')",
        "FROM glob('/etc/*')",
        "FROM read_parquet('https://127.0.0.1:1/a.parquet')",
        "FROM builder_of_tests",
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_but_history_is_read(store: str, sql: str) -> None:
    builder_of_tests = HISTORY_TABLES["job_history"].empty_table()
    assert builder_of_tests.num_rows == 0
    with pytest.raises(SqlError):
        ask_history(store, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{folder}/copy.parquet'",
        "COPY (SELECT 1) TO '{file}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '100GB'",
        "SET enable_external_access = true",
        "ATTACH '{folder}/new.db'",
        "CREATE TABLE mine AS SELECT 1",
        "DROP VIEW job_history",
        "SELECT 1; SELECT 2",
        "",
        "SELEC 1",
    ],
)
def test_only_one_select_is_taken(store: str, tmp_path: Path, sql: str) -> None:
    file = StoreFiles(store).absolute(manifest_of(store).history["job_history"][0].path)
    before = Path(file).read_bytes()
    with pytest.raises(SqlError):
        ask_history(store, sql.format(folder=tmp_path, file=file))
    assert Path(file).read_bytes() == before
    assert not list(tmp_path.iterdir())


def test_a_wrong_table_or_column_is_told_with_those_that_there_are(store: str) -> None:
    with pytest.raises(SqlError) as table:
        ask_history(store, "FROM lags")
    assert ", ".join(HISTORY_TABLES) in table.value.what_next
    with pytest.raises(SqlError) as column:
        ask_history(store, "SELECT lagg FROM group_history")
    assert ", ".join(HISTORY_TABLES["group_history"].names) in column.value.what_next
    assert "lagg" in column.value.why


def test_time_is_limited(store: str) -> None:
    begun_s = time.monotonic()
    with pytest.raises(SqlLimitError) as ended:
        ask_history(store, ENDLESS, SqlLimits(seconds=0.5))
    assert "0.5 s" in ended.value.why
    assert time.monotonic() - begun_s < 20


def test_time_is_over_while_the_connection_closes(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = duckdb.connect

    @contextmanager
    def slow_to_go(**options: Any) -> Iterator[duckdb.DuckDBPyConnection]:
        try:
            with connect(**options) as connection:
                yield connection
        finally:
            time.sleep(1)

    monkeypatch.setattr(duckdb, "connect", slow_to_go)
    with pytest.raises(SqlLimitError):
        ask_history(store, ENDLESS, SqlLimits(seconds=0.5))


@pytest.mark.parametrize(
    "sql", ["SELECT list(range) FROM range(50000000)", "FROM range(100000000)"]
)
def test_memory_of_computation_and_rows_is_limited(store: str, sql: str) -> None:
    with pytest.raises(SqlLimitError) as ended:
        ask_history(store, sql, SqlLimits(memory_bytes=64 << 20))
    assert "64 MiB" in ended.value.why


def test_rows_are_cut_and_that_is_told(store: str) -> None:
    cut = answered(store, "SELECT range FROM range(20000)", rows=9)
    assert (cut.rows["range"].to_pylist(), cut.is_cut) == ([*range(9)], True)
    whole = answered(store, "SELECT range FROM range(9)", rows=9)
    assert (whole.rows.num_rows, whole.is_cut) == (9, False)


@pytest.mark.parametrize("spoil", ["empty", "gone", "cut", "zeros", "a page"])
def test_the_rest_of_a_spoilt_file_is_answered(tmp_path: Path, spoil: str) -> None:
    builder = StoreBuilder(tmp_path)
    for number in range(3):
        manifest = builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS + 20_000 * number)
    files = manifest.history["group_history"]
    spoilt = tmp_path / files[1].path
    value = spoilt.read_bytes()
    spoilt.unlink()
    if spoil != "gone":
        pages = bytes(len(value) // 2) + value[len(value) // 2 :]
        values = {"empty": b"", "cut": value[:-9], "zeros": bytes(len(value)), "a page": pages}
        spoilt.write_bytes(values[spoil])
    sql = "SELECT count(*) AS rows, sum(lag) AS lag, max(status) AS s FROM group_history"
    answer = answered(str(tmp_path), sql)
    assert answer.rows["rows"].to_pylist() == [sum(it.rows for it in files) - files[1].rows]
    assert [*answer.damaged_files] == [files[1].path]
    assert answered(str(tmp_path), "SELECT count(*) FROM job_history").damaged_files == {}


def test_files_that_the_job_replaces_meanwhile_are_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = StoreBuilder(tmp_path)
    older = builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS)
    newest = builder.write_synthetic(SIZES, history_s=10, at_ms=AT_MS + 20_000)
    gone = replace(older.history["group_history"][0], path="history/group_history-merged.parquet")
    manifests = [replace(older, history={"group_history": [gone]})]
    read = OpenedStore.manifest
    monkeypatch.setattr(
        OpenedStore, "manifest", lambda self: manifests.pop() if manifests else read(self)
    )
    answer = answered(str(tmp_path), "SELECT count(*) AS rows FROM group_history")
    assert not manifests
    assert answer.rows["rows"].to_pylist() == [
        sum(it.rows for it in newest.history["group_history"])
    ]
    assert answer.damaged_files == {}


def test_files_of_a_span_hold_each_reading_once(store: str) -> None:
    reader = AggregatesReader(store)
    for table, schema in HISTORY_TABLES.items():
        readings = set()
        for span in SPANS_MS:
            found = named(reader, table, span=span)
            assert found.schema == schema
            read = duckdb.from_parquet(list(found.paths))
            (row,) = read.aggregate("count(*), sum(coalesce(readings, 1))").fetchall()
            assert row[0] == found.rows
            assert found.version == reader.version()
            readings.add(row[1])
        assert len(readings) == 1, table


def test_files_are_chosen_by_time(store: str) -> None:
    reader = AggregatesReader(store)
    whole = named(reader, "commit_history", span="minute")
    part = named(reader, "commit_history", span="minute", until_ms=AT_MS)
    assert 0 < len(part.paths) < len(whole.paths)
    assert set(part.paths) < set(whole.paths)
    assert named(reader, "commit_history", span="hour", since_ms=AT_MS * 2).paths == []


def test_a_table_or_span_that_there_is_not(store: str, tmp_path: Path) -> None:
    reader = AggregatesReader(store)
    with pytest.raises(ValueError, match="fine, minute, hour"):
        reader.history_files("commit_history", span="day")
    with pytest.raises(ValueError, match="commit_history"):
        reader.history_files("commits", span="hour")
    nothing = AggregatesReader(str(tmp_path / "later"))
    assert nothing.history_files("commit_history", span="hour") is None
