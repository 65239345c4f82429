"""Fetches of consumers and of followers: limits, waiting, errors, sessions."""

import asyncio
import time
from typing import Any
from uuid import UUID

import pytest

from broker.log.errors import OffsetOutOfRangeError
from broker.protocol.hot.fetch import FetchPosition, FetchRequest, PartitionData
from broker.protocol.records import iter_batch_headers
from broker.replication.errors import (
    FencedLeaderEpochError,
    FetchSessionIdNotFoundError,
    InvalidFetchSessionEpochError,
    NotLeaderError,
    UnknownLeaderEpochError,
    UnknownPartitionError,
    UnknownTopicIdError,
)
from broker.replication.leader.fetch_session import FetchAnswer
from tests.support.patience import WAIT_S
from tests.support.settle import TIMEOUT_S, turns, until
from tests.unit.broker.replication.rig import Node, Rig, records

Key = tuple[str | bytes, int]
T0: Key = ("t", 0)
LONG_MS = 100_000
"""Longer than anybody waits here: what comes before was awakened."""


def request(positions: dict[Key, FetchPosition], **fields: Any) -> FetchRequest:
    """A consumer's request unless told otherwise."""
    asked = FetchRequest(-1, -1, 0, 1, 10_000_000, 0, 0, -1, positions, [])
    return asked._replace(**fields)


def at(offset: int, max_bytes: int = 1_000_000, **other: int) -> FetchPosition:
    """A consumer's position."""
    return FetchPosition(offset, max_bytes, **other)


async def fetch(node: Node, asked: FetchRequest) -> FetchAnswer:
    """The answer, whenever it comes."""
    answered: asyncio.Future[FetchAnswer] = asyncio.get_running_loop().create_future()
    node.replicas.fetches.fetch(asked, answered.set_result)
    return await answered


async def fetch_one(node: Node, offset: int, **fields: Any) -> PartitionData:
    """What is found in t-0."""
    return (await fetch(node, request({T0: at(offset)}, **fields))).results[T0]


def content(data: PartitionData) -> bytes:
    """The bytes of the slices."""
    raw = b"".join(piece.read() for piece in data.slices)
    assert len(raw) == data.size_bytes
    return raw


def base_offsets(data: PartitionData) -> list[int]:
    """Base offsets of the batches."""
    return [header.base_offset for header, _ in iter_batch_headers(content(data))]


async def filled(rig: Rig, batches: int = 5) -> Node:
    """Node 1 leads t-0 alone with batches of two records."""
    rig.create(1)
    for n in range(batches):
        await rig.nodes[1].append(f"{n}", "x" * 50)
    return rig.nodes[1]


async def test_reads_from_the_batch_that_holds_the_offset(rig: Rig) -> None:
    node = await filled(rig)
    data = await fetch_one(node, 5)
    assert base_offsets(data) == [4, 6, 8]
    assert (data.high_watermark, data.log_start_offset) == (10, 0)
    assert node.partition().traffic.bytes_out == data.size_bytes


async def test_limits_cut_between_batches_but_the_first_comes_whole(rig: Rig) -> None:
    node = await filled(rig)
    size = node.partition().log.size_bytes // 5
    two = await fetch(node, request({T0: at(0, 2 * size + 1)}))
    assert base_offsets(two.results[T0]) == [0, 2]
    whole = await fetch(node, request({T0: at(0, 1)}, max_bytes=1))
    assert base_offsets(whole.results[T0]) == [0]


async def test_max_bytes_counts_over_all_partitions(rig: Rig) -> None:
    rig.create(1, partitions=3)
    for p in range(3):
        await rig.nodes[1].replicas.append_and_wait("t", p, records("x" * 500))
    positions: dict[Key, FetchPosition] = {("t", p): at(0) for p in range(3)}
    answer = await fetch(rig.nodes[1], request(positions, max_bytes=600))
    assert list(answer.results) == list(positions), "every partition named is answered for"
    assert [bool(data.size_bytes) for data in answer.results.values()] == [True, False, False]


async def test_consumers_see_nothing_above_the_high_watermark(rig: Rig) -> None:
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    await rig.nodes[1].append("b", acks=1)
    leader = rig.nodes[1]
    assert base_offsets(await fetch_one(leader, 0)) == [0]
    assert (await fetch_one(leader, 1)).size_bytes == 0
    assert (await fetch_one(leader, 2)).error is None
    assert isinstance((await fetch_one(leader, 3)).error, OffsetOutOfRangeError)


