"""A topic of 50,000 records a second is followed by sampling, and the loop stays free."""

import asyncio
import time
from typing import Final

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.kafka.records.following import TopicFollower
from control.kafka.records.newest import NewestRecords, share_words
from control.kafka.records.reader import Start, StartKind
from control.kafka.records.record import FetchedRecord
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.steady_load import SteadyLoad

PER_S: Final = 50_000
LOAD_S: Final = 4
PARTITIONS: Final = 4
REACHED_MIN: Final = 0.25
"""Share of the load that brokers must acknowledge while other tests take the machine's time."""
SHOWN_MAX: Final = 100
PAINT_S: Final = 0.5
LATE_S_MAX: Final = 0.5
"""So late another task of the loop may run: keys and paints are such tasks."""


async def test_fifty_thousand_a_second_are_sampled_and_the_loop_stays_free(
    our_cluster: LocalCluster,
) -> None:
    topic = unique("load")
    async with KafkaAdmin.to(our_cluster.bootstrap) as admin:
        await admin.create_topic(NewTopic(name=topic, partitions=PARTITIONS, replication_factor=1))
    newest = NewestRecords(count_max=SHOWN_MAX)
    shares, lates, seen = [], [], 0
    is_over = asyncio.Event()

    async def other_task() -> None:
        while not is_over.is_set():
            due_s = time.monotonic() + 0.02
            await asyncio.sleep(0.02)
            lates.append(time.monotonic() - due_s)

    async with TopicFollower(our_cluster.bootstrap, topic) as follower:
        await follower.begin(Start(kind=StartKind.LATEST))
        load = SteadyLoad(our_cluster.bootstrap, topic, per_s=PER_S, partitions=PARTITIONS)
        sender = asyncio.create_task(asyncio.to_thread(load.send, PER_S * LOAD_S))
        task = asyncio.create_task(other_task())
        painted_s = time.monotonic()
        async with asyncio.timeout(90):
            while seen < PER_S * LOAD_S:
                for item in await follower.poll(200):
                    if isinstance(item, FetchedRecord):
                        seen += 1
                        newest.append(item)
                if time.monotonic() >= painted_s + PAINT_S:
                    painted_s = time.monotonic()
                    shares.append(newest.share())
        is_over.set()
        await task
        offered_per_s = await sender
    lates.sort()
    late_s = lates[-max(len(lates) // 100, 1)]
    print(f"{offered_per_s:,.0f} records a second were acknowledged")
    print(f"1 of {shares} shown; late by at most {lates[-1]:.3f} s, 99 % below {late_s:.3f} s")
    assert offered_per_s >= REACHED_MIN * PER_S
    assert len(newest) == SHOWN_MAX
    assert newest.bytes < SHOWN_MAX * 20
    assert max(shares) > 10, "not sampled"
    assert "1 of " in share_words(max(shares))
    assert late_s < LATE_S_MAX
