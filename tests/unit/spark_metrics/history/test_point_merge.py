"""Few points are merged in memory as DuckDB merges them."""

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spark_metrics.history.point_merge import merged_few
from spark_metrics.history.sql import HistoryRange, points
from spark_metrics.window.history_points import HISTORY_TABLES, SHAPES

AT_MS = 1_795_000_000_000
ROWS = 60
SPAN = HistoryRange(since_ms=AT_MS + 5_000, until_ms=AT_MS + 50_000, points_max=10)
_KINDS: dict[Any, Any] = {
    pa.string(): lambda dice: dice.choice("ab"),
    pa.int32(): lambda dice: dice.randrange(3),
    pa.int64(): lambda dice: dice.randrange(10),
    pa.float64(): lambda dice: dice.randrange(50) / 4,
    pa.bool_(): lambda dice: dice.random() < 0.5,
}


_ONE: dict[Any, Any] = {pa.int32(): 1, pa.int64(): 1, pa.float64(): 1.0}
"""Instead of 0: no point stands for no reading."""


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        yield connection


def rows_of(table: str, dice: Random) -> pa.Table:
    """One a second, a third of the figures unknown; few keys, so that buckets hold several."""
    shape, schema = SHAPES[table], HISTORY_TABLES[table]

    def value(item: Any, second: int) -> Any:
        if item.name == "at_ms":
            return AT_MS + 1_000 * second
        if item.name not in shape.key and dice.random() < 0.3:
            return None
        return _KINDS[item.type](dice) or _ONE.get(item.type, False)

    seconds = dice.sample(range(ROWS), ROWS)
    rows = [{item.name: value(item, second) for item in schema} for second in seconds]
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.mark.parametrize("bucket", [1, 10_000])
@pytest.mark.parametrize("table", sorted(SHAPES))
def test_as_duckdb_does(database: duckdb.DuckDBPyConnection, table: str, bucket: int) -> None:
    rows, shape = rows_of(table, Random(table)), SHAPES[table]
    for columns in (None, (*list(shape.last)[:2], *shape.mean[:1])):
        query = points(shape, {}, SPAN, bucket, columns)
        database.register("history", rows)
        expected = database.sql(query.sql, params=list(query.values)).to_arrow_table()
        found = merged_few(rows, shape, SPAN, bucket, query.schema)
        assert found.num_rows > 0
        assert found.to_pylist() == expected.cast(query.schema).to_pylist()


def test_merging_merged_points_is_merging_their_readings() -> None:
    """Of an hour of which most readings are unknown: 9.8, and not 300 by way of minutes."""
    shape, span = (
        SHAPES["partition_history"],
        HistoryRange(since_ms=0, until_ms=1 << 53, points_max=9),
    )
    schema = shape.schema
    rates = [300.0, *[None] * 58, 1.0, *[5.0] * 60]
    rows = [
        {"cluster": "c", "topic": "t", "partition": 0, "at_ms": 1_000 * n, "in_bytes_per_s": it}
        for n, it in enumerate(rates)
    ]
    readings = pa.Table.from_pylist(rows, schema=schema)
    minutes = merged_few(readings, shape, span, 60_000, schema)
    assert minutes["in_bytes_per_s_known"].to_pylist() == [2, None]
    (by_way_of_minutes,) = merged_few(minutes, shape, span, 3_600_000, schema).to_pylist()
    (at_once,) = merged_few(readings, shape, span, 3_600_000, schema).to_pylist()
    known = [it for it in rates if it is not None]
    assert at_once["in_bytes_per_s"] == pytest.approx(sum(known) / len(known))
    assert by_way_of_minutes == at_once
