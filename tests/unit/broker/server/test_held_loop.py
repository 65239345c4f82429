"""No request holds the loop: others are answered while one asks for thousands of things."""

import asyncio
import gc
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from broker.protocol import codec
from broker.server.node import Node
from tests.support.patience import patience_s
from tests.unit.broker.server.nodes import parts, request, running

NAMES: Final = 2_000
HELD_S_MAX: Final = patience_s(0.25)
"""Of CPU, in one turn of the loop."""


async def _watched(work: Any) -> tuple[Any, float]:
    """What the work answers, and the longest time on the CPU between two turns of the loop."""
    longest, task = 0.0, asyncio.ensure_future(work)
    gc.disable()  # it would look at what all tests have left
    try:
        while not task.done():
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
    finally:
        gc.enable()
    return await task, longest


def _topics(names: Sequence[str]) -> list[dict[str, Any]]:
    return [{"name": name, "num_partitions": 1, "replication_factor": 1} for name in names]


async def _ask(node: Node, api: tuple[int, int], **fields: Any) -> Any:
    message = await asyncio.to_thread(codec.build_request, *api, **fields)
    answer, held_s = await _watched(request(node, *api, message))
    assert held_s < HELD_S_MAX, f"API {api[0]} held the loop for {held_s * 1000:.0f} ms"
    return answer


async def test_thousands_of_topics_in_one_request_hold_nobody_up(tmp_path: Path) -> None:
    names = [f"topic_{number}.x" for number in range(NAMES)]
    async with running(tmp_path, num_partitions="1") as (node,):
        answer = await _ask(node, (19, 7), topics=_topics(names), timeout=30_000)
        assert [topic.name for topic in answer.topics] == names
        assert {int(topic.error_code) for topic in answer.topics} == {0}
        assert len(answer.topics[0].configs) > 20
        asked = [
            {"resource_type": 2, "resource_name": name, "configuration_keys": None}
            for name in names[:500]
        ]
        answer = await _ask(node, (32, 4), resources=asked)
        assert len(answer.results) == 500
        deleted = [{"name": name, "topic_id": None} for name in names]
        answer = await _ask(node, (20, 6), topics=deleted, timeout=30_000)
        assert [topic.name for topic in answer.responses] == names
        assert not parts(node).metadata.image.topics


async def test_more_records_than_an_operation_may_make_are_refused(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):
        topics = _topics([f"t{number}" for number in range(5_001)])
        answer = await _ask(node, (19, 7), topics=topics, timeout=30_000)
        assert {int(topic.error_code) for topic in answer.topics} == {44}
        assert "excessively large" in answer.topics[0].error_message
        assert not parts(node).metadata.image.topics
