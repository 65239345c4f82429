"""Throttles that the cluster refuses: for good, or until it has time."""

from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.errors import RefusedError
from control.kafka.ports import ConfigResource, ConfigScope
from control.move.events import EventKind, Outcome
from control.move.throttle import RATES
from control.operations.executor.catching_up import CatchUpWatch
from control.operations.executor.throttles.throttle_of_move import REFUSED_AGAIN_S
from control.operations.reassignment.producer_traffic import SETTLE_S
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.executor.test_throttle_of_move import (
    RATE,
    ask,
    keeper_on,
    rates_on,
    reading,
)
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

REFUSED = RefusedError(ErrorCode.cluster_authorization_failed, what="configs of broker 2")
TIMED_OUT = RefusedError(ErrorCode.request_timed_out, what="configs of broker 1")
NOT_LISTED = RefusedError(ErrorCode.request_timed_out, what="configs of b")
A, B = change("a"), change("b")


async def test_a_change_that_the_cluster_refuses_leaves_the_rate_of_before_and_the_move() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    cluster.config_refusals[2] = REFUSED
    for at_s in (0.0, 1.0, 2.0):
        context.script.throttle = 5 * RATE
        await keeper.tick(reading(at_s), frozenset(cluster.alive))
    assert keeper.rate == RATE
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({str(RATE)}, {str(RATE)})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "stays at 1.0 MiB/s", "broker 2", "refused")

    await keeper.tick(reading(REFUSED_AGAIN_S), frozenset(cluster.alive))
    assert context.state().message == note, "also when it was tried again"

    other = 6 * RATE  # Another wish is tried at once, and refused as well.
    context.script.throttle = other
    await keeper.tick(reading(REFUSED_AGAIN_S + 3.0), frozenset(cluster.alive))
    tried = len(context.said(EventKind.THROTTLE_RECORDED))
    del cluster.config_refusals[2]
    await keeper.tick(reading(2 * REFUSED_AGAIN_S + 2.9), frozenset(cluster.alive))
    assert len(context.said(EventKind.THROTTLE_RECORDED)) == tried, "not tried again so soon"
    assert await keeper.tick(reading(2 * REFUSED_AGAIN_S + 3.0), frozenset(cluster.alive))
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({str(other)}, {str(other)})
    await keeper.remove()
    assert cluster.shown() == {}


async def test_a_rate_that_is_refused_also_after_a_crash_leaves_the_one_of_before() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    await keeper_on(cluster, context).begin({})
    context.script.throttle = 5 * RATE
    cluster.config_refusals[2] = REFUSED
    again = keeper_on(cluster, context)
    await again.begin({})
    assert (again.rate, rates_on(cluster, 1), rates_on(cluster, 2)) == (
        RATE,
        {str(RATE)},
        {str(RATE)},
    )
    assert len(context.said(EventKind.NOTE)) == 1
    del cluster.config_refusals[2]
    assert await again.tick(reading(0.0), frozenset(cluster.alive))
    assert rates_on(cluster, 2) == {str(5 * RATE)}


async def test_a_throttle_that_may_not_be_set_later_leaves_none() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    cluster.config_refusals[2] = REFUSED
    await ask(keeper, context, cluster, RATE)
    assert (keeper.rate, rates_on(cluster, 1)) == (None, {None})
    assert not lacking(context.said(EventKind.NOTE)[0], "no throttle", "configs of")


async def test_a_rate_that_may_not_be_adapted_stays() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle="auto"))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    began = keeper.rate
    cluster.config_refusals[2] = RefusedError(ErrorCode.policy_violation, what="broker 2")
    alive = frozenset(cluster.alive)
    await keeper.tick(reading(0.0), alive)
    await keeper.tick(reading(SETTLE_S, out_of_sync=1), alive)
    assert (keeper.rate, rates_on(cluster, 2)) == (began, {str(began)})
    assert len(context.said(EventKind.NOTE)) == 1


