"""Reading records: the right ones, in order of time, and nothing is lost without a word."""

import random
from collections.abc import Sequence

import pytest

from broker.protocol.records import NewRecord, build_batch
from control.kafka.errors import UnreachableError
from control.kafka.records.browsing import Bounds, Browsed
from control.kafka.records.decoding import AbortedTransaction
from control.kafka.records.reader import Looking, Start, StartKind
from control.kafka.records.record import FetchedRecord, Isolation, Transaction
from control.model.ids import TopicPartition
from control.views.tables.messages import summary
from tests.support.memory_log import MemoryCluster, MemoryLog

EARLIEST = Start(kind=StartKind.EARLIEST)


def last(count: int) -> Start:
    return Start(kind=StartKind.LAST, value=count)


def log_of(
    times: Sequence[int],
    *,
    per_batch: int = 7,
    size: int = 4,
    kept: Sequence[int] | None = None,
) -> MemoryLog:
    """Records with these times; `kept`: the offsets that compaction has left."""
    log = MemoryLog(times=dict(enumerate(times)))
    for first in range(0, len(times), per_batch):
        some = times[first : first + per_batch]
        final = first + len(some) - 1
        offsets = [o for o in range(first, final + 1) if kept is None or o in kept]
        if not offsets:
            log.end = final + 1
            continue
        if kept is None:
            records = [NewRecord(value=b"v" * size, timestamp=at) for at in some]
            log.append(build_batch(records, base_offset=first), first=first, last=final)
            continue
        for offset in offsets:
            record = NewRecord(value=b"v" * size, timestamp=times[offset])
            log.append(build_batch([record], base_offset=offset), first=offset, last=offset)
        log.end = final + 1
    return log


def cluster_of(*logs: MemoryLog) -> tuple[MemoryCluster, list[TopicPartition]]:
    keys = [TopicPartition("orders", number) for number in range(len(logs))]
    return MemoryCluster(dict(zip(keys, logs, strict=True))), keys


def places(found: Browsed | Sequence[FetchedRecord]) -> list[tuple[int, int]]:
    records = found.records if isinstance(found, Browsed) else found
    return [(record.partition, record.offset) for record in records]


async def test_the_last_fifty_are_the_newest_of_all_partitions() -> None:
    logs = [log_of([1_000 * n + p for n in range(60)]) for p in range(24)]
    cluster, keys = cluster_of(*logs)
    found = await cluster.reader().browse(keys, last(50), limit=200)
    newest = sorted(((1_000 * n + p, p, n) for n in range(60) for p in range(24)), reverse=True)[
        :50
    ]
    assert places(found) == [(p, n) for _, p, n in reversed(newest)]
    assert found.read_count == 50
    assert found.rest


async def test_small_new_records_do_not_crowd_out_older_large_ones() -> None:
    small = log_of([10_000 + n for n in range(1_000)], per_batch=200)
    large = log_of(list(range(120)), per_batch=10, size=30_000)
    cluster, keys = cluster_of(small, large)
    start = Start(kind=StartKind.TIMESTAMP, value=0)
    found = await cluster.reader().browse(keys, start, limit=100)
    assert places(found) == [(1, offset) for offset in range(100)]


@pytest.mark.parametrize("count", [1, 12, 100, 302, 5_000])
async def test_the_last_records_of_a_compacted_topic_are_records(count: int) -> None:
    random.seed(5)
    kept = sorted(random.sample(range(19_000), 290)) + [19_990 + n for n in range(0, 10)] + [40, 41]
    log = log_of(list(range(20_000)), per_batch=100, kept=kept)
    cluster, keys = cluster_of(log)
    reader = cluster.reader()
    found = await reader.browse(keys, last(count), limit=5_000)
    older, expected = sorted(set(kept))[:-count], sorted(set(kept))[-count:]
    assert [record.offset for record in found.records] == expected
    positions = await reader.positions(keys, last(count))
    assert max(older, default=-1) < positions[keys[0]] <= expected[0]


