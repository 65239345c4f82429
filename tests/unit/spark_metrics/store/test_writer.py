"""The writer: versions, replay, merging, retention, sweeping, fencing."""

import errno
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from spark_metrics.store import writer as store_writer
from spark_metrics.store.layout import (
    COMMITS,
    GRACE_MS,
    MANIFEST,
    Manifest,
    decode_manifest,
    encode_manifest,
    next_version,
)
from spark_metrics.store.sweep import SWEEP_MS
from spark_metrics.store.writer import BAD_FILES_MAX, Commit, StoreWriter
from spark_metrics.window.errors import StoreTakenError
from spark_metrics.window.history_points import FINE, HISTORY_TABLES, HOUR, MINUTE, SPANS_MS
from spark_metrics.window.tables import HEALTH, NOW_TABLES
from tests.support.at_once import AtOnce
from tests.support.faulty_files import FaultyFiles
from tests.support.store_builder import table_of


class Clock:
    """Stands still until told."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


def batch(batch_id: int, at_ms: int = 0, **changes: Any) -> Commit:
    """History is complete up to ``at_ms``."""
    row = {"cluster": "c", "topic": "t", "partition": 0, "at_ms": at_ms}
    fields: dict[str, Any] = {
        "query_id": "q",
        "batch_id": batch_id,
        "interval_ms": 1_000,
        "watermark_ms": at_ms,
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


def test_history_older_than_the_retention_is_named_no_more(tmp_path: Path) -> None:
    clock = Clock()
    writer = StoreWriter(
        str(tmp_path), clock_ms=clock, steady_ms=clock, retention_ms=5_000, executor=AtOnce()
    )
    for number in range(12):
        clock.now_ms += 60_000
        manifest = writer.commit(batch(number, clock.now_ms))
    files = manifest.history["partition_history"]
    assert [file.rows for file in files if file.span == FINE] == [1, 1]
    assert sum(file.rows for file in files if file.span == MINUTE) == 10


def test_the_wall_clock_ends_no_history(tmp_path: Path) -> None:
    """The clock of the job's host is off for some batches: points of each span stay."""
    clock, steady = Clock(), Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=steady, executor=AtOnce())
    at_ms = clock.now_ms - 5 * SPANS_MS[HOUR]
    for number in range(30):
        at_ms += 600_000
        writer.commit(batch(number, at_ms))
    assert writer.manifest is not None
    before = rows_of(writer.manifest)
    assert before.keys() == {FINE, MINUTE, HOUR}
    right_ms = clock.now_ms
    for number, by_days in enumerate((8, 400, -8, -400, 0), 30):
        clock.now_ms = right_ms + by_days * 86_400_000
        after = rows_of(writer.commit(batch(number, at_ms + number)))
        assert all(after[span] >= rows for span, rows in before.items())


def rows_of(manifest: Manifest) -> dict[str, int]:
    """How many points of each span there are."""
    rows: dict[str, int] = defaultdict(int)
    for file in manifest.history["partition_history"]:
        rows[file.span] += file.rows
    return rows


def test_replaced_files_stay_for_the_grace_period_and_then_go(tmp_path: Path) -> None:
    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock)
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
    writer = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock)
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
    for path in (tmp_path / COMMITS).iterdir():
        path.write_bytes(spoil)
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


def test_all_that_a_version_names_is_forced_to_disk_before_it_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: set[str] = set()
    really_force, really_link = os.fsync, os.link

    def force(opened: int) -> None:
        forced.add(os.readlink(f"/proc/self/fd/{opened}"))
        really_force(opened)

    def link(written: str, target: str) -> None:
        manifest = decode_manifest(Path(written).read_bytes())
        named = {str(tmp_path / path) for path in manifest.paths()}
        assert named | {str(tmp_path / "now"), str(tmp_path / "history"), written} <= forced
        really_link(written, target)

    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock, executor=AtOnce())
    monkeypatch.setattr(os, "fsync", force)
    monkeypatch.setattr(os, "link", link)
    for number in range(6):
        clock.now_ms += 60_000
        writer.commit(batch(number, clock.now_ms))
    assert str(tmp_path / "commits") in forced
    assert {str(tmp_path), f"{tmp_path / MANIFEST}.new"} <= forced


def test_what_a_writer_wrote_that_came_too_late_changes_no_file_of_the_other(
    tmp_path: Path,
) -> None:
    """Both have begun the same version at the same time, and merge the same history."""
    clock = Clock()
    writers = [
        StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock, executor=AtOnce())
        for _ in range(2)
    ]
    written = writers[0].commit(batch(0, 1_000, now={"health": table_of([], HEALTH)}))
    before = {path: (tmp_path / path).read_bytes() for path in written.paths()}
    late = batch(0, 2_000, now={"health": table_of([{"batch_id": 9}], HEALTH)})
    with pytest.raises(StoreTakenError):
        writers[1].commit(late)
    assert {path: (tmp_path / path).read_bytes() for path in before} == before


