"""DescribeLogDirs, versions 1-5.

Behaviour: this broker's data directory with the sizes of its replicas (null topics: all of them)
and, from v4, the disk's total and usable bytes, from v5 whether it is cordoned. offset_lag is how
far a replica's end is behind the high watermark it knows.
Notes: one directory per node, so there are no future replicas. The metadata log is not listed,
as Kafka does not list it either.
"""

import shutil
from collections.abc import Iterable
from typing import Any

from kio.schema.errors import ErrorCode

from broker.background import Slices
from broker.handlers.large_answer import LargeAnswer
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation
from broker.metadata.authorization import CLUSTER
from broker.metadata.cordons import is_cordoned
from broker.replication.partition.partition import Partition

API_KEY = 35


@handles(api_key=API_KEY, versions=(1, 5), listener=Listener.CLIENT)
async def handle_describe_log_dirs(request: Request, node: NodeServices) -> LargeAnswer:
    """The one directory of this node; others go on in between."""
    if not node.authorization.is_allowed(request.context, Operation.DESCRIBE, CLUSTER):
        return LargeAnswer(0, error_code=ErrorCode.cluster_authorization_failed, results=[])
    topics: dict[str, list[dict[str, Any]]] = {}
    slices = Slices()
    for partition in _asked(node, request.message.topics):
        topics.setdefault(partition.topic, []).append(_describe(partition))
        await slices.pause()
    result: dict[str, Any] = {
        "error_code": ErrorCode.none,
        "log_dir": node.logs.directory,
        "topics": [{"name": name, "partitions": rows} for name, rows in sorted(topics.items())],
        "is_cordoned": is_cordoned(node.metadata.image, node.config, node.logs.directory),
    }
    try:
        usage = shutil.disk_usage(node.logs.directory)
    except OSError:
        result["error_code"] = ErrorCode.kafka_storage_error
    else:
        result |= {"total_bytes": usage.total, "usable_bytes": usage.free}
    entries = sum(map(len, topics.values()))
    return LargeAnswer(entries, error_code=ErrorCode.none, results=[result])


def _asked(node: NodeServices, topics: Any) -> Iterable[Partition]:
    if topics is None:
        return sorted(node.replicas.partitions(), key=lambda p: (p.topic, p.partition))
    named = {(topic.topic, number): None for topic in topics for number in topic.partitions}
    found = (node.replicas.partition(topic, number) for topic, number in named)
    return [partition for partition in found if partition is not None]


def _describe(partition: Partition) -> dict[str, Any]:
    log = partition.log
    return {
        "partition_index": partition.partition,
        "partition_size": log.size_bytes,
        "offset_lag": max(partition.high_watermark - log.log_end_offset, 0),
        "is_future_key": False,
    }
