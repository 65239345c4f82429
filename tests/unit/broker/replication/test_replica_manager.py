"""Replicas of three nodes together: replication, ISR, failover, truncation, reassignment."""

import asyncio
import os
import time
from typing import Any

import pytest

from broker.clock import SystemClock
from broker.log.errors import OffsetOutOfRangeError, OutOfOrderSequenceError
from broker.metadata.image import broker_resource, topic_resource
from broker.replication import replica_creation
from broker.replication.errors import (
    AppendTimedOutError,
    NotEnoughReplicasError,
    NotLeaderError,
    UnknownPartitionError,
)
from tests.support.patience import WAIT_S
from tests.support.settle import TIMEOUT_S, turns, until
from tests.unit.broker.replication.rig import Configs, Rig, records, values


def agree(rig: Rig, *expected: str) -> bool:
    """Whether every replica of t-0 has exactly these records."""
    found = [node.replicas.partition("t", 0) for node in rig.nodes.values()]
    return all(p is None or values(p) == list(expected) for p in found)


def held(rig: Rig, node_id: int) -> int:
    """How many replicas a node has."""
    return len(list(rig.nodes[node_id].replicas.partitions()))


async def test_acks_all_means_every_replica_has_it(rig: Rig) -> None:
    rig.create(1, 2, 3)
    result = await rig.nodes[1].append("a", "b")
    assert result.error is None
    assert (result.base_offset, result.last_offset) == (0, 1)
    assert agree(rig, "a", "b")
    leader = rig.nodes[1].partition()
    assert leader.high_watermark == 2
    assert leader.follower_end_offsets() == {2: 2, 3: 2}
    assert leader.traffic.bytes_in == leader.log.size_bytes


async def test_many_partitions_and_batches(rig: Rig) -> None:
    rig.create(1, 2, 3, partitions=20)
    await until(lambda: held(rig, 1) == held(rig, 2) == held(rig, 3) == 20)
    appends = [
        rig.nodes[1].replicas.append_and_wait("t", p, records(f"{n}"), acks=-1, timeout_ms=5000)
        for n in range(10)
        for p in range(20)
    ]
    results = await asyncio.gather(*appends)
    assert all(r.error is None for r in results)
    for node in rig.nodes.values():
        for p in range(20):
            assert values(node.partition("t", p)) == [str(n) for n in range(10)]


async def test_followers_learn_the_high_watermark(rig: Rig) -> None:
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    await until(lambda: rig.nodes[2].partition().high_watermark == 1)


async def test_only_the_leader_appends(rig: Rig) -> None:
    rig.create(1, 2)
    assert isinstance((await rig.nodes[2].append("x")).error, NotLeaderError)
    assert isinstance((await rig.nodes[3].append("x")).error, UnknownPartitionError)


async def test_a_cut_follower_leaves_the_isr_and_comes_back(tmp_path: Any) -> None:
    rig = Rig(tmp_path, replica_lag_time_max_ms="200")
    rig.create(1, 2, 3)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 3})}
    assert (await rig.nodes[1].append("b")).error is None
    assert rig.image.topics["t"].partitions[0].isr == (1, 2)
    rig.cut = set()
    await until(lambda: rig.image.topics["t"].partitions[0].isr == (1, 2, 3))
    assert agree(rig, "a", "b")
    await rig.close()


async def test_a_fenced_follower_may_not_join(tmp_path: Any) -> None:
    rig = Rig(tmp_path, replica_lag_time_max_ms="100")
    rig.create(1, 2)
    rig.cut = {frozenset({1, 2})}
    rig.set_broker(2, fenced=True)
    assert (await rig.nodes[1].append("a")).error is None
    rig.cut = set()
    await until(lambda: agree(rig, "a"))
    assert (await rig.nodes[1].append("b", acks=1)).error is None
    await until(lambda: rig.nodes[1].partition().follower_end_offsets() == {2: 2})
    await turns()
    assert rig.nodes[1].partition().isr == (1,), "though it has caught up"
    rig.set_broker(2, fenced=False)
    await until(lambda: rig.nodes[1].partition().isr == (1, 2))
    await rig.close()


