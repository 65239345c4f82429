"""A topic of 50,000 records a second is followed by sampling, and the loop stays free."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.ports import NewTopic
from control.kafka.records.following import TopicFollower
from control.kafka.records.newest import NewestRecords, share_words
from control.kafka.records.reader import Start, StartKind
from control.kafka.records.record import FetchedRecord
from tests.contract.operations_rig import unique
from tests.support.cluster import LocalCluster
from tests.support.load_process import send
from tests.support.patience import WAIT_S, patience_s

pytestmark = [pytest.mark.soak, pytest.mark.timeout(180)]

WANTED_PER_S: Final = 50_000
OFFERED_PER_S: Final = 60_000
"""What is asked of the producer: its last flush takes time as well."""
RECORDS: Final = OFFERED_PER_S * 4
PARTITIONS: Final = 4
BEHIND_S_MAX: Final = patience_s(2.0)
"""So long after the producer's end the follower may have all records."""
SHOWN_MAX: Final = 100
PAINT_S: Final = 0.5
LATE_S_MAX: Final = patience_s(0.5)
"""So much later than without a follower another task of the loop may run: keys and paints are such
tasks."""


@dataclass(frozen=True, kw_only=True)
class Followed:
    """How a topic was followed while it was written to."""

    newest: NewestRecords
    shares: list[int]
    """One of so many records was shown, at each paint."""
    lates_s: list[float]
    """How late another task of the loop ran."""
    reached_per_s: float
    """Records a second that were acknowledged meanwhile."""
    behind_s: float
    """So long after the producer's end the follower had all records."""


async def test_fifty_thousand_a_second_are_sampled_and_the_loop_stays_free(
    our_cluster: LocalCluster,
) -> None:
    """Skipped where the producer does not reach 50,000 records a second without a follower either,
    before or afterwards: then the machine is too busy or too small to tell."""
    topic, alone = unique("load"), unique("alone")
    where = our_cluster.bootstrap
    async with KafkaAdmin.to(where) as admin:
        for name in (topic, alone):
            new = NewTopic(name=name, partitions=PARTITIONS, replication_factor=1)
            await admin.create_topic(new)
    late_alone_s = await _skip_if_busy(where, alone)
    found = await _follow(where, topic)
    late_s = _late_s(found.lates_s)
    print(f"{found.reached_per_s:,.0f} records a second were acknowledged", end="; ")
    print(f"all were followed {found.behind_s:.2f} s after the producer's end")
    print(f"1 of {found.shares} shown; late by at most {max(found.lates_s):.3f} s", end=", ")
    print(f"99 % below {late_s:.3f} s, {late_alone_s:.3f} s without a follower")
    if found.reached_per_s < WANTED_PER_S:
        await _skip_if_busy(where, alone)
    assert found.reached_per_s >= WANTED_PER_S, "the follower takes the producer's time"
    assert found.behind_s < BEHIND_S_MAX
    assert len(found.newest) == SHOWN_MAX
    assert found.newest.bytes < SHOWN_MAX * 20
    assert max(found.shares) > 10, "not sampled"
    assert "1 of " in share_words(max(found.shares))
    assert late_s < late_alone_s + LATE_S_MAX


async def _follow(bootstrap: str, topic: str) -> Followed:
    newest = NewestRecords(count_max=SHOWN_MAX)
    shares: list[int] = []
    async with TopicFollower(bootstrap, topic) as follower:
        await follower.begin(Start(kind=StartKind.LATEST))
        sender = asyncio.create_task(_offer_until(bootstrap, topic))
        is_over, lates_s = asyncio.Event(), list[float]()
        other = asyncio.create_task(_wake_until(is_over, lates_s))
        painted_s, seen = time.monotonic(), 0
        async with asyncio.timeout(WAIT_S):
            while seen < RECORDS:
                for item in await follower.poll(200):
                    if isinstance(item, FetchedRecord):
                        seen += 1
                        newest.append(item)
                if time.monotonic() >= painted_s + PAINT_S:
                    painted_s = time.monotonic()
                    shares.append(newest.share())
        has_all_s = time.monotonic()
        is_over.set()
        await other
        reached_per_s, ended_s = await sender
    return Followed(
        newest=newest,
        shares=shares,
        lates_s=lates_s,
        reached_per_s=reached_per_s,
        behind_s=has_all_s - ended_s,
    )


async def _wake_until(is_over: asyncio.Event, lates_s: list[float]) -> None:
    """Another task of the loop, which wants to run every 20 ms."""
    while not is_over.is_set():
        due_s = time.monotonic() + 0.02
        await asyncio.sleep(0.02)
        lates_s.append(time.monotonic() - due_s)


def _late_s(lates_s: list[float]) -> float:
    """99 of 100 times it was less."""
    return sorted(lates_s)[-max(len(lates_s) // 100, 1)]


async def _skip_if_busy(bootstrap: str, topic: str) -> float:
    """How late another task of the loop runs without a follower."""
    is_over, lates_s = asyncio.Event(), list[float]()
    other = asyncio.create_task(_wake_until(is_over, lates_s))
    reached = await _offer(bootstrap, topic)
    is_over.set()
    await other
    if reached < WANTED_PER_S:
        pytest.skip(f"without a follower {reached:,.0f} records a second were acknowledged here")
    return _late_s(lates_s)


async def _offer(bootstrap: str, topic: str) -> float:
    return await send(bootstrap, topic, per_s=OFFERED_PER_S, partitions=PARTITIONS, count=RECORDS)


async def _offer_until(bootstrap: str, topic: str) -> tuple[float, float]:
    """The rate, and when the last record was acknowledged."""
    reached = await _offer(bootstrap, topic)
    return reached, time.monotonic()
