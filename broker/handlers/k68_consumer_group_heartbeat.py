"""ConsumerGroupHeartbeat, versions 0-1 (KIP-848).

Behaviour: joins, follows and leaves a group of the consumer protocol; the coordinator assigns. The
answer carries an assignment where it is new to the member.
Notes: version 0 may leave the member's id to the coordinator; version 1 has regular expressions in
the syntax of RE2, which name those topics that the principal may describe.
"""

import uuid
from collections.abc import Iterable
from functools import partial
from typing import Any

import re2
from kio.schema.errors import ErrorCode

from broker.coordinator.consumer.consumer_heartbeat import ConsumerHeartbeat, HeartbeatAnswer
from broker.coordinator.consumer.consumer_member import Assigned
from broker.handlers.registry import Right, handles
from broker.handlers.services import NodeServices, Request
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY = 68


@handles(
    api_key=API_KEY,
    versions=(0, 1),
    rights=(Right(Operation.READ, ResourceKind.GROUP, "group_id"),),
)
async def handle_consumer_group_heartbeat(request: Request, node: NodeServices) -> Any:
    """A sign of life, with what has changed since the one before."""
    message, version = request.message, request.api_version
    asked = _asked(request)
    regex = asked.regex
    if regex and (reason := _why_no_regex(regex)):
        error = ErrorCode.invalid_regular_expression
        return codec.build_response(API_KEY, version, error_code=error, error_message=reason)
    named = asked.topics or ()
    refused = await node.authorization.refused(
        request.context, Operation.DESCRIBE, ResourceKind.TOPIC, named
    )
    if refused:
        error = ErrorCode.topic_authorization_failed
        return codec.build_response(API_KEY, version, error_code=error)
    answer = await node.groups.consumers.heartbeat(
        message.group_id, asked, partial(_matching, request, node)
    )
    return _build(answer, version, node)


def _asked(request: Request) -> ConsumerHeartbeat:
    message = request.message
    owned = message.topic_partitions
    member_id = message.member_id
    if not member_id and request.api_version == 0 and message.member_epoch == 0:
        member_id = str(uuid.uuid4())
    topics = message.subscribed_topic_names
    return ConsumerHeartbeat(
        member_id=member_id,
        epoch=message.member_epoch,
        instance_id=message.instance_id,
        rack_id=message.rack_id,
        rebalance_timeout_ms=round(1_000 * message.rebalance_timeout.total_seconds()),
        topics=None if topics is None else frozenset(topics),
        regex=getattr(message, "subscribed_topic_regex", None),
        assignor=message.server_assignor,
        owned=None if owned is None else _owned(owned),
        client_id=request.header.client_id or "",
        client_host=f"/{request.context.client_host}",
    )


def _owned(topics: Iterable[Any]) -> Assigned:
    return {it.topic_id: frozenset(it.partitions) for it in topics if it.partitions}


def _why_no_regex(regex: str) -> str:
    try:
        re2.compile(regex)
    except re2.error as error:
        words = str(error.args[0].decode() if isinstance(error.args[0], bytes) else error)
        return f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {words}."
    return ""


def _matching(request: Request, node: NodeServices, regex: str) -> frozenset[str]:
    """Topics that an expression names and the principal may see."""
    pattern = re2.compile(regex)
    named = [name for name in node.metadata.image.topics if pattern.fullmatch(name)]
    return frozenset(named) - node.authorization.refused_now(
        request.context, Operation.DESCRIBE, ResourceKind.TOPIC, named, is_told=False
    )


def _build(answer: HeartbeatAnswer, version: int, node: NodeServices) -> Any:
    assignment = None
    if answer.assignment is not None:
        topics = [
            {"topic_id": topic, "partitions": sorted(partitions)}
            for topic, partitions in answer.assignment.items()
        ]
        assignment = {"topic_partitions": topics}
    is_fine = answer.error.code is ErrorCode.none
    interval_ms = node.groups.config.consumer_heartbeat_interval_ms
    return codec.build_response(
        API_KEY,
        version,
        error_code=answer.error.code,
        error_message=answer.reason,
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval=interval_ms if is_fine and answer.epoch >= 0 else 0,
        assignment=assignment,
    )
