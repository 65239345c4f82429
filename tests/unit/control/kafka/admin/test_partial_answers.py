"""What an admin makes of refusals, of errors that pass, and of answers with a hole in them.

Codes and their meaning are those of Kafka's protocol guide.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.admin.bus_topics import ensure_topic
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis, retry
from control.kafka.errors import (
    KafkaPortError,
    NoSuchNameError,
    NoTimesError,
    RefusedError,
    UnreachableError,
)
from control.kafka.ports import ConfigResource, ConfigScope, ElectionType, NewTopic, OffsetSpec
from control.model.ids import TopicPartition
from tests.unit.control.kafka.scripted_cluster import (
    Asked,
    Frame,
    Partitions,
    Reply,
    ScriptedCluster,
    in_turn,
)

A: Final = TopicPartition("orders", 0)
B: Final = TopicPartition("orders", 1)
DEAD_GROUP: Final = {
    "group_id": "g", "error_code": 0, "group_state": "Dead", "protocol_type": "",
    "protocol_data": "", "members": (),
}  # fmt: skip
MODERN: Final = (
    apis.CONSUMER_GROUP_DESCRIBE, apis.SHARE_GROUP_DESCRIBE, apis.STREAMS_GROUP_DESCRIBE,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACKOFF_S", 0.0)


@pytest.fixture
def cluster() -> Iterator[ScriptedCluster]:
    """orders-0 is led by broker 1, orders-1 by broker 2."""
    partitions: Partitions = {0: (1, 2), 1: (2, 1)}
    with ScriptedCluster(ids=(1, 2, 3), topics={"orders": partitions}) as found:
        yield found


def admin_of(cluster: ScriptedCluster) -> KafkaAdmin:
    return KafkaAdmin.to(cluster.settings())


def offsets_of(asked: Asked, **fields: Any) -> dict[str, Any]:
    """A partition's own number tells who is who: offset 100 + partition, where none is given."""
    is_deleting = asked.api == apis.DELETE_RECORDS.key
    usual = ("low_watermark",) if is_deleting else ("offset", "timestamp")
    return {
        "topics": tuple(
            {
                "name": topic.name,
                "partitions": tuple(
                    {
                        "partition_index": it.partition_index,
                        "error_code": 0,
                        **{
                            name: -1 if name == "timestamp" else 100 + it.partition_index
                            for name in usual
                        },
                        **fields,
                    }
                    for it in topic.partitions
                ),
            }
            for topic in asked.message.topics
        )
    }


def commits(**partition: Any) -> dict[str, Any]:
    """Of group g: 7 in orders-0, and this in orders-1."""
    usual = {"error_code": 0, "committed_offset": 7, "metadata": "", "committed_leader_epoch": -1}
    partitions = ({**usual, "partition_index": 0}, {**usual, "partition_index": 1, **partition})
    topics = ({"name": "orders", "partitions": partitions},)
    return {"groups": ({"group_id": "g", "error_code": 0, "topics": topics},)}


# Offsets of partitions


async def test_each_leader_is_asked_for_its_own_partitions(cluster: ScriptedCluster) -> None:
    cluster.on(apis.LIST_OFFSETS, offsets_of)
    async with admin_of(cluster) as admin:
        found = await admin.offsets.list_offsets([B, A, A])
    assert {key: at.offset for key, at in found.items()} == {A: 100, B: 101}
    asked = {
        it.broker: [(topic.name, part.partition_index) for topic in it.message.topics
                    for part in topic.partitions]
        for it in cluster.requests(apis.LIST_OFFSETS)
    }  # fmt: skip
    assert asked == {1: [("orders", 0)], 2: [("orders", 1)]}


