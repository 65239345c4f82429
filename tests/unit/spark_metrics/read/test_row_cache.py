"""Rows of files that never change are read once, and not too many of them are kept."""

import pyarrow as pa

from spark_metrics.read.row_cache import COLUMN_BYTES, TABLE_BYTES, KeptRows

ROWS = pa.table({"at_ms": pa.array(range(100), pa.int64())})
SIZE = ROWS.nbytes + TABLE_BYTES + COLUMN_BYTES


def test_what_was_asked_for_least_recently_goes_first() -> None:
    kept = KeptRows(bytes_max=10 * SIZE)
    for number in range(10):
        kept.keep((str(number), ()), ROWS)
    assert kept.find(("0", ())) is ROWS

    kept.keep(("10", ()), ROWS)
    kept.keep(("10", ()), ROWS)

    assert [number for number in range(11) if kept.find((str(number), ())) is None] == [1]


def test_many_rows_are_not_kept() -> None:
    kept = KeptRows(bytes_max=7 * SIZE)
    kept.keep(("many", ()), ROWS)
    assert kept.find(("many", ())) is None
