"""Producers that wait for replicas: memory is bounded however long they wait, and whoever left."""

from collections import deque
from typing import Any

import pytest

from broker.log.log_validator import AppendInfo
from broker.replication.errors import AppendTimedOutError
from broker.replication.partition.partition import Partition, PendingAppend
from broker.replication.timer_wheel import TICK_MS, TimerWheel
from tests.unit.broker.log.helpers import FakeClock

WEEKS_MS = 24 * 86_400_000


def _pending(partition: Partition, answers: list[AppendInfo]) -> PendingAppend:
    result = AppendInfo(0, 0, -1, 0)
    return PendingAppend(result, answers.append, partition.append_expired)


def _partition() -> Any:
    partition: Any = Partition.__new__(Partition)
    partition.pending_appends = deque()
    partition._expired_appends = 0
    return partition


def test_a_queue_that_is_stuck_lets_go_of_those_whose_time_is_over() -> None:
    partition, answers = _partition(), list[AppendInfo]()
    patient = _pending(partition, answers)
    partition.pending_appends.append(patient)
    for _ in range(1000):
        pending = _pending(partition, answers)
        partition.pending_appends.append(pending)
        pending.expire()
        assert len(partition.pending_appends) <= 3
    assert patient in partition.pending_appends
    assert len(answers) == 1000
    assert all(isinstance(answer.error, AppendTimedOutError) for answer in answers)


async def test_timeouts_of_weeks_leave_few_ticks_behind() -> None:
    clock = FakeClock()
    wheel = TimerWheel(clock)
    partition, answers = _partition(), list[AppendInfo]()
    for number in range(20_000):
        clock.now_ms += TICK_MS
        waiter = _pending(partition, answers)
        wheel.add(waiter, WEEKS_MS >> (number % 20))
        wheel.remove(waiter)
    assert len(wheel) == 0
    assert len(wheel._ticks) == len(wheel._buckets) < 3000
    wheel.close()


@pytest.mark.parametrize("wait_ms", [0, 1, 500, 30_000, WEEKS_MS])
async def test_a_wait_is_never_cut_short_and_hardly_longer(wait_ms: int) -> None:
    clock = FakeClock()
    wheel = TimerWheel(clock)
    waiter = _pending(_partition(), [])
    wheel.add(waiter, wait_ms)
    waits_ms = waiter.wheel_tick * TICK_MS - clock.now_ms
    assert wait_ms <= waits_ms <= wait_ms * 1.04 + TICK_MS
    wheel.close()