async def test_min_insync_replicas(tmp_path: Any) -> None:
    rig = Rig(tmp_path, replica_lag_time_max_ms="150")
    rig.create(1, 2, min_insync_replicas="2")
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    waiting = asyncio.create_task(rig.nodes[1].append("b", timeout_ms=1500))
    await until(lambda: rig.nodes[1].partition().isr == (1,))
    assert isinstance((await rig.nodes[1].append("c")).error, NotEnoughReplicasError)
    assert (await rig.nodes[1].append("d", acks=1)).error is None
    assert rig.nodes[1].partition().high_watermark == 1, "strict: no progress below min ISR"
    assert isinstance((await waiting).error, AppendTimedOutError)
    rig.cut = set()
    await until(lambda: rig.nodes[1].partition().high_watermark == 3)
    await rig.close()


async def test_more_producers_than_a_partition_can_wait_for_are_refused(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.replication.leader.appender.PENDING_APPENDS_MAX", 2)
    rig = Rig(tmp_path)
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    partition = rig.nodes[1].partition()
    waiting = [
        asyncio.create_task(rig.nodes[1].append(value, timeout_ms=2**31 - 1)) for value in "bc"
    ]
    await until(lambda: len(partition.pending_appends) == 2)
    assert isinstance((await rig.nodes[1].append("d")).error, NotEnoughReplicasError)
    assert partition.log.log_end_offset == 3, "nothing is written of what is refused"
    rig.cut = set()
    assert [result.error for result in await asyncio.gather(*waiting)] == [None, None]
    assert (await rig.nodes[1].append("d")).error is None
    await rig.close()


async def test_failover_keeps_what_was_acknowledged_and_cuts_the_rest(rig: Rig) -> None:
    rig.create(1, 2, 3)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2}), frozenset({1, 3})}
    lost = asyncio.create_task(rig.nodes[1].append("lost", timeout_ms=3000))
    await until(lambda: rig.nodes[1].partition().log.log_end_offset == 2)
    rig.change(leader=2, isr=(2, 3))
    assert isinstance((await lost).error, NotLeaderError)
    assert (await rig.nodes[2].append("b")).error is None
    assert values(rig.nodes[1].partition()) == ["a", "lost"]
    rig.cut = set()
    await until(lambda: agree(rig, "a", "b"), story=lambda: str(values(rig.nodes[1].partition())))
    await until(lambda: set(rig.nodes[2].partition().isr) == {1, 2, 3})
    rig.change(leader=1)
    assert (await rig.nodes[1].append("c")).error is None
    assert agree(rig, "a", "b", "c")


async def test_two_leaders_with_nothing_in_common_converge(rig: Rig) -> None:
    """KIP-279: epochs 1 and 2 each wrote alone; the follower must cut back over several epochs."""
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    await rig.nodes[1].append("x1", "x2", "x3", acks=1)
    rig.change(leader=2, isr=(2,))
    await rig.nodes[2].append("y1", acks=1)
    rig.change(leader=1, isr=(1,))
    await rig.nodes[1].append("x4", acks=1)
    rig.change(leader=2, isr=(2,))
    await rig.nodes[2].append("y2", acks=1)
    rig.cut = set()
    await until(lambda: agree(rig, "a", "y1", "y2"))


async def test_an_epoch_without_records_does_not_confuse(rig: Rig) -> None:
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    rig.change(leader=2)
    rig.change(leader=1)
    rig.change(leader=2)
    rig.change(leader=1)
    assert (await rig.nodes[1].append("b")).error is None
    assert agree(rig, "a", "b")


