"""Compaction: when it is due, what stays of a batch, and how a node does it beside its work."""

import struct
import threading
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from broker.log.checkpoint.checkpoint_format import CLEANER_OFFSET_FILE, read_offsets
from broker.log.cleaner.cleaning_policy import (
    BatchCleaner,
    CleaningBounds,
    KeyOffsets,
    SealedSegment,
    SegmentTimes,
    group_segments,
    plan_cleaning,
)
from broker.log.cleaner.log_cleaner import CleanableLogs, Cleaner, Pace
from broker.log.config import LogConfig
from broker.log.log_manager import LogManager
from broker.log.partition_log import PartitionLog
from broker.protocol.records import (
    HEADER_BYTES,
    NewRecord,
    Record,
    build_batch,
    compute_crc,
    iter_batch_headers,
    iter_records,
    parse_batch_header,
)
from broker.protocol.rewrite import delete_horizon_ms
from broker.protocol.varint import encode_varint
from tests.support.phrases import lacking
from tests.support.settle import wait_until
from tests.unit.broker.log.helpers import CONFIG, NOW_MS, FakeClock, maintain, read_all

COMPACT = replace(CONFIG, cleanup_policy=frozenset({"compact"}), segment_bytes=300)
RETENTION_MS = 1000


def _segments(*sizes: int) -> list[tuple[SealedSegment, SegmentTimes]]:
    """Ten offsets each, written a second apart, the first one 100 s ago."""
    return [
        (
            SealedSegment(
                path=f"{n}.log", base_offset=10 * n, next_offset=10 * n + 10, size_bytes=size
            ),
            SegmentTimes(
                first_ms=NOW_MS - 100_000 + 1000 * n, largest_ms=NOW_MS - 100_000 + 1000 * n
            ),
        )
        for n, size in enumerate(sizes)
    ]


def _bounds(first_dirty: int, stable: int = 1000) -> CleaningBounds:
    return CleaningBounds(
        first_dirty_offset=first_dirty, first_unstable_offset=stable, now_ms=NOW_MS
    )


def test_a_log_is_cleaned_once_half_of_it_is_dirty() -> None:
    segments = _segments(100, 100, 99)
    assert plan_cleaning(segments, COMPACT, _bounds(20)) is None
    plan = plan_cleaning(segments, COMPACT, _bounds(10))
    assert plan is not None
    assert (len(plan.segments), plan.first_dirty_offset, plan.end_offset) == (3, 10, 30)
    assert plan_cleaning(segments, COMPACT, _bounds(30)) is None


def test_what_is_not_replicated_is_left_alone() -> None:
    plan = plan_cleaning(_segments(100, 100, 100), COMPACT, _bounds(0, stable=29))
    assert plan is not None
    assert plan.end_offset == 20


def test_min_lag_keeps_young_segments_and_max_lag_does_not_wait_for_the_ratio() -> None:
    segments = _segments(100, 100, 100)
    young = replace(COMPACT, min_compaction_lag_ms=98_500)
    plan = plan_cleaning(segments, young, _bounds(0))
    assert plan is not None
    assert plan.end_offset == 20
    lazy = replace(COMPACT, min_cleanable_dirty_ratio=0.9)
    assert plan_cleaning(segments, lazy, _bounds(20)) is None
    overdue = replace(lazy, max_compaction_lag_ms=97_000)
    assert plan_cleaning(segments, overdue, _bounds(20)) is not None


def test_neighbours_are_merged_up_to_a_segments_size() -> None:
    sealed = [segment for segment, _ in _segments(100, 150, 60, 300, 10)]
    groups = group_segments(sealed, COMPACT)
    assert [[s.base_offset for s in group] for group in groups] == [[0, 10], [20], [30], [40]]


def _batch(
    *pairs: tuple[str, str | None], base_offset: int = 0, codec: int = 0, pid: int = -1
) -> bytes:
    records = [
        NewRecord(
            key=key.encode(),
            value=None if value is None else value.encode(),
            timestamp=NOW_MS + n,
            headers=(("h", b"1"),),
        )
        for n, (key, value) in enumerate(pairs)
    ]
    return build_batch(
        records,
        base_offset=base_offset,
        leader_epoch=3,
        codec=codec,
        producer_id=pid,
        producer_epoch=0 if pid >= 0 else -1,
        base_sequence=40 if pid >= 0 else -1,
    )


def _cleaner(
    *batches: bytes, now_ms: int = NOW_MS, last_offsets: dict[int, int] | None = None
) -> BatchCleaner:
    keys = KeyOffsets(0)
    assert all(keys.add(each) for each in batches)
    return BatchCleaner(keys, last_offsets or {}, now_ms=now_ms, delete_retention_ms=RETENTION_MS)


