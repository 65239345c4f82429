"""DeleteRecords, versions 0-2.

Behaviour: moves the log's start to the offset (-1: to the high watermark) and answers with the
low watermark once every live replica has followed, or after the request's timeout with
REQUEST_TIMED_OUT. An offset beyond the high watermark is OFFSET_OUT_OF_RANGE; an internal
topic is INVALID_TOPIC_EXCEPTION, one that is only compacted POLICY_VIOLATION. Of a partition named
twice the last offset counts, and it is answered once.
Notes: space is freed by the segment, at the next retention check.
"""

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from broker.handlers.partition_errors import located_error, partition_error_code
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.topic_names import INTERNAL_TOPICS
from broker.protocol import codec

API_KEY = 21


@handles(api_key=API_KEY, versions=(0, 2), listener=Listener.CLIENT)
async def handle_delete_records(request: Request, node: NodeServices) -> Any:
    """All partitions at once, each with its own verdict."""
    message = request.message
    timeout_ms = int(message.timeout.total_seconds() * 1000)
    offsets = {
        (topic.name, asked.partition_index): asked.offset
        for topic in message.topics
        for asked in topic.partitions
    }
    names = dict.fromkeys(topic for topic, _ in offsets)
    refused = await node.authorization.refused(
        request.context, Operation.DELETE, ResourceKind.TOPIC, names
    )
    answers = await asyncio.gather(
        *(
            _refuse(number)
            if topic in refused
            else _delete(node, topic, number, offset, timeout_ms)
            for (topic, number), offset in offsets.items()
        )
    )
    topics: dict[str, list[dict[str, Any]]] = {topic.name: [] for topic in message.topics}
    for (topic, _), answer in zip(offsets, answers, strict=True):
        topics[topic].append(answer)
    return codec.build_response(
        API_KEY,
        request.api_version,
        topics=[{"name": name, "partitions": rows} for name, rows in topics.items()],
    )


async def _refuse(number: int) -> dict[str, Any]:
    return _answer(number, ErrorCode.topic_authorization_failed)


async def _delete(
    node: NodeServices, topic: str, number: int, offset: int, timeout_ms: int
) -> dict[str, Any]:
    if topic in INTERNAL_TOPICS:
        return _answer(number, ErrorCode.invalid_topic_exception)
    outcome = await node.replicas.delete_records(topic, number, offset, timeout_ms=timeout_ms)
    if isinstance(outcome, Exception):
        error = located_error(node.metadata.image, topic, number, outcome)
        return _answer(number, partition_error_code(error))
    return _answer(number, ErrorCode.none, outcome)


def _answer(number: int, code: ErrorCode, low_watermark: int = -1) -> dict[str, Any]:
    return {"partition_index": number, "low_watermark": low_watermark, "error_code": code}