async def test_restart_after_a_kill(rig: Rig) -> None:
    rig.create(1, 2, 3)
    await rig.nodes[1].append("a")
    await rig.stop_node(1, clean=False)
    rig.change(leader=2, isr=(2, 3))
    assert (await rig.nodes[2].append("b")).error is None
    rig.start_node(1)
    await until(lambda: agree(rig, "a", "b"))
    await until(lambda: set(rig.nodes[2].partition().isr) == {1, 2, 3})


async def test_reassignment_moves_the_data(rig: Rig) -> None:
    rig.create(1, 2)
    for n in range(20):
        await rig.nodes[1].append(f"{n}")
    log_directory = rig.nodes[2].partition().log.directory
    rig.change(replicas=(1, 3, 2), adding_replicas=(3,), removing_replicas=(2,))
    await until(lambda: 3 in rig.nodes[1].partition().isr)
    rig.change(replicas=(1, 3), isr=(1, 3), adding_replicas=(), removing_replicas=())
    assert rig.nodes[2].replicas.partition("t", 0) is None
    assert rig.nodes[2].logs.log("t", 0) is None
    assert values(rig.nodes[3].partition()) == [str(n) for n in range(20)]
    assert (await rig.nodes[1].append("after")).error is None
    assert log_directory


async def test_a_new_replica_starts_at_the_leaders_log_start(rig: Rig) -> None:
    rig.create(1)
    for n in range(5):
        await rig.nodes[1].append(f"{n}")
    assert await rig.nodes[1].replicas.delete_records("t", 0, 3, timeout_ms=1000) == 3
    rig.change(replicas=(1, 2), adding_replicas=(2,))
    await until(lambda: 2 in rig.nodes[1].partition().isr)
    assert values(rig.nodes[2].partition()) == ["3", "4"]
    assert rig.nodes[2].partition().log.log_start_offset == 3


