"""Brokers that are down while a throttle is set: nobody waits for what was never there."""

from collections.abc import Mapping
from typing import Any

import pytest

from control.kafka.ports import ConfigResource, ConfigScope
from control.move.events import EventKind, Outcome
from control.move.throttle import ThrottleRecord
from control.operations.executor.throttles.throttle_of_move import FORMER_RATES_MAX
from tests.unit.control.operations.executor.test_throttle_of_move import (
    RATE,
    A,
    ask,
    keeper_on,
    rates_on,
    reading,
)
from tests.unit.control.operations.fake_cluster import (
    FROM,
    TO,
    FakeCluster,
    FakeContext,
    command_of,
    run,
)

DEAD = 1


class Watched(FakeCluster):
    """Notes what was recorded as each rate came to the broker that was dead."""

    def __init__(self) -> None:
        super().__init__({A.key: FROM})
        self.alive.remove(DEAD)
        self.context = FakeContext(command_of(A, throttle=RATE))
        self.recorded: list[ThrottleRecord] = []

    async def alter_many_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> None:
        throttle = self.context.state().throttle
        if ConfigResource(scope=ConfigScope.BROKER, name=str(DEAD)) in changes:
            assert throttle is not None
            self.recorded.append(ThrottleRecord.parse(throttle))
        await super().alter_many_configs(changes)


def rested(cluster: Watched) -> list[int]:
    """Brokers that are waited for."""
    throttle = cluster.context.state().throttle
    return [] if throttle is None else throttle["brokers"]


async def test_a_dead_broker_is_evacuated_and_keeps_no_throttle_that_it_never_had() -> None:
    cluster = Watched()
    context = cluster.context

    def arrive() -> None:
        assert rates_on(cluster, TO[0]) == {str(RATE)}
        cluster.arrive()

    ended = await run(cluster, context, arrive)
    assert (ended.outcome, ended.throttle, cluster.shown()) == (Outcome.DONE, None, {})
    assert context.said(EventKind.THROTTLE_REMOVED) == ["throttle removed"]


async def test_who_was_down_and_came_back_is_waited_for_when_it_dies_again() -> None:
    cluster = Watched()
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    cluster.alive.add(DEAD)
    await keeper.tick(reading(0.0), frozenset(cluster.alive))
    assert rates_on(cluster, DEAD) == {str(RATE)}
    assert [record.unreached for record in cluster.recorded] == [()], "recorded before it was set"
    cluster.alive.remove(DEAD)
    await ask(keeper, cluster.context, cluster, RATE + 1)
    await keeper.remove()
    assert rested(cluster) == [DEAD]
    cluster.alive.add(DEAD)
    await keeper.remove()
    assert (rested(cluster), cluster.shown()) == ([], {})


async def test_what_a_crash_may_have_left_on_a_broker_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It came back, that was recorded, and nobody knows whether the rate was set."""
    cluster = Watched()
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    cluster.alive.add(DEAD)

    async def crash(*_: Any) -> None:
        raise ConnectionAbortedError

    with monkeypatch.context() as patched:
        patched.setattr(cluster, "alter_many_configs", crash)
        with pytest.raises(ConnectionAbortedError):
            await keeper.tick(reading(0.0), frozenset(cluster.alive))
    cluster.alive.remove(DEAD)
    again = keeper_on(cluster, cluster.context)
    await again.begin({})
    await again.remove()
    assert rested(cluster) == [DEAD]


async def test_a_broker_that_comes_back_unseen_is_not_touched_before_that_is_recorded() -> None:
    """It returns after the record was written, and before the rates are set."""
    cluster = Watched()
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    cluster.alive.add(DEAD)
    await keeper.remove()
    assert (rested(cluster), cluster.recorded, cluster.shown()) == ([], [], {})


async def test_rates_asked_for_while_a_broker_was_down_are_not_kept_for_it() -> None:
    cluster = Watched()
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    for more in range(1, 2 * FORMER_RATES_MAX):
        await ask(keeper, cluster.context, cluster, RATE + more)
    throttle = cluster.context.state().throttle
    assert throttle is not None
    assert len(throttle["former_rates"]) == FORMER_RATES_MAX
    assert throttle["unreached"] == [DEAD]


async def test_a_broker_that_kept_a_rate_is_waited_for_also_after_another_is_set() -> None:
    """None is asked for, then another rate, while it is down."""
    cluster = Watched()
    cluster.alive.add(DEAD)
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    cluster.alive.remove(DEAD)
    for asked in ("none", RATE + 1):
        await ask(keeper, cluster.context, cluster, asked)
    await keeper.remove()
    assert rested(cluster) == [DEAD]
    assert rates_on(cluster, DEAD) == {str(RATE)}


@pytest.mark.parametrize(
    ("registered", "left"),
    [(None, [DEAD]), ({2, 3, 4}, []), ({1, 2, 3, 4}, [DEAD]), ({2}, [DEAD])],
    ids=["not told", "unregistered", "registered", "half told"],
)
async def test_a_broker_that_the_cluster_has_forgotten_is_not_waited_for(
    registered: set[int] | None, left: list[int]
) -> None:
    cluster = Watched()
    cluster.alive.add(DEAD)
    keeper = keeper_on(cluster, cluster.context)
    await keeper.begin({})
    cluster.alive.remove(DEAD)
    cluster.registered = None if registered is None else frozenset(registered)
    await keeper.remove()
    assert rested(cluster) == left
    assert {resource.name for resource in cluster.configs if cluster.configs[resource]} == {
        str(DEAD)
    }


def test_a_record_of_an_older_release_may_have_reached_all() -> None:
    record = ThrottleRecord(rate=1, brokers=(1, 2), entries={}, unreached=(2,))
    assert ThrottleRecord.parse(record.document()) == record
    older = record.document()
    del older["unreached"]
    assert ThrottleRecord.parse(older).unreached == ()
