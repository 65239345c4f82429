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

from kio.schema.errors import ErrorCode

from broker.handlers.partition_errors import (
    leader_hint,
    located_error,
    node_endpoints,
    partition_error_code,
)
from broker.handlers.registry import handles
from broker.handlers.services import Listener, NodeServices, Request, ResponseSlot
from broker.handlers.topic_view import topic_name
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.authorization import CLUSTER
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
    answer = partial(_answer, request.header, request.context, node, slot, refused=refused)
    if fetch.replica_id != CONSUMER and refused:
        answer(FetchAnswer({}))
        return
    operation = node.replicas.fetches.fetch(fetch, answer)
    if operation is not None:
        slot.when_gone(operation.expire)  # its max_wait may be weeks


def _answer(
    header: RequestHeader,
    context: RequestContext,
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
        header,
        list(topics.items()),
        error_code=int(partition_error_code(answer.session_error)),
        session_id=answer.session_id,
        endpoints=node_endpoints(image, hints, context.listener_name) if hints else (),
    )
    slot.complete(parts)


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