async def test_of_deletions_that_wait_for_weeks_a_bounded_number_is_kept(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.replication.leader.record_deletion.WAITERS_MAX", 3)
    rig.create(1, 2)
    await rig.nodes[1].append("a")
    rig.cut = {frozenset({1, 2})}
    replicas = rig.nodes[1].replicas
    waiting = [
        asyncio.create_task(replicas.delete_records("t", 0, 1, timeout_ms=2**31)) for _ in range(5)
    ]
    await until(lambda: sum(task.done() for task in waiting) == 2)
    rig.cut = set()
    assert await asyncio.wait_for(asyncio.gather(*waiting[:3]), TIMEOUT_S) == [1, 1, 1]
    assert not rig.nodes[1].partition().low_watermark_waiters


async def test_delete_records_waits_for_the_followers(rig: Rig) -> None:
    rig.create(1, 2, 3)
    await rig.nodes[1].append("a", "b", "c")
    replicas = rig.nodes[1].replicas
    assert await replicas.delete_records("t", 0, -1, timeout_ms=3000) == 3
    assert all(n.partition().log.log_start_offset == 3 for n in rig.nodes.values())
    beyond = await replicas.delete_records("t", 0, 9, timeout_ms=100)
    assert isinstance(beyond, OffsetOutOfRangeError)
    elsewhere = await rig.nodes[2].replicas.delete_records("t", 0, 1, timeout_ms=100)
    assert isinstance(elsewhere, NotLeaderError)


async def test_a_topic_made_again_begins_empty(rig: Rig) -> None:
    first = rig.create(1, 2)
    await rig.nodes[1].append("old")
    rig.delete("t")
    assert rig.nodes[1].replicas.partition("t", 0) is None
    second = rig.create(1, 2)
    assert first.topic_id != second.topic_id
    await rig.nodes[1].append("new")
    assert agree(rig, "new")


async def test_a_topic_made_again_while_a_node_was_down(rig: Rig) -> None:
    rig.create(1, 2)
    rig.create(1, 2, topic="gone")
    await rig.nodes[1].append("old")
    await rig.stop_node(2)
    rig.delete("t")
    rig.delete("gone")
    rig.create(1, 2)
    await rig.nodes[1].append("new", acks=1)
    rig.start_node(2)
    await until(lambda: agree(rig, "new"))
    assert rig.nodes[2].logs.log("gone", 0) is None, "a stray is deleted"


async def test_many_new_replicas_arrive_in_turns_as_the_image_then_says(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_creation, "TOGETHER_MAX", 2)
    rig.create(1, 2, partitions=40)
    rig.create(1, 2, topic="brief", partitions=2)
    assert held(rig, 1) == 0, "others have their turn first"
    for number in range(20, 40):
        rig.change(partition=number, replicas=(2, 3), isr=(2, 3), leader=2)
    await until(lambda: held(rig, 1) >= 4)
    rig.delete("brief")
    await until(lambda: (held(rig, 1), held(rig, 2), held(rig, 3)) == (20, 40, 20))
    await rig.nodes[1].append("a")
    assert agree(rig, "a")
    names = {
        name for name in os.listdir(rig.nodes[1].logs.directory) if name.startswith(("t-", "b"))
    }
    assert {name for name in names if not name.endswith("-delete")} == {f"t-{n}" for n in range(20)}


def block_until_there(path: str) -> None:
    """The loop has no turn meanwhile: nothing that threads have made is taken in."""
    deadline = time.monotonic() + WAIT_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_a_topic_made_again_while_its_files_were_made_gets_its_own(rig: Rig) -> None:
    rig.create(1, 2, partitions=20)
    await asyncio.sleep(0)  # threads begin
    block_until_there(f"{rig.nodes[1].logs.directory}/t-19/00000000000000000000.log")
    rig.delete("t")
    rig.create(1, 2, partitions=20)
    await until(lambda: held(rig, 1) == held(rig, 2) == 20)
    await rig.nodes[1].append("a")
    assert agree(rig, "a")


async def test_idle_partitions_cost_nothing_on_the_wire(rig: Rig) -> None:
    rig.create(1, 2, partitions=300)
    await until(lambda: held(rig, 1) == held(rig, 2) == 300)
    await rig.nodes[1].append("a")
    await three_polls(rig)
    took_s = await three_polls(rig)
    assert took_s > 0.9, "one long poll of 500 ms at a time: two end before the third begins"
    assert rig.request_bytes < 400
    assert rig.response_bytes < 400


async def three_polls(rig: Rig) -> float:
    """Seconds until a third request is sent from now on."""
    began_s = time.monotonic()
    rig.requests = rig.request_bytes = rig.response_bytes = 0
    await until(lambda: rig.requests >= 3)
    return time.monotonic() - began_s


async def test_an_idempotent_retry_is_answered_with_the_first_offsets(rig: Rig) -> None:
    rig.create(1, 2)
    batch = records("a", "b", producer_id=9, producer_epoch=0, base_sequence=0)
    replicas = rig.nodes[1].replicas
    first = await replicas.append_and_wait("t", 0, batch)
    again = await replicas.append_and_wait("t", 0, batch)
    assert (again.error, again.base_offset) == (None, first.base_offset)
    gap = records("c", producer_id=9, producer_epoch=0, base_sequence=5)
    refused = await replicas.append_and_wait("t", 0, gap)
    assert isinstance(refused.error, OutOfOrderSequenceError)
    rig.change(leader=2)
    moved = await rig.nodes[2].replicas.append_and_wait("t", 0, batch)
    assert (moved.error, moved.base_offset) == (None, first.base_offset)
    assert agree(rig, "a", "b")


async def test_a_throttles_rate_is_taken_without_a_look_at_every_topic(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look takes a tenth of a millisecond; thousands of them would hold up producers."""
    rig.create(1, 2, partitions=16)
    asked: list[str] = []
    inherited: dict[str, str] = {}

    def topic(_: Configs, name: str) -> dict[str, str]:
        asked.append(name)
        return inherited

    monkeypatch.setattr(Configs, "topic", topic)
    rig.configure(broker_resource(1), leader_replication_throttled_rate="1000")
    assert asked == [""]  # what topics inherit, which is as before
    inherited = {"min.insync.replicas": "2"}
    rig.configure(broker_resource(1), min_insync_replicas="2")
    assert asked == ["", "", "t"]
    assert rig.nodes[1].partition().state.min_insync_replicas == 2
    assert rig.nodes[2].partition().state.min_insync_replicas == 1


async def test_a_throttle_slows_a_move_and_lifting_it_ends_it(rig: Rig) -> None:
    rig.create(1)
    for n in range(40):
        await rig.nodes[1].append(f"{n}" * 5000)
    size = rig.nodes[1].partition().log.size_bytes
    rig.configure(broker_resource(2), follower_replication_throttled_rate="1000")
    rig.configure(topic_resource("t"), follower_replication_throttled_replicas="0:2")
    rig.change(replicas=(1, 2), adding_replicas=(2,))
    await until(lambda: rig.nodes[2].partition().log.log_end_offset > 0)
    rig.configure(broker_resource(1), leader_replication_throttled_rate="1000")
    rig.configure(
        topic_resource("t"),
        follower_replication_throttled_replicas="*",
        leader_replication_throttled_replicas="*",
    )
    await rig.nodes[1].append("one more", acks=1)
    await three_polls(rig)
    assert 2 not in rig.nodes[1].partition().isr
    rig.configure(broker_resource(1))
    rig.configure(broker_resource(2))
    rig.configure(topic_resource("t"))
    await until(lambda: 2 in rig.nodes[1].partition().isr)
    assert rig.nodes[2].partition().log.size_bytes >= size


async def test_producers_do_not_wait_for_the_throttle_of_a_replica_that_is_about_to_join(
    tmp_path: Any,
) -> None:
    rig = Rig(tmp_path, nodes=2, replica_lag_time_max_ms="600000")
    rig.create(1, partitions=2)
    for _ in range(3):
        await rig.nodes[1].append("large" * 1000)
    for node_id, role in ((1, "leader"), (2, "follower")):
        rig.configure(broker_resource(node_id), **{f"{role}_replication_throttled_rate": "1"})
    rig.configure(
        topic_resource("t"),
        follower_replication_throttled_replicas="*",
        leader_replication_throttled_replicas="*",
    )
    rig.change(replicas=(1, 2), adding_replicas=(2,))
    copy = rig.nodes[2].partition().log
    await until(lambda: copy.log_end_offset == 1)  # the next bytes may flow in hours
    rig.isr_answer = 107  # INELIGIBLE_REPLICA
    rig.change(partition=1, replicas=(1, 2), adding_replicas=(2,))
    leading = rig.nodes[1].partition("t", 1)
    await until(lambda: leading.state.waits_for(2, SystemClock().monotonic_ms()))
    for _ in range(3):
        new = records("new")
        done = await rig.nodes[1].replicas.append_and_wait("t", 1, new, acks=-1, timeout_ms=60_000)
        assert done.error is None
    assert leading.isr == (1,)
    assert copy.log_end_offset == 1
    await rig.close()


async def test_an_isr_change_that_the_controller_refuses_is_asked_again(tmp_path: Any) -> None:
    rig = Rig(tmp_path, replica_lag_time_max_ms="100")
    rig.create(1, 2)
    rig.isr_answer = 107
    rig.cut = {frozenset({1, 2})}
    waiting = asyncio.create_task(rig.nodes[1].append("a"))
    await until(lambda: rig.isr_requests >= 2)
    assert not waiting.done()
    rig.isr_answer = 0
    assert (await waiting).error is None
    rig.cut = set()
    await until(lambda: rig.nodes[1].partition().isr == (1, 2))
    await rig.close()
