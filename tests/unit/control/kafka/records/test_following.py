"""A follower of a topic whose brokers and logs misbehave: nothing is lost without a word, nothing
comes twice, and one partition's trouble is its own."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import pytest

from control.kafka.connection import apis, retry
from control.kafka.errors import KafkaPortError, RefusedError, UnreachableError
from control.kafka.records import following
from control.kafka.records.following import Followed, Notice, TopicFollower
from control.kafka.records.reader import Looking, RecordReader, Start, StartKind
from control.kafka.records.record import FetchedRecord, Gap, Isolation, Passed
from control.kafka.records.scan_progress import Scan
from control.model.ids import TopicPartition
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.unit.control.kafka.records.scripted_logs import TOPIC, ScriptedLogs
from tests.unit.control.kafka.scripted_cluster import Asked, Closed, Reply, Silence

EARLIEST: Final = Start(kind=StartKind.EARLIEST)
LATEST: Final = Start(kind=StartKind.LATEST)


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.0)
    monkeypatch.setattr(following, "REFRESH_S", 0.0)
    monkeypatch.setattr(following, "_TROUBLED_REFRESH_S", 0.0)
    monkeypatch.setattr(following, "_RETRY_S", 0.0)


@pytest.fixture
def logs() -> Iterator[ScriptedLogs]:
    """Partitions 0 and 1, led by brokers 1 and 2, with three records each."""
    with ScriptedLogs(1, 2) as cluster:
        for number, log in cluster.logs.items():
            log.append(b"%d/0" % number, b"%d/1" % number)
            log.append(b"%d/2" % number)
        yield cluster


def follower(logs: ScriptedLogs, **more: Any) -> TopicFollower:
    return TopicFollower(logs.settings(), TOPIC, **more)


async def backlog_of(reading: TopicFollower, **more: Any) -> list[Followed]:
    return [item async for item in reading.backlog(**more)]


async def poll_until(
    reading: TopicFollower, is_enough: Callable[[Sequence[Followed]], bool]
) -> list[Followed]:
    """All that came until then."""
    found: list[Followed] = []
    async with asyncio.timeout(WAIT_S):
        while not is_enough(found):
            found += await reading.poll(10)
    return found


def values(items: Sequence[Followed]) -> list[bytes]:
    return [item.value or b"" for item in items if isinstance(item, FetchedRecord)]


def notices(items: Sequence[Followed]) -> list[Notice]:
    return [item for item in items if isinstance(item, Notice)]


def holds(*wanted: bytes) -> Callable[[Sequence[Followed]], bool]:
    return lambda items: set(wanted) <= set(values(items))


def tells(words: str) -> Callable[[Sequence[Followed]], bool]:
    return lambda items: any(words in notice.text for notice in notices(items))


async def test_what_is_there_comes_once_and_then_what_is_new(logs: ScriptedLogs) -> None:
    async with follower(logs) as reading:
        await reading.begin(EARLIEST)
        there = await backlog_of(reading)
        assert sorted(values(there)) == [b"0/0", b"0/1", b"0/2", b"1/0", b"1/1", b"1/2"]
        logs.logs[0].append(b"0/3")
        logs.logs[1].append(b"1/3")
        assert sorted(values(await poll_until(reading, holds(b"0/3", b"1/3")))) == [b"0/3", b"1/3"]
        assert not notices(there)


async def test_from_the_end_on_nothing_old_comes(logs: ScriptedLogs) -> None:
    async with follower(logs, partitions=[1]) as reading:
        await reading.begin(LATEST)
        assert await backlog_of(reading) == []
        logs.logs[0].append(b"of another partition")
        logs.logs[1].append(b"1/3")
        assert values(await poll_until(reading, holds(b"1/3"))) == [b"1/3"]


@pytest.mark.parametrize("partitions", [[7], [-1], []])
async def test_partitions_that_there_are_not_are_refused(
    logs: ScriptedLogs, partitions: list[int]
) -> None:
    async with follower(logs, partitions=partitions) as reading:
        with pytest.raises(RefusedError, match=TOPIC):
            await reading.begin(EARLIEST)
    async with TopicFollower(logs.settings(), "nowhere") as reading:
        with pytest.raises(RefusedError, match="nowhere"):
            await reading.begin(EARLIEST)


async def test_a_leader_that_moves_gives_each_record_once(logs: ScriptedLogs) -> None:
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        logs.logs[0].append(b"before")
        before = await poll_until(reading, holds(b"before"))
        logs.lead(2, 2)
        logs.logs[0].append(b"after")
        after = await poll_until(reading, holds(b"after"))
    assert values([*before, *after]) == [b"before", b"after"]


async def test_a_partition_that_loses_its_leader_is_told_once_and_read_again(
    logs: ScriptedLogs,
) -> None:
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        logs.lead(0, 2)
        logs.logs[0].append(b"hidden")
        logs.logs[1].append(b"seen")
        found = await poll_until(reading, lambda it: holds(b"seen")(it) and bool(notices(it)))
        for _ in range(5):
            found += await reading.poll(1)
        (told,) = notices(found)
        assert told.is_trouble
        assert f"{TOPIC} partition 0" in told.text
        assert values(found) == [b"seen"]
        logs.lead(1, 2)
        found = await poll_until(reading, holds(b"hidden"))
        assert values(found) == [b"hidden"]
        assert [it.is_trouble for it in notices(found)] in ([False], [])


async def test_a_partition_without_a_leader_at_the_beginning_is_read_when_it_has_one(
    logs: ScriptedLogs,
) -> None:
    logs.lead(1, 0)
    async with follower(logs) as reading:
        await reading.begin(EARLIEST)
        there = await backlog_of(reading)
        assert values(there) == [b"0/0", b"0/1", b"0/2"]
        assert [f"{TOPIC} partition 1" in it.text for it in notices(there)] == [True]
        logs.lead(1, 2)
        found = await poll_until(reading, holds(b"1/0", b"1/1", b"1/2"))
    assert values(found) == [b"1/0", b"1/1", b"1/2"]


async def test_a_broker_that_hangs_holds_up_nobody_else(logs: ScriptedLogs) -> None:
    logs.on(apis.FETCH, lambda it: Silence if it.broker == 2 else logs.fetched(it))
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        for n in range(3):
            logs.logs[0].append(b"n%d" % n)
            assert values(await poll_until(reading, holds(b"n%d" % n))) == [b"n%d" % n]


async def test_a_broker_that_dies_is_told_and_its_partition_read_from_the_next_leader(
    logs: ScriptedLogs,
) -> None:
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        await reading.poll(10)
        logs.stop(2)
        logs.logs[1].append(b"1/3")
        await poll_until(reading, lambda it: bool(notices(it)))
        logs.lead(1, 1)
        assert values(await poll_until(reading, holds(b"1/3"))) == [b"1/3"]


async def test_retention_that_is_faster_is_told_as_a_gap(logs: ScriptedLogs) -> None:
    async with follower(logs, partitions=[0]) as reading:
        await reading.begin(LATEST)
        log = logs.logs[0]
        log.batches, log.first, log.end = {}, 10, 10
        log.append(b"0/10")
        found = await poll_until(reading, holds(b"0/10"))
    (gap,) = [item for item in found if isinstance(item, Gap)]
    assert (gap.partition, gap.first_offset, gap.last_offset) == (0, 3, 9)
    assert values(found) == [b"0/10"]


async def test_a_log_that_was_cut_back_is_told_and_read_from_its_end(logs: ScriptedLogs) -> None:
    async with follower(logs, partitions=[0]) as reading:
        await reading.begin(LATEST)
        log = logs.logs[0]
        del log.batches[2]
        log.end = 2
        found = await poll_until(reading, lambda it: bool(notices(it)))
        assert "2" in notices(found)[0].text
        assert not notices(found)[0].is_trouble
        log.append(b"anew")
        assert values(await poll_until(reading, holds(b"anew"))) == [b"anew"]


async def test_a_topic_that_is_deleted_and_made_anew_is_read_from_its_start(
    logs: ScriptedLogs,
) -> None:
    ids = {TOPIC: UUID(int=1)}

    def told(asked: Asked) -> Reply:
        found = logs.metadata(asked)
        topics = ({**it, "topic_id": ids.get(it["name"], UUID(int=0))} for it in found["topics"])
        return found | {"topics": tuple(topics)}

    logs.on(apis.METADATA, told)
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        partitions = logs.topics.pop(TOPIC)
        found = await poll_until(reading, lambda it: bool(notices(it)))
        assert notices(found)[0].is_trouble
        for log in logs.logs.values():
            log.batches, log.end = {}, 0
        logs.logs[0].append(b"of the new one")
        ids[TOPIC], logs.topics[TOPIC] = UUID(int=2), partitions
        found = await poll_until(reading, holds(b"of the new one"))
    assert any(TOPIC in it.text and not it.is_trouble for it in notices(found))


async def test_a_broker_too_old_to_tell_a_topics_id_is_not_taken_for_a_new_topic(
    logs: ScriptedLogs,
) -> None:
    """While a cluster is upgraded some of its brokers tell ids, and others do not."""
    ids = [UUID(int=1), UUID(int=0)]

    def told(asked: Asked) -> Reply:
        ids.reverse()
        found = logs.metadata(asked)
        return found | {"topics": tuple({**it, "topic_id": ids[0]} for it in found["topics"])}

    logs.on(apis.METADATA, told)
    async with follower(logs, partitions=[0]) as reading:
        await reading.begin(LATEST)
        logs.logs[0].append(b"0/3")
        found = await poll_until(reading, holds(b"0/3"))
        for _ in range(6):
            found += await reading.poll(5)
    assert values(found) == [b"0/3"]
    assert not notices(found)


async def test_partitions_that_are_added_are_read_from_their_start(logs: ScriptedLogs) -> None:
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        logs.logs[2] = type(logs.logs[0])()
        logs.logs[2].append(b"2/0")
        logs.lead(1, 2, 1)
        found = await poll_until(reading, holds(b"2/0"))
        assert any("orders-2" in it.text and not it.is_trouble for it in notices(found))
        assert values(found) == [b"2/0"]


@pytest.mark.parametrize("code", [29, 31])
async def test_a_right_that_is_taken_away_ends_the_reading(logs: ScriptedLogs, code: int) -> None:
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        logs.logs[0].error = code
        with pytest.raises(RefusedError) as told:
            await poll_until(reading, lambda _: False)
    assert int(told.value.code) == code


@pytest.mark.parametrize("code", [-1, 2, 13, 56, 1000])
async def test_any_other_error_of_a_partition_is_told_and_passes(
    logs: ScriptedLogs, code: int
) -> None:
    """56, KAFKA_STORAGE_ERROR: the leader's disk failed, and another leader follows."""
    async with follower(logs) as reading:
        await reading.begin(LATEST)
        logs.logs[0].error = code if code != 1000 else 103
        logs.logs[0].append(b"0/3")
        logs.logs[1].append(b"1/3")
        found = await poll_until(reading, holds(b"1/3"))
        for _ in range(3):
            found += await reading.poll(5)
        assert values(found) == [b"1/3"]
        logs.logs[0].error = 0
        assert values(await poll_until(reading, holds(b"0/3"))) == [b"0/3"]


