"""What was read of files that never change is kept, and not too much of it."""

from pathlib import Path

import pyarrow as pa

from spark_metrics.read.file_cache import FileCache
from spark_metrics.read.row_lookup import KEPT_BYTES_MAX, KEPT_SHARE_MAX, Lookup
from spark_metrics.store.files import StoreFiles


def test_what_was_asked_for_least_recently_goes_first() -> None:
    kept = FileCache(bytes_max=10)
    for number in range(10):
        kept.keep((str(number), ()), number, 1)
    assert kept.find(("0", ())) == 0

    kept.keep(("10", ()), 10, 1)
    kept.keep(("10", ()), 10, 1)

    assert [number for number in range(11) if kept.find((str(number), ())) is None] == [1]


def test_many_rows_are_not_kept(tmp_path: Path) -> None:
    files = StoreFiles(str(tmp_path))
    lookup = Lookup(files)
    most = KEPT_BYTES_MAX // KEPT_SHARE_MAX // 8
    for name, rows in (("few", 10), ("many", most)):
        files.write_table(name, pa.table({"at_ms": pa.array(range(rows), pa.int64())}))
        found = lookup.rows([name], {}, pa.schema({"at_ms": pa.int64()}))
        assert found is not None
        assert found.num_rows == rows
    assert [path for path, _ in lookup._kept._kept] == ["few"]