async def test_a_rate_that_stays_on_a_broker_is_not_forgotten() -> None:
    """Broker 1 takes it, 2 refuses it, and then 1 does not let it go."""
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    cluster.config_refusals[2], cluster.removal_refusals[1] = REFUSED, TIMED_OUT
    await ask(keeper, context, cluster, RATE)
    assert (keeper.rate, rates_on(cluster, 1)) == (None, {str(RATE)})
    cluster.removal_refusals.clear()
    await keeper.remove()
    assert (cluster.shown(), context.state().throttle) == ({}, None)


async def test_a_broker_that_kept_a_rate_that_another_refused_gets_the_one_of_before() -> None:
    """Broker 1 has taken it, and then answers nothing in time."""
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    first = ConfigResource(scope=ConfigScope.BROKER, name="1")
    cluster.configs[first] = dict.fromkeys(RATES, str(5 * RATE))
    cluster.config_refusals |= {1: TIMED_OUT, 2: REFUSED}
    await ask(keeper, context, cluster, 5 * RATE)
    assert (keeper.rate, rates_on(cluster, 1)) == (RATE, {str(5 * RATE)})
    cluster.config_refusals.clear()
    context.script.throttle = RATE  # The wish is taken back.
    await keeper.tick(reading(REFUSED_AGAIN_S), frozenset(cluster.alive))
    assert (rates_on(cluster, 1), rates_on(cluster, 2)) == ({str(RATE)}, {str(RATE)})
    await keeper.remove()
    assert cluster.shown() == {}


async def test_a_halving_that_is_refused_is_tried_again() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle="auto"))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    began, alive = keeper.rate or 0, frozenset(cluster.alive)
    await keeper.tick(reading(0.0), alive)
    cluster.config_refusals[2] = REFUSED
    await keeper.tick(reading(SETTLE_S, out_of_sync=50), alive)
    assert keeper.rate == began
    cluster.config_refusals.clear()
    await keeper.tick(reading(SETTLE_S + REFUSED_AGAIN_S, out_of_sync=50), alive)
    assert keeper.rate == began // 2


async def test_a_throttle_that_cannot_be_removed_makes_no_failure_of_what_arrived() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    cluster.removal_refusals[2] = REFUSED
    ended = await run(cluster, context, cluster.arrive)
    assert (ended.outcome, ended.message) == (Outcome.DONE, "done: 1 of 1 partition moved")
    assert any("its removal is tried again" in note for note in ended.notes)
    assert ended.throttle is not None, "known, for who tidies"


async def test_where_a_list_is_refused_what_has_arrived_waits_to_leave_it_and_all_arrives() -> None:
    together = WaveRules(partitions=2)
    cluster = FakeCluster({A.key: FROM, B.key: FROM})
    context = FakeContext(command_of(A, B, throttle=RATE, waves=together))

    def arrive_refusing() -> None:
        cluster.arrive(B.key)
        cluster.list_refusals["b"] = NOT_LISTED

    def arrive() -> None:
        cluster.list_refusals.clear()
        cluster.arrive()

    ended = await run(cluster, context, arrive_refusing, idle, arrive)
    assert (ended.outcome, cluster.shown()) == (Outcome.DONE, {})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "arrived", "still throttled", str(NOT_LISTED))


async def test_lists_that_were_refused_are_mended_half_a_minute_later() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    keeper, watch = keeper_on(cluster, context), CatchUpWatch()
    await keeper.begin({})
    await keeper.begin_wave([A.key])
    cluster.list_refusals["a"] = NOT_LISTED
    for at_s in (0.0, 1.0):
        await keeper.tick(reading(at_s), frozenset(cluster.alive))
        await keeper.let_go([A.key], watch)
    cluster.list_refusals.clear()
    await keeper.let_go([A.key], watch)
    lists = {name for name in cluster.shown() if name.startswith("a ")}
    assert len(lists) == 2, "not so soon"
    await keeper.tick(reading(REFUSED_AGAIN_S), frozenset(cluster.alive))
    await keeper.let_go([A.key], watch)
    assert not any(name.startswith("a ") for name in cluster.shown())