async def test_a_damaged_batch_costs_its_own_records_alone(logs: ScriptedLogs) -> None:
    log = logs.logs[0]
    log.append(b"0/3", b"0/4")
    log.append(b"0/5")
    whole = log.batches[3]
    log.batches[3] = whole[:-12] + b"\xff" * 12
    async with follower(logs, partitions=[0]) as reading:
        await reading.begin(Start(kind=StartKind.OFFSET, value=2))
        found = await backlog_of(reading)
    assert values(found)[0] == b"0/2"
    assert values(found)[-1] == b"0/5"
    missing = {
        offset
        for gap in found
        if isinstance(gap, Gap)
        for offset in range(gap.first_offset, gap.last_offset + 1)
    }
    shown = {item.offset for item in found if isinstance(item, FetchedRecord)}
    assert shown | missing == {2, 3, 4, 5}
    assert not shown & missing


async def test_records_that_are_not_looked_for_are_counted(logs: ScriptedLogs) -> None:
    looking = Looking(matches=lambda record: record.value == b"0/2")
    async with follower(logs, partitions=[0], looking=looking) as reading:
        await reading.begin(EARLIEST)
        found = await backlog_of(reading)
    assert values(found) == [b"0/2"]
    assert sum(item.record_count for item in found if isinstance(item, Passed)) == 2