async def test_waits_for_the_first_byte(rig: Rig) -> None:
    node = await filled(rig)
    waiting = asyncio.create_task(fetch_one(node, 10, max_wait_ms=LONG_MS))
    await turns()
    assert not waiting.done()
    await node.append("new")
    data = await asyncio.wait_for(waiting, TIMEOUT_S)
    assert base_offsets(data) == [10]
    assert not node.partition().consumers


async def test_waits_for_min_bytes(rig: Rig) -> None:
    node = await filled(rig)
    waiting = asyncio.create_task(fetch_one(node, 10, max_wait_ms=LONG_MS, min_bytes=150))
    await asyncio.sleep(0)
    await node.append("small")
    await turns()
    assert not waiting.done()
    await node.append("x" * 100)
    assert base_offsets(await asyncio.wait_for(waiting, TIMEOUT_S)) == [10, 11]


async def test_waits_no_longer_than_max_wait(rig: Rig) -> None:
    node = await filled(rig)
    started = time.monotonic()
    data = await fetch_one(node, 10, max_wait_ms=100)
    assert 0.1 <= time.monotonic() - started < TIMEOUT_S
    assert (data.error, data.size_bytes, data.high_watermark) == (None, 0, 10)
    assert not node.partition().consumers


async def test_a_resigning_leader_wakes_its_consumers(rig: Rig) -> None:
    rig.create(1, 2)
    waiting = asyncio.create_task(fetch_one(rig.nodes[1], 0, max_wait_ms=LONG_MS))
    await turns()
    rig.change(leader=2)
    assert isinstance((await asyncio.wait_for(waiting, TIMEOUT_S)).error, NotLeaderError)


async def test_a_deleted_topic_wakes_its_consumers(rig: Rig) -> None:
    node = await filled(rig)
    waiting = asyncio.create_task(fetch_one(node, 10, max_wait_ms=LONG_MS))
    await turns()
    rig.delete("t")
    assert isinstance((await asyncio.wait_for(waiting, TIMEOUT_S)).error, UnknownPartitionError)


async def test_leader_epochs_are_fenced(rig: Rig) -> None:
    node = await filled(rig)
    rig.change(leader=1)
    for epoch, expected in ((0, FencedLeaderEpochError), (2, UnknownLeaderEpochError)):
        position = at(0, current_leader_epoch=epoch)
        answer = await fetch(node, request({T0: position}, max_wait_ms=1000))
        assert isinstance(answer.results[T0].error, expected)


async def test_a_negative_leader_epoch_is_none(rig: Rig) -> None:
    node = await filled(rig)
    answer = await fetch(node, request({T0: at(0, current_leader_epoch=-5)}))
    assert answer.results[T0].error is None


async def test_consumers_that_know_of_replicas_read_from_followers(rig: Rig) -> None:
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    follower = rig.nodes[2]
    await until(lambda: follower.partition().high_watermark == 1)
    assert isinstance((await fetch_one(follower, 0)).error, NotLeaderError)
    data = await fetch_one(follower, 0, may_read_followers=True)
    assert base_offsets(data) == [0]
    waiting = asyncio.create_task(
        fetch_one(follower, 1, may_read_followers=True, max_wait_ms=LONG_MS)
    )
    await turns()
    await rig.nodes[1].append("b")
    assert base_offsets(await asyncio.wait_for(waiting, WAIT_S)) == [1]
    stale = request({T0: at(0, current_leader_epoch=1)}, may_read_followers=True)
    assert isinstance((await fetch(follower, stale)).results[T0].error, UnknownLeaderEpochError)


@pytest.mark.parametrize("epoch", [1, -2, 2**31 - 1])
async def test_consumers_have_no_sessions(rig: Rig, epoch: int) -> None:
    node = await filled(rig)
    answer = await fetch(node, request({T0: at(0)}, session_id=7, session_epoch=epoch))
    assert isinstance(answer.session_error, FetchSessionIdNotFoundError)
    assert answer.results == {}


async def test_a_consumer_behind_a_truncation_is_told_where_it_diverges(rig: Rig) -> None:
    node = await filled(rig)
    rig.change(leader=1)
    await node.append("epoch 1")
    position = at(11, last_fetched_epoch=0)
    answer = await fetch(node, request({T0: position}, max_wait_ms=1000))
    assert answer.results[T0].diverging == (0, 10)