@pytest.mark.parametrize("codec", range(5))
def test_a_batch_keeps_its_offsets_sequence_and_codec(codec: int) -> None:
    old = _batch(("a", "1"), ("b", "2"), ("c", "3"), codec=codec, pid=9)
    new = _batch(("b", "4"), base_offset=3)
    left = _cleaner(old, new).clean(old)
    before, after = parse_batch_header(old), parse_batch_header(left)
    assert (after.base_offset, after.last_offset, after.records_count) == (0, 2, 2)
    assert (after.producer_id, after.base_sequence, after.last_sequence) == (9, 40, 42)
    assert (after.codec, after.partition_leader_epoch) == (codec, 3)
    assert after.base_timestamp == before.base_timestamp
    assert list(iter_records(left)) == [r for r in iter_records(old) if r.key != b"b"]


def test_a_batch_of_newest_records_stays_byte_for_byte() -> None:
    batch = _batch(("a", "1"), ("b", "2"), codec=4)
    assert _cleaner(batch).clean(batch) is batch


def test_a_tombstone_stays_until_its_horizon() -> None:
    batch = _batch(("a", "1"), ("a", None), ("b", "2"))
    first = _cleaner(batch).clean(batch)
    assert delete_horizon_ms(parse_batch_header(first)) == NOW_MS + RETENTION_MS
    assert [(r.offset, r.key, r.value, r.timestamp) for r in iter_records(first)] == [
        (1, b"a", None, NOW_MS + 1),
        (2, b"b", b"2", NOW_MS + 2),
    ]
    assert _cleaner(first, now_ms=NOW_MS + RETENTION_MS - 1).clean(first) == first
    late = _cleaner(first, now_ms=NOW_MS + RETENTION_MS).clean(first)
    assert [(r.offset, r.key, r.timestamp) for r in iter_records(late)] == [(2, b"b", NOW_MS + 2)]
    assert delete_horizon_ms(parse_batch_header(late)) == NOW_MS + RETENTION_MS


def test_a_producers_newest_batch_stays_without_records() -> None:
    old = _batch(("a", "1"), ("b", "2"), pid=9, codec=3)
    new = _batch(("a", "3"), ("b", "4"), base_offset=2)
    left = _cleaner(old, new, last_offsets={9: 1}).clean(old)
    header = parse_batch_header(left)
    assert (header.records_count, header.last_offset, header.last_sequence) == (0, 1, 41)
    assert (header.codec, header.max_timestamp) == (0, NOW_MS + 1)
    assert list(iter_records(left)) == []
    assert _cleaner(new, last_offsets={9: 77}).clean(left) == b""
    assert _cleaner(old, new).clean(old) == b""


def test_a_run_ends_where_memory_ends() -> None:
    keys = KeyOffsets(0, bytes_max=100)
    assert keys.add(_batch(("a", "1")))
    assert not keys.add(_batch(("b", "1"), base_offset=1))
    assert keys.end_offset == 1
    behind = _batch(("a", "2"), base_offset=1)
    cleaner = BatchCleaner(keys, {}, now_ms=NOW_MS, delete_retention_ms=0)
    assert cleaner.clean(behind) is behind


def test_records_without_key_cannot_be_kept() -> None:
    batch = build_batch([NewRecord(value=b"old"), NewRecord(key=b"k", value=b"v")])
    assert [r.key for r in iter_records(_cleaner(batch).clean(batch))] == [b"k"]


# Over a whole node


def _fill(log: PartitionLog, rounds: int) -> None:
    for n in range(rounds):
        batch = _batch(*[(f"k{key}", f"{n}") for key in range(3)])
        log.append_as_leader(memoryview(batch), leader_epoch=0, now_ms=NOW_MS)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def reopen(tmp_path: Path, clock: FakeClock) -> Callable[[], LogManager]:
    def open_again() -> LogManager:
        return LogManager.open(
            str(tmp_path), node_id=1, cluster_id="c", clock=clock, defaults=COMPACT
        )

    return open_again


def _maintain(manager: LogManager, clock: FakeClock, until: Callable[[], bool]) -> None:
    def step() -> bool:
        clock.now_ms += 1000
        ends = {(log.topic, log.partition): log.log_end_offset for log in manager.all_logs}
        maintain(manager, clock.now_ms, ends)
        return until()

    wait_until(step, "compaction comes to its end")


def _records(log: PartitionLog) -> list[Record]:
    content = memoryview(read_all(log))
    return [
        record
        for header, position in iter_batch_headers(content)
        for record in iter_records(content[position : position + header.size_bytes])
    ]


