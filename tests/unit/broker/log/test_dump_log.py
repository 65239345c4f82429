"""The segment explorer reads what a log wrote, live, closed or damaged."""

from pathlib import Path

import pytest

from broker.log.dump_log import (
    find_record,
    iter_batches,
    iter_records_of,
    list_segments,
    read_index,
    read_time_index,
)
from broker.log.errors import CorruptSegmentError, OffsetOutOfRangeError, StorageError
from broker.protocol.records import NewRecord, build_batch
from tests.unit.broker.log.helpers import NOW_MS, append, batch, open_log, small_segments

GOLDEN = Path(__file__).parents[3] / "golden"


@pytest.fixture
def directory(tmp_path: Path) -> str:
    """A live partition: 20 batches of two over several segments."""
    log = open_log(tmp_path, small_segments(1000))
    for n in range(20):
        records = batch(2, value=b"%050d" % n, timestamp=NOW_MS - 1000 + n * 10, key=b"k%d" % n)
        append(log, records, epoch=3)
    return str(tmp_path)


def test_segments_cover_the_log_without_gaps(directory: str) -> None:
    segments = list_segments(directory)
    assert len(segments) > 3
    assert [s.is_active for s in segments] == [False] * (len(segments) - 1) + [True]
    assert [s.base_offset for s in segments[1:]] == [s.last_offset + 1 for s in segments[:-1]]
    assert sum(s.records for s in segments) == 40
    assert sum(s.batches for s in segments) == 20
    assert segments[0].first_timestamp_ms == NOW_MS - 1000
    assert segments[-1].largest_timestamp_ms == NOW_MS - 1000 + 191
    assert all(s.damage is None for s in segments)
    assert [s.has_snapshot for s in segments] == [False] + [True] * (len(segments) - 1)
    assert segments[0].index_size_bytes == segments[0].index_entries * 8
    assert segments[0].time_index_size_bytes == segments[0].time_index_entries * 12


def test_index_entries_point_at_batches(directory: str) -> None:
    for segment in list_segments(directory):
        batches = {each.position: each for each in iter_batches(directory, segment.base_offset)}
        entries = read_index(directory, segment.base_offset)
        assert len(entries) == segment.index_entries
        for entry in entries:
            assert batches[entry.position].header.last_offset == entry.offset
        for time_entry in read_time_index(directory, segment.base_offset):
            found = find_record(directory, time_entry.offset)
            assert found.batch.header.max_timestamp == time_entry.timestamp_ms


def test_zeros_that_kafka_pads_with_are_no_entries(directory: str) -> None:
    before = read_index(directory, 0), read_time_index(directory, 0)
    for suffix in ("index", "timeindex"):
        with (Path(directory) / f"{0:020d}.{suffix}").open("ab") as file:
            file.write(bytes(241))
    assert (read_index(directory, 0), read_time_index(directory, 0)) == before


@pytest.mark.parametrize("offset", [0, 1, 17, 39])
def test_a_record_is_found_with_all_that_is_known_of_it(directory: str, offset: int) -> None:
    found = find_record(directory, offset)
    n = offset // 2
    assert found.record.offset == offset
    assert found.record.key == b"k%d" % n
    assert found.record.value == b"%050d" % n
    assert found.record.timestamp == NOW_MS - 1000 + n * 10 + offset % 2
    assert (found.batch.codec, found.batch.header.magic) == ("none", 2)
    assert found.batch.is_crc_valid
    assert found.batch.header.partition_leader_epoch == 3
    if found.index_entry is not None:
        assert found.index_entry.offset <= offset
    assert Path(found.segment_path).exists()


def test_offsets_that_no_batch_holds(directory: str, tmp_path: Path) -> None:
    for offset in (-1, 40):
        with pytest.raises(OffsetOutOfRangeError, match=r"0\.\.40"):
            find_record(directory, offset)
    (tmp_path / "empty").mkdir()
    with pytest.raises(OffsetOutOfRangeError):
        find_record(str(tmp_path / "empty"), 0)
    assert list_segments(str(tmp_path / "empty")) == ()


def test_batches_by_position_and_limit(directory: str) -> None:
    first, second = iter_batches(directory, 0, limit=2)
    assert second.position == first.size_bytes
    (again,) = iter_batches(directory, 0, position=second.position, limit=1)
    assert again == second
    assert [record.offset for record in iter_records_of(directory, 0, again)] == [2, 3]


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_every_codec_is_named_and_opened(tmp_path: Path, codec: int) -> None:
    log = open_log(tmp_path)
    append(log, memoryview(build_batch([NewRecord(value=b"x" * 50, timestamp=1)], codec=codec)))
    found = find_record(str(tmp_path), 0)
    assert found.batch.codec == ("none", "gzip", "snappy", "lz4", "zstd")[codec]
    assert found.record.value == b"x" * 50


def test_damage_is_shown_where_it_is(directory: str) -> None:
    path = Path(directory) / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    second = next(iter_batches(directory, 0)).size_bytes
    content[second + 70] ^= 1
    path.write_bytes(content)
    assert [each.is_crc_valid for each in iter_batches(directory, 0)][:3] == [True, False, True]
    content[second + 16] = 7
    path.write_bytes(content)
    assert list_segments(directory)[0].damage == f"magic 7 is not 2 at position {second}"
    with pytest.raises(CorruptSegmentError):
        list(iter_batches(directory, 0))


def test_a_directory_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist") as caught:
        list_segments(str(tmp_path / "orders-0"))
    assert "log.dirs" in caught.value.next_step


def test_segments_of_old_formats_are_read(tmp_path: Path) -> None:
    """As a broker of Kafka 2.8 leaves them, before and after a batch of format 2."""
    lines = (GOLDEN / "message_sets.txt").read_text().splitlines()[1:]
    sets = {tuple(line.split()[:2]): bytes.fromhex(line.split()[2]) for line in lines}
    old, new = sets["0", "lz4"], build_batch([NewRecord(value=b"new")], base_offset=1_003)
    last = bytearray(sets["1", "gzip"])
    last[:8] = (1_006).to_bytes(8)
    (tmp_path / f"{1_000:020d}.log").write_bytes(old + new + bytes(last))
    (view,) = list_segments(str(tmp_path))
    assert (view.damage, view.batches, view.records, view.last_offset) == (None, 3, 7, 1_006)
    values = {o: find_record(str(tmp_path), o).record.value for o in (1_001, 1_003, 1_004, 1_006)}
    assert values == {1_001: b"second", 1_003: b"new", 1_004: b"first", 1_006: None}
    assert find_record(str(tmp_path), 1_004).batch.is_crc_valid
