"""Every version of every group API, from the bytes of a request to the bytes of its answer."""

import inspect
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import load_registry
from broker.handlers.services import Listener, NodeServices, Request
from broker.protocol import codec
from broker.protocol.request_context import RequestContext
from tests.unit.broker.coordinator.memory import NODE_ID, TOPIC_ID
from tests.unit.broker.coordinator.rig import ASSIGNMENT, SUBSCRIPTION, Rig

REGISTRY = load_registry(Listener.CLIENT)
OPERATIONS = 3400


class Node:
    """Asks the handlers of one node as a connection would."""

    def __init__(self) -> None:
        self.rig = Rig()
        parts: dict[str, Any] = dict.fromkeys(
            ("config", "controller", "logs", "producer_ids", "transactions")
        )
        parts |= {"metadata": self.rig.metadata, "replicas": self.rig.replicas}
        self.services = NodeServices(clock=self.rig.clock, groups=self.rig.groups, **parts)

    async def ask(self, api_key: int, version: int, **fields: object) -> Any:
        message = codec.build_request(api_key, version, **fields)
        frame = codec.encode_request(message, correlation_id=5, client_id="me")[4:]
        info = RequestContext(listener_name="PLAINTEXT", client_host="127.0.0.1")
        request = Request(codec.decode_header(frame), memoryview(frame), info)
        api = REGISTRY.find(api_key)
        assert api is not None
        answer = api.handler(request, self.services)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, LargeAnswer):
            answer = answer.build(api_key, version)
        encoded = codec.encode_response(api_key, version, 5, answer)
        return codec.decode_response(api_key, version, encoded[4:])[1]

    async def join_and_sync(self) -> str:
        """One member in generation 1; returns its id."""
        joined = await self.join(9, "")
        joined = await self.join(9, joined.member_id)
        await self.sync(5, joined.member_id)
        return str(joined.member_id)

    async def join(self, version: int, member_id: str, instance: str | None = None) -> Any:
        return await self.ask(
            11,
            version,
            group_id="g",
            session_timeout=10_000,
            rebalance_timeout=20_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": SUBSCRIPTION}],
        )

    async def sync(self, version: int, member_id: str) -> Any:
        return await self.ask(
            14,
            version,
            group_id="g",
            generation_id=1,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": member_id, "assignment": ASSIGNMENT}],
        )

    async def commit(self, version: int, **fields: object) -> Any:
        partitions = [
            {"partition_index": 0, "committed_offset": 42, "committed_metadata": "note"},
            {"partition_index": 9, "committed_offset": 42, "committed_metadata": None},
        ]
        topic = {"name": "t", "topic_id": TOPIC_ID, "partitions": partitions}
        return await self.ask(8, version, group_id="g", topics=[topic], **fields)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    node = Node()
    await node.rig.start()
    yield node
    await node.rig.groups.stop()


@pytest.mark.parametrize("version", range(10))
async def test_join_group(node: Node, version: int) -> None:
    joined = await node.join(version, "")
    assert joined.member_id.startswith("me-")
    if version >= 4:
        assert joined.error_code is ErrorCode.member_id_required
        joined = await node.join(version, joined.member_id)
    assert joined.error_code is ErrorCode.none
    assert (joined.generation_id, joined.protocol_name) == (1, "range")
    assert joined.leader == joined.member_id
    assert [member.metadata for member in joined.members] == [SUBSCRIPTION]
    refused = await node.join(version, "somebody")
    assert refused.error_code is ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", range(5, 10))
async def test_join_group_static(node: Node, version: int) -> None:
    joined = await node.join(version, "", "I")
    assert joined.error_code is ErrorCode.none
    assert joined.member_id.startswith("I-")


@pytest.mark.parametrize("version", range(6))
async def test_sync_group(node: Node, version: int) -> None:
    joined = await node.join(3, "")
    synced = await node.sync(version, joined.member_id)
    assert (synced.error_code, synced.assignment) == (ErrorCode.none, ASSIGNMENT)


@pytest.mark.parametrize("version", range(5))
async def test_heartbeat(node: Node, version: int) -> None:
    member_id = await node.join_and_sync()
    asked = {"group_id": "g", "generation_id": 1}
    beat = await node.ask(12, version, member_id=member_id, **asked)
    assert beat.error_code is ErrorCode.none
    beat = await node.ask(12, version, member_id="nobody", **asked)
    assert beat.error_code is ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", range(6))
async def test_leave_group(node: Node, version: int) -> None:
    member_id = await node.join_and_sync()
    if version < 3:
        left = await node.ask(13, version, group_id="g", member_id=member_id)
        again = await node.ask(13, version, group_id="g", member_id=member_id)
        assert again.error_code is ErrorCode.unknown_member_id
    else:
        members = [{"member_id": member_id}, {"member_id": "nobody"}]
        left = await node.ask(13, version, group_id="g", members=members)
        codes = [member.error_code for member in left.members]
        assert codes == [ErrorCode.none, ErrorCode.unknown_member_id]
    assert left.error_code is ErrorCode.none


