"""Nothing of a store goes on the word of a manifest, or of a reading, that was not understood."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from spark_metrics.history.rollup import due_tasks
from spark_metrics.store.files import MARKER
from spark_metrics.store.layout import (
    COMMITS,
    GRACE_MS,
    MANIFEST,
    SET_ASIDE,
    HistoryFile,
    decode_manifest,
)
from spark_metrics.store.sweep import SWEEP_MS
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.errors import StoreAwayError, StoreTakenError, StoreUnreadableError
from spark_metrics.window.history_points import FINE
from tests.support.at_once import AtOnce, Never
from tests.support.faulty_files import FaultyFiles
from tests.unit.spark_metrics.history.test_rollup import STEP_MS, Job


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Job:
    made = Job(tmp_path_factory.mktemp("begun"))
    made.run(minutes=8)
    return made


@pytest.fixture
def job(begun: Job, tmp_path: Path) -> Job:
    """A job that goes on from eight minutes of history."""
    shutil.copytree(begun.store, tmp_path / "store")
    made = Job(tmp_path / "store", now_ms=begun.now_ms)
    made.readings, made.batch_id = [*begun.readings], begun.batch_id
    return made


def history(job: Job) -> dict[str, bytes]:
    """The files of history that the newest version names, by name, wherever they are now."""
    assert job.writer.manifest is not None
    named = {Path(path).name for path in job.writer.manifest.paths() if "history/" in path}
    return contents(job.store, named)


def contents(store: Path, names: set[str]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.rglob("*") if path.name in names}


def next_to_merge(job: Job) -> HistoryFile:
    assert job.writer.manifest is not None
    files = job.writer.manifest.history["partition_history"]
    return next(file for file in files if file.span == FINE and not file.is_rolled)


def go_on(job: Job) -> None:
    """Commit for longer than any unnamed file is left where it is."""
    for _ in range(2 * (GRACE_MS + SWEEP_MS) // SWEEP_MS):
        job.now_ms += SWEEP_MS
        job.commit(job.now_ms)


def with_field(name: str, value: object) -> Callable[[Path], None]:
    def spoil(manifest: Path) -> None:
        manifest.write_text(json.dumps({**json.loads(manifest.read_bytes()), name: value}))

    return spoil


def as_directory(manifest: Path) -> None:
    manifest.unlink()
    manifest.mkdir()


SPOILT: dict[str, Callable[[Path], object]] = {
    "empty": lambda it: it.write_bytes(b""),
    "cut short": lambda it: it.write_bytes(it.read_bytes()[:-7]),
    "not UTF-8": lambda it: it.write_bytes(b"\xff\xfe{}"),
    "a list": lambda it: it.write_bytes(b"[]"),
    "a number": lambda it: it.write_bytes(b"7"),
    "no format": lambda it: it.write_bytes(b"{}"),
    "version as text": with_field("version", "7"),
    "version is true": with_field("version", True),
    "no version": with_field("version", None),
    "now as a list": with_field("now", ["partitions"]),
    "now of numbers": with_field("now", {"partitions": 7}),
    "history as text": with_field("history", {"partition_history": "all"}),
    "history of numbers": with_field("history", {"partition_history": [7]}),
    "a span unheard of": with_field(
        "history",
        {"partition_history": [
            {"path": "p", "span": "week", "level": 0, "rows": 1, "from_ms": 1, "until_ms": 2}
        ]},
    ),
    "an unknown field": with_field("colour", "red"),
    "memory as a list": with_field("memory", []),
    "gone": lambda it: it.unlink(),
}  # fmt: skip
REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "of a newer format": (with_field("format", 4), "format 4"),
    "of an older format": (with_field("format", 2), "format 2"),
    "of a named format": (with_field("format", "delta"), "format 'delta'"),
    "a directory": (as_directory, "directory"),
}


def forget_versions(store: Path) -> None:
    for path in (store / COMMITS).iterdir():
        path.unlink()


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_manifest_is_made_again_from_the_newest_version(job: Job, kind: str) -> None:
    before, points = job.writer.manifest, job.points(60_000)
    SPOILT[kind](job.store / MANIFEST)
    job.start(AtOnce())
    assert job.writer.manifest == before
    assert job.points(60_000) == points
    go_on(job)
    assert not (job.store / SET_ASIDE).exists()
    assert any("goes on from version" in text for text in job.notices)
    job.expect(60_000)


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_manifest_alone_sets_the_old_files_aside(job: Job, kind: str) -> None:
    before = history(job)
    SPOILT[kind](job.store / MANIFEST)
    forget_versions(job.store)
    job.start(AtOnce())
    assert job.writer.manifest is None
    assert job.writer.begun_afresh_because
    go_on(job)
    assert contents(job.store, {*before}) == before
    aside = [path for path in (job.store / SET_ASIDE).rglob("*") if path.name in before]
    assert len(aside) == len(before), "all of them, and no reader takes them for the new history"
    told = " ".join(job.notices)
    assert SET_ASIDE in told
    assert str(job.store) in told
    assert AggregatesReader(str(job.store)).now() is not None


@pytest.mark.parametrize("kind", REFUSED)
def test_a_manifest_of_somebody_else_is_refused_and_nothing_is_touched(job: Job, kind: str) -> None:
    before = history(job)
    spoil, word = REFUSED[kind]
    spoil(job.store / MANIFEST)
    with pytest.raises(StoreUnreadableError) as refused:
        job.start(AtOnce())
    assert word in str(refused.value)
    assert str(job.store) in str(refused.value)
    assert refused.value.what_next
    assert contents(job.store, {*before}) == before
    assert not (job.store / SET_ASIDE).exists()
    with pytest.raises(StoreUnreadableError) as unread:
        AggregatesReader(str(job.store)).version()
    assert word in str(unread.value)
    assert "removed" not in unread.value.what_next, "nobody is told to remove good history"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
def test_a_manifest_that_may_not_be_read_is_no_spoilt_one(job: Job, code: int) -> None:
    before = history(job)
    system = FaultyFiles()
    job.writer.files.system = system.as_pyarrow()
    system.fail("open", code, name=MANIFEST)
    with pytest.raises(OSError):  # noqa: PT011 (as the system tells it; the query tries again)
        job.writer.check()
    system.mend()
    job.writer.check()
    go_on(job)
    assert job.writer.begun_afresh_because is None
    assert {*before} <= {*contents(job.store, {*before})} | merged_away(job, before)


def merged_away(job: Job, before: dict[str, bytes]) -> set[str]:
    """What has been merged since."""
    assert job.writer.manifest is not None
    return {*before} - {Path(path).name for path in job.writer.manifest.paths()}


@pytest.mark.parametrize("spoil", ["empty", "cut short", "gone"])
def test_a_manifest_spoilt_under_a_job_is_written_again(job: Job, spoil: str) -> None:
    points = job.points(60_000)
    SPOILT[spoil](job.store / MANIFEST)
    job.writer.check()
    job.run(minutes=4)
    assert job.points(60_000)[: len(points) - 1] == points[:-1]
    assert not (job.store / SET_ASIDE).exists()
    assert any("written again" in text for text in job.notices)


def test_a_manifest_spoilt_between_check_and_commit_is_written_again(job: Job) -> None:
    points = job.points(60_000)
    job.writer.check()
    (job.store / MANIFEST).write_bytes(b"")
    job.run(minutes=2)
    assert job.points(60_000)[: len(points) - 1] == points[:-1]


def test_another_version_that_takes_over_under_a_job_is_found_out(job: Job) -> None:
    before = history(job)
    with_field("format", 4)(job.store / MANIFEST)
    with pytest.raises(StoreTakenError, match="format 4"):
        job.writer.check()
    assert contents(job.store, {*before}) == before


def test_what_a_job_left_that_was_killed_in_its_first_batch_is_no_reason_to_stop(
    tmp_path: Path,
) -> None:
    job = Job(tmp_path)
    for folder in ("now", "history"):
        (tmp_path / folder / "partitions-5-0.parquet").write_bytes(b"half a file")
    job.start(AtOnce())
    go_on(job)
    assert (tmp_path / MANIFEST).exists()
    assert len([*(tmp_path / SET_ASIDE).rglob("partitions-5-0.parquet")]) == 2


def put_back(job: Job, *, with_versions: bool) -> dict[str, bytes]:
    """An older copy is unpacked over what came later; the files of history that came later."""
    older, known = (job.store / MANIFEST).read_bytes(), history(job)
    versions = {path.name: path.read_bytes() for path in (job.store / COMMITS).iterdir()}
    job.start(Never())
    job.run(minutes=3)
    later = {name: value for name, value in history(job).items() if name not in known}
    assert len(later) > 3
    (job.store / MANIFEST).write_bytes(older)
    if with_versions:
        forget_versions(job.store)
        for name, value in versions.items():
            (job.store / COMMITS / name).write_bytes(value)
    return later


def test_an_older_manifest_put_back_hides_nothing_that_came_later(job: Job) -> None:
    put_back(job, with_versions=False)
    job.start(AtOnce())
    go_on(job)
    assert not (job.store / SET_ASIDE).exists()
    assert any("goes on from version" in text for text in job.notices)
    job.expect(60_000)


def test_where_every_version_is_older_the_later_history_is_set_aside(job: Job) -> None:
    later = put_back(job, with_versions=True)
    job.start(AtOnce())
    job.now_ms += 60_000
    go_on(job)
    assert contents(job.store, {*later}) == later
    assert any("named by no version" in text for text in job.notices)


def test_a_half_unpacked_newer_version_gives_way_to_a_whole_one_and_loses_nothing(
    job: Job,
) -> None:
    later = put_back(job, with_versions=False)
    lacking, *there = sorted(later)
    (job.store / "history" / lacking).unlink()
    before = contents(job.store, {*there})
    known = {Path(it).name for it in decode_manifest(manifest_of(job)).paths()}
    job.start(AtOnce())
    assert job.writer.manifest is not None
    assert {Path(it).name for it in job.writer.manifest.paths()} == known
    job.now_ms += 60_000
    go_on(job)
    assert contents(job.store, {*there}) == before
    assert any("named by no version" in text for text in job.notices)


def manifest_of(job: Job) -> bytes:
    return (job.store / MANIFEST).read_bytes()


def test_without_its_versions_the_manifest_is_enough(job: Job) -> None:
    forget_versions(job.store)
    job.start(AtOnce())
    go_on(job)
    job.expect(60_000)
    assert not (job.store / SET_ASIDE).exists()


def test_history_of_a_store_that_was_mixed_in_is_kept(job: Job, tmp_path: Path) -> None:
    """The other store is newer, so the job goes on from that one."""
    other = Job(tmp_path / "other", now_ms=job.now_ms + 3_600_000)
    other.query_id = "other"
    other.run(minutes=2)
    assert other.writer.manifest is not None
    before = {**history(job), **history(other)}
    for path in other.store.rglob("*-*.parquet"):
        shutil.copy(path, job.store / path.relative_to(other.store))
    for path in (other.store / COMMITS).iterdir():
        shutil.copy(path, job.store / COMMITS / path.name)
    job.now_ms = other.now_ms
    job.start(AtOnce())
    assert job.writer.manifest is not None
    assert job.writer.manifest.version == other.writer.manifest.version
    go_on(job)
    assert contents(job.store, {*before}) == before


def test_batches_that_fail_at_the_last_step_leave_nothing(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise OSError(errno.EIO, "no")

    there = len([*(job.store / "history").iterdir()])
    with monkeypatch.context() as patched:
        patched.setattr("spark_metrics.store.writer.put_if_absent", refused)
        for _ in range(60):
            with pytest.raises(OSError, match="no"):
                job.commit(job.now_ms)
            job.readings = job.readings[:-2]
            job.now_ms += 1_000
            job.writer.look_again()
            job.writer.check()
    go_on(job)
    assert len([*(job.store / "history").iterdir()]) < there + 20
    assert not (job.store / SET_ASIDE).exists()
    assert not any("named by no version" in text for text in job.notices)


def empty_mount_point(history: Path) -> Path:
    away = history.rename(history.with_name("elsewhere"))
    history.mkdir()
    return away


@pytest.mark.parametrize(
    "take_away", [lambda it: it.rename(it.with_name("elsewhere")), empty_mount_point]
)
def test_a_folder_that_is_away_for_a_moment_costs_nothing(
    job: Job, take_away: Callable[[Path], Path]
) -> None:
    """In the middle of a merge, at a batch, at a start, and after it is back."""
    job.start(Never())
    job.run(minutes=3)
    folder = job.store / "history"
    job.start(AtOnce())
    away = take_away(folder)
    for _ in range(3):
        task = next(iter(due_tasks(job.writer.manifest.history, job.now_ms)))  # type: ignore[union-attr]
        assert job.writer._maintenance._done(task, "history/m-minute-1-0.parquet").damaged == {}
        with pytest.raises(StoreAwayError, match="history/"):
            job.writer.check()
        with pytest.raises(StoreAwayError, match="Mount or move it back"):
            job.start(AtOnce())
    if folder.exists():
        folder.rmdir()
    away.rename(folder)
    job.start(AtOnce())
    job.run(minutes=4)
    job.expect(60_000)
    assert not (job.store / SET_ASIDE).exists()


def test_a_folder_that_was_copied_without_its_mark_is_known_by_its_files(job: Job) -> None:
    for path in job.store.rglob(MARKER):
        path.unlink()
    job.start(AtOnce())
    job.run(minutes=1)
    assert len([*job.store.rglob(MARKER)]) == 3


def test_a_file_is_gone_when_two_looks_say_so(job: Job) -> None:
    job.start(Never())
    job.run(minutes=3)
    lost = next_to_merge(job)
    (job.store / lost.path).unlink()
    job.start(AtOnce())
    job.commit(job.now_ms)
    job.now_ms += STEP_MS
    job.commit(job.now_ms)
    assert not any("is left out" in text for text in job.notices), "one look may be too early"
    job.run(minutes=4)
    assert any(lost.path in text and "is left out" in text for text in job.notices)
    found = sum(point["readings"] for point in job.points(60_000))
    assert found == len(job.readings) // 2 - lost.rows // 2


def test_history_outlives_the_state_of_now(job: Job) -> None:
    """An older manifest put back names files of "now" that were replaced long ago."""
    points = job.points(60_000)
    assert job.writer.manifest is not None
    for paths in job.writer.manifest.now.values():
        for path in paths:
            (job.store / path).unlink()
    job.start(AtOnce())
    assert job.writer.manifest.is_provisional, "its state is begun afresh"
    job.run(minutes=2)
    assert job.points(60_000)[: len(points) - 1] == points[:-1]
    assert any("history is kept" in text for text in job.notices)


def test_history_of_a_table_that_this_version_does_not_know_is_kept(job: Job) -> None:
    manifest = job.store / MANIFEST
    document = json.loads(manifest.read_bytes())
    (known,) = document["history"]["partition_history"][-1:]
    foreign = {**known, "path": "history/rack_history-minute-5-0.parquet", "span": "minute"}
    (job.store / foreign["path"]).write_bytes((job.store / known["path"]).read_bytes())
    document["history"]["rack_history"] = [foreign] * 1
    manifest.write_text(json.dumps(document))
    job.start(AtOnce())
    go_on(job)
    assert (job.store / foreign["path"]).exists()


PASSING = [errno.EIO, errno.EMFILE, errno.ENFILE, errno.EACCES, errno.ESTALE]
BAD_DISK = [errno.EIO, errno.ESTALE]


@pytest.mark.parametrize(
    ("call", "code"), [*(("open", code) for code in PASSING), *(("read", it) for it in BAD_DISK),
                       *(("write", it) for it in (*BAD_DISK, errno.ENOSPC))],
)  # fmt: skip
def test_a_passing_error_during_a_merge_loses_nothing(job: Job, call: str, code: int) -> None:
    system = FaultyFiles()
    job.start(Never())
    job.run(minutes=3)
    job.start(AtOnce())
    job.writer.files.system = system.as_pyarrow()
    # What is written by a batch itself is fine, not minute.
    system.fail(call, code, name="-minute-" if call == "write" else "history/")
    job.run(minutes=3)
    told = [text for text in job.notices if "could not be merged" in text]
    assert told
    assert all("tried again" in text for text in told)
    system.mend()
    job.run(minutes=4)
    job.expect(60_000)
    assert not (job.store / SET_ASIDE).exists()


def test_an_error_that_nobody_thought_of_does_not_stop_the_job(job: Job) -> None:
    """A merge that fails in its own logic is told as one that met a bad disk."""
    job.start(Never())
    job.run(minutes=3)
    job.start(AtOnce())
    odd = next_to_merge(job)
    rows = job.writer.files.read_whole(odd.path)
    rows = rows.drop_columns(["at_ms"]).append_column("at_ms", pa.array(["x"] * rows.num_rows))
    job.writer.files.write_table(odd.path, rows)
    job.run(minutes=4)
    assert (job.store / odd.path).exists()
    assert any("could not be merged" in text for text in job.notices)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def flip_footer(path: Path) -> None:
    value = bytearray(path.read_bytes())
    length = int.from_bytes(value[-8:-4], "little")
    value[-8 - length : -8] = b"\xff" * length
    path.write_bytes(value)


def flip_page(path: Path) -> None:
    value = bytearray(path.read_bytes())
    length = int.from_bytes(value[-8:-4], "little")
    for at in range(4, len(value) - 8 - length):
        value[at] ^= 0xFF
    path.write_bytes(value)


@pytest.mark.parametrize("damage", [cut, flip_footer, flip_page, lambda it: it.write_bytes(b"")])
def test_a_damaged_file_is_set_aside_and_told_and_merging_goes_on(
    job: Job, damage: Callable[[Path], None]
) -> None:
    job.start(Never())
    job.run(minutes=3)
    spoilt = next_to_merge(job)
    damage(job.store / spoilt.path)
    value = (job.store / spoilt.path).read_bytes()
    job.start(AtOnce())
    job.run(minutes=4)
    go_on(job)
    (aside,) = (job.store / SET_ASIDE).rglob(Path(spoilt.path).name)
    assert aside.read_bytes() == value
    assert any(spoilt.path in text and SET_ASIDE in text for text in job.notices)
    found = sum(point["readings"] for point in job.points(60_000))
    assert found == len(job.readings) // 2 - spoilt.rows // 2


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.EROFS])
def test_a_sweep_that_fails_is_told_and_does_not_fail_the_batch(job: Job, code: int) -> None:
    system = FaultyFiles()
    job.writer.files.system = system.as_pyarrow()
    system.fail("delete", code, name="now/")
    go_on(job)
    job.run(minutes=2)
    assert any("could not be removed" in text for text in job.notices)
    left = len([*(job.store / "now").iterdir()])
    system.mend()
    go_on(job)
    assert len([*(job.store / "now").iterdir()]) < left


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE, errno.ESTALE])
def test_a_reader_that_meets_a_passing_error_says_so_and_reads_again(job: Job, code: int) -> None:
    reader = AggregatesReader(str(job.store))
    system = FaultyFiles()
    reader._opened.files.system = system.as_pyarrow()
    system.fail("open", code, name="now/")
    with pytest.raises(StoreUnreadableError) as unread:
        reader.now()
    assert "removed" not in unread.value.what_next
    system.mend()
    assert reader.now() is not None
