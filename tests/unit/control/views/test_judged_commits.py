"""Commits as the job judged them reach the lists once, under their own names."""

from pathlib import Path

from control.views.snapshot import build_snapshot
from spark_metrics.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes, synthetic_rows

AT_MS = 1_700_000_000_000


def test_the_jobs_time_lag_and_status_are_shown(tmp_path: Path) -> None:
    rows = synthetic_rows(SyntheticSizes(), at_ms=AT_MS)
    for row in rows["commits"]:
        row |= {"status": "REWIND", "time_lag_ms": 4_321, "lost_records": 0}
    StoreBuilder(tmp_path).write(rows)
    now = AggregatesReader(str(tmp_path)).now()
    assert now is not None
    snapshot = build_snapshot(now.tables, version=1, now_ms=AT_MS, cluster=None)
    table = snapshot.commit_table
    assert table.column_names.count("status") == 1
    assert set(table["status"].to_pylist()) == {"REWIND"}
    assert set(table["lag_ms"].to_pylist()) == {4_321}
