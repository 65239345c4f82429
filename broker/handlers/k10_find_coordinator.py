"""FindCoordinator, versions 0-6.

Behaviour: a group (key type 0) is coordinated by the leader of its partition of __consumer_offsets,
a transactional id (1) by that of __transaction_state; each is created when the first one asks
(waits up to CREATE_TIMEOUT_S). Until the partition has a leader the answer is
COORDINATOR_NOT_AVAILABLE, which clients retry.
Notes: from v4 several keys are asked at once. Share groups (2) have no coordinator here:
INVALID_REQUEST with the reason, which clients report instead of retrying.
"""

import asyncio
from typing import Any

from kio.schema.errors import ErrorCode

from broker.coordinator.config import partition_for
from broker.handlers.registry import handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.metadata.topic_names import OFFSETS_TOPIC, TRANSACTION_TOPIC
from broker.protocol import codec

API_KEY = 10
GROUP_KEY_TYPE = 0
CREATE_TIMEOUT_S = 3.0
_TOPICS = {GROUP_KEY_TYPE: OFFSETS_TOPIC, 1: TRANSACTION_TOPIC}
_KINDS = {
    GROUP_KEY_TYPE: (ResourceKind.GROUP, ErrorCode.group_authorization_failed),
    1: (ResourceKind.TRANSACTIONAL_ID, ErrorCode.transactional_id_authorization_failed),
}
_KEY_TYPE_NAMES = {2: "share groups"}


@handles(api_key=API_KEY, versions=(0, 6))
async def handle_find_coordinator(request: Request, node: NodeServices) -> Any:
    """Where each key is coordinated."""
    message, version = request.message, request.api_version
    key_type = getattr(message, "key_type", GROUP_KEY_TYPE)
    keys = message.coordinator_keys if version >= 4 else (message.key,)
    kind, error = _KINDS.get(key_type, _KINDS[GROUP_KEY_TYPE])
    refused = await node.authorization.refused(request.context, Operation.DESCRIBE, kind, keys)
    if key_type in _TOPICS and not refused.issuperset(keys):
        await ensure_topic(node, _TOPICS[key_type])
    listener_name = request.context.listener_name
    answers = [
        _refusal(key, error, error.name.upper())
        if key in refused
        else _coordinator(key, key_type, node, listener_name)
        for key in keys
    ]
    if version >= 4:
        # Of what Kafka serves, it gives messages only in the older versions, and there in any case.
        answers = [it if _is_not_served(it) else {**it, "error_message": ""} for it in answers]
        return codec.build_response(API_KEY, version, coordinators=answers)
    answer = answers[0]
    del answer["key"]
    return codec.build_response(API_KEY, version, **answer)


async def ensure_topic(node: NodeServices, name: str) -> None:
    """Have an internal topic made if it is missing; it may still be missing afterwards."""
    if name in node.metadata.image.topics:
        return
    try:
        async with asyncio.timeout(CREATE_TIMEOUT_S):
            await node.controller.ensure_internal_topic(name)
    except OSError:
        # No time or no controller (it may be electing): the client asks again.
        return


def _coordinator(key: str, key_type: int, node: NodeServices, listener_name: str) -> dict[str, Any]:
    if key_type not in _TOPICS:
        what = _KEY_TYPE_NAMES.get(key_type, f"keys of type {key_type}")
        return _refusal(key, ErrorCode.invalid_request, f"This broker coordinates no {what}.")
    image = node.metadata.image
    topic = image.topics.get(_TOPICS[key_type])
    if topic is not None and topic.partitions:
        leader = topic.partitions[partition_for(key, len(topic.partitions))].leader
        broker = image.brokers.get(leader)
        endpoint = None if broker is None else broker.endpoint(listener_name)
        if endpoint is not None and broker is not None and not broker.fenced:
            found = {"key": key, "node_id": broker.id, "host": endpoint.host, "port": endpoint.port}
            return {**found, "error_code": ErrorCode.none, "error_message": "NONE"}
    return _refusal(key, ErrorCode.coordinator_not_available, "The coordinator is not available.")


def _is_not_served(answer: dict[str, Any]) -> bool:
    return answer["error_code"] is ErrorCode.invalid_request


def _refusal(key: str, error: ErrorCode, reason: str) -> dict[str, Any]:
    refused = {"key": key, "node_id": -1, "host": "", "port": -1}
    return {**refused, "error_code": error, "error_message": reason}
