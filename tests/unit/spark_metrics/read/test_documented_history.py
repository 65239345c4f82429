"""Examples of docs/reference/history.md over the store's own files, run as they stand there."""

import pytest

from spark_metrics.read.reader import KEPT_MS
from tests.support.history_examples import DOCUMENT, Written, must_read, write_examples


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_examples(tmp_path_factory.mktemp("open"))


@pytest.mark.parametrize("engine", ["DuckDB", "Polars", "pandas"])
def test_an_engine_reads_the_files_of_a_version(written: Written, engine: str) -> None:
    must_read(written, engine)


def test_how_long_files_stay_is_documented() -> None:
    assert f"{KEPT_MS // 1_000} s after" in DOCUMENT.read_text()
