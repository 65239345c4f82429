"""Spliced Metadata responses are byte for byte those of the schema."""

from typing import Any

import pytest

from broker.protocol import codec
from broker.protocol.hot.metadata import encode_metadata, encode_topic

PARTITION: dict[str, Any] = {
    "partition_index": 3,
    "leader_id": 101,
    "leader_epoch": 5,
    "replica_nodes": [101, 102],
    "isr_nodes": [101],
    "offline_replicas": [102],
}
FIELDS: dict[str, Any] = {
    "brokers": [{"node_id": 101, "host": "h", "port": 9, "rack": "r"}],
    "cluster_id": "c",
    "controller_id": 101,
    "cluster_authorized_operations": 77,
}


@pytest.mark.parametrize("count", [0, 1, 200])
@pytest.mark.parametrize("version", range(14))
def test_same_bytes_as_the_schema(version: int, count: int) -> None:
    topics = [{"name": f"t{i}", "partitions": [PARTITION] * (i % 3)} for i in range(count)]
    spliced = encode_metadata(version, 9, [encode_topic(version, t) for t in topics], **FIELDS)
    message = codec.build_response(3, version, topics=topics, **FIELDS)
    assert spliced == codec.encode_response(3, version, 9, message)
