import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.records import iter_batch_headers
from broker.raft.snapshot_files import SnapshotFiles
from broker.raft.snapshot_id import SnapshotId


def content(directory: Path) -> dict[str, bytes]:
    """The files by name."""
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def damaged(whole: bytes, damage: str) -> bytes:
    """The file after a misfortune."""
    if damage == "bit":
        middle = len(whole) // 2
        return whole[:middle] + bytes((whole[middle] ^ 1,)) + whole[middle + 1 :]
    return whole[:-1] if damage == "cut" else b""


def id_(end_offset: int, epoch: int = 1) -> SnapshotId:
    return SnapshotId(end_offset=end_offset, epoch=epoch)


@pytest.fixture
def files(tmp_path: Path) -> SnapshotFiles:
    return SnapshotFiles(tmp_path)


async def test_what_was_written_is_read(files: SnapshotFiles, tmp_path: Path) -> None:
    values = tuple(b"%d" % number for number in range(1_234))
    await files.write(id_(50, 3), values, now_ms=7)
    assert list(content(tmp_path)) == ["00000000000000000050-0000000003.checkpoint"]
    snapshot = files.read_latest(offset_max=50)
    assert snapshot is not None
    assert (snapshot.id, snapshot.values) == (id_(50, 3), values)


async def test_offsets_in_the_file_have_no_gap(files: SnapshotFiles, tmp_path: Path) -> None:
    await files.write(id_(9), [b"x"] * 1_001, now_ms=7)
    (file,) = content(tmp_path).values()
    headers = [header for header, _ in iter_batch_headers(file)]
    assert [h.base_offset for h in headers] == [0, 1, 501, 1001, 1002]
    assert [h.is_control for h in headers] == [True, False, False, False, True]


async def test_newest_that_the_log_reaches_is_taken_and_two_are_kept(
    files: SnapshotFiles,
) -> None:
    assert files.read_latest(offset_max=100) is None
    for end_offset in (10, 20, 30):
        await files.write(id_(end_offset), [b"%d" % end_offset], now_ms=7)
    assert files.ids() == [id_(20), id_(30)]
    latest = files.read_latest(offset_max=29)
    assert latest is not None
    assert latest.values == (b"20",)
    assert files.read_latest(offset_max=19) is None


@pytest.mark.parametrize("damage", ["cut", "bit", "empty"])
async def test_damaged_snapshot_is_passed_over(
    files: SnapshotFiles, tmp_path: Path, damage: str
) -> None:
    await files.write(id_(10), [b"old"], now_ms=7)
    await files.write(id_(20), [b"new"] * 10, now_ms=7)
    path = tmp_path / id_(20).file_name
    path.write_bytes(damaged(content(tmp_path)[path.name], damage))
    latest = files.read_latest(offset_max=20)
    assert latest is not None
    assert latest.values == (b"old",)


@pytest.mark.parametrize("other", [id_(10), id_(20, 2), id_(30)])
async def test_a_snapshot_under_the_name_of_another_is_passed_over(
    files: SnapshotFiles, tmp_path: Path, other: SnapshotId
) -> None:
    await files.write(other, [b"another"], now_ms=7)
    (tmp_path / other.file_name).rename(tmp_path / id_(20).file_name)
    assert files.read_latest(offset_max=20) is None
    fetched = (tmp_path / id_(20).file_name).read_bytes()
    files.keep_only([])
    files.write_part(id_(20), 0, fetched)
    files.adopt(id_(20))
    assert not content(tmp_path)


async def test_a_snapshot_that_does_not_tell_which_it_is_is_read(
    files: SnapshotFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("broker.raft.snapshot_files._tagged", lambda id_: b"\x00")
        await files.write(id_(10), [b"kafka's"], now_ms=7)
    latest = files.read_latest(offset_max=10)
    assert latest is not None
    assert latest.values == (b"kafka's",)


async def test_unfinished_snapshot_has_no_valid_name(files: SnapshotFiles, tmp_path: Path) -> None:
    (tmp_path / "00000000000000000050-0000000003.checkpoint.part").write_bytes(b"half")
    assert files.ids() == []


async def test_a_snapshot_that_cannot_be_read_is_passed_over(
    files: SnapshotFiles, tmp_path: Path
) -> None:
    await files.write(id_(5), [b"a"], now_ms=0)
    (tmp_path / id_(9).file_name).mkdir()
    found = files.read_latest(offset_max=9)
    assert found is not None
    assert found.id == id_(5)


async def test_what_a_full_disk_did_not_take_leaves_nothing_behind(
    files: SnapshotFiles, tmp_path: Path
) -> None:
    def values() -> Iterator[bytes]:
        yield b"a"
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"):
        await files.write(id_(5), values(), now_ms=0)
    assert not content(tmp_path)


def test_of_snapshots_that_were_fetched_in_part_the_newest_stays(
    files: SnapshotFiles, tmp_path: Path
) -> None:
    for end_offset in (5, 9):
        files.write_part(id_(end_offset), 0, b"half")
    files.write_part(id_(9), 4, b"more")
    assert content(tmp_path) == {f"{id_(9).file_name}.part": b"halfmore"}
    files.drop_parts()
    assert not content(tmp_path)