async def test_committed_records_end_before_the_open_transaction(logs: ScriptedLogs) -> None:
    logs.logs[0].stable = 2
    looking = Looking(isolation=Isolation.READ_COMMITTED)
    async with follower(logs, partitions=[0], looking=looking) as reading:
        await reading.begin(EARLIEST)
        assert values(await backlog_of(reading)) == [b"0/0", b"0/1"]


async def test_no_partition_that_can_be_read_is_an_error_and_not_an_empty_topic(
    logs: ScriptedLogs,
) -> None:
    logs.lead(0, 0)
    async with follower(logs) as reading:
        with pytest.raises(KafkaPortError):
            await reading.begin(EARLIEST)
    logs.lead(1, 2)
    logs.on(apis.LIST_OFFSETS, Closed)
    async with follower(logs) as reading:
        with pytest.raises(UnreachableError):
            await reading.begin(EARLIEST)


async def test_a_follower_that_is_closed_leaves_no_request_behind(logs: ScriptedLogs) -> None:
    logs.on(apis.FETCH, Silence)
    reading = follower(logs)
    await reading.begin(EARLIEST)
    await reading.poll(1)
    await reading.close()
    ours = asyncio.current_task()
    assert [task for task in asyncio.all_tasks() if task is not ours and "_read" not in
            repr(task.get_coro())] == []  # fmt: skip


