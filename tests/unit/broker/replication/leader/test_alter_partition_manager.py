"""What becomes of an ISR proposal, by the controller's answer."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from tests.support.settle import until
from tests.unit.broker.replication.rig import Rig


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.fenced_leader_epoch,
        ErrorCode.invalid_update_version,
        ErrorCode.new_leader_elected,
        ErrorCode.unknown_topic_id,
        ErrorCode.unknown_topic_or_partition,
    ],
)
async def test_an_answer_ahead_of_our_metadata_is_asked_for_once(
    tmp_path: Any, code: ErrorCode
) -> None:
    rig = Rig(tmp_path, replica_lag_time_max_ms="100")
    rig.isr_answer = code
    rig.create(1, 2)
    rig.cut = {frozenset({1, 2})}
    waiting = asyncio.create_task(rig.nodes[1].append("a"))
    await until(lambda: rig.isr_requests > 0)
    await asyncio.sleep(0.35)
    assert rig.isr_requests == 1
    assert rig.nodes[1].partition().state.proposed is not None, "until the metadata is here"
    waiting.cancel()
    await rig.close()
