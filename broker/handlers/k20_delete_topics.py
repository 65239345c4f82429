"""DeleteTopics, versions 1-6.

Behaviour: executed by the active controller; from version 6 topics may be named by id, but not by
both or by nothing (INVALID_REQUEST). The files go after file.delete.delay.ms.
"""

from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from broker.controller.active_controller import ActiveController
from broker.controller.controller_channel import ControllerRequest
from broker.controller.decision import Accepted, Verdict
from broker.controller.security.quota_control import MutationCharge
from broker.controller.topics import decide_delete_topics
from broker.handlers.controller_apis import (
    NOT_AUTHORIZED,
    controller_api,
    run_in_steps,
    verdict_fields,
)
from broker.metadata.acls import Operation, ResourceKind
from broker.protocol import codec

API_KEY: Final = 20
STRICT_SINCE: Final = 5
"""Older versions are never refused for a quota."""
VERSION_WITH_IDS: Final = 6


def _refuse(version: int, message: Any, error: ErrorCode, reason: str) -> Any:
    responses = []
    for key in _wanted(message, version):
        named = {"name": None, "topic_id": key} if isinstance(key, UUID) else {"name": key}
        responses.append({**named, "error_code": error, "error_message": reason})
    return codec.build_response(API_KEY, version, responses=responses)


@controller_api(API_KEY, versions=(1, 6), refuse=_refuse)
async def execute_delete_topics(active: ActiveController, request: ControllerRequest) -> Any:
    """Delete topics as the active controller."""
    message, version = request.message, request.api_version
    ambiguous = _ambiguous(message, version)
    named = _wanted(message, version)
    refused = await _refused(active, request, named)
    wanted = [key for key in named if key not in refused]
    topics = active.image.topics

    def topic_id(key: str | UUID) -> str | UUID:
        return topics[key].topic_id if isinstance(key, str) and key in topics else key

    charge = MutationCharge(active.quotas, request.context, is_strict=version >= STRICT_SINCE)
    verdicts = await run_in_steps(
        active.run,
        wanted,
        topic_id,
        lambda step, image: decide_delete_topics(step, image, active.topic_defaults, charge),
    )
    responses = [
        {**_key_fields(key, verdict), **verdict_fields(verdict)}
        for key, verdict in ((key, verdicts[key]) for key in dict.fromkeys(wanted))
    ]
    answers = [*responses, *refused.values(), *ambiguous]
    return codec.build_response(
        API_KEY, version, throttle_time=charge.throttle_ms, responses=answers
    )


async def _refused(
    active: ActiveController, request: ControllerRequest, named: list[str | UUID]
) -> dict[str | UUID, dict[str, Any]]:
    """Answers about topics that the principal may not delete; a name that only the id led to is
    told to who may describe the topic."""
    authorization, context = active.authorization, request.context
    image, kind = active.image, ResourceKind.TOPIC
    names = {key: image.topic_name(key) if isinstance(key, UUID) else key for key in named}
    known = [name for name in names.values() if name is not None]
    hidden = await authorization.refused(context, Operation.DESCRIBE, kind, known)
    kept = await authorization.refused(context, Operation.DELETE, kind, known)
    error = ErrorCode.topic_authorization_failed
    told = {"error_code": error, "error_message": NOT_AUTHORIZED[error]}
    answers: dict[str | UUID, dict[str, Any]] = {}
    for key, name in names.items():
        if name in hidden or name in kept:
            is_told = name not in hidden or not isinstance(key, UUID)
            id_ = key if isinstance(key, UUID) else None
            answers[key] = {"name": name if is_told else None, "topic_id": id_, **told}
    return answers


def _ambiguous(message: Any, version: int) -> list[dict[str, Any]]:
    """Answers about topics with a name and an id, or with neither, in Kafka's words."""
    topics = message.topics if version >= VERSION_WITH_IDS else ()
    both = "You may not specify both topic name and topic id."
    neither = "Neither topic name nor id were specified."
    return [
        {
            "name": topic.name,
            "topic_id": topic.topic_id,
            "error_code": ErrorCode.invalid_request,
            "error_message": both if topic.topic_id else neither,
        }
        for topic in topics
        if (topic.name is None) is (topic.topic_id is None)
    ]


def _wanted(message: Any, version: int) -> list[str | UUID]:
    if version < VERSION_WITH_IDS:
        return list(message.topic_names)
    return [
        topic.topic_id or topic.name
        for topic in message.topics
        if (topic.name is None) is not (topic.topic_id is None)
    ]


def _key_fields(key: str | UUID, verdict: Verdict[tuple[str, UUID]]) -> dict[str, Any]:
    if isinstance(verdict, Accepted):
        name, topic_id = verdict.value
        return {"name": name, "topic_id": topic_id}
    if isinstance(key, UUID):
        return {"name": None, "topic_id": key}
    return {"name": key}
