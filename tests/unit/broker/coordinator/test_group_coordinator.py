"""The coordinator over a log in memory: durable commits, failover, expiry, deletion."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from broker.clock import SystemClock
from broker.coordinator.config import GroupConfig, partition_for
from broker.coordinator.coordinator_runtime import replay_chunk
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.group_coordinator_shard import AT_ONCE_MAX, GroupCoordinatorShard
from broker.coordinator.groups.group_state import GroupState
from broker.coordinator.replay import Replay, Replayed
from broker.log.errors import BatchTooLargeError
from broker.metrics_schema import NO_COMMIT
from broker.protocol.records import NewRecord, build_batch, iter_records
from broker.replication.errors import NotEnoughReplicasError, NotLeaderError
from tests.support.patience import WAIT_S
from tests.unit.broker.coordinator.memory import NODE_ID, ManualClock, until
from tests.unit.broker.coordinator.rig import ASSIGNMENT, Rig


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    await rig.start()
    yield rig
    await rig.groups.stop()


async def test_commits_and_members_survive_a_restart(rig: Rig) -> None:
    await rig.settle()
    assert (
        await rig.commit(7, member_id="m1", generation_id=1, metadata="mine")
        is CoordinatorError.NONE
    )
    await rig.restart()
    found = rig.committed()
    assert found is not None
    assert (found.offset, found.leader_epoch, found.metadata) == (7, 3, "mine")
    assert rig.heartbeat() is CoordinatorError.NONE
    description = rig.groups.views.describe("g")
    assert (description.state, description.protocol_name) == (GroupState.STABLE, "range")
    assert description.members[0].assignment == ASSIGNMENT


async def test_the_newest_of_many_commits_wins_after_a_restart(rig: Rig) -> None:
    await asyncio.gather(*(rig.commit(offset) for offset in range(50)))
    await rig.restart()
    found = rig.committed()
    assert found is not None
    assert found.offset == 49


async def test_simple_commits_are_refused_while_there_are_members(rig: Rig) -> None:
    assert await rig.commit(1) is CoordinatorError.NONE
    await rig.settle()
    assert await rig.commit(2) is CoordinatorError.UNKNOWN_MEMBER_ID
    assert (
        await rig.commit(2, member_id="m1", generation_id=9) is CoordinatorError.ILLEGAL_GENERATION
    )
    rig.leave()
    assert await rig.commit(3) is CoordinatorError.NONE


async def test_a_commit_into_an_unknown_generation_is_refused(rig: Rig) -> None:
    refused = await rig.commit(1, member_id="x", generation_id=4)
    assert refused is CoordinatorError.ILLEGAL_GENERATION


async def test_metadata_has_a_limit(rig: Rig) -> None:
    assert await rig.commit(1, metadata="x" * 4097) is CoordinatorError.OFFSET_METADATA_TOO_LARGE
    assert rig.committed() is None
    assert await rig.commit(1, metadata="x" * 4096) is CoordinatorError.NONE


@pytest.mark.parametrize(
    ("failure", "verdict"),
    [
        (NotEnoughReplicasError(), CoordinatorError.COORDINATOR_NOT_AVAILABLE),
        (NotLeaderError(), CoordinatorError.NOT_COORDINATOR),
        (BatchTooLargeError("too large"), CoordinatorError.INVALID_COMMIT_OFFSET_SIZE),
    ],
)
async def test_what_is_not_durable_is_not_shown(
    rig: Rig, failure: Exception, verdict: CoordinatorError
) -> None:
    rig.replicas.error = failure
    assert await rig.commit(1) is verdict
    assert rig.committed() is None


async def test_tombstones_of_long_names_are_written_in_batches_that_a_broker_takes(
    rig: Rig,
) -> None:
    topics = frozenset(f"{number:030000}" for number in range(50))
    for topic in topics:
        assert await rig.commit(1, topic=topic) is CoordinatorError.NONE
    log = rig.replicas.partitions[partition_for("g", 4)].log
    before = len(log.batches)
    await rig.groups.offsets.forget_topics(topics)
    written = [len(data) for _, _, data in log.batches[before:]]
    assert sum(written) > 50 * 30_000
    assert max(written) < 512 * 1024
    assert all(rig.committed(topic) is None for topic in topics)


async def test_resigning_answers_who_waits_and_forgets(rig: Rig) -> None:
    await rig.settle()
    waiting = asyncio.create_task(rig.join("m2"))
    await until(lambda: rig.heartbeat() is CoordinatorError.REBALANCE_IN_PROGRESS)
    rig.metadata.lead(102)
    assert (await waiting).error is CoordinatorError.NOT_COORDINATOR
    assert rig.heartbeat() is CoordinatorError.NOT_COORDINATOR
    assert rig.groups.offsets.fetch("g", None).error is CoordinatorError.NOT_COORDINATOR


async def test_loading_is_told_until_the_log_is_read(rig: Rig) -> None:
    rig.metadata.lead(102)
    rig.replicas.partitions[partition_for("g", 4)].is_leader = False
    rig.metadata.lead(NODE_ID)
    assert (
        rig.groups.offsets.fetch("g", None).error is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
    )
    assert (await rig.join()).error is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
    assert rig.groups.views.list_groups() is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
    rig.replicas.partitions[partition_for("g", 4)].is_leader = True
    await until(lambda: not rig.groups.runtime.is_loading)
    assert rig.groups.offsets.fetch("g", None).error is CoordinatorError.NONE


async def test_only_an_empty_group_is_deleted_and_stays_deleted(rig: Rig) -> None:
    await rig.settle()
    await rig.commit(1, member_id="m1", generation_id=1)
    assert await rig.groups.offsets.delete_group("g") is CoordinatorError.NON_EMPTY_GROUP
    rig.leave()
    assert await rig.groups.offsets.delete_group("g") is CoordinatorError.NONE
    assert await rig.groups.offsets.delete_group("g") is CoordinatorError.GROUP_ID_NOT_FOUND
    await rig.restart()
    assert rig.groups.views.list_groups() == []
    assert rig.committed() is None


@pytest.mark.parametrize("turns", range(5))
async def test_a_commit_that_meets_a_deletion_is_kept_or_gone_for_good(
    rig: Rig, turns: int
) -> None:
    """What is acknowledged is what the log says, and the group can be joined."""

    async def commit_later() -> CoordinatorError:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await rig.commit(2)

    await rig.commit(1)
    _, committed = await asyncio.gather(rig.groups.offsets.delete_group("g"), commit_later())
    assert committed is CoordinatorError.NONE
    found = rig.committed()
    assert (await rig.join()).error is CoordinatorError.NONE
    await rig.restart()
    assert rig.committed() == found
    assert found is not None
    assert found.offset == 2


async def test_offsets_of_subscribed_topics_are_not_deleted(rig: Rig) -> None:
    await rig.commit(1, topic="old")
    await rig.settle()
    await rig.commit(1, member_id="m1", generation_id=1)
    deleted = await rig.groups.offsets.delete_offsets("g", [("t", 0), ("old", 0)])
    assert deleted.partitions == {
        ("t", 0): CoordinatorError.GROUP_SUBSCRIBED_TO_TOPIC,
        ("old", 0): CoordinatorError.NONE,
    }
    await rig.restart()
    assert rig.committed("old") is None
    assert rig.committed("t") is not None


async def test_offsets_expire_after_the_group_is_empty(rig: Rig) -> None:
    await rig.settle()
    await rig.commit(1, member_id="m1", generation_id=1)
    await rig.commit(1, topic="unsubscribed", member_id="m1", generation_id=1)
    retention_ms = rig.config.offsets_retention_ms
    rig.hands.now_ms += retention_ms
    assert await rig.groups.offsets.expire(rig.clock) == 1
    assert rig.committed("unsubscribed") is None
    rig.leave()
    rig.hands.now_ms += retention_ms - 1
    assert await rig.groups.offsets.expire(rig.clock) == 0
    rig.hands.now_ms += 1
    assert await rig.groups.offsets.expire(rig.clock) == 1
    assert rig.groups.views.list_groups() == []
    await rig.restart()
    assert rig.groups.views.list_groups() == []


async def test_a_deleted_topic_takes_its_offsets_along(rig: Rig) -> None:
    await rig.commit(1)
    await rig.commit(1, topic="stays")
    rig.metadata.delete("t")
    await until(lambda: rig.committed() is None)
    assert rig.committed("stays") is not None


async def test_one_timer_expires_silent_members() -> None:
    rig = Rig(clock=SystemClock())
    await rig.start()
    await rig.join(session_timeout_ms=50)
    await until(lambda: rig.groups.views.describe("g").state is GroupState.EMPTY)
    await rig.groups.stop()


async def test_samples_have_what_a_member_owns_without_a_commit(rig: Rig) -> None:
    await rig.settle()
    await rig.commit(7, topic="elsewhere", member_id="m1", generation_id=1)

    def told() -> dict[str, tuple[int, str | None]]:
        (group,) = rig.groups.views.readings()
        return {it.topic: (it.committed_offset, it.member_id) for it in group.commits}

    assert told() == {"elsewhere": (7, None), "t": (NO_COMMIT, "m1")}
    await rig.commit(3, member_id="m1", generation_id=1)
    assert told() == {"elsewhere": (7, None), "t": (3, "m1")}


async def test_list_groups_filters_by_state_and_type(rig: Rig) -> None:
    await rig.settle()
    assert _listed(rig, ["stable"], ["Classic"]) == ["g"]
    assert _listed(rig, ["Empty"], []) == []
    assert _listed(rig, [], ["consumer"]) == []


def _listed(rig: Rig, states: list[str], types: list[str]) -> list[str]:
    listings = rig.groups.views.list_groups(states, types)
    assert not isinstance(listings, CoordinatorError)
    return [listing.group_id for listing in listings]


async def test_readings_name_the_owner_of_a_partition(rig: Rig) -> None:
    await rig.settle()
    await rig.commit(5, member_id="m1", generation_id=1)
    (reading,) = rig.groups.views.readings()
    assert (reading.group_id, reading.state, reading.members) == ("g", GroupState.STABLE, 1)
    (commit,) = reading.commits
    assert (commit.topic, commit.partition, commit.committed_offset) == ("t", 0, 5)
    assert commit.member_id == "m1"


async def test_the_log_holds_one_batch_per_commit_with_kafkas_keys(rig: Rig) -> None:
    await rig.commit(5)
    log = rig.replicas.partitions[partition_for("g", 4)].log
    ((_, _, batch),) = log.batches
    (record,) = iter_records(batch)
    assert record.key == bytes.fromhex("0001 0001 67 0001 74 00000000")


def commit(group: bytes, offset: int) -> bytes:
    """A batch of one commit, compressed."""
    key = b"\x00\x01" + len(group).to_bytes(2) + group + b"\x00\x01t" + bytes(4)
    value = b"\x00\x03" + offset.to_bytes(8) + bytes(4) + bytes(2) + bytes(8)
    return build_batch([NewRecord(key=key, value=value)], base_offset=offset, codec=1)


async def no_groups(_shard: GroupCoordinatorShard) -> None:
    """Nobody follows these groups."""


async def test_others_are_served_while_many_groups_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served, finish = threading.Event(), Replay.finish

    def slow(replay: Replay) -> Replayed:
        assert served.wait(WAIT_S), "the loop waits for the groups"
        return finish(replay)

    monkeypatch.setattr(Replay, "finish", slow)
    shard = GroupCoordinatorShard(
        0, ManualClock(), GroupConfig(), loaded=no_groups, unloaded=lambda _: None
    )
    for offset in range(AT_ONCE_MAX + 1):
        await replay_chunk(shard, commit(b"%05d" % offset, offset), offset)
    loading = asyncio.create_task(shard.on_loaded())
    await asyncio.sleep(0)
    served.set()
    await loading
    assert shard.is_loaded
    assert len(shard.entries) == AT_ONCE_MAX + 1


async def test_a_damaged_batch_of_the_offsets_topic_does_not_hide_the_others() -> None:
    spoilt = bytearray(commit(b"b", 1))
    spoilt[70:80] = bytes(10)
    shard = GroupCoordinatorShard(
        0, ManualClock(), GroupConfig(), loaded=no_groups, unloaded=lambda _: None
    )
    next_offset = await replay_chunk(shard, commit(b"a", 0) + bytes(spoilt) + commit(b"c", 2), 0)
    assert next_offset == 3
    await shard.on_loaded()
    assert sorted(shard.entries) == ["a", "c"]
