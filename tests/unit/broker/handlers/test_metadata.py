"""Metadata, DescribeCluster and DescribeTopicPartitions show what the image says."""

import asyncio
import threading
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers import metadata_blobs
from broker.handlers.k03_metadata import handle_metadata
from broker.handlers.k60_describe_cluster import handle_describe_cluster
from broker.handlers.k75_describe_topic_partitions import handle_describe_topic_partitions
from broker.handlers.large_answer import LARGE_ENTRIES
from broker.handlers.metadata_blobs import MetadataBlobs
from broker.handlers.services import NodeServices, Request
from broker.metadata.authorization import OPERATIONS_OMITTED
from broker.protocol import codec
from broker.protocol.hot.metadata import encode_topic
from broker.protocol.request_context import RequestContext
from tests.unit.broker.handlers.cluster_images import (
    add_topic,
    cluster_image,
    node_with,
    request_of,
    topic_image,
)

ORDERS = topic_image("orders", [101, 102, 103])
AUDIT = topic_image("audit", [101, -1], number=2)


async def ask(request: Request, node: NodeServices) -> Any:
    """What a client reads of the answer."""
    frame = await handle_metadata(request, node)
    return codec.decode_response(3, request.api_version, frame[4:])[1]


class Controller:
    """Creates what it is asked to, or refuses with an error."""

    def __init__(self, error: ErrorCode = ErrorCode.none) -> None:
        self.error = error
        self.node: Any = None
        self.asked: list[str] = []

    async def submit(
        self, api_key: int, version: int, message: Any, *, context: RequestContext
    ) -> Any:
        names = [topic.name for topic in message.topics]
        self.asked += names
        if not self.error:
            for name in names:
                add_topic(self.node, topic_image(name, [101], number=9))
        answers = [{"name": name, "error_code": self.error} for name in names]
        return codec.build_response(api_key, version, topics=answers)


@pytest.mark.parametrize("version", range(14))
async def test_all_topics_in_every_version(version: int) -> None:
    node = node_with(cluster_image(ORDERS, AUDIT, fenced=(103,)))
    request = request_of(3, version, topics=None if version else ())
    got = await ask(request, node)
    again = await ask(request, node)
    assert again == got
    assert [(b.node_id, b.port) for b in got.brokers] == [(101, 9101), (102, 9102)]
    assert [topic.name for topic in got.topics] == ["audit", "orders"]
    orders = got.topics[1].partitions
    assert [p.leader_id for p in orders] == [101, 102, -1]
    assert [int(p.error_code) for p in orders] == [0, 0, 5]
    assert orders[0].replica_nodes == (101, 102, 103)
    assert orders[0].isr_nodes == (101, 102)
    if version >= 5:
        assert orders[0].offline_replicas == (103,)
    if version >= 1:
        assert got.controller_id == 102
    if version >= 10:
        assert got.topics[1].topic_id == UUID(int=1)


async def test_by_name_and_by_id() -> None:
    node = node_with(cluster_image(ORDERS))
    asked = [
        {"name": "orders"},
        {"topic_id": UUID(int=1)},
        {"topic_id": UUID(int=5)},
        {"name": "none"},
        {"name": "bad name"},
    ]
    request = request_of(3, 12, topics=asked, allow_auto_topic_creation=False)
    got = await ask(request, node)
    assert [(topic.name, topic.error_code) for topic in got.topics] == [
        ("orders", ErrorCode.none),
        ("orders", ErrorCode.none),
        (None, ErrorCode.unknown_topic_id),
        ("none", ErrorCode.unknown_topic_or_partition),
        ("bad name", ErrorCode.invalid_topic_exception),
    ]


async def test_answers_follow_the_image() -> None:
    node = node_with(cluster_image(ORDERS))
    request = request_of(3, 9, topics=[{"name": "orders"}])
    assert [p.leader_id for p in (await ask(request, node)).topics[0].partitions] == [101, 102, 103]
    node.metadata._image = cluster_image(ORDERS, fenced=(102,))
    assert [p.leader_id for p in (await ask(request, node)).topics[0].partitions] == [101, -1, 103]
    add_topic(node, topic_image("orders", [103]))
    assert [p.leader_id for p in (await ask(request, node)).topics[0].partitions] == [103]


async def test_an_unknown_topic_is_created_when_both_allow_it() -> None:
    controller = Controller()
    node = controller.node = node_with(cluster_image(ORDERS), controller)
    topics = [{"name": "new"}, {"name": "orders"}, {"name": "no/slash"}]
    got = await ask(request_of(3, 12, topics=topics), node)
    assert controller.asked == ["new"]
    assert [topic.error_code.name for topic in got.topics] == [
        "none",
        "none",
        "invalid_topic_exception",
    ]


@pytest.mark.parametrize(("allowed", "enabled"), [(False, "true"), (True, "false")])
async def test_nothing_is_created_otherwise(allowed: bool, enabled: str) -> None:
    controller = Controller()
    properties = {"auto_create_topics_enable": enabled}
    node = controller.node = node_with(cluster_image(), controller, **properties)
    request = request_of(3, 4, topics=[{"name": "new"}], allow_auto_topic_creation=allowed)
    got = await ask(request, node)
    assert controller.asked == []
    assert got.topics[0].error_code is ErrorCode.unknown_topic_or_partition


