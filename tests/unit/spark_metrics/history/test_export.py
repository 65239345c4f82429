"""Exports of history, read by other engines: delta-rs, Polars, and DuckDB over Arrow."""

import json
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from spark_metrics.history import delta_log
from spark_metrics.history.delta_log import read_state
from spark_metrics.history.export import REMOVED_KEPT_MS, ExportedTable, export_history
from spark_metrics.store.files import StoreFiles
from spark_metrics.window.aggregates import COMMIT_HISTORY, HISTORY_TABLES
from spark_metrics.window.errors import ExportError, StoreTakenError, StoreUnreadableError
from tests.support.at_once import AtOnce
from tests.support.store_builder import CLUSTER, StoreBuilder

AT_MS = 1_790_000_000_000
TABLE = "commit_history"


def row(second: int, **further: Any) -> dict[str, Any]:
    known = {"cluster": CLUSTER, "group_id": "g", "topic": "t", "partition": 0}
    return {**known, "at_ms": AT_MS + 1_000 * second, "lag": second, **further}


def exported(store: Path, to: Path, now_ms: int = AT_MS) -> ExportedTable:
    return {it.table: it for it in export_history(str(store), str(to), now_ms=now_ms)}[TABLE]


def rows_of(table: Path) -> list[tuple[int, int]]:
    """Times and lags as they were read, by delta-rs."""
    rows = DeltaTable(table).to_pyarrow_dataset().to_table(filter=pc.field("span") == "fine")
    read = rows.select(["at_ms", "lag"])
    return sorted(zip(*read.to_pydict().values(), strict=True))


@pytest.fixture
def builder(tmp_path: Path) -> StoreBuilder:
    return StoreBuilder(tmp_path / "store")


def test_each_table_has_the_columns_and_rows_of_history(
    builder: StoreBuilder, tmp_path: Path
) -> None:
    builder.write({}, commit_history=[row(0, told_lag=3), row(1, lag=None)])
    found = export_history(str(builder.folder), str(tmp_path / "lake"), now_ms=AT_MS)
    assert [it.table for it in found] == list(HISTORY_TABLES)
    for table, schema in HISTORY_TABLES.items():
        read = DeltaTable(tmp_path / "lake" / table).to_pyarrow_dataset().to_table()
        assert {item.name: item.type for item in read.schema} == {
            **{item.name: item.type for item in schema},
            "span": pa.string(),
        }
    (first, second) = DeltaTable(tmp_path / "lake" / TABLE).to_pyarrow_table().to_pylist()
    assert (first["lag"], first["told_lag"], second["lag"]) == (0, 3, None)
    assert first["span"] == "fine"


def test_duckdb_and_polars_read_it_with_one_line(builder: StoreBuilder, tmp_path: Path) -> None:
    builder.write({}, commit_history=[row(second) for second in range(5)])
    exported(builder.folder, tmp_path)
    polars = pl.scan_delta(tmp_path / TABLE).filter(pl.col("span") == "fine").collect()
    assert polars["lag"].to_list() == [0, 1, 2, 3, 4]
    lags = DeltaTable(tmp_path / TABLE).to_pyarrow_dataset()
    with duckdb.connect() as database:
        database.register("lags", lags)
        found = database.sql("SELECT sum(lag) FROM lags WHERE span = 'fine'").fetchall()
    assert found == [(10,)]


def test_exports_follow_a_history_that_is_merged_meanwhile(tmp_path: Path) -> None:
    lake, builder = tmp_path / "lake", StoreBuilder(tmp_path / "store", executor=AtOnce())
    expected: list[tuple[int, int]] = []
    versions = []
    for second in range(40):
        builder.write({}, commit_history=[row(second)])
        expected.append((AT_MS + 1_000 * second, second))
        if second % 7 == 6:
            now = exported(builder.folder, lake, AT_MS + 1_000 * second)
            assert rows_of(lake / TABLE) == expected
            versions.append(now)
    assert sum(it.removed for it in versions) > 16, "merged files are gone"
    assert [it.version for it in versions] == list(range(5))


def test_an_export_of_the_same_version_changes_nothing(
    builder: StoreBuilder, tmp_path: Path
) -> None:
    manifest = builder.write({}, commit_history=[row(0)])
    exported(builder.folder, tmp_path / "lake")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*")}
    again = exported(builder.folder, tmp_path / "lake")
    assert (again.version, again.added, again.removed) == (0, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "lake").rglob("*")} == before
    table = DeltaTable(tmp_path / "lake" / TABLE)
    assert table.transaction_version("partiscope") == manifest.version


