"""A cluster that turns us away ends its own operation, and nothing else."""

from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.errors import KafkaPortError
from control.kafka.settings import KafkaSettings
from control.operations.commands import THROTTLE_NONE, ReassignCommand
from control.operations.events import Event, Outcome
from control.operations.executor import Executor, ExecutorSettings
from control.planner.proposal import PartitionChange

CHANGE = PartitionChange(topic="t", partition=0, before=(1,), after=(2,), size_bytes=0)
COMMAND = ReassignCommand(
    operation_id="mv-1", bootstrap="secured:9092", changes=(CHANGE,), throttle=THROTTLE_NONE
)


async def test_who_is_turned_away_fails_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Secured:
        async def describe_cluster(self) -> None:
            raise KafkaPortError("not let in", reason="wrong password", next_step="set it right")

    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    executor.memory.take(COMMAND)

    async def emit(event: Event) -> None:
        executor.memory.apply(event)

    nobody: Any = SimpleNamespace()
    monkeypatch.setattr(executor, "emit", emit)
    monkeypatch.setattr(executor, "_admin_of", lambda _: Secured())
    await executor._lane(nobody, COMMAND.bootstrap)

    state = executor.memory.state_of("mv-1")
    assert (state.outcome, executor.memory.busy_clusters()) == (Outcome.FAILED, set())
    assert "wrong password" in state.message
