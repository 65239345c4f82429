"""A cluster that turns us away ends its own operation, and nothing else."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, RefusedError
from control.move.commands import ReassignCommand
from control.move.events import Event, EventKind, Outcome
from control.move.state import accepted_data
from control.move.throttle import THROTTLE_NONE
from control.operations.executor import executor as executor_module
from control.operations.executor.executor import REMOVE_AGAIN_S, Executor, ExecutorSettings
from planner.proposal import PartitionChange
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    run,
)

CHANGE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
COMMAND = ReassignCommand(
    operation_id="mv-1", bootstrap="secured:9092", changes=(CHANGE,), throttle=THROTTLE_NONE
)


A = change("a")


class FakeTime:
    """A clock that a test sets."""

    def __init__(self, clock: SimpleNamespace) -> None:
        self._clock = clock

    def monotonic(self) -> float:
        return float(self._clock.now_s)

    def time(self) -> float:
        return 1.0


def accepted(command: ReassignCommand) -> Event:
    return Event(
        operation_id=command.operation_id,
        kind=EventKind.ACCEPTED,
        at_ms=1,
        data=accepted_data(command),
    )


async def test_what_was_not_accepted_yet_is_not_begun() -> None:
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    memory = executor.memory
    memory.take(COMMAND)
    assert (memory.busy_clusters(), memory.unjudged()) == (set(), [COMMAND])

    arrived = memory.arrived
    memory.apply(accepted(COMMAND))

    assert arrived.is_set()
    assert memory.busy_clusters() == {COMMAND.site}


LEAVING = command_of(A, throttle=1 << 20)
"""Broker 1 does not let its throttle go at the end."""


async def left_behind(
    monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster, said: list[str]
) -> Executor:
    """An executor after that."""
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=said.append)
    cluster.removal_refusals[1] = RefusedError(ErrorCode.policy_violation, what="configs of 1")
    context = FakeContext(LEAVING)
    await run(cluster, context, cluster.arrive)
    executor.memory.take(LEAVING)
    for event in context.events:
        executor.memory.apply(event)

    async def emit(event: Event) -> None:
        executor.memory.apply(event)

    monkeypatch.setattr(executor, "emit", emit)
    monkeypatch.setattr(executor, "_admin_of", lambda _: cluster)
    return executor


@pytest.fixture
def ownership() -> Any:
    """Ours for good."""

    async def hold() -> None:
        """It is."""

    return SimpleNamespace(hold=hold)


@pytest.mark.parametrize("at_once", [True, False], ids=["before another runs", "now and then"])
async def test_a_throttle_that_may_not_be_removed_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, ownership: Any, at_once: bool
) -> None:
    cluster, said = FakeCluster({A.key: FROM}), list[str]()
    executor = await left_behind(monkeypatch, cluster, said)
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(executor_module, "time", FakeTime(clock))
    for _ in range(3):
        await executor.remove_left_throttles(ownership, LEAVING.site)
    why = "configs of 1 was refused: policy violation (POLICY_VIOLATION)"
    assert said == [f"mv-1: its throttle is still there: {why}"]
    cluster.removal_refusals.clear()
    await executor.remove_left_throttles(ownership, LEAVING.site)
    assert cluster.shown() != {}, "not tried again so soon"
    clock.now_s += 0.0 if at_once else REMOVE_AGAIN_S
    await executor.remove_left_throttles(ownership, LEAVING.site, at_once=at_once)
    assert (cluster.shown(), executor.memory.busy_clusters()) == ({}, set())


async def test_while_another_runs_what_it_took_for_somebody_elses_throttle_stays(
    monkeypatch: pytest.MonkeyPatch, ownership: Any
) -> None:
    """Or its brokers would have none."""
    cluster = FakeCluster({A.key: FROM})
    executor = await left_behind(monkeypatch, cluster, [])
    cluster.removal_refusals.clear()
    back = replace(command_of(A.inverse()), operation_id="mv-2")
    executor.memory.take(back)
    executor.memory.apply(accepted(back))
    context = executor_module._Context(executor, ownership, "mv-2")
    before = {name for name in cluster.shown() if name[0] in "123"}
    await context.remove_left_throttles()
    assert {name for name in cluster.shown() if name[0] in "123"} == before != set()
    await context.remove_left_throttles(also_on={1, 2, 3})
    assert cluster.shown() == {}, "one that returns gets ours"


async def test_who_is_turned_away_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Secured:
        async def describe_cluster(self) -> None:
            raise KafkaPortError("not let in", reason="wrong password", next_step="set it right")

    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    executor.memory.take(COMMAND)
    executor.memory.apply(accepted(COMMAND))

    async def emit(event: Event) -> None:
        executor.memory.apply(event)

    nobody: Any = SimpleNamespace()
    monkeypatch.setattr(executor, "emit", emit)
    monkeypatch.setattr(executor, "_admin_of", lambda _: Secured())
    await executor._lane(nobody, COMMAND.site)

    state = executor.memory.state_of("mv-1")
    assert (state.outcome, executor.memory.busy_clusters()) == (Outcome.FAILED, set())
    assert "wrong password" in state.message
