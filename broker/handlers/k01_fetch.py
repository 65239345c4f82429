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
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from broker.handlers.partition_errors import (
    leader_hint,
    located_error,
    node_endpoints,
    partition_error_code,
)
from broker.handlers.registry import handles
from broker.handlers.request_time import RequestTime
from broker.handlers.services import Listener, NodeServices, Request, ResponseSlot
from broker.handlers.topic_view import topic_name
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
from broker.metadata.client_quotas import ClientQuotas
from broker.metadata.image import MetadataImage
from broker.protocol.errors import RequestHeader
from broker.protocol.hot.fetch import (
    FetchRequest,
    FetchResult,
    PartitionData,
    TopicKey,
    TopicPartitionKey,
    decode_fetch,
    encode_fetch_response,
)
from broker.protocol.request_context import RequestContext
from broker.replication.leader.fetch_reader import CONSUMER
from broker.replication.leader.fetch_session import FetchAnswer

API_KEY = 1
BYTES_MAX = 2**31 - 1
PARTITION_BYTES = 1_024
"""What a partition of a fetch that waits takes in memory: position, result, places in tables."""


@handles(api_key=API_KEY, versions=(4, 18), listener=Listener.CLIENT)
def handle_fetch(request: Request, node: NodeServices, slot: ResponseSlot) -> None:
    """Read now, or when there is enough, or when time is up."""
    fetch = decode_fetch(request.header, request.frame)
    slot.hold(len(fetch.positions) * PARTITION_BYTES)
    refused: list[TopicPartitionKey] = []
    if node.authorization.is_enabled:
        refused = _refused(fetch, request.context, node)
        allowed = {key: it for key, it in fetch.positions.items() if key not in set(refused)}
        fetch = fetch._replace(positions=allowed)
    largest = node.quotas.fetch.largest(request.context) if node.quotas.fetch.is_set else None
    if largest is not None and fetch.replica_id == CONSUMER:
        bytes_max = min(fetch.max_bytes, int(min(largest, BYTES_MAX)))
        min_bytes = min(fetch.min_bytes, bytes_max)
        fetch = fetch._replace(max_bytes=bytes_max, min_bytes=min_bytes)
    # The frame is not there any more when a fetch that waited is answered.
    asked = _Asked(request.header, request.context, request.time, fetch.replica_id == CONSUMER)
    answer = partial(_answer, asked, node, slot, refused=refused)
    if fetch.replica_id != CONSUMER and refused:
        answer(FetchAnswer({}))
        return
    operation = node.replicas.fetches.fetch(fetch, answer)
    if operation is not None:
        slot.when_gone(operation.expire)  # its max_wait may be weeks


class _Asked(NamedTuple):
    """A request without its frame."""

    header: RequestHeader
    context: RequestContext
    time: RequestTime | None
    is_consumer: bool


def _answer(
    asked: _Asked,
    node: NodeServices,
    slot: ResponseSlot,
    answer: FetchAnswer,
    *,
    refused: list[TopicPartitionKey],
) -> None:
    image = node.metadata.image
    topics: dict[TopicKey, list[FetchResult]] = {}
    for (topic, partition), data in answer.results.items():
        result = FetchResult(partition, data)
        if data.error is not None:
            result = _with_error(image, topic, result)
        topics.setdefault(topic, []).append(result)
    for topic, partition in refused:
        denied = FetchResult(partition, PartitionData(), ErrorCode.topic_authorization_failed)
        topics.setdefault(topic, []).append(denied)
    hints = {r.leader for results in topics.values() for r in results if r.leader is not None}
    parts = encode_fetch_response(
        asked.header,
        list(topics.items()),
        error_code=int(partition_error_code(answer.session_error)),
        session_id=answer.session_id,
        endpoints=node_endpoints(image, hints, asked.context.listener_name) if hints else (),
    )
    if asked.is_consumer and node.quotas.is_enabled:
        throttle_ms = _throttle_ms(asked, int.from_bytes(parts[0][:4], "big"), node.quotas)
        if throttle_ms:
            slot.throttle(throttle_ms)
            parts = encode_fetch_response(asked.header, (), throttle_ms=throttle_ms)
    slot.complete(parts)


def _throttle_ms(asked: _Asked, size_bytes: int, quotas: ClientQuotas) -> int:
    """A client that is throttled gets no records, so that none are counted."""
    spent_ns = 0 if asked.time is None else asked.time.spent_ns
    of_time = quotas.record_request(asked.context, spent_ns)
    of_bytes = quotas.fetch.record(asked.context, size_bytes)
    if of_time or of_bytes:
        quotas.fetch.take_back(asked.context, size_bytes)
    return max(of_time, of_bytes)


def _refused(
    fetch: FetchRequest, context: RequestContext, node: NodeServices
) -> list[TopicPartitionKey]:
    """Partitions that the principal may not read; followers need a right of their own."""
    authorization, image = node.authorization, node.metadata.image
    if fetch.replica_id != CONSUMER:
        is_allowed = authorization.is_allowed(context, Operation.CLUSTER_ACTION, CLUSTER)
        return [] if is_allowed else list(fetch.positions)
    names = {topic: topic_name(image, topic) for topic, _ in fetch.positions}
    known = [name for name in names.values() if name is not None]
    refused = authorization.refused_now(context, Operation.READ, ResourceKind.TOPIC, known)
    return [key for key in fetch.positions if names[key[0]] in refused]


def _with_error(image: MetadataImage, topic: TopicKey, result: FetchResult) -> FetchResult:
    name = topic_name(image, topic) or ""
    error = located_error(image, name, result.partition, result.data.error)
    return result._replace(
        error_code=int(partition_error_code(error)),
        leader=leader_hint(image, name, result.partition, error),
    )
