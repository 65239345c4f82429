"""Followers of very many partitions name them piece by piece: no request holds a broker up."""

import asyncio
from typing import Any

import pytest

from broker.protocol import codec
from broker.replication.follower import replica_fetcher
from tests.support.settle import until
from tests.unit.broker.replication.rig import Channel, Rig, records, values

PARTITIONS = 35
LIMIT = 10


async def test_a_session_of_many_partitions_is_opened_in_pieces(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica_fetcher, "POSITIONS_MAX", LIMIT)
    named: list[int] = []
    waits_ms: list[int] = []

    def deliver(self: Channel, frame: bytes, respond: Any) -> None:
        request = codec.decode_request(frame).message
        named.append(sum(len(topic.partitions) for topic in request.topics))
        waits_ms.append(int(request.max_wait.total_seconds() * 1000))
        send(self, frame, respond)

    send = Channel._deliver
    monkeypatch.setattr(Channel, "_deliver", deliver)
    rig = Rig(tmp_path, nodes=2)
    rig.create(1, 2, partitions=PARTITIONS)
    await until(lambda: sum(named) >= PARTITIONS)
    assert sum(named) == PARTITIONS, "each is named once"
    assert named[:3] == [LIMIT] * 3
    assert waits_ms[:3] == [0, 0, 0], "nobody waits for records while positions are missing"
    appended = [
        rig.nodes[1].replicas.append_and_wait("t", p, records("a"), acks=-1, timeout_ms=9_000)
        for p in range(PARTITIONS)
    ]
    assert [result.error for result in await asyncio.gather(*appended)] == [None] * PARTITIONS
    assert all(values(rig.nodes[2].partition("t", p)) == ["a"] for p in range(PARTITIONS))
    assert max(named) <= LIMIT
    rig.change(partition=7, replicas=(1,), isr=(1,))
    await until(lambda: not rig.nodes[1].partition("t", 7).sessions)
    await rig.close()