async def test_unknown_topics(rig: Rig) -> None:
    unknown: dict[Key, FetchPosition] = {("nope", 0): at(0), (UUID(int=5).bytes, 0): at(0)}
    answer = await fetch(rig.nodes[1], request(unknown, max_wait_ms=LONG_MS))
    by_name, by_id = answer.results.values()
    assert isinstance(by_name.error, UnknownPartitionError)
    assert isinstance(by_id.error, UnknownTopicIdError)


async def test_an_empty_request_is_answered_at_once(rig: Rig) -> None:
    answer = await asyncio.wait_for(fetch(rig.nodes[1], request({}, max_wait_ms=LONG_MS)), WAIT_S)
    assert answer.results == {}


class Session:
    """A follower's session with node 1, driven by hand."""

    def __init__(self, node: Node, replica: int) -> None:
        self.node = node
        self.replica = replica
        self.id = 0
        self.epoch = 0

    async def poll(
        self,
        positions: dict[Key, FetchPosition],
        *,
        max_wait_ms: int = 0,
        forgotten: tuple[Key, ...] = (),
        max_bytes: int = 10_000_000,
    ) -> FetchAnswer:
        asked = request(
            positions,
            replica_id=self.replica,
            replica_epoch=100 + self.replica,
            session_id=self.id,
            session_epoch=self.epoch,
            max_wait_ms=max_wait_ms,
            forgotten=list(forgotten),
            max_bytes=max_bytes,
        )
        self.epoch += 1
        answer = await fetch(self.node, asked)
        self.id = answer.session_id
        return answer


async def session(rig: Rig, partitions: int = 2) -> tuple[Session, list[Key]]:
    """Replica 9 (not a real node) of a topic led by node 1."""
    rig.create(1, 9, partitions=partitions)
    keys: list[Key] = [rig.nodes[1].partition("t", p).key for p in range(partitions)]
    return Session(rig.nodes[1], 9), keys


async def test_a_session_answers_only_what_changed(rig: Rig) -> None:
    follower, keys = await session(rig)
    first = await follower.poll({key: at(0) for key in keys})
    assert follower.id > 0
    assert list(first.results) == keys, "news: high watermark and log start"
    assert (await follower.poll({})).results == {}
    await rig.nodes[1].append("a", acks=1)
    found = await follower.poll({})
    assert list(found.results) == keys[:1]
    assert (await follower.poll({})).results == {}, "sent once, until the position moves"
    committed = await follower.poll({keys[0]: at(1)})
    assert committed.results[keys[0]].high_watermark == 1
    assert rig.nodes[1].partition().high_watermark == 1