async def test_the_last_record_is_found_before_a_commit_marker() -> None:
    log = log_of([1, 2, 3], per_batch=3)
    marker = NewRecord(key=b"\x00\x00\x00\x01", value=bytes(6), timestamp=4)
    log.append(build_batch([marker], base_offset=3, is_control=True), first=3, last=3)
    cluster, keys = cluster_of(log)
    reader = cluster.reader()
    assert places(await reader.browse(keys, last(1), limit=10)) == [(0, 2)]
    assert await reader.positions(keys, last(1)) == {keys[0]: 2}
    assert await reader.positions(keys, last(0)) == {keys[0]: 4}


async def test_a_search_says_how_far_it_has_read_and_goes_on_from_there() -> None:
    log = log_of(list(range(30_000)), per_batch=500)
    needle = build_batch([NewRecord(value=b"needle", timestamp=25_000)], base_offset=25_000)
    log.batches = [each for each in log.batches if each.first != 25_000]
    log.append(needle, first=25_000, last=25_499)
    log.batches.sort(key=lambda each: each.first)
    cluster, keys = cluster_of(log)
    looking = Looking(matches=lambda record: record.value == b"needle")
    reader = cluster.reader()
    first = await reader.browse(keys, EARLIEST, limit=100, looking=looking)
    assert first.records == ()
    assert (first.read_count, dict(first.rest)) == (20_000, {keys[0]: 20_000})
    then = await reader.go_on(first.rest, is_backward=False, limit=100, looking=looking)
    assert places(then) == [(0, 25_000)]
    assert not then.rest
    back = await reader.browse(keys, last(100), limit=100, looking=looking)
    assert places(back) == [(0, 25_000)]


@pytest.mark.parametrize("is_backward", [False, True])
async def test_reading_on_and_on_gives_every_record_once(is_backward: bool) -> None:
    random.seed(11)
    logs = [
        log_of(sorted(random.choices(range(5_000), k=count)), per_batch=random.randint(1, 40))
        for count in (0, 1, 333, 1_000, 77)
    ]
    cluster, keys = cluster_of(*logs)
    reader = cluster.reader()
    start = last(90) if is_backward else EARLIEST
    found = await reader.browse(keys, start, limit=90)
    pieces = [found]
    while found.rest:
        found = await reader.go_on(found.rest, is_backward=is_backward, limit=90)
        pieces.append(found)
    if is_backward:
        pieces.reverse()
    records = [record for piece in pieces for record in piece.records]
    assert len(places(records)) == len(set(places(records))) == 1_411
    assert [r.timestamp_ms for r in records] == sorted(r.timestamp_ms for r in records)


async def test_a_partition_that_cannot_be_read_is_named_and_the_others_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("control.kafka.records.browsing.STALLED_S", 0.2)
    cluster, keys = cluster_of(log_of([1, 2]), log_of([3, 4]))
    cluster.refused[keys[0]] = UnreachableError("broker 7 is away", reason="r", next_step="n")
    for start in (EARLIEST, last(5)):
        found = await cluster.reader().browse(keys, start, limit=10)
        assert places(found) == [(1, 0), (1, 1)]
        assert [each.partition for each in found.skipped.unread] == [keys[0]]
        assert "broker 7 is away" in found.skipped.unread[0].reason


async def test_large_records_are_cut_while_they_are_read_and_bytes_are_bounded() -> None:
    log = log_of(list(range(40)), per_batch=1, size=3 << 20)
    cluster, keys = cluster_of(log)
    bounds = Bounds(bytes=30 << 20)
    for start in (EARLIEST, last(40)):
        found = await cluster.reader().browse(keys, start, limit=40, bounds=bounds)
        assert 8 <= len(found.records) <= 11
        assert found.rest
        for record in found.records:
            assert record.value_bytes == 3 << 20
            assert len(record.value or b"") <= 64 << 10


