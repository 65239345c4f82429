"""Requests that name a thing twice over, or not at all."""

from pathlib import Path
from uuid import uuid4

from broker.protocol import codec
from tests.unit.broker.server.nodes import create_topic, replica, request, running

INVALID_REQUEST = 42


async def test_a_topic_to_delete_is_named_by_name_or_by_id(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "orders")
        topics = [{"name": "orders", "topic_id": uuid4()}, {"name": None, "topic_id": None}]
        answer = await request(node, 20, 6, codec.build_request(20, 6, topics=topics))
        told = {str(it.name): (int(it.error_code), it.error_message) for it in answer.responses}
        assert told == {
            "orders": (INVALID_REQUEST, "You may not specify both topic name and topic id."),
            "None": (INVALID_REQUEST, "Neither topic name nor id were specified."),
        }
        assert replica(node, "orders") is not None
