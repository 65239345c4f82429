"""The name of the metadata log, asked for by clients and by a record that an older build took."""

import os
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from broker.controller.decision import Decision
from broker.metadata.records import MetadataRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from broker.protocol import codec
from broker.server.node import Node
from tests.unit.broker.server.nodes import create_topic, parts, request, running, until

METADATA_TOPIC: Final = "__cluster_metadata"
TOPIC_AUTHORIZATION_FAILED: Final = 29
UNKNOWN_TOPIC_OR_PARTITION: Final = 3


async def _create(node: Node, **fields: Any) -> int:
    topic = {"name": METADATA_TOPIC, "num_partitions": 1, "replication_factor": 1}
    message = codec.build_request(19, 7, topics=[topic], timeout=5000, **fields)
    return int((await request(node, 19, 7, message)).topics[0].error_code)


async def test_no_client_makes_it(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        assert await _create(node) == TOPIC_AUTHORIZATION_FAILED
        assert await _create(node, validate_only=True) == TOPIC_AUTHORIZATION_FAILED
        message = codec.build_request(3, 9, topics=[{"name": METADATA_TOPIC}])
        answer = await request(node, 3, 9, message)
        assert int(answer.topics[0].error_code) == UNKNOWN_TOPIC_OR_PARTITION
        assert METADATA_TOPIC not in parts(node).metadata.image.topics


async def test_a_record_that_makes_or_deletes_it_leaves_the_log_alone(tmp_path: Path) -> None:
    topic_id = uuid4()
    made: tuple[MetadataRecord, ...] = (
        TopicRecord(name=METADATA_TOPIC, topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=number, topic_id=topic_id, replicas=(101,), isr=(101,), leader=101
            )
            for number in range(40)
        ),
    )
    async with running(tmp_path) as (node,):
        active = parts(node).controller.active
        await active.run(lambda image: Decision(made, None))
        await create_topic([node], "orders")
    assert [name for name in os.listdir(tmp_path / "101") if name.endswith("-delete")] == []
    async with running(tmp_path) as (node,):
        image = parts(node).metadata.image
        assert image.topics[METADATA_TOPIC].topic_id == topic_id
        assert "orders" in image.topics
        active = parts(node).controller.active
        await active.run(lambda image: Decision((RemoveTopicRecord(topic_id=topic_id),), None))
        await until(lambda: METADATA_TOPIC not in parts(node).metadata.image.topics)
    directories = [name for name in os.listdir(tmp_path / "101") if name.startswith("__")]
    assert directories == [f"{METADATA_TOPIC}-0"]
