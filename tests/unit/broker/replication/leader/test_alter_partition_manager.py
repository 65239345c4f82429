"""What becomes of an ISR proposal, by the controller's answer."""

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from broker.background import Rounds
from broker.replication.leader import alter_partition_manager
from tests.support.settle import TIMEOUT_S, turns, until
from tests.unit.broker.replication.rig import Rig, records


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
    for _ in range(3):
        await Rounds("scan", 0, rig.nodes[1].replicas._housekeeper.scan).run()
        await turns()
    assert rig.isr_requests == 1
    assert rig.nodes[1].partition().state.proposed is not None, "until the metadata is here"
    waiting.cancel()
    await rig.close()


async def test_proposals_of_many_partitions_travel_in_requests_of_bounded_size(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alter_partition_manager, "PROPOSALS_MAX", 6)
    rig = Rig(tmp_path, replica_lag_time_max_ms="100")
    rig.cut = {frozenset({1, 2})}
    rig.create(1, 2, partitions=15)
    appends = [rig.nodes[1].replicas.append_and_wait("t", n, records("a")) for n in range(15)]
    results = await asyncio.wait_for(asyncio.gather(*appends), TIMEOUT_S)
    assert [result.error for result in results] == [None] * 15
    assert max(rig.isr_request_partitions) == 6
    assert sum(rig.isr_request_partitions) == 15
    await rig.close()