def transactional() -> MemoryLog:
    """Producer 7 aborts offsets 0 to 1, producer 8 commits 2, producer 9 has 5 open."""
    log = MemoryLog()

    def append(offset: int, producer: int, key: bytes, *, is_control: bool = False) -> None:
        record = NewRecord(key=key, value=b"v", timestamp=offset)
        batch = build_batch(
            [record],
            base_offset=offset,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=0,
            is_transactional=True,
            is_control=is_control,
        )
        log.append(batch, first=offset, last=offset)

    append(0, 7, b"a")
    append(1, 7, b"b")
    append(2, 8, b"c")
    append(3, 7, b"\x00\x00\x00\x00", is_control=True)
    append(4, 8, b"\x00\x00\x00\x01", is_control=True)
    append(5, 9, b"open")
    append(6, 7, b"done behind an open one")
    append(7, 7, b"\x00\x00\x00\x01", is_control=True)
    log.aborted = (AbortedTransaction(producer_id=7, first_offset=0),)
    log.stable = 5
    return log


@pytest.mark.parametrize("start", [EARLIEST, last(10)])
async def test_aborted_and_open_records_are_marked_or_hidden(start: Start) -> None:
    cluster, keys = cluster_of(transactional())
    found = await cluster.reader().browse(keys, start, limit=10)
    assert [(record.offset, record.transaction) for record in found.records] == [
        (0, Transaction.ABORTED),
        (1, Transaction.ABORTED),
        (2, Transaction.COMMITTED),
        (5, Transaction.OPEN),
        (6, Transaction.COMMITTED),
    ]
    committed = Looking(isolation=Isolation.READ_COMMITTED)
    hidden = await cluster.reader().browse(keys, start, limit=10, looking=committed)
    assert [record.offset for record in hidden.records] == [2]


async def test_the_newest_committed_ones_lie_before_an_open_transaction() -> None:
    cluster, keys = cluster_of(transactional())
    reader = cluster.reader()
    committed = Looking(isolation=Isolation.READ_COMMITTED)
    extents = await reader.extents.strict(keys)
    assert await reader.starts(extents, last(1), committed) == ({keys[0]: 2}, [])
    assert await reader.starts(extents, Start(kind=StartKind.LATEST), committed) == (
        {keys[0]: 5},
        [],
    )
    assert (await reader.starts(extents, last(0), committed))[0] == {keys[0]: 5}


async def test_earlier_times_behind_an_end_in_time_are_found_or_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, keys = cluster_of(log_of([1, 2, 900, 3, 901, 4]))
    before = Looking(matches=lambda record: record.timestamp_ms < 900)
    reader = cluster.reader()
    found = await reader.browse(keys, last(10), limit=10, looking=before, until_ms=900)
    assert [record.offset for record in found.records] == [0, 1, 3, 5]
    assert (found.behind_count, found.rest) == (0, {})
    monkeypatch.setattr("control.kafka.records.reader.BEHIND_MAX", 3)
    found = await reader.browse(keys, last(10), limit=10, looking=before, until_ms=900)
    assert [record.offset for record in found.records] == [0, 1]
    assert (found.behind_count, found.rest) == (4, {})
    words, _ = summary(found, is_search=True)
    assert "not 4 offsets behind" in words
    assert "all of them" not in words


async def test_a_scan_counts_no_record_more_than_its_limit() -> None:
    holes = [offset for offset in range(300) if offset % 3]
    for kept in (None, holes):
        cluster, keys = cluster_of(log_of(list(range(300)), per_batch=50, kept=kept))
        for may_match in (None, lambda _: False):
            looking = Looking(matches=lambda _: False, may_match=may_match)
            for start in (EARLIEST, last(1_000)):
                found = await cluster.reader().browse(
                    keys, start, limit=10, looking=looking, bounds=Bounds(records=77)
                )
                assert found.read_count == 77
                assert found.rest


@pytest.mark.parametrize("start", [EARLIEST, last(50)])
async def test_a_hole_before_an_open_transaction_hides_none_of_its_records(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.browsing.SILENT_S", 0.01)
    log = log_of(list(range(12)), per_batch=1, kept=[0, *range(6, 12)])
    log.stable = 6
    cluster, keys = cluster_of(log)
    found = await cluster.reader().browse(keys, start, limit=50)
    assert [record.offset for record in found.records] == [0, *range(6, 12)]