# A reader: all or nothing, where everything must be read


async def test_positions_are_inside_the_log(logs: ScriptedLogs) -> None:
    key = TopicPartition(TOPIC, 0)
    logs.logs[0].first = 1
    async with RecordReader(logs.settings()) as reader:
        for start, wanted in (
            (EARLIEST, 1),
            (LATEST, 3),
            (Start(kind=StartKind.OFFSET, value=0), 1),
            (Start(kind=StartKind.OFFSET, value=2), 2),
            (Start(kind=StartKind.OFFSET, value=1 << 62), 3),
            (Start(kind=StartKind.LAST, value=1), 2),
            (Start(kind=StartKind.LAST, value=1 << 62), 1),
        ):
            assert await reader.positions([key], start) == {key: wanted}


async def test_one_partition_offline_is_named_and_the_others_are_browsed(
    logs: ScriptedLogs,
) -> None:
    logs.lead(1, 0)
    async with RecordReader(logs.settings()) as reader:
        found = await reader.browse(logs.keys, EARLIEST, limit=10)
        assert [record.value for record in found.records] == [b"0/0", b"0/1", b"0/2"]
        assert [each.partition.partition for each in found.skipped.unread] == [1]
        with pytest.raises(KafkaPortError, match="orders-1"):
            await reader.positions(logs.keys, EARLIEST)


async def test_one_leader_that_refuses_is_named_and_the_others_are_browsed(
    logs: ScriptedLogs,
) -> None:
    def refused(asked: Asked) -> Reply:
        found = logs.list_offsets(asked)
        (topic,) = found["topics"]
        partitions = tuple(
            it if it["partition_index"] else {**it, "error_code": 29, "offset": -1}
            for it in topic["partitions"]
        )
        return {"topics": ({**topic, "partitions": partitions},)}

    logs.on(apis.LIST_OFFSETS, refused)
    async with RecordReader(logs.settings()) as reader:
        found = await reader.browse(logs.keys, EARLIEST, limit=10)
    assert [record.value for record in found.records] == [b"1/0", b"1/1", b"1/2"]
    assert [each.partition.partition for each in found.skipped.unread] == [0]