async def test_a_parked_session_is_woken_by_an_append(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({key: at(0) for key in keys})
    waiting = asyncio.create_task(follower.poll({}, max_wait_ms=LONG_MS))
    await turns()
    assert not waiting.done()
    await rig.nodes[1].append("a", acks=1)
    answer = await asyncio.wait_for(waiting, TIMEOUT_S)
    assert base_offsets(answer.results[keys[0]]) == [0]


async def test_a_second_request_ends_the_parked_one(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({keys[0]: at(0)})
    parked = asyncio.create_task(follower.poll({}, max_wait_ms=LONG_MS))
    await turns()
    second = await follower.poll({keys[1]: at(0)})
    assert (await asyncio.wait_for(parked, WAIT_S)).results == {}
    assert list(second.results) == [keys[1]]


async def test_a_request_that_overtakes_does_not_get_the_same_records_twice(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({keys[0]: at(0)})
    await rig.nodes[1].append("a", acks=1)
    assert base_offsets((await follower.poll({})).results[keys[0]]) == [0]
    await rig.nodes[1].append("b", acks=1)
    overtaking = await follower.poll({keys[1]: at(0)})
    assert list(overtaking.results) == [keys[1]], "where keys[0] goes on is on its way"
    assert base_offsets((await follower.poll({keys[0]: at(1)})).results[keys[0]]) == [1]


async def test_a_batch_that_did_not_fit_behind_others_comes_first_in_the_next_answer(
    rig: Rig,
) -> None:
    follower, keys = await session(rig)
    for partition in range(2):
        batch = records("x" * 500)
        await rig.nodes[1].replicas.append_and_wait("t", partition, batch, acks=1)
    first = await follower.poll({keys[0]: at(0), keys[1]: at(0, max_bytes=100)})
    assert [bool(data.size_bytes) for data in first.results.values()] == [True]
    await rig.nodes[1].append("more", acks=1)
    second = await follower.poll({keys[0]: at(1)})
    assert base_offsets(second.results[keys[1]]) == [0]


async def test_a_follower_ahead_of_the_leaders_metadata_is_told_though_others_fill_the_answer(
    rig: Rig,
) -> None:
    follower, keys = await session(rig)
    await rig.nodes[1].append("x" * 500, acks=1)
    ahead = {keys[0]: at(0, current_leader_epoch=0), keys[1]: at(0, current_leader_epoch=1)}
    answer = await follower.poll(ahead, max_bytes=100)
    assert answer.results[keys[0]].size_bytes
    assert isinstance(answer.results[keys[1]].error, UnknownLeaderEpochError)
    rig.change(partition=1, leader=1)
    await follower.poll({keys[1]: at(0, current_leader_epoch=1)})
    assert rig.nodes[1].partition("t", 1).follower_end_offsets() == {9: 0}


async def test_forgotten_partitions_are_silent(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({key: at(0) for key in keys})
    await follower.poll({}, forgotten=(keys[0],))
    await rig.nodes[1].append("a", acks=1)
    assert (await follower.poll({})).results == {}
    assert list((await follower.poll({keys[0]: at(0)})).results) == [keys[0]]


async def test_unknown_sessions_and_lost_requests(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({keys[0]: at(0)})
    follower.epoch += 1
    lost = await follower.poll({})
    assert isinstance(lost.session_error, InvalidFetchSessionEpochError)
    follower.id = 999
    unknown = await follower.poll({})
    assert isinstance(unknown.session_error, FetchSessionIdNotFoundError)


async def test_a_new_session_replaces_the_old_one(rig: Rig) -> None:
    follower, keys = await session(rig)
    await follower.poll({keys[0]: at(0)})
    again = Session(rig.nodes[1], 9)
    await again.poll({keys[0]: at(0)})
    assert isinstance((await follower.poll({})).session_error, FetchSessionIdNotFoundError)
    assert len(rig.nodes[1].partition().sessions) == 1


async def test_a_diverged_follower_acknowledges_nothing(rig: Rig) -> None:
    follower, keys = await session(rig)
    await rig.nodes[1].append("a", acks=1)
    rig.change(leader=1)
    await rig.nodes[1].append("b", acks=1)
    position = at(2, last_fetched_epoch=0, current_leader_epoch=1)
    answer = await follower.poll({keys[0]: position})
    assert answer.results[keys[0]].diverging == (0, 1)
    assert rig.nodes[1].partition().high_watermark == 0
    assert rig.nodes[1].partition().follower_end_offsets() == {9: -1}


async def test_followers_out_of_range_learn_start_and_end(rig: Rig) -> None:
    follower, keys = await session(rig)
    await rig.nodes[1].append("a", acks=1)
    data = (await follower.poll({keys[0]: at(7)})).results[keys[0]]
    assert isinstance(data.error, OffsetOutOfRangeError)
    assert (data.log_start_offset, data.last_stable_offset) == (0, 1)


async def test_strangers_get_no_data(rig: Rig) -> None:
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    stranger = Session(rig.nodes[1], 9)
    key = rig.nodes[1].partition().key
    data = (await stranger.poll({key: at(0)})).results[key]
    assert isinstance(data.error, NotLeaderError)


async def test_consumers_that_read_committed_records_end_at_the_last_stable_offset(
    rig: Rig,
) -> None:
    node = await filled(rig)
    node.partition().log.producers.state.note_transaction(7, starts=4, marker=-1)
    seen = {level: await fetch_one(node, 0, isolation_level=level) for level in (0, 1)}
    assert {level: base_offsets(data) for level, data in seen.items()} == {
        0: [0, 2, 4, 6, 8],
        1: [0, 2],
    }
    assert {(it.high_watermark, it.last_stable_offset) for it in seen.values()} == {(10, 4)}
    beyond = await fetch_one(node, 6, isolation_level=1)
    assert (beyond.error, beyond.size_bytes) == (None, 0)
    node.partition().log.producers.state.note_transaction(7, starts=-1, marker=9)
    after = await fetch_one(node, 0, isolation_level=1)
    assert (after.last_stable_offset, base_offsets(after)) == (10, [0, 2, 4, 6, 8])
