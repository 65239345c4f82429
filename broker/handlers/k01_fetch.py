"""Fetch, versions 4-18.

Behaviour: waits up to max_wait until min_bytes are there; a batch that holds the asked offset
comes whole; one batch may exceed the limits when it is the first. Consumers read below the high
watermark (read_committed: below the last stable offset, and aborted transactions are named),
followers up to the end.
Notes: records are sent from their files without being read here. Sessions (KIP-227) are kept for
followers; consumers get session id 0, which means a full request each time. OFFSET_OUT_OF_RANGE
answers to followers carry the log's start and, as last stable offset, its end.
"""

from functools import partial
from uuid import UUID

from broker.handlers.partition_errors import (
    leader_hint,
    located_error,
    node_endpoints,
    partition_error_code,
)
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request, ResponseSlot
from broker.metadata.image import MetadataImage
from broker.protocol.errors import RequestHeader
from broker.protocol.hot.fetch import (
    FetchResult,
    TopicKey,
    decode_fetch,
    encode_fetch_response,
)
from broker.protocol.request_context import RequestContext
from broker.replication.leader.fetch_session import FetchAnswer

API_KEY = 1
PARTITION_BYTES = 1_024
"""What a partition of a fetch that waits takes in memory: position, result, places in tables."""


@handles(api_key=API_KEY, versions=(4, 18), listener=Listener.CLIENT)
def handle_fetch(request: Request, node: NodeServices, slot: ResponseSlot) -> None:
    """Read now, or when there is enough, or when time is up."""
    fetch = decode_fetch(request.header, request.frame)
    slot.hold(len(fetch.positions) * PARTITION_BYTES)
    answer = partial(_answer, request.header, request.context, node, slot)
    operation = node.replicas.fetches.fetch(fetch, answer)
    if operation is not None:
        slot.when_gone(operation.expire)  # its max_wait may be weeks


def _answer(
    header: RequestHeader,
    context: RequestContext,
    node: NodeServices,
    slot: ResponseSlot,
    answer: FetchAnswer,
) -> None:
    image = node.metadata.image
    topics: dict[TopicKey, list[FetchResult]] = {}
    for (topic, partition), data in answer.results.items():
        result = FetchResult(partition, data)
        if data.error is not None:
            result = _with_error(image, topic, result)
        topics.setdefault(topic, []).append(result)
    hints = {r.leader for results in topics.values() for r in results if r.leader is not None}
    parts = encode_fetch_response(
        header,
        list(topics.items()),
        error_code=int(partition_error_code(answer.session_error)),
        session_id=answer.session_id,
        endpoints=node_endpoints(image, hints, context.listener_name) if hints else (),
    )
    slot.complete(parts)


def _with_error(image: MetadataImage, topic: TopicKey, result: FetchResult) -> FetchResult:
    name = topic if isinstance(topic, str) else image.topic_name(UUID(bytes=topic)) or ""
    error = located_error(image, name, result.partition, result.data.error)
    return result._replace(
        error_code=int(partition_error_code(error)),
        leader=leader_hint(image, name, result.partition, error),
    )
