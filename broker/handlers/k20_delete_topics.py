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
from broker.controller.topics import decide_delete_topics
from broker.handlers.controller_apis import controller_api, run_in_steps, verdict_fields
from broker.protocol import codec

API_KEY: Final = 20
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
    wanted = _wanted(message, version)
    topics = active.image.topics

    def topic_id(key: str | UUID) -> str | UUID:
        return topics[key].topic_id if isinstance(key, str) and key in topics else key

    verdicts = await run_in_steps(
        active.run,
        wanted,
        topic_id,
        lambda step, image: decide_delete_topics(step, image, active.topic_defaults),
    )
    responses = [
        {**_key_fields(key, verdict), **verdict_fields(verdict)}
        for key, verdict in ((key, verdicts[key]) for key in dict.fromkeys(wanted))
    ]
    return codec.build_response(API_KEY, version, responses=[*responses, *ambiguous])


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
