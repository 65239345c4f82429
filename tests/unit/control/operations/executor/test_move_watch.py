"""Who a move that does not end waits for, as its progress tells it."""

from dataclasses import replace
from typing import Any

import pytest

from control.move.throttle import FOLLOWER_RATE, LEADER_RATE
from control.operations.executor.move_watch import STANDING_AGAIN_S, MoveWatch
from control.operations.executor.stalls import STALLED_AFTER_S
from control.operations.executor.timing.copy_progress import copying_s
from control.operations.executor.timing.forecast import Forecast
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import FROM, TO, FakeCluster, change, key_of

KEY = key_of("t", 0)
MIB = 1 << 20
(NEW, STAYS), LEAVES = TO, FROM[0]


async def reasons(cluster: FakeCluster, *, for_s: float) -> list[str]:
    """What is told of a move on which nothing is left to copy, after so long."""
    cluster.begin(KEY, TO)
    admin: Any = cluster
    watch = MoveWatch(admin, (change("t"),), waves=1, forecast=Forecast())
    told: tuple[str, ...] = ()
    for now_s in (0.0, for_s):
        await watch.refresh()
        told = tuple(stalled.reason for stalled in watch.progress(wave=1, now_s=now_s).stalled)
    return list(told)


@pytest.mark.parametrize(
    ("victim", "reason"),
    [
        (NEW, ["broker 3 is down"]),
        (STAYS, ["broker 2 is down"]),
        (LEAVES, []),
    ],
    ids=["new", "stays", "leaves"],
)
async def test_a_broker_of_the_target_that_is_down_is_told_at_once(
    victim: int, reason: list[str]
) -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.alive.discard(victim)
    told = await reasons(cluster, for_s=1.0)
    assert [words.split(";")[0] for words in told] == reason
    assert ["in sync again" in words for words in told] == [victim == STAYS for _ in reason]


async def test_a_replica_that_stays_and_is_out_of_sync_is_named() -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.isr[KEY] = (LEAVES, NEW)
    (reason,) = await reasons(cluster, for_s=STALLED_AFTER_S + 1.0)
    assert not lacking(reason, "stays on broker 2", "not in sync", "log")


async def test_with_all_that_stay_in_sync_it_is_the_new_one() -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.isr[KEY] = FROM
    (reason,) = await reasons(cluster, for_s=STALLED_AFTER_S + 1.0)
    assert reason.endswith("see the target's log")


async def test_nobody_is_blamed_before_it_stands_still() -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.isr[KEY] = (LEAVES,)
    assert await reasons(cluster, for_s=STALLED_AFTER_S - 1.0) == []


async def test_a_throttle_of_somebody_else_is_named_where_it_is_lower_than_ours() -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.begin(KEY, TO)
    admin: Any = cluster
    watch = MoveWatch(admin, (change("t", size_bytes=MIB),), waves=1, forecast=Forecast())
    watch.take_standing({NEW: {FOLLOWER_RATE: 2 * MIB}})
    await watch.refresh()
    watch.progress(wave=1, now_s=0.0, throttle=5 * MIB)
    told = {
        throttle: watch.progress(wave=1, now_s=STALLED_AFTER_S + 1.0, throttle=throttle).stalled
        for throttle in (5 * MIB, MIB, None)
    }
    words = {throttle: stalled[0].reason for throttle, stalled in told.items()}
    assert "at 2.0 MiB/s" in words[5 * MIB]
    assert "as somebody else throttles broker 3" in words[5 * MIB]
    assert "at 1.0 MiB/s" in words[MIB]
    assert "without a throttle" in words[None]


def test_the_slowest_broker_is_the_last_to_have_what_it_lacks() -> None:
    missing = {(KEY, 3): 100 * MIB, (KEY, 4): 30 * MIB}
    assert copying_s(missing, 10 * MIB) == 10.0
    assert copying_s(missing, 10 * MIB, {4: MIB}) == 30.0
    assert copying_s({}, 10 * MIB) == 0.0


async def test_who_throttles_is_looked_for_again_while_something_stands_still(
    pass_s: PassS,
) -> None:
    cluster = FakeCluster({KEY: FROM})
    cluster.begin(KEY, TO)
    admin: Any = cluster
    watch = MoveWatch(admin, (change("t", size_bytes=MIB),), waves=1, forecast=Forecast())
    await watch.refresh()
    pass_s(2 * STANDING_AGAIN_S)()
    watch.progress(wave=1, now_s=0.0, throttle=5 * MIB)
    assert not watch.wants_standing, "it gets on"
    assert watch.progress(wave=1, now_s=STALLED_AFTER_S + 1.0, throttle=5 * MIB).stalled
    assert watch.wants_standing
    watch.take_standing({FROM[0]: {LEADER_RATE: MIB}, FROM[1]: {LEADER_RATE: 2 * MIB}})
    assert not watch.wants_standing, "just now"
    told = []
    for leader in FROM:
        placed = replace(watch.places.placed[KEY], leader=leader)
        watch.places = replace(watch.places, placed={KEY: placed})
        (stalled,) = watch.progress(wave=1, now_s=90.0, throttle=5 * MIB).stalled
        told.append(stalled.reason)
    assert "throttles broker 1" in told[0]
    assert "throttles broker 2" in told[1], "who leads sends"
