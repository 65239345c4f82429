"""A move with a window on real brokers: its executor is killed while it waits, and another runs."""

import signal
import time as clock
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from datetime import time as day_time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.model.ids import TopicPartition
from control.move.events import EventKind, Outcome
from control.move.state import Phase
from control.move.window import MoveWindow
from control.operations.bus.client import OperationsClient, wait_for
from control.operations.reassignment.planning import Planning
from tests.contract.operations_rig import (
    ExecutorProcess,
    placement_of,
    throttles,
    topic_with_data,
    watch_until,
)

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(180)]

FROM, TO = (101, 102), (103, 102)
SOON_S = 25
"""The window opens so late, at least."""


@pytest.fixture
async def client(admin: KafkaAdmin) -> AsyncIterator[OperationsClient]:
    async with OperationsClient(admin.wire.settings.bootstrap, who="tester") as opened:
        yield opened


def window_at(opens_s: int) -> MoveWindow:
    start = datetime.fromtimestamp(opens_s, UTC).time()
    until = day_time((start.hour + 2) % 24, start.minute)
    return MoveWindow(start=start, until=until, zone=ZoneInfo("UTC"))


async def test_a_move_waits_for_its_window_while_another_runs_and_its_executor_is_killed(
    admin: KafkaAdmin, client: OperationsClient, tmp_path: Path
) -> None:
    bus = admin.wire.settings.bootstrap
    waits, other = [await topic_with_data(admin, {0: FROM}, records=10) for _ in range(2)]
    opens_s = (int(clock.time()) + SOON_S + 59) // 60 * 60

    async def submit(topic: str, window: MoveWindow | None) -> str:
        proposal = await Planning(admin).proposal({TopicPartition(topic, 0): TO})
        return await client.submit_reassign(proposal, bootstrap=bus, window=window)

    with ExecutorProcess(bus=bus, log=tmp_path / "executor.err") as executor:
        move = await submit(waits, window_at(opens_s))
        told = await watch_until(client, move, lambda state: state.is_outside_window)
        assert (told.phase, told.opens_ms) == (Phase.WAITING, opens_s * 1000)
        assert executor.end(signal.SIGKILL) == -signal.SIGKILL
        executor.__enter__()
        assert (await wait_for(client, await submit(other, None))).outcome is Outcome.DONE
        assert await placement_of(admin, waits) == {0: FROM}
        assert (await client.get(move)).is_outside_window
        ended = await wait_for(client, move)
        assert ended.outcome is Outcome.DONE, executor.said()
    begun = [step.at_ms for step in ended.moments if step.kind is EventKind.WAVE_STARTED]
    assert min(begun) >= opens_s * 1000
    assert await placement_of(admin, waits) == {0: TO}
    assert await throttles(admin, waits) == {}