async def test_reading_through_gives_each_record_that_was_there(logs: ScriptedLogs) -> None:
    key = TopicPartition(TOPIC, 0)
    async with RecordReader(logs.settings()) as reader:
        found = []
        async for record in reader.read_through(key, EARLIEST):
            found.append(record.offset)
            logs.logs[0].append(b"later")
        assert found[:3] == [0, 1, 2]
        assert await reader.partitions(TOPIC) == tuple(logs.keys)
        with pytest.raises(RefusedError, match="nowhere"):
            await reader.partitions("nowhere")


async def test_a_batch_larger_than_what_is_asked_for_is_asked_for_whole(
    logs: ScriptedLogs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.records.reader.PARTITION_BYTES_MAX", 200)
    monkeypatch.setattr("control.kafka.records.merge_sources.PARTITION_BYTES_MAX", 200)
    key = TopicPartition(TOPIC, 0)
    log = logs.logs[0]
    log.append(b"x" * 5_000)

    def cut(asked: Asked) -> Reply:
        found = logs.fetched(asked)
        (topic,) = found["responses"]
        (partition,) = topic["partitions"]
        most = asked.message.topics[0].partitions[0].partition_max_bytes
        is_first = most == 1 << 20
        told = {**partition, "records": partition["records"][: 200 if is_first else most]}
        return found | {"responses": ({**topic, "partitions": (told,)},)}

    logs.on(apis.FETCH, cut)
    async with RecordReader(logs.settings()) as reader:
        chunks = await reader.fetch({key: 3}, max_wait_ms=0)
    assert [len(record.value or b"") for record in chunks[key].records] == [5_000]
    assert chunks[key].next_offset == 4


async def test_a_fetch_out_of_range_is_refused_and_one_of_a_moved_leader_gives_nothing(
    logs: ScriptedLogs,
) -> None:
    key = TopicPartition(TOPIC, 0)
    async with RecordReader(logs.settings()) as reader:
        with pytest.raises(RefusedError) as told:
            await reader.fetch({key: 4}, max_wait_ms=0)
        assert int(told.value.code) == 1
        logs.lead(2, 2)
        assert await reader.fetch({key: 0}, max_wait_ms=0) == {}
        chunks = await reader.fetch({key: 0}, max_wait_ms=0)
        assert [record.value for record in chunks[key].records] == [b"0/0", b"0/1", b"0/2"]


async def test_what_comes_while_the_backlog_is_read_is_not_lost(logs: ScriptedLogs) -> None:
    async with follower(logs) as reading:
        await reading.begin(EARLIEST)
        logs.logs[0].append(b"meanwhile")
        assert b"meanwhile" not in values(await backlog_of(reading))
        assert values(await poll_until(reading, holds(b"meanwhile"))) == [b"meanwhile"]


async def test_a_scan_that_is_limited_ends_there_also_while_it_follows(logs: ScriptedLogs) -> None:
    scan = Scan(records_max=8)
    looking = Looking(matches=lambda record: record.value != b"0/1")
    async with follower(logs, looking=looking, scan=scan) as reading:
        await reading.begin(EARLIEST)
        logs.logs[0].append(*(b"more %d" % number for number in range(10)))
        async with asyncio.timeout(WAIT_S):
            items = [item async for item in reading.items()]
    assert (scan.record_count, len(values(items))) == (8, 7)


async def test_an_open_transaction_that_hides_records_is_told(logs: ScriptedLogs) -> None:
    logs.logs[1].stable = 1
    looking = Looking(isolation=Isolation.READ_COMMITTED)
    async with follower(logs, looking=looking) as reading:
        await reading.begin(Start(kind=StartKind.LAST, value=2))
        items = await backlog_of(reading, is_all=True)
    (told,) = notices(items)
    assert lacking(told.text, f"{TOPIC} partition 1", "open", "offset 1", "2 offsets") == []
    assert len(values(items)) == 2