@pytest.mark.parametrize("name", ["__transaction_state", "__share_group_state"])
async def test_a_topic_that_kafka_keeps_for_itself_is_not_created(name: str) -> None:
    controller = Controller()
    node = controller.node = node_with(cluster_image(ORDERS), controller)
    request = request_of(3, 9, topics=({"name": name},), allow_auto_topic_creation=True)
    got = await ask(request, node)
    assert not controller.asked
    assert (got.topics[0].error_code, got.topics[0].is_internal) == (
        ErrorCode.unknown_topic_or_partition,
        True,
    )


async def test_a_refused_creation_says_why() -> None:
    controller = Controller(ErrorCode.invalid_replication_factor)
    node = controller.node = node_with(cluster_image(), controller)
    got = await ask(request_of(3, 9, topics=[{"name": "new"}]), node)
    assert got.topics[0].error_code is ErrorCode.invalid_replication_factor


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster(version: int) -> None:
    node = node_with(cluster_image(fenced=(103,)))
    got = handle_describe_cluster(request_of(60, version, include_fenced_brokers=True), node)
    codec.encode_response(60, version, 1, got)
    assert (got.cluster_id, got.controller_id) == ("cluster", 102)
    assert len(got.brokers) == (3 if version == 2 else 2)
    if version >= 1:
        refused = handle_describe_cluster(request_of(60, version, endpoint_type=2), node)
        assert refused.error_code is ErrorCode.mismatched_endpoint_type


async def test_topic_partitions_come_in_pages() -> None:
    node = node_with(cluster_image(ORDERS, AUDIT))
    asked: dict[str, Any] = {"topics": [{"name": n} for n in ("orders", "none", "audit")]}
    seen: list[tuple[str, int]] = []
    cursor: dict[str, Any] | None = None
    for _ in range(10):
        request = request_of(75, 0, **asked, response_partition_limit=2, cursor=cursor)
        got = (await handle_describe_topic_partitions(request, node)).build(75, 0)
        codec.encode_response(75, 0, 1, got)
        seen += [(t.name, p.partition_index) for t in got.topics for p in t.partitions]
        assert sum(len(topic.partitions) for topic in got.topics) <= 2
        if got.next_cursor is None:
            break
        cursor = {
            "topic_name": got.next_cursor.topic_name,
            "partition_index": got.next_cursor.partition_index,
        }
    assert seen == [("audit", 0), ("audit", 1), ("orders", 0), ("orders", 1), ("orders", 2)]


async def test_encoded_topics_are_kept_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = [topic_image(f"t{n}", [101] * 10, number=n + 1) for n in range(20)]
    image, blobs = cluster_image(*topics), MetadataBlobs()
    encoded = [await blobs.encode(image, it, 12, "PLAINTEXT", OPERATIONS_OMITTED) for it in topics]
    each = len(encoded[0]) + metadata_blobs.BLOB_BYTES
    assert blobs.size_bytes == pytest.approx(20 * each, abs=20)
    again = await blobs.encode(image, topics[0], 12, "PLAINTEXT", OPERATIONS_OMITTED)
    assert again is encoded[0], "it is encoded once"
    changed = replace(image, brokers=dict(image.brokers))
    await blobs.encode(changed, topics[0], 12, "PLAINTEXT", OPERATIONS_OMITTED)
    assert blobs.size_bytes == pytest.approx(20 * each, abs=20), "in place of the former"
    monkeypatch.setattr(metadata_blobs, "BLOBS_BYTES_MAX", 3 * each)
    for topic in topics:
        await blobs.encode(image, topic, 11, "PLAINTEXT", OPERATIONS_OMITTED)
        assert blobs.size_bytes <= 3 * each + 20


async def test_a_large_topic_is_encoded_in_a_thread_and_once_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = topic_image("large", [101] * (LARGE_ENTRIES + 1))
    image, blobs, threads = cluster_image(topic), MetadataBlobs(), list[str]()

    def encode(*args: Any) -> bytes:
        threads.append(threading.current_thread().name)
        return encode_topic(*args)

    monkeypatch.setattr(metadata_blobs, "encode_topic", encode)
    wanted = (blobs.encode(image, topic, 12, "PLAINTEXT", OPERATIONS_OMITTED) for _ in range(3))
    encoded = await asyncio.gather(*wanted)
    assert len(threads) == 1
    assert threads[0] != threading.current_thread().name
    assert encoded[0] is encoded[1] is encoded[2]
    assert blobs.size_bytes == len(encoded[0]) + metadata_blobs.BLOB_BYTES
    moved = replace(topic, partitions=dict(topic.partitions))
    later = replace(image, topics={"large": moved})
    kept = await blobs.encode(later, moved, 12, "PLAINTEXT", OPERATIONS_OMITTED)
    assert len(threads) == 2, "it has changed"
    assert kept == encoded[0]
