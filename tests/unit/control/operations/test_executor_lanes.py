"""A cluster that turns us away ends its own operation, and nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.errors import KafkaPortError
from control.kafka.settings import KafkaSettings
from control.operations.commands import THROTTLE_NONE, ReassignCommand
from control.operations.events import Event, EventKind, Outcome
from control.operations.executor import Executor, ExecutorSettings
from control.operations.state import accepted_data
from control.planner.proposal import PartitionChange

CHANGE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
COMMAND = ReassignCommand(
    operation_id="mv-1", bootstrap="secured:9092", changes=(CHANGE,), throttle=THROTTLE_NONE
)


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
    assert (memory.busy_clusters(), memory.unanswered()) == (set(), [COMMAND])

    arrived = memory.arrived
    memory.apply(accepted(COMMAND))

    assert arrived.is_set()
    assert (memory.busy_clusters(), memory.unanswered()) == ({COMMAND.bootstrap}, [])


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
    await executor._lane(nobody, COMMAND.bootstrap)

    state = executor.memory.state_of("mv-1")
    assert (state.outcome, executor.memory.busy_clusters()) == (Outcome.FAILED, set())
    assert "wrong password" in state.message