async def test_a_wave_waits_for_its_throttle_and_does_not_begin_without() -> None:
    cluster = FakeCluster({A.key: FROM, B.key: FROM})
    context = FakeContext(command_of(A, B, throttle=RATE))

    def arrive_refusing() -> None:
        cluster.arrive(A.key)
        cluster.list_refusals["b"] = NOT_LISTED

    def still() -> None:
        assert cluster.targets == {}

    def let() -> None:
        still()
        cluster.list_refusals.clear()

    ended = await run(cluster, context, arrive_refusing, still, let, cluster.arrive)
    assert (ended.outcome, cluster.shown()) == (Outcome.DONE, {})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "next wave waits", str(NOT_LISTED))


async def test_a_wave_that_waits_for_its_throttle_can_be_cancelled() -> None:
    cluster = FakeCluster({A.key: FROM, B.key: FROM})
    context = FakeContext(command_of(A, B, throttle=RATE))

    def arrive_refusing() -> None:
        cluster.arrive(A.key)
        cluster.list_refusals["b"] = NOT_LISTED

    def cancel() -> None:
        context.script.is_cancelled = True

    ended = await run(cluster, context, arrive_refusing, cancel)
    assert ended.outcome is Outcome.CANCELLED
    assert cluster.placed == {A.key: A.after, B.key: FROM}
    assert cluster.asked == [{A.key: A.after}], "B was never asked to move"


async def test_the_first_wave_does_not_wait_for_what_may_never_come() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=RATE))
    cluster.list_refusals["a"] = NOT_LISTED
    with pytest.raises(RefusedError):
        await run(cluster, context)
    assert cluster.asked == []


async def test_after_a_crash_a_broker_that_refuses_its_throttle_ends_no_move() -> None:
    """It was down when the throttle was set."""
    cluster = FakeCluster({A.key: FROM})
    cluster.alive.remove(2)
    context = begun(command_of(A, throttle=RATE), wave=1)
    await keeper_on(cluster, context).begin({})
    cluster.alive.add(2)
    cluster.config_refusals[2] = TIMED_OUT
    cluster.begin(A.key, A.after)
    ended = await run(cluster, context, cluster.config_refusals.clear, cluster.arrive)
    assert (ended.outcome, cluster.shown()) == (Outcome.DONE, {})
    (note,) = context.said(EventKind.NOTE)
    assert not lacking(note, "not every broker", "throttle", str(TIMED_OUT))


async def test_a_broker_that_dies_with_a_rate_that_another_refused_is_not_forgotten() -> None:
    cluster: Any = FakeCluster({A.key: FROM})
    context = FakeContext(command_of(A))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    cluster.config_refusals[2] = REFUSED
    alter = cluster.alter_many_configs

    async def dies(changes: Any) -> None:
        try:
            await alter(changes)
        finally:
            cluster.alive.discard(1)

    cluster.alter_many_configs = dies
    await ask(keeper, context, cluster, RATE)
    cluster.alter_many_configs = alter
    assert (keeper.rate, rates_on(cluster, 1)) == (None, {str(RATE)})
    cluster.alive.add(1)
    await keeper.tick(reading(1.0), frozenset(cluster.alive))
    assert (cluster.shown(), context.state().throttle) == ({}, None)


async def test_a_wish_that_is_refused_keeps_nobody_from_halving() -> None:
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle="auto"))
    keeper = keeper_on(cluster, context)
    await keeper.begin({})
    began, alive = keeper.rate or 0, frozenset(cluster.alive)
    cluster.config_refusals[2] = REFUSED
    await ask(keeper, context, cluster, 9 * began)
    cluster.config_refusals.clear()
    await keeper.tick(reading(SETTLE_S, out_of_sync=50), alive)
    assert keeper.rate == began // 2