@pytest.mark.parametrize(
    "code", [3, 5, 6, 7, 9, 56, 74, 75, 78], ids=lambda code: ErrorCode(code).name
)
async def test_a_leader_that_moves_is_looked_up_again(cluster: ScriptedCluster, code: int) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION alone is final here: the name may be wrong."""

    def moving(asked: Asked) -> Reply:
        if asked.broker == 1:
            cluster.topics["orders"] = {0: (3,), 1: (2, 1)}
            return offsets_of(asked, error_code=code, offset=-1)
        return offsets_of(asked)

    cluster.on(apis.LIST_OFFSETS, moving)
    async with admin_of(cluster) as admin:
        if code == 3:
            with pytest.raises(RefusedError, match="orders-0"):
                await admin.offsets.list_offsets([A, B])
            return
        found = await admin.offsets.list_offsets([A, B])
    assert {key: at.offset for key, at in found.items()} == {A: 100, B: 101}


async def test_a_partition_that_the_leader_leaves_out_is_missed_and_not_made_up(
    cluster: ScriptedCluster,
) -> None:
    cluster.topics["orders"] = {0: (1,), 1: (1,)}

    def holed(asked: Asked) -> Reply:
        (topic,) = offsets_of(asked)["topics"]
        return {"topics": ({**topic, "partitions": topic["partitions"][:1]},)}

    cluster.on(apis.LIST_OFFSETS, holed)
    cluster.on(apis.DELETE_RECORDS, {"topics": ()})
    async with admin_of(cluster) as admin:
        with pytest.raises(KafkaPortError, match="orders-1"):
            await admin.offsets.list_offsets([A, B])
        with pytest.raises(KafkaPortError, match="orders-0"):
            await admin.offsets.delete_records({A: 5})


async def test_a_partition_without_a_leader_is_named_and_one_with_a_leader_is_read(
    cluster: ScriptedCluster,
) -> None:
    cluster.topics["orders"][1] = ()  # type: ignore[index]
    cluster.on(apis.LIST_OFFSETS, offsets_of)
    async with admin_of(cluster) as admin:
        with pytest.raises(RefusedError) as told:
            await admin.offsets.list_offsets([A, B])
        assert told.value.code is ErrorCode.leader_not_available
        assert str(B) in told.value.what
        assert (await admin.offsets.list_offsets([A]))[A].offset == 100
        for unknown in (TopicPartition("orders", 9), TopicPartition("nowhere", 0)):
            with pytest.raises(RefusedError) as error:
                await admin.offsets.list_offsets([A, unknown])
            assert error.value.code is ErrorCode.unknown_topic_or_partition
        assert await admin.offsets.list_offsets([]) == {}


@pytest.mark.parametrize("stamp", [0, 1, 253_402_300_800_000, 1_790_000_000_000_000, 2**63 - 1, -1])
async def test_a_time_of_a_record_is_any_number_that_a_producer_wrote(
    cluster: ScriptedCluster, stamp: int
) -> None:
    """Producers that count in microseconds write the year 58,693; it says nothing of the offset."""

    def told(asked: Asked) -> Reply:
        frame = asked.encoded(**offsets_of(asked, timestamp=1_111_111))
        was, now = struct.pack(">q", 1_111_111), struct.pack(">q", stamp)
        assert frame.count(was) == 1
        return Frame(frame.replace(was, now))

    cluster.on(apis.LIST_OFFSETS, told)
    async with admin_of(cluster) as admin:
        found = await admin.offsets.list_offsets([A], 5)
    assert (found[A].offset, found[A].timestamp_ms) == (100, stamp)


async def test_times_are_asked_of_records_that_have_none(cluster: ScriptedCluster) -> None:
    cluster.on(apis.LIST_OFFSETS, lambda it: offsets_of(it, error_code=43, offset=-1))
    async with admin_of(cluster) as admin:
        with pytest.raises(NoTimesError, match="orders-0"):
            await admin.offsets.list_offsets([A], 1_700_000_000_000)


async def test_the_last_stable_offset_is_asked_for_as_such(cluster: ScriptedCluster) -> None:
    cluster.on(apis.LIST_OFFSETS, offsets_of)
    async with admin_of(cluster) as admin:
        await admin.offsets.list_offsets([A], OffsetSpec.LATEST, is_committed=True)
        await admin.offsets.list_offsets([A], OffsetSpec.EARLIEST)
    told = [
        (it.message.isolation_level, it.message.topics[0].partitions[0].timestamp)
        for it in cluster.requests(apis.LIST_OFFSETS)
    ]
    assert [(int(level), stamp) for level, stamp in told] == [(1, -1), (0, -2)]


async def test_records_are_deleted_up_to_there_or_not_at_all(cluster: ScriptedCluster) -> None:
    cluster.on(apis.DELETE_RECORDS, offsets_of)
    async with admin_of(cluster) as admin:
        assert await admin.offsets.delete_records({A: 5, B: 6}) == {A: 100, B: 101}
        sent = [
            (it.broker, it.message.topics[0].partitions[0].offset)
            for it in cluster.requests(apis.DELETE_RECORDS)
        ]
        assert sent == [(1, 5), (2, 6)]
        cluster.on(apis.DELETE_RECORDS, lambda it: offsets_of(it, error_code=1, low_watermark=-1))
        with pytest.raises(RefusedError) as told:
            await admin.offsets.delete_records({A: 1 << 40})
    assert told.value.code is ErrorCode.offset_out_of_range


# Groups


async def test_a_commit_that_cannot_be_told_is_not_taken_for_none(
    cluster: ScriptedCluster,
) -> None:
    """-1 with UNSTABLE_OFFSET_COMMIT (88) or an error is unknown; -1 alone is no commit."""
    async with admin_of(cluster) as admin:
        cluster.on(apis.OFFSET_FETCH, commits(committed_offset=-1))
        assert await admin.groups.committed_offsets("g") == {A: 7}
        cluster.on(apis.OFFSET_FETCH, commits(committed_offset=0))
        assert await admin.groups.committed_offsets("g") == {A: 7, B: 0}
        for code in (29, 88):
            cluster.on(apis.OFFSET_FETCH, commits(committed_offset=-1, error_code=code))
            with pytest.raises(RefusedError) as told:
                await admin.groups.committed_offsets("g")
            assert told.value.code is ErrorCode(code)
            assert str(B) in told.value.what


async def test_a_group_is_asked_about_where_its_coordinator_is_now(
    cluster: ScriptedCluster,
) -> None:
    cluster.coordinators["g"] = 2

    def moved(asked: Asked) -> Reply:
        if asked.broker == 2:
            cluster.coordinators["g"] = 3
            return {"groups": ({"group_id": "g", "error_code": 16, "topics": ()},)}
        return commits()

    cluster.on(apis.OFFSET_FETCH, moved)
    async with admin_of(cluster) as admin:
        assert await admin.groups.committed_offsets("g") == {A: 7, B: 7}
    assert [it.broker for it in cluster.requests(apis.OFFSET_FETCH)] == [2, 3]


async def test_a_coordinator_that_loads_is_waited_for_and_one_that_stays_away_is_told(
    cluster: ScriptedCluster,
) -> None:
    loading = {"groups": ({"group_id": "g", "error_code": 14, "topics": ()},)}
    cluster.on(apis.OFFSET_FETCH, in_turn(loading, loading, commits()))
    async with admin_of(cluster) as admin:
        assert await admin.groups.committed_offsets("g") == {A: 7, B: 7}
        nobody = {"key": "g", "node_id": -1, "host": "", "port": -1, "error_code": 15,
                  "error_message": None}  # fmt: skip
        cluster.on(apis.FIND_COORDINATOR, {"coordinators": (nobody,)})
        with pytest.raises(RefusedError) as told:
            await admin.groups.committed_offsets("g")
    assert told.value.code is ErrorCode.coordinator_not_available


async def test_one_broker_that_does_not_list_its_groups_is_not_taken_for_one_without(
    cluster: ScriptedCluster,
) -> None:
    def listed(asked: Asked) -> Reply:
        group = {"group_id": f"g{asked.broker}", "protocol_type": "consumer", "group_state": ""}
        return {"error_code": 0, "groups": (group,)}

    cluster.on(apis.LIST_GROUPS, listed)
    async with admin_of(cluster) as admin:
        assert [it.group_id for it in await admin.groups.list_groups()] == ["g1", "g2", "g3"]
        cluster.on(
            apis.LIST_GROUPS,
            lambda it: listed(it) if it.broker != 2 else {"error_code": 29, "groups": ()},
        )
        with pytest.raises(RefusedError, match="2"):
            await admin.groups.list_groups()
        cluster.on(apis.LIST_GROUPS, listed)
        cluster.stop(3)
        with pytest.raises(UnreachableError, match="broker 3"):
            await admin.groups.list_groups()


async def test_a_group_of_any_type_is_found_and_an_unknown_one_is_refused(
    cluster: ScriptedCluster,
) -> None:
    unknown = {"groups": ({"group_id": "g", "error_code": 69, "members": ()},)}
    for api in MODERN:
        cluster.on(api, unknown)
    cluster.on(apis.DESCRIBE_GROUPS, {"groups": (DEAD_GROUP,)})
    cluster.on(apis.LIST_GROUPS, {"error_code": 31, "groups": ()})
    async with admin_of(cluster) as admin:
        with pytest.raises(RefusedError) as told:
            await admin.groups.describe_group("g")
        assert type(told.value) is RefusedError, "who could not list them names none"
        assert told.value.code is ErrorCode.group_id_not_found
        cluster.on(apis.LIST_GROUPS, {"error_code": 0, "groups": ({"group_id": "gg"},)})
        with pytest.raises(NoSuchNameError, match="did you mean gg"):
            await admin.groups.describe_group("g")
        empty = {**DEAD_GROUP, "group_state": "Empty", "protocol_type": "consumer"}
        cluster.on(apis.DESCRIBE_GROUPS, {"groups": (empty,)})
        assert (await admin.groups.describe_group("g")).state == "Empty"
        denied = {"groups": ({"group_id": "g", "error_code": 30, "members": ()},)}
        cluster.on(apis.CONSUMER_GROUP_DESCRIBE, denied)
        with pytest.raises(RefusedError) as told:
            await admin.groups.describe_group("g")
    assert told.value.code is ErrorCode.group_authorization_failed


async def test_an_answer_without_what_was_asked_for_is_an_error_of_ours(
    cluster: ScriptedCluster,
) -> None:
    topic = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
    for api in (*MODERN, apis.DESCRIBE_GROUPS, apis.OFFSET_FETCH):
        cluster.on(api, {"groups": ()})
    cluster.on(apis.DESCRIBE_SHARE_GROUP_OFFSETS, {"groups": ()})
    cluster.on(apis.DESCRIBE_CONFIGS, {"results": ()})
    async with admin_of(cluster) as admin:
        for asked in (
            admin.groups.describe_group("g"),
            admin.groups.committed_offsets("g"),
            admin.groups.share_offsets("g"),
            admin.groups.streams_topology("g"),
            admin.describe_configs(topic),
        ):
            with pytest.raises(KafkaPortError):
                await asked
        cluster.on(apis.FIND_COORDINATOR, {"coordinators": ()})
        with pytest.raises(KafkaPortError):
            await admin.groups.coordinator("g")


async def test_offsets_that_are_set_in_part_are_told_as_refused(cluster: ScriptedCluster) -> None:
    def one_unknown(asked: Asked) -> Reply:
        partitions = (
            {"partition_index": 0, "error_code": 0},
            {"partition_index": 1, "error_code": 3},
        )
        of_all = {} if asked.api == apis.OFFSET_COMMIT.key else {"error_code": 0}
        return {**of_all, "topics": ({"name": "orders", "partitions": partitions},)}

    cluster.on(apis.OFFSET_COMMIT, one_unknown)
    cluster.on(apis.OFFSET_DELETE, one_unknown)
    async with admin_of(cluster) as admin:
        with pytest.raises(RefusedError, match=str(B)):
            await admin.groups.commit_offsets("g", {A: 0, B: 2**62})
        with pytest.raises(RefusedError, match=str(B)):
            await admin.groups.delete_offsets("g", [B, A])
        cluster.on(apis.OFFSET_DELETE, {"error_code": 86, "topics": ()})
        with pytest.raises(RefusedError) as told:
            await admin.groups.delete_offsets("g", [A])
        cluster.on(apis.DELETE_GROUPS, {"results": ({"group_id": "g", "error_code": 68},)})
        with pytest.raises(RefusedError) as busy:
            await admin.groups.delete_group("g")
    assert told.value.code is ErrorCode.group_subscribed_to_topic
    assert busy.value.code is ErrorCode.non_empty_group
    (sent,) = cluster.requests(apis.OFFSET_COMMIT)
    (topic,) = sent.message.topics
    assert [(it.partition_index, it.committed_offset) for it in topic.partitions] == [
        (0, 0), (1, 2**62),
    ]  # fmt: skip
    assert sent.message.generation_id_or_member_epoch == -1


async def test_share_offsets_that_one_partition_does_not_tell(cluster: ScriptedCluster) -> None:
    def told(*codes: int) -> Reply:
        partitions = tuple(
            {"partition_index": n, "start_offset": n - 1, "leader_epoch": 0, "error_code": code,
             "error_message": None, "lag": -1 if n == 0 else 5}
            for n, code in enumerate(codes)
        )  # fmt: skip
        topics = ({"topic_name": "orders", "topic_id": None, "partitions": partitions},)
        return {"groups": ({"group_id": "g", "error_code": 0, "topics": topics},)}

    async with admin_of(cluster) as admin:
        cluster.on(apis.DESCRIBE_SHARE_GROUP_OFFSETS, told(0, 0))
        found = await admin.groups.share_offsets("g")
        assert (found[A].start, found[A].lag) == (None, None)
        assert (found[B].start, found[B].lag) == (0, 5)
        cluster.on(apis.DESCRIBE_SHARE_GROUP_OFFSETS, told(0, 29))
        with pytest.raises(RefusedError, match=str(B)):
            await admin.groups.share_offsets("g")


async def test_share_offsets_are_set_and_deleted_for_all_or_told_as_refused(
    cluster: ScriptedCluster,
) -> None:
    def without_partitions(code: int) -> dict[str, Any]:
        told = {"topic_name": "orders", "topic_id": None, "error_code": code, "error_message": None}
        return {"error_code": 0, "error_message": None, "responses": (told,)}

    altering, deleting = apis.ALTER_SHARE_GROUP_OFFSETS, apis.DELETE_SHARE_GROUP_OFFSETS

    def altered(*codes: int) -> dict[str, Any]:
        partitions = tuple(
            {"partition_index": n, "error_code": code, "error_message": None}
            for n, code in enumerate(codes)
        )
        told = {"topic_name": "orders", "topic_id": None, "partitions": partitions}
        return {"error_code": 0, "error_message": None, "responses": (told,)}

    async with admin_of(cluster) as admin:
        cluster.on(altering, altered(0, 0))
        await admin.groups.alter_share_offsets("g", {B: 9, A: 0})
        (sent,) = cluster.requests(altering)
        starts = [(it.partition_index, it.start_offset) for it in sent.message.topics[0].partitions]
        assert starts == [(0, 0), (1, 9)]
        for refused in (altered(0, 3), altered(0)):
            cluster.on(altering, refused)
            with pytest.raises(KafkaPortError, match=str(B)):
                await admin.groups.alter_share_offsets("g", {A: 0, B: 9})
        cluster.on(deleting, without_partitions(0))
        await admin.groups.delete_share_offsets("g", ["orders"])
        with pytest.raises(KafkaPortError, match="payments"):
            await admin.groups.delete_share_offsets("g", ["payments", "orders"])
        cluster.on(deleting, without_partitions(68))
        with pytest.raises(RefusedError) as told:
            await admin.groups.delete_share_offsets("g", ["orders"])
    assert told.value.code is ErrorCode.non_empty_group


# What only a controller does


async def test_with_zookeeper_the_controller_is_found_and_followed(
    cluster: ScriptedCluster,
) -> None:
    cluster.controller = 2

    def listed(asked: Asked) -> Reply:
        code = 0 if asked.broker == cluster.controller else 41
        return {"error_code": code, "error_message": None, "topics": ()}

    cluster.on(apis.LIST_REASSIGNMENTS, listed)
    async with admin_of(cluster) as admin:
        assert await admin.list_reassignments() == ()
        assert admin.wire.controller_id == 2
        cluster.controller = 3
        assert await admin.list_reassignments() == ()
        asked = [it.broker for it in cluster.requests(apis.LIST_REASSIGNMENTS)]
        assert asked[-2:] == [2, 3]
        cluster.controller = -1
        with pytest.raises(RefusedError) as told:
            await admin.list_reassignments()
    assert told.value.code is ErrorCode.not_controller


async def test_a_controller_that_is_gone_is_looked_up_again(cluster: ScriptedCluster) -> None:
    cluster.controller = 2

    def listed(asked: Asked) -> Reply:
        code = 0 if asked.broker == cluster.controller else 41
        return {"error_code": code, "error_message": None, "topics": ()}

    cluster.on(apis.LIST_REASSIGNMENTS, listed)
    async with KafkaAdmin.to(cluster.settings(attempts_max=2)) as admin:
        await admin.list_reassignments()
        cluster.stop(2)
        cluster.controller = 3
        assert await admin.list_reassignments() == ()


async def test_reassignments_in_flight_tell_where_they_go(cluster: ScriptedCluster) -> None:
    moving = {"partition_index": 1, "replicas": (2, 1, 3), "adding_replicas": (3,),
              "removing_replicas": (1,)}  # fmt: skip
    still = {**moving, "partition_index": 0, "adding_replicas": (), "removing_replicas": ()}
    topics = (
        {"name": "z", "partitions": (moving,)},
        {"name": "orders", "partitions": (moving, still)},
    )
    cluster.on(apis.LIST_REASSIGNMENTS, {"error_code": 0, "error_message": None, "topics": topics})
    async with admin_of(cluster) as admin:
        found = await admin.list_reassignments()
    assert [str(it.key) for it in found] == ["orders-0", "orders-1", "z-1"]
    assert [it.target_replicas for it in found] == [(2, 1, 3), (2, 3), (2, 3)]


async def test_reassignments_are_refused_one_by_one_or_all_together(
    cluster: ScriptedCluster,
) -> None:
    def told(code: int) -> dict[str, Any]:
        partition = {"partition_index": 1, "error_code": 39, "error_message": "broker 9"}
        fine = {"partition_index": 0, "error_code": 0, "error_message": None}
        responses = ({"name": "orders", "partitions": (fine, partition)},)
        return {"error_code": code, "error_message": None, "responses": responses}

    cluster.on(apis.ALTER_REASSIGNMENTS, told(0))
    async with admin_of(cluster) as admin:
        assert await admin.alter_reassignments({}) == {}
        refused = await admin.alter_reassignments({B: (9,), A: None})
        assert [*refused] == [B]
        assert "broker 9" in str(refused[B])
        (sent,) = cluster.requests(apis.ALTER_REASSIGNMENTS)
        (topic,) = sent.message.topics
        replicas = {it.partition_index: it.replicas for it in topic.partitions}
        assert replicas == {0: None, 1: (9,)}
        cluster.on(apis.ALTER_REASSIGNMENTS, told(31))
        with pytest.raises(RefusedError) as error:
            await admin.alter_reassignments({A: (1,)})
    assert error.value.code is ErrorCode.cluster_authorization_failed


async def test_an_election_tells_what_it_did_not_do(cluster: ScriptedCluster) -> None:
    def told(**codes: int) -> dict[str, Any]:
        result = tuple(
            {"partition_id": n, "error_code": code, "error_message": None}
            for n, code in enumerate(codes.values())
        )
        return {
            "error_code": 0,
            "replica_election_results": ({"topic": "orders", "partition_result": result},),
        }

    cluster.on(apis.ELECT_LEADERS, told(not_needed=84, none=0, unavailable=80))
    async with admin_of(cluster) as admin:
        refused = await admin.elect_leaders(None, ElectionType.UNCLEAN)
        assert {str(key): int(it.code) for key, it in refused.items()} == {"orders-2": 80}  # type: ignore[attr-defined]
        (sent,) = cluster.requests(apis.ELECT_LEADERS)
        assert (int(sent.message.election_type), sent.message.topic_partitions) == (1, None)
        cluster.on(apis.ELECT_LEADERS, in_turn(told(moved=41), told(done=0)))
        assert await admin.elect_leaders([A]) == {}


async def test_sizes_of_one_directory_that_failed_do_not_hide_the_others(
    cluster: ScriptedCluster,
) -> None:
    def told(asked: Asked) -> Reply:
        partition = {"partition_index": 0, "partition_size": 10, "offset_lag": 3,
                     "is_future_key": False}  # fmt: skip
        fine = {"error_code": 0, "log_dir": "/a", "total_bytes": -1, "usable_bytes": 0,
                "topics": ({"name": "orders", "partitions": (partition,)},)}  # fmt: skip
        failed = {"error_code": 56, "log_dir": "/b", "topics": ()}
        return {"error_code": 0, "results": (failed, fine)}

    cluster.on(apis.DESCRIBE_LOG_DIRS, told)
    async with admin_of(cluster) as admin:
        found = await admin.log_dirs([2], partitions=[A])
        assert [(it.broker, it.path, it.usable_bytes, it.is_failed) for it in found] == [
            (2, "/b", None, True),
            (2, "/a", 0, False),
        ]
        assert [(it.size_bytes, it.offset_lag) for it in found[1].replicas] == [(10, 3)]
        cluster.stop(3)
        assert [it.broker for it in await admin.log_dirs() if not it.is_failed] == [1, 2]
        with pytest.raises(UnreachableError):
            await admin.log_dirs([1, 3])
        cluster.on(apis.DESCRIBE_LOG_DIRS, {"error_code": 31, "results": ()})
        with pytest.raises(RefusedError):
            await admin.log_dirs()


# Topics, configs, registrations


async def test_one_partition_offline_leaves_the_topic_readable(cluster: ScriptedCluster) -> None:
    cluster.topics |= {"a": {1: (), 0: (3, 1)}}
    async with admin_of(cluster) as admin:
        found = {it.name: it for it in await admin.topics()}
        assert [*found] == ["a", "orders"]
        assert [(it.partition, it.leader) for it in found["a"].partitions] == [(0, 3), (1, -1)]
        assert await admin.topics([]) == ()
        with pytest.raises(RefusedError, match="nowhere"):
            await admin.topics(["orders", "nowhere"])
        known = await admin.topics(["orders", "nowhere"], leaves_out_unknown=True)
        assert [it.name for it in known] == ["orders"]


async def test_a_created_topic_is_waited_for_until_each_partition_is_led(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control.kafka.admin.kafka_admin._VISIBLE_POLL_S", 0.0)
    made = {"topics": ({"name": "new", "error_code": 0, "error_message": None},)}
    cluster.on(apis.CREATE_TOPICS, made)
    steps: list[dict[int, tuple[int, ...]]] = [{0: ()}, {0: (1,)}, {0: (1,), 1: ()}]

    def grows(asked: Asked) -> Reply:
        if asked.message.topics:
            cluster.topics["new"] = steps.pop(0) if steps else {0: (1,), 1: (2,)}
        return cluster.metadata(asked)

    cluster.on(apis.METADATA, grows)
    async with admin_of(cluster) as admin:
        await admin.create_topic(NewTopic(name="new", partitions=2, assignment={0: [1], 1: [2]}))
        assert not steps
        (sent,) = cluster.requests(apis.CREATE_TOPICS)
        (topic,) = sent.message.topics
        assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
        assert [it.broker_ids for it in topic.assignments] == [(1,), (2,)]
        assert not sent.message.validate_only
        await admin.create_topic(NewTopic(name="unmade"), validate_only=True)


async def test_a_topic_that_is_there_already_is_taken_and_any_other_refusal_is_told(
    cluster: ScriptedCluster,
) -> None:
    def refused(code: int) -> dict[str, Any]:
        return {"topics": ({"name": "orders", "error_code": code, "error_message": "why"},)}

    async with admin_of(cluster) as admin:
        cluster.on(apis.CREATE_TOPICS, refused(36))
        assert await ensure_topic(admin, "orders", configs={}) == 2
        cluster.on(apis.CREATE_TOPICS, refused(44))
        with pytest.raises(RefusedError, match="why"):
            await ensure_topic(admin, "orders", configs={})


async def test_configs_of_many_go_to_who_owns_them_and_a_deleted_topic_is_left_out(
    cluster: ScriptedCluster,
) -> None:
    def told(asked: Asked) -> Reply:
        return {
            "results": tuple(
                {
                    "error_code": 3 if it.resource_name == "gone" else 0,
                    "error_message": None,
                    "resource_type": it.resource_type,
                    "resource_name": it.resource_name,
                    "configs": (),
                }
                for it in asked.message.resources
            )
        }

    names = [("orders", ConfigScope.TOPIC), ("2", ConfigScope.BROKER), ("gone", ConfigScope.TOPIC),
             ("3", ConfigScope.BROKER)]  # fmt: skip
    resources = [ConfigResource(scope=scope, name=name) for name, scope in names]
    cluster.on(apis.DESCRIBE_CONFIGS, told)
    async with admin_of(cluster) as admin:
        found = await admin.describe_many_configs(resources, ["a"])
        assert sorted(it.name for it in found) == ["2", "3", "orders"]
        owners = {
            it.message.resources[0].resource_name: it.broker
            for it in cluster.requests(apis.DESCRIBE_CONFIGS)
        }
        assert (owners["2"], owners["3"]) == (2, 3)
        cluster.asked.clear()
        many = [ConfigResource(scope=ConfigScope.TOPIC, name=f"t{n}") for n in range(1001)]
        assert len(await admin.describe_many_configs(many)) == 1001
        sizes = [len(it.message.resources) for it in cluster.requests(apis.DESCRIBE_CONFIGS)]
        assert sizes == [500, 500, 1]


async def test_a_refused_config_names_whose_it_is(cluster: ScriptedCluster) -> None:
    told = {"resource_type": 2, "resource_name": "orders", "error_code": 40,
            "error_message": "retention.ms: banana"}  # fmt: skip
    cluster.on(apis.ALTER_CONFIGS, {"responses": (told,)})
    topic = ConfigResource(scope=ConfigScope.TOPIC, name="orders")
    async with admin_of(cluster) as admin:
        with pytest.raises(RefusedError, match="banana") as error:
            await admin.alter_many_configs({topic: {"retention.ms": "banana", "x": None}})
    assert "orders" in error.value.what
    (sent,) = cluster.requests(apis.ALTER_CONFIGS)
    configs = sent.message.resources[0].configs
    assert [(it.name, it.config_operation, it.value) for it in configs] == [
        ("retention.ms", 0, "banana"), ("x", 1, None),
    ]  # fmt: skip


async def test_brokers_that_are_down_are_known_only_where_the_cluster_tells(
    cluster: ScriptedCluster,
) -> None:
    def told(code: int = 0) -> dict[str, Any]:
        broker = {"host": "h", "port": 1, "rack": None}
        brokers = ({**broker, "broker_id": 1, "is_fenced": False},
                   {**broker, "broker_id": 9, "is_fenced": True})  # fmt: skip
        return {"error_code": code, "cluster_id": "c", "controller_id": 1, "brokers": brokers}

    key = apis.DESCRIBE_CLUSTER.key
    for version, code, wanted in ((2, 0, {1, 9}), (2, 31, None), (1, 0, None)):
        cluster.served[key] = (version, version)
        cluster.on(apis.DESCRIBE_CLUSTER, told(code))
        async with admin_of(cluster) as admin:
            assert await admin.registered_brokers() == wanted
    del cluster.served[key]
    async with admin_of(cluster) as admin:
        assert await admin.registered_brokers() is None
        assert await admin.missing_rights(["orders"]) == ()


async def test_forgetting_a_broker(cluster: ScriptedCluster) -> None:
    def told(code: int) -> dict[str, Any]:
        return {"error_code": code, "error_message": None}

    async with admin_of(cluster) as admin:
        cluster.on(apis.UNREGISTER_BROKER, told(0))
        assert await admin.unregister_broker(9)
        cluster.on(apis.UNREGISTER_BROKER, told(102))
        assert not await admin.unregister_broker(9)
        cluster.on(apis.UNREGISTER_BROKER, told(31))
        with pytest.raises(RefusedError, match="broker 9"):
            await admin.unregister_broker(9)
        del cluster.served[apis.DESCRIBE_QUORUM.key]
    async with admin_of(cluster) as admin:
        assert await admin.controller_voters() == frozenset()


async def test_rights_that_are_missing_are_named_and_unknown_ones_are_not(
    cluster: ScriptedCluster,
) -> None:
    def cluster_bits(bits: int) -> dict[str, Any]:
        return {"error_code": 0, "cluster_id": "c", "controller_id": 1, "brokers": (),
                "cluster_authorized_operations": bits}  # fmt: skip

    def topic_bits(asked: Asked) -> Reply:
        found = cluster.metadata(asked)
        (topic,) = found["topics"]
        return found | {"topics": ({**topic, "topic_authorized_operations": 1 << 3},)}

    cluster.served[apis.METADATA.key] = (8, 10)
    unknown = -(2**31)
    for bits, wanted in (
        (unknown, [("ALTER_CONFIGS", "topic")]),
        (1 << 7, [("ALTER_CONFIGS", "cluster"), ("ALTER_CONFIGS", "topic")]),
    ):
        cluster.on(apis.DESCRIBE_CLUSTER, cluster_bits(bits))
        async with admin_of(cluster) as admin:
            cluster.scripts.pop(apis.METADATA.key, None)
            await admin.describe_cluster()
            cluster.on(apis.METADATA, lambda it: topic_bits(it) if it.message.topics
                       else cluster.metadata(it))  # fmt: skip
            found = await admin.missing_rights(["orders"])
        assert [(it.operation, it.resource) for it in found] == wanted
        assert all("kafka-acls" in it.grant for it in found)
