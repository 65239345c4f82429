"""One data directory: identity, lock, restart, deletion, upkeep."""

import contextlib
import errno
import os
import re
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from broker.log import log_manager
from broker.log.errors import (
    ForbiddenLogError,
    LogDirError,
    LogDirInUseError,
    LogDirMismatchError,
    StorageError,
)
from broker.log.log_manager import LogManager
from broker.log.names import (
    LOG_SUFFIX,
    METADATA_TOPIC_ID,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    decode_uuid,
)
from tests.support.faulty_disk import FaultyDisk
from tests.support.patience import WAIT_S
from tests.support.settle import wait_until
from tests.unit.broker.log.helpers import (
    CONFIG,
    NOW_MS,
    FakeClock,
    append,
    batch,
    maintain,
    read_all,
)

TOPIC_ID = UUID(int=77)
SEGMENT_FILES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)


def _open(
    directory: Path,
    *,
    node_id: int = 101,
    cluster_id: str = "cluster",
    clock: FakeClock | None = None,
) -> LogManager:
    return LogManager.open(
        str(directory),
        node_id=node_id,
        cluster_id=cluster_id,
        clock=clock or FakeClock(),
        defaults=CONFIG,
    )


def test_a_clean_restart_finds_everything_as_it_was(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    log = manager.create_log("orders", 3, TOPIC_ID)
    assert manager.create_log("orders", 3, TOPIC_ID) is log
    for _ in range(5):
        append(log, batch(2), epoch=1)
    log.increment_log_start_offset(3)
    content = read_all(log)
    manager.write_checkpoints({("orders", 3): 8})
    manager.shutdown(broker_epoch=12)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    again = _open(tmp_path)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    assert (again.was_clean, again.previous_broker_epoch) == (True, 12)
    assert again.directory_id == manager.directory_id
    assert again.high_watermark_checkpoint() == {("orders", 3): 8}
    found = again.log("orders", 3)
    assert found is not None
    assert again.all_logs == [found]
    assert (found.topic, found.partition, found.topic_id) == ("orders", 3, TOPIC_ID)
    assert (found.log_start_offset, found.log_end_offset, found.recovery_point) == (3, 10, 10)
    assert found.epochs.entries == ((1, 3),)
    assert read_all(found) == content
    assert again.log("orders", 4) is None
    again.shutdown()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_shut_down_manager_holds_no_file_open(tmp_path: Path, is_clean: bool) -> None:
    manager = _open(tmp_path)
    log = manager.create_log("orders", 0, TOPIC_ID)
    append(log, batch())
    manager.shutdown(clean=is_clean)
    held = [os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    assert not [path for path in held if path.startswith(str(tmp_path))]


def _open_files(folder: Path) -> list[Path]:
    """Files of segments there that this process has open."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was that of the look itself
            found.append(descriptor.readlink())
    return [path for path in found if folder in path.parents and path.suffix in SEGMENT_FILES]


def test_open_files_are_bounded_over_all_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_manager, "raise_open_files_limit", lambda: 10)
    manager = _open(tmp_path)
    for partition in range(40):
        log = manager.create_log("orders", partition, TOPIC_ID)
        for _ in range(3):
            append(log, batch(value=bytes(80)))
    assert len(_open_files(tmp_path)) <= 10
    assert all(len(read_all(log)) == log.size_bytes for log in manager.all_logs)
    manager.shutdown()


def test_a_stop_writes_no_files_for_logs_without_records(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    manager.create_log("orders", 0, TOPIC_ID)
    append(manager.create_log("orders", 1, TOPIC_ID), batch())

    def files(partition: int) -> set[str]:
        return {path.name for path in (tmp_path / f"orders-{partition}").iterdir()}

    before = files(0)
    for records in (0, 1):
        manager.shutdown()
        assert {Path(name).suffix for name in files(1)} > {".index", ".timeindex"}
        manager = _open(tmp_path)
        assert manager.was_clean
        found = manager.log("orders", 0)
        assert found is not None
        assert not found.findings
        assert found.log_end_offset == records
        if not records:
            assert files(0) == before
            append(found, batch())
    manager.shutdown()


def test_after_a_crash_logs_are_recovered(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    log = manager.create_log("orders", 0, TOPIC_ID)
    append(log, batch(2))
    append(log, batch(2))
    manager.shutdown(clean=False)
    segment = tmp_path / "orders-0" / f"{0:020d}.log"
    os.truncate(segment, segment.stat().st_size - 1)
    again = _open(tmp_path)
    assert not again.was_clean
    found = again.log("orders", 0)
    assert found is not None
    assert found.log_end_offset == 2
    assert len(found.findings) == 1
    again.shutdown()


def test_meta_properties_name_cluster_node_and_directory(tmp_path: Path) -> None:
    _open(tmp_path).shutdown()
    lines = dict(
        line.split("=", 1) for line in (tmp_path / "meta.properties").read_text().splitlines()
    )
    assert lines["version"] == "1"
    assert lines["cluster.id"] == "cluster"
    assert lines["node.id"] == "101"
    assert decode_uuid(lines["directory.id"]) == _open(tmp_path).directory_id


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    with pytest.raises(LogDirInUseError, match="in use") as caught:
        _open(tmp_path)
    assert "lsof" in caught.value.next_step
    manager.shutdown()
    _open(tmp_path).shutdown()


def test_another_nodes_or_clusters_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    _open(tmp_path).shutdown()
    with pytest.raises(LogDirMismatchError, match=r"node\.id=101.*node\.id=102"):
        _open(tmp_path, node_id=102)
    with pytest.raises(LogDirMismatchError, match="another cluster"):
        _open(tmp_path, cluster_id="other")
    manager = _open(tmp_path)
    assert manager.was_clean
    manager.shutdown()


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(LogDirError, match="cannot be written"):
        _open(tmp_path / "file")


@pytest.fixture
def nobody() -> Iterator[None]:
    """Where the tests run as root, who may write anywhere: somebody who may not."""
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    yield
    os.seteuid(own)


@pytest.mark.usefixtures("nobody")
def test_a_directory_without_write_access_is_refused() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o500)
        with pytest.raises(LogDirError, match="Permission denied") as caught:
            _open(Path(directory))
    assert "write access" in caught.value.next_step


def test_a_deleted_log_waits_for_its_files_to_go(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = _open(tmp_path, clock=clock)
    log = manager.create_log("orders", 0, TOPIC_ID)
    append(log, batch())
    pending = log.read(0, max_bytes=1000, max_offset=1)
    assert manager.delete_log("orders", 0)
    assert not manager.delete_log("orders", 0)
    assert manager.log("orders", 0) is None
    (waiting,) = tmp_path.glob("orders-0.*-delete")
    maintain(manager, NOW_MS + 59_999)
    assert waiting.exists()
    maintain(manager, NOW_MS + 60_000)
    wait_until(lambda: not waiting.exists(), "the files have gone")
    assert len(pending.read()) == pending.size_bytes
    # The same name may be created again at once, with another id.
    assert manager.create_log("orders", 0, uuid4()).log_end_offset == 0
    manager.delete_log("orders", 0)
    manager.shutdown()
    again = _open(tmp_path)
    assert again.all_logs == []
    maintain(again, NOW_MS)
    wait_until(lambda: not list(tmp_path.glob("*-delete")), "the files have gone")
    again.shutdown()


def test_logs_go_and_change_between_two_steps_of_the_upkeep(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    for number in range(3):
        append(manager.create_log("orders", number, TOPIC_ID), batch())
    steps = manager.upkeep(NOW_MS, ((("orders", number), 1) for number in range(3)))
    for _ in range(4):
        next(steps)
    assert manager.delete_log("orders", 1)
    taken = sum(1 for _ in steps)
    assert taken > len(manager.all_logs), "others are served between two logs"
    assert ("orders", 1) not in manager.high_watermark_checkpoint()
    manager.shutdown()
    assert "orders 1" not in (tmp_path / "replication-offset-checkpoint").read_text()
    assert "orders 2 1" in (tmp_path / "replication-offset-checkpoint").read_text()


def test_what_the_disk_refuses_to_remove_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a thread of its own: the loop goes on, and nothing is forgotten."""
    threads: list[str] = []

    def refuse(path: str) -> None:
        threads.append(threading.current_thread().name)
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    manager = _open(tmp_path)
    append(manager.create_log("orders", 0, TOPIC_ID), batch())
    manager.delete_log("orders", 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        maintain(manager, NOW_MS + 60_000)
        wait_until(lambda: bool(threads), "the disk has refused")
        assert list(tmp_path.glob("*-delete"))
    assert not {name for name in threads if not name.startswith("remove")}

    def is_gone() -> bool:
        maintain(manager, NOW_MS + 60_000)
        return not list(tmp_path.glob("*-delete"))

    wait_until(is_gone, "the files have gone")
    manager.shutdown()


def _crashed(manager: LogManager, tmp_path: Path) -> Path:
    """The files as a crash leaves them, once what was begun to be written is."""
    manager._writer.stop()
    return Path(shutil.copytree(manager.directory, tmp_path / "crashed"))


def test_a_new_log_of_the_same_name_is_not_emptied_by_the_checkpoints_of_the_old_one(
    tmp_path: Path,
) -> None:
    manager = _open(tmp_path / "data")
    old = manager.create_log("orders", 0, TOPIC_ID)
    append(old, batch(5))
    old.increment_log_start_offset(4)
    manager.write_checkpoints({("orders", 0): 5})
    manager._writer.stop()
    manager.delete_log("orders", 0)
    append(manager.create_log("orders", 0, UUID(int=78)), batch(2))
    again = _open(_crashed(manager, tmp_path))
    found = again.log("orders", 0)
    assert found is not None
    assert (found.log_start_offset, found.log_end_offset) == (0, 2)
    assert again.high_watermark_checkpoint().get(("orders", 0), 0) == 0
    again.shutdown()
    manager.shutdown()


def test_what_is_written_behind_a_cut_is_checked_after_a_crash(tmp_path: Path) -> None:
    """A batch of the first segment is damaged, as a power failure does to what was not forced."""
    manager = _open(tmp_path / "data")
    log = manager.create_log("orders", 0, TOPIC_ID)
    append(log, batch(8))
    append(log, batch(1))
    log.flush()
    manager.write_checkpoints({("orders", 0): 9})
    manager._writer.stop()
    log.truncate_to(8)
    append(log, batch(1, value=b"after the cut"))
    log.roll()
    append(log, batch(1))
    crashed = _crashed(manager, tmp_path)
    path = crashed / "orders-0" / f"{0:020}.log"
    path.write_bytes(path.read_bytes().replace(b"after the cut", b"after the cuT"))
    again = _open(crashed)
    found = again.log("orders", 0)
    assert found is not None
    assert found.log_end_offset == 8
    again.shutdown()
    manager.shutdown()


def test_another_topics_log_of_the_same_name_is_refused(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    manager.create_log("orders", 0, TOPIC_ID)
    with pytest.raises(StorageError, match="another topic's data"):
        manager.create_log("orders", 0, uuid4())
    manager.shutdown()


def test_one_broken_partition_leaves_the_others_in_service(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = _open(tmp_path)
    manager.create_log("orders", 0, TOPIC_ID)
    manager.create_log("orders", 1, TOPIC_ID)
    manager.shutdown()
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(b"rubbish")
    again = _open(tmp_path)
    assert [log.partition for log in again.all_logs] == [1]
    assert "does not name a topic id" in str(again.failures["orders", 0])
    assert "does not name a topic id" in caplog.text
    again.shutdown()


def test_damaged_checkpoints_cost_time_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = _open(tmp_path)
    append(manager.create_log("orders", 0, TOPIC_ID), batch())
    manager.write_checkpoints({("orders", 0): 1})
    manager.shutdown()
    for path in tmp_path.glob("*-checkpoint"):
        path.write_bytes(b"torn")
    again = _open(tmp_path)
    found = again.log("orders", 0)
    assert found is not None
    assert found.log_end_offset == 1
    assert again.high_watermark_checkpoint() == {}
    assert "not a checkpoint" in caplog.text
    again.shutdown()


def test_checkpoints_are_written_only_when_they_changed(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    manager.create_log("orders", 0, TOPIC_ID)
    path = tmp_path / "replication-offset-checkpoint"

    def write(high_watermark: int) -> int:
        """The file afterwards."""
        manager.write_checkpoints({("orders", 0): high_watermark})
        manager._writer.stop()  # and begins anew with the next file
        assert path.read_text() == f"0\n1\norders 0 {high_watermark}\n"
        return path.stat().st_ino

    inode = write(0)
    assert write(0) == inode
    assert write(1) != inode
    manager.shutdown()


def test_what_was_forced_is_written_down_though_no_high_watermark_moves(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = _open(tmp_path, clock=clock)
    manager.cleaner.is_enabled = False
    maintain(manager, clock.now_ms)
    log = manager.create_log("orders", 0, TOPIC_ID, replace(CONFIG, flush_ms=1))
    append(log, batch())
    file = tmp_path / "recovery-point-offset-checkpoint"

    def is_forced() -> bool:
        clock.now_ms += 10
        maintain(manager, clock.now_ms)
        return log.recovery_point == 1

    wait_until(is_forced, "the record is forced")
    assert "orders 0 1" not in file.read_text()
    clock.now_ms += manager.checkpoint_ms
    maintain(manager, clock.now_ms)
    wait_until(lambda: "orders 0 1" in file.read_text(), "the recovery point is written")
    manager.shutdown()


def test_a_checkpoint_that_the_disk_refused_is_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = _open(tmp_path)
    manager.create_log("orders", 0, TOPIC_ID)
    path = tmp_path / "replication-offset-checkpoint"
    path.mkdir()
    manager.write_checkpoints({("orders", 0): 1})

    def is_told() -> bool:
        maintain(manager, 0)
        return f"Writing {path} failed" in caplog.text

    wait_until(is_told, "the refusal is told")
    path.rmdir()
    manager.write_checkpoints({})
    wait_until(path.is_file, "it is written")
    manager.shutdown()


@pytest.mark.parametrize(
    ("topic", "partition"),
    [
        ("__cluster_metadata", 0),
        ("__cluster_metadata", 1),
        ("..", 0),
        ("a/b", 0),
        ("", 0),
        ("x" * 250, 0),
        ("orders", -1),
    ],
)
def test_no_record_makes_or_deletes_what_is_no_topics_log(
    tmp_path: Path, topic: str, partition: int
) -> None:
    manager = _open(tmp_path)
    log = manager.metadata_log()
    append(log, batch())
    before = sorted(os.listdir(tmp_path))
    for attempt in (
        lambda: manager.create_log(topic, partition, uuid4()),
        lambda: manager.delete_log(topic, partition),
    ):
        with pytest.raises(ForbiddenLogError, match=re.escape(repr(topic))):
            attempt()
    assert sorted(os.listdir(tmp_path)) == before
    assert (log.topic_id, log.log_end_offset) == (METADATA_TOPIC_ID, 1)
    manager.shutdown()


def test_upkeep_applies_retention_on_its_interval(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = _open(tmp_path, clock=clock)
    log = manager.create_log("orders", 0, TOPIC_ID, replace(CONFIG, retention_ms=1000))
    metadata = manager.metadata_log(log.config)
    for each in (log, metadata):
        append(each, batch())
    high_watermarks = {("orders", 0): 1, ("__cluster_metadata", 0): 1}
    clock.now_ms += 29_999
    maintain(manager, clock.now_ms, high_watermarks)
    assert log.log_start_offset == 0
    clock.now_ms += 1
    maintain(manager, clock.now_ms, high_watermarks)
    assert (log.log_start_offset, log.size_bytes) == (1, 0)
    assert metadata.log_start_offset == 0
    manager.shutdown()


def test_upkeep_forces_sealed_segments_to_the_disk(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    log = manager.create_log("orders", 0, TOPIC_ID)
    append(log, batch())
    log.roll()
    append(log, batch())
    deadline = time.monotonic() + WAIT_S
    while log.recovery_point < 1:
        maintain(manager, NOW_MS)
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert log.recovery_point == 1
    manager.shutdown()


def test_flush_ms_forces_the_active_segment_too(tmp_path: Path) -> None:
    clock = FakeClock()
    manager = _open(tmp_path, clock=clock)
    log = manager.create_log("orders", 0, TOPIC_ID, replace(CONFIG, flush_ms=5000))
    append(log, batch(3))
    for now_ms, expected in ((NOW_MS + 4999, 0), (NOW_MS + 5000, 3)):
        clock.now_ms = now_ms
        maintain(manager, now_ms)
        manager._flusher.stop()
        assert log.recovery_point == expected
    append(log, batch(2))
    clock.now_ms += 4999
    maintain(manager, clock.now_ms)
    manager._flusher.stop()
    assert log.recovery_point == 3
    manager.shutdown()


def test_a_cut_lowers_the_checkpoints_whatever_the_disk_refuses_after_it(tmp_path: Path) -> None:
    manager = _open(tmp_path)
    log = manager.create_log("orders", 3, TOPIC_ID)
    for _ in range(5):
        append(log, batch(2))
    log.flush()
    manager.write_checkpoints({})
    file = tmp_path / "recovery-point-offset-checkpoint"
    wait_until(lambda: file.exists() and "orders 3 10" in file.read_text(), "it is written")
    directory = tmp_path / "orders-3"
    with (
        FaultyDisk(directory, errno.EMFILE, calls={"listdir"}) as disk,
        pytest.raises(StorageError),
    ):
        log.truncate_to(4)
    assert disk.met
    wait_until(lambda: "orders 3 4" in file.read_text(), "else records to come are not checked")
    manager.shutdown()


def test_the_mark_of_a_clean_shutdown_is_gone_before_anything_is_written(tmp_path: Path) -> None:
    _open(tmp_path).shutdown()
    with (
        FaultyDisk(tmp_path, errno.EIO, calls={"fsync"}),
        pytest.raises(StorageError, match="Forcing"),
    ):
        _open(tmp_path)
