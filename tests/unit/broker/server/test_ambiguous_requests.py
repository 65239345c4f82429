"""Requests that name a thing twice over, or not at all."""

from pathlib import Path
from uuid import uuid4

from broker.protocol import codec
from tests.support.phrases import lacking
from tests.unit.broker.server.nodes import create_topic, replica, request, running

INVALID_REQUEST = 42


async def test_a_topic_to_delete_is_named_by_name_or_by_id(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        await create_topic([node], "orders")
        topics = [{"name": "orders", "topic_id": uuid4()}, {"name": None, "topic_id": None}]
        answer = await request(node, 20, 6, codec.build_request(20, 6, topics=topics))
        both, neither = answer.responses
        assert (both.name, int(both.error_code)) == ("orders", INVALID_REQUEST)
        assert not lacking(both.error_message, "both topic name and topic id")
        assert (neither.name, int(neither.error_code)) == (None, INVALID_REQUEST)
        assert not lacking(neither.error_message, "Neither topic name nor id")
        assert replica(node, "orders") is not None
