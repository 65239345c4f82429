"""A client is told the addresses of the listener that it came through, and no others."""

from dataclasses import replace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.handlers.k03_metadata import handle_metadata
from broker.handlers.k10_find_coordinator import handle_find_coordinator
from broker.handlers.k60_describe_cluster import handle_describe_cluster
from broker.handlers.k75_describe_topic_partitions import handle_describe_topic_partitions
from broker.handlers.partition_errors import node_endpoints
from broker.handlers.services import NodeServices
from broker.metadata.image import MetadataImage
from broker.metadata.records import BrokerEndpoint
from broker.protocol import codec
from broker.protocol.hot.leaders import LeaderHint
from tests.unit.broker.handlers.cluster_images import (
    cluster_image,
    node_with,
    request_of,
    topic_image,
)

WITHOUT = 103
"""This broker has the listener PLAINTEXT alone; 102 is the controller."""


def two_listeners() -> MetadataImage:
    """Brokers 101 and 102 have a listener INTERNAL, too."""
    image = cluster_image(
        topic_image("orders", [101, 102, 103]), topic_image("__consumer_offsets", [101], number=2)
    )
    brokers = {
        id_: broker
        if id_ == WITHOUT
        else replace(
            broker,
            endpoints=(
                *broker.endpoints,
                BrokerEndpoint(name="INTERNAL", host=f"within-{id_}", port=id_),
            ),
        )
        for id_, broker in image.brokers.items()
    }
    return replace(image, brokers=brokers)


async def metadata(node: NodeServices, version: int, through: str) -> Any:
    """What a client reads."""
    request = request_of(3, version, through=through, topics=[{"name": "orders"}])
    return codec.decode_response(3, version, (await handle_metadata(request, node))[4:])[1]


@pytest.mark.parametrize(
    ("version", "error"),
    [(5, ErrorCode.leader_not_available), (6, ErrorCode.listener_not_found)],
)
async def test_metadata_shows_one_listener(version: int, error: ErrorCode) -> None:
    node = node_with(two_listeners())
    within = await metadata(node, version, "INTERNAL")
    assert [(it.node_id, it.host, it.port) for it in within.brokers] == [
        (101, "within-101", 101),
        (102, "within-102", 102),
    ]
    partitions = within.topics[0].partitions
    assert [(it.leader_id, it.error_code) for it in partitions] == [
        (101, ErrorCode.none),
        (102, ErrorCode.none),
        (-1, error),
    ]
    assert list(partitions[0].offline_replicas) == [WITHOUT]
    outside = await metadata(node, version, "PLAINTEXT")
    assert [it.port for it in outside.brokers] == [9101, 9102, 9103]
    assert {it.error_code for it in outside.topics[0].partitions} == {ErrorCode.none}


def test_the_controller_that_is_told_has_the_listener() -> None:
    image = replace(two_listeners(), controller_id=WITHOUT)
    answers = {
        through: handle_describe_cluster(request_of(60, 2, through=through), node_with(image))
        for through in ("INTERNAL", "PLAINTEXT")
    }
    assert {through: it.controller_id for through, it in answers.items()} == {
        "INTERNAL": 101,
        "PLAINTEXT": WITHOUT,
    }
    assert [(it.broker_id, it.port) for it in answers["INTERNAL"].brokers] == [
        (101, 101),
        (102, 102),
    ]


async def test_described_partitions_tell_a_leader_without_the_listener() -> None:
    request = request_of(75, 0, through="INTERNAL", topics=[{"name": "orders"}])
    answer = await handle_describe_topic_partitions(request, node_with(two_listeners()))
    errors = [it.error_code for it in answer.build(75, 0).topics[0].partitions]
    assert errors == [ErrorCode.none, ErrorCode.none, ErrorCode.listener_not_found]


async def test_a_coordinator_is_reached_through_the_same_listener() -> None:
    found = {}
    for through in ("INTERNAL", "PLAINTEXT", "SSL"):
        request = request_of(10, 3, through=through, key="group", key_type=0)
        answer = await handle_find_coordinator(request, node_with(two_listeners()))
        found[through] = (answer.error_code, answer.host, answer.port)
    assert found == {
        "INTERNAL": (ErrorCode.none, "within-101", 101),
        "PLAINTEXT": (ErrorCode.none, "127.0.0.1", 9101),
        "SSL": (ErrorCode.coordinator_not_available, "", -1),
    }


def test_a_hinted_leader_is_reached_through_the_same_listener() -> None:
    hints = {LeaderHint(101, 7), LeaderHint(WITHOUT, 7)}
    within = node_endpoints(two_listeners(), hints, "INTERNAL")
    assert [(it.node_id, it.host, it.port) for it in within] == [(101, "within-101", 101)]