@pytest.mark.parametrize("before_it", ["put_if_absent", "replace"])
def test_a_writer_that_was_paused_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before_it: str
) -> None:
    clock = Clock()
    paused = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock)
    paused.commit(batch(0))
    taken_over: list[StoreWriter] = []
    where: Any = store_writer if before_it == "put_if_absent" else paused.files
    really = getattr(where, before_it)

    def meanwhile(*arguments: Any) -> Any:
        """Another job takes the store over, and commits for an hour."""
        if not taken_over:
            taken_over.append(StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=clock))
            for number in range(10):
                clock.now_ms += 360_000
                taken_over[0].check()
                taken_over[0].commit(batch(100 + number, clock.now_ms))
        return really(*arguments)

    monkeypatch.setattr(where, before_it, meanwhile)
    told = pytest.raises(StoreTakenError, match="another job")
    if before_it == "put_if_absent":
        with told:
            paused.commit(batch(1))
    else:
        paused.commit(batch(1))
        with told:
            paused.check()
    (other,) = taken_over
    other.check()
    other.commit(batch(110, clock.now_ms))
    found = decode_manifest((tmp_path / MANIFEST).read_bytes())
    assert found.batch_id == 110
    rows = sum(file.rows for file in found.history["partition_history"])
    assert rows >= 11, "the other job's hour is all there"


def test_of_two_writers_of_a_new_store_one_stops(tmp_path: Path) -> None:
    first, second = StoreWriter(str(tmp_path)), StoreWriter(str(tmp_path))
    second.commit(batch(0))
    with pytest.raises(StoreTakenError, match="another job"):
        first.commit(batch(0))


@pytest.mark.parametrize("call", ["write", "move"])
def test_a_commit_that_fails_at_any_step_is_made_again(tmp_path: Path, call: str) -> None:
    """Whether or not its version was put already; and a process that is started anew goes on."""
    writer = StoreWriter(str(tmp_path))
    writer.commit(batch(0))
    for number, name in enumerate(("now/", "history/", "commits/", "manifest"), 1):
        faults = FaultyFiles()
        writer.files.system = faults.as_pyarrow()
        faults.fail(call, errno.ENOSPC, name=name)
        try:
            writer.commit(batch(number))
        except OSError:
            faults.mend()
            StoreWriter(str(tmp_path))  # one that is started and ends finds the same version
            writer.check()
            if writer.manifest is None or writer.manifest.batch_id < number:
                writer.commit(batch(number))
        assert decode_manifest((tmp_path / MANIFEST).read_bytes()).batch_id == number
        writer = StoreWriter(str(tmp_path))


def test_a_version_that_was_put_though_an_error_said_no_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = StoreWriter(str(tmp_path))
    writer.commit(batch(0))
    really_link = os.link

    def link(written: str, target: str) -> None:
        really_link(written, target)
        raise OSError(errno.EIO, "the answer is lost")

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(OSError, match="lost"):
        writer.commit(batch(1))
    monkeypatch.setattr(os, "link", really_link)
    writer.look_again()
    writer.check()
    assert writer.manifest is not None
    assert writer.manifest.batch_id == 1
    assert writer.commit(batch(2)).batch_id == 2


def test_a_full_disk_heals(tmp_path: Path) -> None:
    """Commits fail for an hour; the clock was set back meanwhile."""
    clock, steady = Clock(), Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock, steady_ms=steady)
    writer.commit(batch(0))
    faults = FaultyFiles()
    writer.files.system = faults.as_pyarrow()
    faults.fail("write", errno.ENOSPC, name="history/")
    clock.now_ms -= 3_600_000
    most = 0
    for number in range(1, 120):
        steady.now_ms += 30_000
        writer.check()
        with pytest.raises(OSError, match="space"):
            writer.commit(batch(number))
        most = max(most, sum(path.is_file() for path in tmp_path.rglob("*")))
    assert most < 60
    faults.mend()
    writer.check()
    writer.commit(batch(120))
    for number in range(121, 125):
        steady.now_ms += 30_000
        writer.check()
        writer.commit(batch(number))
    assert sum(path.is_file() for path in tmp_path.rglob("*")) < 40


@pytest.mark.parametrize("table", ["partitions", "groups", "commits"])
@pytest.mark.parametrize("spoil", ["empty", "gone", "cut", "zeros"])
def test_a_spoilt_file_of_the_state_begins_the_state_afresh(
    tmp_path: Path, table: str, spoil: str
) -> None:
    clock = Clock()
    writer = StoreWriter(str(tmp_path), clock_ms=clock)
    writer.commit(batch(0, clock.now_ms, memory={"next_offsets": {"0": 7}}))
    assert writer.manifest is not None
    path = tmp_path / writer.manifest.now[table][0]
    value = path.read_bytes()
    if spoil == "gone":
        path.unlink()
    else:
        spoilt = {"empty": b"", "cut": value[:-9], "zeros": bytes(len(value))}
        path.write_bytes(spoilt[spoil])
    notices: list[str] = []
    for found in (StoreWriter(str(tmp_path), on_notice=notices.append), writer):
        found.look_again()
        assert found.manifest is not None
        assert found.manifest.is_provisional, "the next batch does not go on from it"
        assert found.manifest.history["partition_history"], "history is kept"
        assert found.manifest.memory == {"next_offsets": {"0": 7}}
    assert "begun afresh" in notices[0]
