"""Throttles that brokers have already, which govern a move as well."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.errors import UnreachableError, UnsupportedApiError
from control.kafka.ports import ConfigResource, ConfigScope
from control.model.watched_cluster import Site
from control.move.check import Check, Verdict
from control.move.events import Outcome
from control.move.state import OperationState, Phase
from control.move.throttle import (
    FOLLOWER_RATE,
    LEADER_RATE,
    RATES,
    ThrottleRecord,
)
from control.operations.executor import run as reassign_run
from control.operations.reassignment.cluster_probes import read_standing_rates
from control.operations.reassignment.planning import Planning, Preview, preview_of
from control.operations.reassignment.preflight import preflight
from control.operations.reassignment.preview import whole_preview
from control.operations.reassignment.preview_history import with_past
from control.operations.reassignment.producer_traffic import seconds_of
from planner.proposal import Proposal
from planner.waves import USUAL_WAVES
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    run,
)
from tests.unit.control.operations.reassignment.test_preflight import FACTS, KEY, MOVE

MIB = 1 << 20
WRITTEN = replace(FACTS, produced={KEY: 4.0 * MIB})
A = change("a")


def both(rate: int) -> dict[str, int]:
    return dict.fromkeys(RATES, rate)


def judged(standing: dict[int, dict[str, int]], *, rate: int = 50 * MIB) -> Check:
    facts = replace(WRITTEN, standing_rates=standing)
    checks = preflight(facts, (MOVE,), throttle_bytes_per_s=rate)
    (check,) = [check for check in checks if check.name == "throttle"]
    return check


def test_a_rate_of_somebody_else_at_which_copies_never_catch_up_is_refused() -> None:
    """Broker 1, the leader, sends 8 MiB/s of new records; 3 receives 4."""
    check = judged({1: both(6 * MIB)})
    assert check.verdict is Verdict.FAIL
    assert not lacking(
        check.reason,
        *("8.0 MiB/s", "broker 1", "leader.replication.throttled.rate", "somebody else"),
        *("6.0 MiB/s", "never catch up"),
    )
    assert "`partiscope brokers clear-throttles`" in check.reason
    both_ends = judged({1: both(MIB), 3: both(MIB)})
    assert "through broker 3" in both_ends.reason


@pytest.mark.parametrize(
    "standing",
    [
        {1: {FOLLOWER_RATE: MIB}},
        {2: both(MIB)},
        {3: {LEADER_RATE: MIB, FOLLOWER_RATE: 5 * MIB}},
        {1: both(70 * MIB)},
    ],
    ids=["receives none", "stays", "what it sends is none of ours", "more than ours"],
)
def test_one_that_copies_can_live_with_is_told_with_who_has_it(
    standing: dict[int, dict[str, int]],
) -> None:
    check = judged(standing)
    assert check.verdict is Verdict.WARN
    (broker,) = standing
    assert not lacking(check.reason, "already throttled", "somebody else")
    assert f"broker {broker} at " in check.reason
    assert "`partiscope brokers clear-throttles`" in check.reason


def test_ours_is_judged_as_well_and_without_any_nothing_is_said_of_others() -> None:
    check = judged({3: both(MIB)}, rate=6 * MIB)
    assert not lacking(check.reason, "at 6.0 MiB/s", "never catch up")
    assert not lacking(
        check.reason, "follower.replication.throttled.rate", "somebody else", "1.0 MiB/s"
    )
    assert judged({}).verdict is Verdict.OK
    facts = replace(WRITTEN, standing_rates={3: both(0)}, produced={KEY: 0.0})
    assert preflight(facts, (MOVE,), throttle_bytes_per_s=MIB)[10].verdict is Verdict.FAIL


def test_the_slowest_broker_says_how_long_it_takes() -> None:
    move = replace(MOVE, size_bytes=100 * MIB)
    facts = replace(FACTS, sizes={KEY: 100 * MIB}, standing_rates={3: both(MIB), 2: both(1024)})

    def made(throttle: Any) -> Preview:
        return preview_of(facts, Proposal(name="p", changes=(move,)), throttle=throttle)

    def said(preview: Preview) -> str:
        return next(check.reason for check in preview.checks if check.name == "time")

    there = made(10 * MIB)
    assert (there.throttle_bytes_per_s, there.lowest_bytes_per_s) == (10 * MIB, MIB)
    assert there.seconds_min is not None
    assert 90.0 < there.seconds_min < 110.0
    for it in (there, with_past(there, (), site=Site("b:1"), throttle=10 * MIB)):
        assert not lacking(said(it), "10.0 MiB/s per broker", "1.0 MiB/s", "throttled already")
    adaptive = made("auto").seconds_min
    assert adaptive is not None
    assert adaptive > 90.0, "what somebody else has set does not grow"


def test_a_slow_broker_that_carries_little_holds_nobody_up() -> None:
    large = replace(MOVE, size_bytes=100 * MIB)
    small = replace(MOVE, partition=1, after=(4, 2), size_bytes=MIB)
    usual = seconds_of([(large, small)], rate=MIB, produced={})
    assert seconds_of([(large, small)], rate=MIB, produced={}, lower={4: MIB // 2}) == usual


def throttled(broker: int, value: str) -> dict[ConfigResource, dict[str, str]]:
    return {ConfigResource(scope=ConfigScope.BROKER, name=str(broker)): dict.fromkeys(RATES, value)}


async def test_rates_are_read_of_brokers_between_which_data_moves() -> None:
    cluster: Any = FakeCluster({A.key: FROM})
    cluster.configs = throttled(2, "777") | throttled(3, "888") | throttled(4, "999")
    assert await read_standing_rates(cluster, [A]) == {2: both(777), 3: both(888)}
    assert await read_standing_rates(cluster, [A], except_on=[3]) == {2: both(777)}
    cluster.alive.remove(2)
    assert await read_standing_rates(cluster, [A]) == {3: both(888)}
    assert await read_standing_rates(cluster, [replace(A, after=(2, 1))]) == {}


async def test_a_run_is_refused_where_what_somebody_else_has_set_starves_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def written(*_: Any) -> dict[Any, float]:
        return {A.key: 1.0 * MIB}

    monkeypatch.setattr(reassign_run, "measure_produced", written)
    cluster, context = FakeCluster({A.key: FROM}), FakeContext(command_of(A, throttle=9 * MIB))
    cluster.configs = throttled(3, "2048")
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.REFUSED
    assert not lacking(ended.message, "broker 3", "`partiscope brokers clear-throttles`")


class FakeMoves:
    """A bus that knows one move, or does not answer."""

    def __init__(self, state: OperationState | None) -> None:
        self.state = state

    async def list(self) -> list[OperationState]:
        if self.state is None:
            raise UnreachableError("bus", reason="gone", next_step="wait")
        return [self.state]


async def test_what_a_running_move_of_ours_has_set_is_not_called_somebody_elses() -> None:
    async def no_groups() -> Any:
        raise UnsupportedApiError("list groups", served=None)

    cluster: Any = FakeCluster({A.key: FROM})
    cluster.groups = SimpleNamespace(list_groups=no_groups)
    cluster.configs = throttled(1, "2048") | throttled(3, "4096")
    record = ThrottleRecord(rate=2048, brokers=(1,), entries={"b": {}})
    runs = OperationState(
        operation_id="mv-0", phase=Phase.RUNNING, bootstrap="c:1", throttle=record.document()
    )

    async def told(state: OperationState | None) -> str:
        moves: Any = FakeMoves(state)
        proposal = Proposal(name="p", changes=(A,))
        preview = await whole_preview(
            Planning(cluster), moves, proposal, site=Site("c:1"), throttle=MIB, rules=USUAL_WAVES
        )
        assert preview.checks[-1].name == "other operators"
        return next(check.reason for check in preview.checks if check.name == "throttle")

    assert "broker 3 at 4.0 KiB/s;" in await told(runs)
    everywhere = "brokers 1 at 2.0 KiB/s, 3 at 4.0 KiB/s;"
    assert everywhere in await told(replace(runs, bootstrap="d:1"))
    assert everywhere in await told(None), "who knows whose they are"
