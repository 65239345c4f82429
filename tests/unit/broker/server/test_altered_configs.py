"""Configs of a broker in its file, or altered while it runs, and what they change."""

import socket
from pathlib import Path
from typing import Any

import pytest

from broker.controller.decision import Decision
from broker.metadata.image import ResourceType
from broker.metadata.records import ConfigRecord
from broker.protocol import codec
from broker.protocol.records import iter_batch_headers
from broker.server.node import Node
from tests.unit.broker.server.nodes import create_topic, parts, replica, request, running, until

INVALID_REQUEST = 42


async def _alter(node: Node, name: str, value: str) -> int:
    config = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": 4, "resource_name": "", "configs": [config]}
    message = codec.build_request(44, 1, resources=[resource])
    answer = await request(node, 44, 1, message)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log.retention.ms", "-5"),
        ("log.roll.ms", "0"),
        ("log.flush.interval.ms", "-1000"),
        ("compression.type", " gzip"),
        ("log.cleaner.min.cleanable.ratio", "NaN"),
    ],
)
async def test_a_default_that_no_topic_can_have_is_refused(
    tmp_path: Path, name: str, value: str
) -> None:
    async with running(tmp_path) as (node,):
        assert await _alter(node, name, value) == INVALID_REQUEST
        await create_topic([node], "orders")


async def test_producers_are_forgotten_after_the_configured_time(tmp_path: Path) -> None:
    async with running(tmp_path, producer_id_expiration_ms="5000") as (node,):
        assert parts(node).logs.producer_id_expiration_ms == 5000
        assert await _alter(node, "producer.id.expiration.ms", "7000") == 0
        await until(lambda: parts(node).logs.producer_id_expiration_ms == 7000)


async def test_fewer_connections_are_taken_from_now_on(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        versions = codec.build_request(18, 0)
        assert (await request(node, 18, 0, versions)).error_code == 0
        assert await _alter(node, "max.connections", "0") == INVALID_REQUEST
        assert await _alter(node, "max.connections", "1") == 0
        address = node.config.listeners.among_brokers.host, node.config.listeners.among_brokers.port
        with socket.create_connection(address) as held:
            peers = ["{}:{}".format(*held.getsockname())]
            connections = parts(node).client_listeners.connections
            await until(lambda: [connection._peer for connection in connections] == peers)
            with pytest.raises(ConnectionError):
                await request(node, 18, 0, versions)
        await until(lambda: not parts(node).client_listeners.connections)
        assert await _alter(node, "max.connections", "100") == 0


async def test_a_limit_that_an_older_build_took_locks_nobody_out(tmp_path: Path) -> None:
    record = ConfigRecord(
        resource_type=ResourceType.BROKER, resource_name="", name="max.connections", value="0"
    )
    async with running(tmp_path) as (node,):
        await parts(node).controller.active.run(lambda image: Decision((record,), None))
        await until(lambda: bool(parts(node).metadata.image.configs))
        assert await _alter(node, "max.connections", "100") == 0


async def test_offsets_are_written_in_the_configured_codec(tmp_path: Path) -> None:
    async with running(
        tmp_path, offsets_topic_compression_codec="4", offsets_topic_num_partitions="1"
    ) as (node,):
        await create_topic([node], "orders")
        await request(node, 10, 2, codec.build_request(10, 2, key="g", key_type=0))
        await until(lambda: any(parts(node).groups.offsets._runtime.loaded()))
        assert await _commit(node) == 0
        log = replica(node, "__consumer_offsets").log
        data = log.read_bytes(0, max_bytes=1 << 20, max_offset=log.log_end_offset)
        assert [header.codec for header, _ in iter_batch_headers(data)] == [4]


async def _commit(node: Node) -> int:
    partition = {"partition_index": 0, "committed_offset": 3}
    topics = [{"name": "orders", "partitions": [partition]}]
    message = codec.build_request(
        8, 7, group_id="g", generation_id_or_member_epoch=-1, topics=topics
    )
    answer: Any = await request(node, 8, 7, message)
    return int(answer.topics[0].partitions[0].error_code)


async def test_the_sooner_of_two_intervals_writes_checkpoints(tmp_path: Path) -> None:
    async with running(
        tmp_path,
        log_flush_offset_checkpoint_interval_ms="700",
        log_flush_start_offset_checkpoint_interval_ms="300",
    ) as (node,):
        assert parts(node).logs.checkpoint_ms == 300
