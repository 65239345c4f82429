"""A throttle on brokers that come and go, and beside what others set."""

from typing import Any

import pytest

from control.kafka.ports import ConfigResource, ConfigScope
from control.operations import throttling
from control.operations.adaptive import Reading
from control.operations.throttle import RATES
from control.operations.throttle_keeper import ThrottleKeeper
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
)

A = change("a")
RATE = 1 << 20


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "_SHOWN_POLL_S", 0.0)


def reading(at_s: float) -> Reading:
    return Reading(at_s=at_s, answered_in_s=0.0, busiest_bytes_per_s=None, out_of_sync=0)


def rates_on(cluster: FakeCluster, broker: int) -> set[str | None]:
    resource = ConfigResource(scope=ConfigScope.BROKER, name=str(broker))
    return {cluster.configs.get(resource, {}).get(name) for name in RATES}


def keeper_on(cluster: Any, context: FakeContext) -> ThrottleKeeper:
    return ThrottleKeeper(cluster, context.command, context)


async def ask(
    keeper: ThrottleKeeper, context: FakeContext, cluster: FakeCluster, rate: Any
) -> None:
    context.script.throttle = rate
    await keeper.tick(reading(0.0), frozenset(cluster.alive))


async def test_a_broker_that_was_away_for_many_rates_loses_the_one_that_it_kept() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    cluster.alive.remove(2)
    for more in range(1, 13):
        await ask(keeper, context, cluster, RATE + more)
    await keeper.remove()
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({None}, {str(RATE)})
    cluster.alive.add(2)
    await keeper.remove()
    assert cluster.shown() == {}
    assert context.state().throttle is None


async def test_rates_of_long_ago_are_forgotten_once_every_broker_has_the_newest() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    for more in (*range(1, 13), 7):
        await ask(keeper, context, cluster, RATE + more)
    throttle = context.state().throttle
    assert throttle is not None
    assert throttle["former_rates"] == [RATE + more for more in (5, 6, 7, 8, 9, 10, 11, 12)]