@pytest.mark.parametrize("version", range(2, 11))
async def test_offset_commit(node: Node, version: int) -> None:
    answered = await node.commit(version)
    codes = [partition.error_code for partition in answered.topics[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    kept = node.rig.committed()
    assert kept is not None
    assert (kept.offset, kept.metadata) == (42, "note")


async def test_an_unknown_topic_id_is_told(node: Node) -> None:
    partition = {"partition_index": 0, "committed_offset": 1}
    topic = {"topic_id": UUID(int=255), "partitions": [partition]}
    answered = await node.ask(8, 10, group_id="g", topics=[topic])
    assert answered.topics[0].partitions[0].error_code is ErrorCode.unknown_topic_id


@pytest.mark.parametrize("version", range(1, 8))
async def test_offset_fetch_of_one_group(node: Node, version: int) -> None:
    await node.commit(6)
    topics = [{"name": "t", "partition_indexes": [0, 1]}]
    fetched = await node.ask(9, version, group_id="g", topics=topics)
    first, second = fetched.topics[0].partitions
    assert (first.committed_offset, first.metadata) == (42, "note")
    assert (second.committed_offset, second.error_code) == (-1, ErrorCode.none)
    if version >= 2:
        everything = await node.ask(9, version, group_id="g", topics=None)
        assert [p.committed_offset for p in everything.topics[0].partitions] == [42]
        assert everything.error_code is ErrorCode.none


@pytest.mark.parametrize("version", [8, 9, 10])
async def test_offset_fetch_of_groups(node: Node, version: int) -> None:
    await node.commit(6)
    topic = {"name": "t", "topic_id": TOPIC_ID, "partition_indexes": [0, 1]}
    groups = [{"group_id": "g", "topics": [topic]}, {"group_id": "unknown", "topics": None}]
    fetched = await node.ask(9, version, groups=groups)
    known, unknown = fetched.groups
    assert [p.committed_offset for p in known.topics[0].partitions] == [42, -1]
    assert (unknown.error_code, unknown.topics) == (ErrorCode.none, ())
    everything = await node.ask(9, version, groups=[{"group_id": "g", "topics": None}])
    assert [p.committed_offset for p in everything.groups[0].topics[0].partitions] == [42]


@pytest.mark.parametrize("version", range(1, 11))
async def test_offset_fetch_from_the_wrong_node(node: Node, version: int) -> None:
    node.rig.metadata.lead(102)
    topic = {"name": "t", "topic_id": TOPIC_ID, "partition_indexes": [0]}
    if version >= 8:
        fetched = await node.ask(9, version, groups=[{"group_id": "g", "topics": [topic]}])
        errors = [fetched.groups[0].error_code]
    else:
        named = {"name": "t", "partition_indexes": [0]}
        fetched = await node.ask(9, version, group_id="g", topics=[named])
        partitions = fetched.topics[0].partitions if version < 2 else [fetched]
        errors = [partition.error_code for partition in partitions]
    assert errors == [ErrorCode.not_coordinator]


@pytest.mark.parametrize("version", range(7))
async def test_find_coordinator(node: Node, version: int) -> None:
    if version >= 4:
        found = await node.ask(10, version, key_type=0, coordinator_keys=["g", "h"])
        assert [c.key for c in found.coordinators] == ["g", "h"]
        answers = found.coordinators
    else:
        answers = [await node.ask(10, version, key="g")]
    for answer in answers:
        assert (answer.node_id, answer.port) == (NODE_ID, 9092)
        assert answer.error_code is ErrorCode.none


@pytest.mark.parametrize("version", range(1, 7))
async def test_find_coordinator_of_share_groups_says_no(node: Node, version: int) -> None:
    asked: dict[str, object] = {"key": "x"} if version < 4 else {"coordinator_keys": ["x"]}
    found = await node.ask(10, version, key_type=2, **asked)
    answer = found if version < 4 else found.coordinators[0]
    assert answer.error_code is ErrorCode.invalid_request
    assert "share groups" in answer.error_message


@pytest.mark.parametrize("version", range(7))
async def test_describe_groups(node: Node, version: int) -> None:
    member_id = await node.join_and_sync()
    fields = {"include_authorized_operations": True} if version >= 3 else {}
    described = await node.ask(15, version, groups=["g", "unknown"], **fields)
    group, unknown = described.groups
    assert (group.group_state, group.protocol_type, group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    (member,) = group.members
    assert (member.member_id, member.client_id) == (member_id, "me")
    assert (member.client_host, member.member_assignment) == ("/127.0.0.1", ASSIGNMENT)
    assert unknown.group_state == "Dead"
    missing = ErrorCode.group_id_not_found if version >= 6 else ErrorCode.none
    assert unknown.error_code is missing
    if version >= 3:
        assert group.authorized_operations == OPERATIONS


@pytest.mark.parametrize("version", range(6))
async def test_list_groups(node: Node, version: int) -> None:
    await node.join_and_sync()
    listed = await node.ask(16, version)
    assert [(g.group_id, g.protocol_type) for g in listed.groups] == [("g", "consumer")]
    if version >= 4:
        assert (await node.ask(16, version, states_filter=["Empty"])).groups == ()
    if version >= 5:
        assert (await node.ask(16, version, types_filter=["consumer"])).groups == ()
        assert len((await node.ask(16, version, types_filter=["classic"])).groups) == 1


@pytest.mark.parametrize("version", range(3))
async def test_delete_groups(node: Node, version: int) -> None:
    await node.commit(6)
    deleted = await node.ask(42, version, groups_names=["g", "unknown"])
    codes = [result.error_code for result in deleted.results]
    assert codes == [ErrorCode.none, ErrorCode.group_id_not_found]


async def test_offset_delete(node: Node) -> None:
    await node.commit(6)
    topics = [{"name": "t", "partitions": [{"partition_index": 0}, {"partition_index": 9}]}]
    deleted = await node.ask(47, 0, group_id="g", topics=topics)
    codes = [partition.error_code for partition in deleted.topics[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]
    assert node.rig.committed() is None
    missing = await node.ask(47, 0, group_id="unknown", topics=topics)
    assert missing.error_code is ErrorCode.group_id_not_found
