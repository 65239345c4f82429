"""A throttle on brokers that come and go, and beside what others set."""

from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.ports import ConfigResource, ConfigScope
from control.move.events import EventKind
from control.move.throttle import RATES
from control.operations.errors import FencedError
from control.operations.executor.move_watch import MoveWatch
from control.operations.executor.throttles import throttle_on_cluster
from control.operations.executor.throttles.adaptive_throttle import Reading
from control.operations.executor.throttles.throttle_of_move import MoveThrottle
from control.operations.executor.timing.forecast import Forecast
from control.operations.reassignment.producer_traffic import AUTO_FLOOR_BYTES_PER_S, SETTLE_S
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
)

A = change("a")
RATE = 1 << 20


def reading(at_s: float, *, out_of_sync: int = 0) -> Reading:
    return Reading(at_s=at_s, answered_in_s=0.0, busiest_bytes_per_s=None, out_of_sync=out_of_sync)


def rates_on(cluster: FakeCluster, broker: int) -> set[str | None]:
    resource = ConfigResource(scope=ConfigScope.BROKER, name=str(broker))
    return {cluster.configs.get(resource, {}).get(name) for name in RATES}


def keeper_on(cluster: Any, context: FakeContext) -> MoveThrottle:
    return MoveThrottle(cluster, context.command, context)


async def ask(keeper: MoveThrottle, context: FakeContext, cluster: FakeCluster, rate: Any) -> None:
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


async def test_an_automatic_rate_has_a_floor_where_nobody_writes() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle="auto"))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    for number in range(20):
        trouble = reading(number * SETTLE_S, out_of_sync=number)
        await keeper.tick(trouble, frozenset(cluster.alive))
    assert keeper.rate == AUTO_FLOOR_BYTES_PER_S


async def test_replicas_on_dead_brokers_do_not_count_as_out_of_sync() -> None:
    b = change("b")
    cluster = FakeCluster({A.key: FROM, b.key: FROM})
    cluster.isr = {A.key: (1,), b.key: (1,)}
    admin: Any = cluster
    watch = MoveWatch(admin, (A, b), waves=1, forecast=Forecast())
    await watch.refresh()
    assert watch.reading(0.0).out_of_sync == 2
    cluster.alive.remove(2)
    await watch.refresh()
    assert watch.reading(1.0).out_of_sync == 0


async def test_rates_that_somebody_else_set_while_a_broker_was_away_stay() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    cluster.alive.remove(2)
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    theirs = ConfigResource(scope=ConfigScope.BROKER, name="2")
    cluster.configs[theirs] = dict.fromkeys(RATES, "777")
    cluster.alive.add(2)
    await keeper.tick(reading(0.0), frozenset(cluster.alive))
    assert context.tidied == {2}
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({str(RATE)}, {"777"})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "brokers 2", "somebody else", "stays")
    await keeper.tick(reading(1.0), frozenset(cluster.alive))
    assert len(context.said(EventKind.NOTE)) == 1
    await keeper.remove()
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({None}, {"777"})
    assert context.state().throttle is None


async def test_a_run_that_was_stopped_after_its_proof_sets_no_throttle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    proofs = iter(range(1, 3))

    async def lost_after_the_first() -> None:
        if next(proofs) > 1:
            raise FencedError("another executor owns the operations")

    monkeypatch.setattr(context, "hold", lost_after_the_first)
    with pytest.raises(FencedError):
        await keeper_on(cluster, context).begin({})
    assert cluster.shown() == {}


async def test_a_throttle_is_removed_also_where_looking_takes_longer_than_the_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    changes = [change(f"t{n}") for n in range(5)]
    command = command_of(*changes, throttle=RATE)
    cluster, context = FakeCluster({c.key: FROM for c in changes}), FakeContext(command)
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([c.key for c in changes])
    assert cluster.shown() != {}
    clock = SimpleNamespace(monotonic=lambda: cluster.clock_s)
    monkeypatch.setattr(throttle_on_cluster, "time", clock)
    before_s = cluster.clock_s
    await keeper.remove()
    assert context.said(EventKind.THROTTLE_REMOVED) == ["throttle removed"]
    assert cluster.clock_s - before_s == 4 * 30.0, "two passes, however many topics"


async def test_a_rate_asked_for_after_none_is_set_also_by_the_run_after_a_crash() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    cluster.alive.remove(2)
    await ask(keeper, context, cluster, "none")
    assert cluster.shown() == {f"2 {name}": str(RATE) for name in RATES}
    for asked in ("auto", RATE):
        context.script.throttle = asked
        again = keeper_on(cluster, context)
        await again.begin({})
        assert rates_on(cluster, 1) == {str(again.rate)} != {None}
        await ask(again, context, cluster, "none")
    cluster.alive.add(2)
    await again.remove()
    assert cluster.shown() == {}


async def test_brokers_left_out_for_a_rate_of_somebody_else_are_told_once() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    theirs = ConfigResource(scope=ConfigScope.BROKER, name="2")
    cluster.configs[theirs] = dict.fromkeys(RATES, "777")
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "brokers 2", "throttle of somebody else", "stays")
    assert context.said(EventKind.THROTTLE_RECORDED) == ["throttle 1.0 MiB/s on brokers 1, 3"]
    await ask(keeper, context, cluster, "none")
    await ask(keeper, context, cluster, 2 * RATE)
    await keeper_on(cluster, context).begin({})
    assert context.said(EventKind.NOTE) == [note]
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({str(2 * RATE)}, {"777"})


async def test_where_every_broker_is_throttled_by_others_no_empty_list_is_told() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    for broker in ("1", "2", "3"):
        theirs = ConfigResource(scope=ConfigScope.BROKER, name=broker)
        cluster.configs[theirs] = dict.fromkeys(RATES, "777")
    await keeper_on(cluster, context).begin({})
    (recorded,) = context.said(EventKind.THROTTLE_RECORDED)
    assert not lacking(recorded, "1.0 MiB/s", "no broker")
    assert len(context.said(EventKind.NOTE)) == 1


async def test_a_broker_that_kept_a_rate_of_ours_is_not_called_somebody_elses() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    cluster.alive.remove(2)
    await ask(keeper, context, cluster, "none")
    cluster.alive.add(2)
    context.script.throttle = 2 * RATE
    await keeper_on(cluster, context).begin({})
    assert rates_on(cluster, 2) == {str(2 * RATE)}
    assert context.said(EventKind.NOTE) == []


@pytest.mark.parametrize("after", ["a reading that lacks a broker", "a crash"])
async def test_a_rate_that_another_tool_removed_is_told_and_not_set_in_silence(after: str) -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await context.emit(EventKind.WAVE_STARTED, "wave 1", wave=1)
    await keeper.begin_wave([A.key])
    everybody, concerned = frozenset(cluster.alive), {*FROM, *A.after}
    for broker in concerned:
        whose = ConfigResource(scope=ConfigScope.BROKER, name=str(broker))
        cluster.configs[whose] = {}
    if after == "a crash":
        keeper = keeper_on(cluster, context)
        await keeper.begin({})
        await keeper.begin_wave([A.key])
    else:
        await keeper.tick(reading(0.0), everybody - {2})
        await keeper.tick(reading(1.0), everybody)
    changes = await keeper.foreign_changes(everybody, {A.topic})
    assert {(change.whose, change.now) for change in changes} == {(it, None) for it in concerned}
    await keeper.set_again(changes)
    assert all(rates_on(cluster, broker) == {str(RATE)} for broker in concerned)
