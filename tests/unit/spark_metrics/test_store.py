"""The writer: versions, replay, merging, retention, sweeping, fencing."""

from pathlib import Path
from typing import Any

import pytest

from spark_metrics.errors import StoreTakenError
from spark_metrics.layout import GRACE_MS, MANIFEST, decode_manifest, encode_manifest, next_version
from spark_metrics.points import FINE, HISTORY_TABLES, MINUTE
from spark_metrics.store import BAD_FILES_MAX, SWEEP_MS, Commit, StoreWriter
from spark_metrics.tables import NOW_TABLES
from tests.support.at_once import AtOnce
from tests.support.store_builder import table_of


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def batch(batch_id: int, at_ms: int = 0, **changes: Any) -> Commit:
    row = {"cluster": "c", "topic": "t", "partition": 0, "at_ms": at_ms}
    fields: dict[str, Any] = {
        "query_id": "q",
        "batch_id": batch_id,
        "interval_ms": 1_000,
        "now": {name: table_of([], schema) for name, schema in NOW_TABLES.items()},
        "history": {"partition_history": table_of([row], HISTORY_TABLES["partition_history"])},
    }
    return Commit(**{**fields, **changes})


def test_versions_grow_even_when_the_clock_stands_still() -> None:
    assert next_version(0, 1_000) == 1_000
    assert next_version(1_000, 1_000) == 1_001
    assert next_version(1_005, 1_000) == 1_006


def test_a_manifest_survives_its_encoding(tmp_path: Path) -> None:
    manifest = StoreWriter(str(tmp_path)).commit(batch(3, memory={"next_offsets": {"0": 7}}))
    decoded = decode_manifest(encode_manifest(manifest))
    assert decoded.version == manifest.version
    assert decoded.paths() == manifest.paths()
    assert decoded.memory == {"next_offsets": {"0": 7}}


def test_a_committed_batch_is_known_after_a_restart_by_checkpoint(tmp_path: Path) -> None:
    StoreWriter(str(tmp_path)).commit(batch(7))
    restarted = StoreWriter(str(tmp_path))
    assert restarted.has_committed("q", 7)
    assert restarted.has_committed("q", 6)
    assert not restarted.has_committed("q", 8)
    assert not restarted.has_committed("another checkpoint", 0)


def test_history_older_than_the_retention_is_named_no_more(tmp_path: Path) -> None:
    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock, retention_ms=5_000, executor=AtOnce())
    for number in range(12):
        clock.now_ms += 60_000
        manifest = writer.commit(batch(number, clock.now_ms))
    files = manifest.history["partition_history"]
    assert [file.rows for file in files if file.span == FINE] == [1, 1]
    assert sum(file.rows for file in files if file.span == MINUTE) == 10


def test_replaced_files_stay_for_the_grace_period_and_then_go(tmp_path: Path) -> None:
    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock)
    first = writer.commit(batch(0, clock.now_ms))
    clock.now_ms += SWEEP_MS
    writer.commit(batch(1, clock.now_ms))
    clock.now_ms += GRACE_MS - 1
    writer.commit(batch(2, clock.now_ms))
    assert all((tmp_path / path).exists() for paths in first.now.values() for path in paths)
    clock.now_ms += SWEEP_MS
    newest = writer.commit(batch(3, clock.now_ms))
    assert not any((tmp_path / path).exists() for paths in first.now.values() for path in paths)
    assert all((tmp_path / path).exists() for path in newest.paths())


def test_what_a_killed_batch_left_is_swept(tmp_path: Path) -> None:
    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock)
    orphan = tmp_path / "history" / "partition_history-0-5.parquet"
    orphan.write_bytes(b"half a file")
    for number in range(6):
        clock.now_ms += SWEEP_MS
        writer.commit(batch(number, clock.now_ms))
    assert not orphan.exists()


def test_a_second_job_on_the_same_store_is_found_out(tmp_path: Path) -> None:
    first = StoreWriter(str(tmp_path))
    first.commit(batch(0))
    second = StoreWriter(str(tmp_path))
    second.commit(batch(1))
    with pytest.raises(StoreTakenError, match="another job"):
        first.check()
    with pytest.raises(StoreTakenError, match="another job"):
        first.commit(batch(2))


@pytest.mark.parametrize("spoil", [b"", b"{}", b"[]"])
def test_a_spoilt_manifest_begins_a_fresh_store_and_says_why(tmp_path: Path, spoil: bytes) -> None:
    StoreWriter(str(tmp_path)).commit(batch(0))
    (tmp_path / MANIFEST).write_bytes(spoil)
    writer = StoreWriter(str(tmp_path))
    assert writer.manifest is None
    assert writer.begun_afresh_because is not None
    manifest = writer.commit(batch(1))
    assert decode_manifest((tmp_path / MANIFEST).read_bytes()).version == manifest.version


def test_a_store_deleted_under_the_job_begins_afresh(tmp_path: Path) -> None:
    store = tmp_path / "store"
    writer = StoreWriter(str(store), executor=AtOnce())
    writer.commit(batch(0))
    for path in sorted(store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    writer.check()
    assert writer.manifest is None
    writer.commit(batch(1))
    assert (store / MANIFEST).exists()


def test_bad_records_are_counted_and_kept_aside_in_bounds(tmp_path: Path) -> None:
    writer = StoreWriter(str(tmp_path))
    for number in range(BAD_FILES_MAX + 5):
        writer.commit(batch(number, bad_records=2, bad_values=[{"value": "??"}]))
    assert writer.bad_records_total == 2 * (BAD_FILES_MAX + 5)
    assert len(list((tmp_path / "bad").iterdir())) == BAD_FILES_MAX