def test_a_node_compacts_and_remembers_how_far(
    reopen: Callable[[], LogManager], clock: FakeClock, tmp_path: Path
) -> None:
    manager = reopen()
    log = manager.create_log("orders", 0, UUID(int=5))
    _fill(log, 40)
    before = log.size_bytes
    _maintain(manager, clock, lambda: log.cleaning.cleaned_to == log.segments()[-1].base_offset)
    assert log.size_bytes < before / 10
    before = log.segment_count
    _fill(log, 40)
    active = log.segments()[-1].base_offset
    _maintain(manager, clock, lambda: log.cleaning.cleaned_to == active)
    assert log.segment_count < before + 5
    clean = [r for r in _records(log) if r.offset < active]
    assert {r.key for r in clean} == {b"k0", b"k1", b"k2"}
    assert len(clean) == 3
    offsets = str(tmp_path / CLEANER_OFFSET_FILE)
    wait_until(lambda: read_offsets(offsets) == {("orders", 0): active}, "it is written down")
    assert not list(tmp_path.glob("orders-0/*.cleaned"))
    assert not list(tmp_path.glob("orders-0/*.swap"))
    manager.shutdown()
    again = reopen().log("orders", 0)
    assert again is not None
    assert (again.cleaning.cleaned_to, again.log_end_offset) == (active, 240)


def test_nothing_is_compacted_beyond_the_high_watermark_or_when_switched_off(
    reopen: Callable[[], LogManager], clock: FakeClock
) -> None:
    manager = reopen()
    log = manager.create_log("orders", 0, UUID(int=5))
    _fill(log, 40)
    log.flush()
    assert log.plan_compaction(stable_offset=0, now_ms=clock.now_ms) is None
    assert log.plan_compaction(stable_offset=120, now_ms=clock.now_ms) is not None
    manager.cleaner.is_enabled = False
    maintain(manager, clock.now_ms, {("orders", 0): 120})
    clock.now_ms += 1_000_000
    maintain(manager, clock.now_ms, {("orders", 0): 120})
    assert log.cleaning.cleaned_to == 0
    manager.shutdown()


