"""The demo load on our brokers: what it promises to show is there to be seen."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.messages import demo
from control.model.ids import TopicPartition
from tests.support.cluster import LocalCluster
from tests.support.settle import eventually

pytestmark = pytest.mark.thorough

TIMES = 8
ORDERS_PER_S = 120 * TIMES
STUCK = TopicPartition("payments", 0)


@pytest.fixture
async def admin(our_cluster: LocalCluster) -> AsyncIterator[KafkaAdmin]:
    async with KafkaAdmin.to(our_cluster.bootstrap) as opened:
        yield opened


async def lags(admin: KafkaAdmin, group: str) -> dict[TopicPartition, int]:
    committed = await admin.groups.committed_offsets(group)
    ends = await admin.offsets.list_offsets(committed) if committed else {}
    return {key: ends[key].offset - offset for key, offset in committed.items()}


async def test_one_group_keeps_up_one_lags_and_one_is_stuck(
    our_cluster: LocalCluster, admin: KafkaAdmin
) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(demo.run(our_cluster.bootstrap, stop, times=TIMES))
    try:
        await eventually(lambda: _is_stuck_behind(admin), True)
        at = (await admin.groups.committed_offsets("fraud-check"))[STUCK]
        described = await admin.groups.describe_group("fraud-check")
        assert (described.state, len(described.members)) == ("Stable", 1)
        assert len((await admin.groups.describe_group("shipping")).members) == 2
        await eventually(lambda: _is_behind(admin, "billing", seconds=1), True)
        await eventually(lambda: _is_behind(admin, "shipping", seconds=5), False)
        assert (await admin.groups.committed_offsets("fraud-check"))[STUCK] == at
        (clicks,) = await admin.topics(["clicks"])
        assert Counter(p.replicas[0] for p in clicks.partitions) == {103: 5, 101: 1}
        await _check_hot_keys(admin)
    finally:
        stop.set()
        await running
    await demo.create_topics(admin.wire.settings)


async def _is_stuck_behind(admin: KafkaAdmin) -> bool:
    """Whether the stuck partition is far behind the others of its group."""
    if "fraud-check" not in {group.group_id for group in await admin.groups.list_groups()}:
        return False
    behind = await lags(admin, "fraud-check")
    others = [lag for key, lag in behind.items() if key != STUCK]
    return behind.get(STUCK, 0) > 150 and behind[STUCK] > 3 * max(others, default=0)


async def _is_behind(admin: KafkaAdmin, group: str, *, seconds: int) -> bool:
    """Whether it has not committed what came in so many seconds; it commits every second."""
    return sum((await lags(admin, group)).values()) > seconds * ORDERS_PER_S


async def _check_hot_keys(admin: KafkaAdmin) -> None:
    (orders,) = await admin.topics(["orders"])
    ends = await admin.offsets.list_offsets([p.key for p in orders.partitions])
    counts = sorted(at.offset for at in ends.values())
    assert counts[-1] > 2 * sum(counts) / len(counts)