def test_a_reader_of_an_older_version_finds_its_files_for_an_hour(tmp_path: Path) -> None:
    builder = StoreBuilder(tmp_path / "store", executor=AtOnce())
    for second in range(15):
        builder.write({}, commit_history=[row(second)])
    exported(builder.folder, tmp_path / "lake")
    older = DeltaTable(tmp_path / "lake" / TABLE).to_pyarrow_dataset()
    before = older.to_table()
    for second in range(15, 20):
        builder.write({}, commit_history=[row(second)])
    assert exported(builder.folder, tmp_path / "lake", AT_MS + 1).removed >= 15
    assert older.to_table() == before
    builder.write({}, commit_history=[row(20)])
    exported(builder.folder, tmp_path / "lake", AT_MS + 2 + REMOVED_KEPT_MS)
    there = {path.name for path in (tmp_path / "lake" / TABLE).glob("span=*/*")}
    newest = {Path(uri).name for uri in DeltaTable(tmp_path / "lake" / TABLE).file_uris()}
    assert there == newest
    assert len(rows_of(tmp_path / "lake" / TABLE)) == 21


def test_an_export_that_was_killed_before_its_checkpoint_is_gone_on_with(
    builder: StoreBuilder, tmp_path: Path
) -> None:
    for second in range(3):
        builder.write({}, commit_history=[row(second)])
        exported(builder.folder, tmp_path / "lake")
    log = tmp_path / "lake" / TABLE / "_delta_log"
    (log / f"{2:020}.checkpoint.parquet").unlink()
    (log / "_last_checkpoint").write_text(json.dumps({"version": 1, "size": 4}))
    state = read_state(StoreFiles(str(tmp_path / "lake")), TABLE)
    assert (state.version, len(state.added)) == (2, 3)
    builder.write({}, commit_history=[row(3)])
    assert exported(builder.folder, tmp_path / "lake").version == 3
    assert [lag for _, lag in rows_of(tmp_path / "lake" / TABLE)] == [0, 1, 2, 3]


def test_old_versions_of_the_log_go(
    builder: StoreBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_log, "VERSIONS_KEPT", 3)
    for second in range(8):
        builder.write({}, commit_history=[row(second)])
        exported(builder.folder, tmp_path / "lake", AT_MS + 1_000 * second)
    log = tmp_path / "lake" / TABLE / "_delta_log"
    assert [int(path.stem) for path in sorted(log.glob("*.json"))] == [5, 6, 7]
    assert len(rows_of(tmp_path / "lake" / TABLE)) == 8


def test_of_two_exports_at_once_one_commits(
    builder: StoreBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder.write({}, commit_history=[row(0)])
    exported(builder.folder, tmp_path / "lake")
    stale = read_state(StoreFiles(str(tmp_path / "lake")), TABLE)
    builder.write({}, commit_history=[row(1)])
    exported(builder.folder, tmp_path / "lake")
    monkeypatch.setattr("spark_metrics.history.export.read_state", lambda *_: stale)
    with pytest.raises(StoreTakenError, match="another export"):
        exported(builder.folder, tmp_path / "lake")
    assert len(rows_of(tmp_path / "lake" / TABLE)) == 2


def test_files_of_an_older_version_lack_columns_that_are_null(
    builder: StoreBuilder, tmp_path: Path
) -> None:
    manifest = builder.write({}, commit_history=[row(0, told_lag=3)])
    (file,) = manifest.history[TABLE]
    path = builder.folder / file.path
    files = StoreFiles(str(builder.folder))
    table = files.read_table(file.path, COMMIT_HISTORY).drop_columns(["told_lag"])
    path.unlink()
    files.write_table(file.path, table)
    exported(builder.folder, tmp_path / "lake")
    (read,) = DeltaTable(tmp_path / "lake" / TABLE).to_pyarrow_table().to_pylist()
    assert (read["lag"], read["told_lag"]) == (0, None)


def test_without_a_store_there_is_nothing_and_a_spoilt_one_is_told(
    builder: StoreBuilder, tmp_path: Path
) -> None:
    assert export_history(str(tmp_path / "none"), str(tmp_path / "lake"), now_ms=AT_MS) == []
    builder.write({}, commit_history=[row(0)])
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(ExportError, match="cannot be exported"):
        exported(builder.folder, tmp_path / "taken")
    (builder.folder / "manifest.json").write_bytes(b"{")
    with pytest.raises(StoreUnreadableError):
        exported(builder.folder, tmp_path / "lake")