def test_a_damaged_segment_ends_compaction_of_that_log_only(
    reopen: Callable[[], LogManager], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    manager = reopen()
    damaged = manager.create_log("damaged", 0, UUID(int=6))
    log = manager.create_log("orders", 0, UUID(int=5))
    _fill(damaged, 40)
    _fill(log, 40)
    path = Path(damaged.directory, f"{0:020d}.log")
    content = bytearray(path.read_bytes())
    content[70] ^= 1
    path.write_bytes(content)
    _maintain(manager, clock, lambda: log.cleaning.cleaned_to == log.segments()[-1].base_offset)
    _maintain(manager, clock, lambda: "damaged-0 is not compacted any more" in caplog.text)
    assert str(path) in caplog.text
    assert not lacking(caplog.text, "CRC", "offset 0")
    assert path.read_bytes() == content
    assert damaged.cleaning.cleaned_to == 0
    assert not list(Path(damaged.directory).glob("*.cleaned"))
    manager.shutdown()


def _odd_times(key: bytes) -> bytes:
    """A record of its own key and a time that is too large, and one of a key that comes again."""
    value = b"v" * 90
    batch = build_batch([NewRecord(key=key, value=value, timestamp=NOW_MS)] * 2)
    bodies = (
        b"\x00" + encode_varint(2**63 - 1) + b"\x00\x04" + key + b"\xb4\x01" + value + b"\x00",
        b"\x00\x00\x02\x02k\xb4\x01" + value + b"\x00",
    )
    plain = b"".join(encode_varint(len(body)) + body for body in bodies)
    odd = bytearray(batch[:HEADER_BYTES] + plain)
    struct.pack_into(">i", odd, 8, len(odd) - 12)
    struct.pack_into(">I", odd, 17, compute_crc(odd))
    return bytes(odd)


def test_times_beyond_64_bits_keep_no_other_log_from_compaction(
    reopen: Callable[[], LogManager], clock: FakeClock
) -> None:
    """A faulty client wrote them into a topic that was not compacted then."""
    manager = reopen()
    odd = manager.create_log("odd", 0, UUID(int=6))
    log = manager.create_log("orders", 0, UUID(int=5))
    for number in range(40):
        batch = memoryview(_odd_times(b"%02d" % number))
        odd.append_as_leader(batch, leader_epoch=0, now_ms=NOW_MS)
    _fill(log, 20)
    _maintain(manager, clock, lambda: log.cleaning.cleaned_to == log.segments()[-1].base_offset)
    _maintain(manager, clock, lambda: odd.cleaning.cleaned_to == odd.segments()[-1].base_offset)
    manager.shutdown()


def test_a_log_that_is_cut_or_deleted_meanwhile_is_left_in_peace(
    reopen: Callable[[], LogManager], clock: FakeClock
) -> None:
    manager = reopen()
    log = manager.create_log("orders", 0, UUID(int=5))
    _fill(log, 40)
    log.flush()
    run = log.plan_compaction(stable_offset=120, now_ms=clock.now_ms)
    assert run is not None
    group = run.next_group(lambda: None)
    assert group is not None
    log.truncate_to(60)
    before = read_all(log)
    assert not log.cleaning.swap_in(group, run.settings)
    assert read_all(log) == before
    assert not list(Path(log.directory).glob("*.cleaned"))
    manager.delete_log("orders", 0)
    assert log.is_abandoned
    manager.shutdown()


def test_a_log_made_anew_in_place_of_a_damaged_one_is_compacted(
    reopen: Callable[[], LogManager], clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    manager = reopen()
    log = manager.create_log("orders", 0, UUID(int=5))
    _fill(log, 40)
    path = Path(log.directory, f"{0:020d}.log")
    path.write_bytes(path.read_bytes()[::-1])
    _maintain(manager, clock, lambda: "orders-0 is not compacted any more" in caplog.text)
    manager.delete_log("orders", 0)
    anew = manager.create_log("orders", 0, UUID(int=5))
    _fill(anew, 40)
    _maintain(manager, clock, lambda: anew.cleaning.cleaned_to == anew.segments()[-1].base_offset)
    manager.shutdown()


@pytest.mark.parametrize("first", [(), (("another", "value"),)], ids=["alike", "other"])
def test_a_run_over_a_log_that_went_harms_nothing_that_came_in_its_place(
    reopen: Callable[[], LogManager],
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
    first: tuple[tuple[str, str], ...],
) -> None:
    manager = reopen()
    gone = manager.create_log("orders", 0, UUID(int=5))
    _fill(gone, 40)
    offsets = {("orders", 0): 120}
    other = manager.create_log("others", 0, UUID(int=6))
    cleanable = CleanableLogs(
        logs={("orders", 0): gone, ("others", 0): other},
        high_watermarks=offsets,
        recovery_points=offsets,
        now_ms=clock.now_ms,
    )
    cleaner = Cleaner()

    def look() -> Generator[None, None, CleanableLogs]:
        yield
        return cleanable

    beginning = cleaner.tick(clock.now_ms, look)
    for _ in range(3):
        next(beginning)  # until it has found the first log worth a run
    manager.delete_log("orders", 0)
    log = manager.create_log("orders", 0, UUID(int=5))
    if first:
        log.append_as_leader(memoryview(_batch(*first)), leader_epoch=0, now_ms=NOW_MS)
    _fill(log, 40)
    before = read_all(log)
    deque(beginning, 0)
    assert cleaner._run is not None

    def is_over() -> bool:
        with pytest.raises(StopIteration, match=r"^False$"):
            next(cleaner.tick(clock.now_ms, look))
        return cleaner._run is None

    wait_until(is_over, "the run has ended")
    cleaner.stop()
    assert "not compacted any more" not in caplog.text
    assert not list(Path(log.directory).glob("*.cleaned"))
    assert read_all(log) == before
    manager.shutdown()


def test_rolling_does_not_wait_longer_than_the_compaction_lag() -> None:
    config = LogConfig.from_properties(
        {"cleanup.policy": "compact", "max.compaction.lag.ms": "5000", "delete.retention.ms": "7"}
    )
    assert (config.roll_ms, config.delete_retention_ms) == (5000, 7)
    assert replace(config, cleanup_policy=frozenset({"delete"})).roll_ms == config.segment_ms
    broker = LogConfig.from_broker_properties({"log.cleaner.min.cleanable.ratio": "0.25"})
    assert broker.min_cleanable_dirty_ratio == 0.25


def test_the_thread_rests_three_times_as_long_as_it_worked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a batch that took a second."""
    now_s, rests, stopping = 0.0, list[float](), threading.Event()
    monkeypatch.setattr(stopping, "wait", rests.append)
    monkeypatch.setattr("time.monotonic", lambda: now_s)
    pace = Pace(stopping)
    for worked_s in (0.001, 0.009, 1.0):
        now_s += worked_s
        pace()
    assert rests == [pytest.approx(0.03), pytest.approx(3.0)]
