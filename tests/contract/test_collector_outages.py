"""The collector while nodes hang, die and come back: it says so, goes on, recovers alone."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from control.kafka.settings import KafkaSettings
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KafkaCluster, ready_admin

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(300)]


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    """Three nodes with a topic whose every partition is everywhere."""
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka") as started:
        admin = ready_admin(**{"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic("orders", 6, 3)])["orders"].result(30)
        yield started


async def test_nodes_that_hang_die_and_return(cluster: KafkaCluster) -> None:
    settings = KafkaSettings(
        bootstrap=cluster.bootstrap, request_timeout_ms=3_000, connect_timeout_ms=1_000
    )
    async with collecting(settings) as (collector, collected):

        def led() -> set[int]:
            rows = collected.leaders.items()
            return {row.leader for key, row in rows if key.topic == "orders"}

        def failing() -> set[int]:
            brokers = collector.report().brokers
            return {broker.broker for broker in brokers if broker.failure}

        def in_sync() -> set[int]:
            rows = collected.leaders.items()
            return {len(row.isr) for key, row in rows if key.topic == "orders"}

        def round_ms(broker: int) -> int:
            return collected.rounds[broker][0].envelope.round_ms

        await becomes(led, {101, 102, 103})

        # One hangs: the others' rounds go on, its own wait.
        cluster.processes[103].send_signal(signal.SIGSTOP)
        await asyncio.sleep(1.0)  # rounds that were under way are over
        stuck_ms, other_ms = round_ms(103), round_ms(101)
        await becomes(lambda: round_ms(101) > other_ms + 3_000, True)
        assert round_ms(103) == stuck_ms
        await becomes(lambda: 103 in failing() or collected.brokers[103].fenced, True)
        cluster.processes[103].send_signal(signal.SIGCONT)
        await becomes(lambda: round_ms(103) > stuck_ms, True)
        await becomes(lambda: (failing(), collected.brokers[103].fenced), (set(), False))

        # One dies: it is listed as fenced, its partitions are led elsewhere.
        cluster.kill(102)
        await becomes(lambda: collected.brokers[102].fenced, True)
        await becomes(
            lambda: {
                row.leader
                for (key, broker), row in collected.replicas.items()
                if broker != 102 and key.topic == "orders"
            },
            {101, 103},
        )
        await asyncio.to_thread(cluster.restart, 102)
        await becomes(lambda: (failing(), collected.brokers[102].fenced), (set(), False))
        await becomes(in_sync, {3})

        # All are away: it says so once, and is back by itself.
        for process in cluster.processes.values():
            process.send_signal(signal.SIGSTOP)
        await becomes(lambda: collector.report().failure is not None, True)
        for process in cluster.processes.values():
            process.send_signal(signal.SIGCONT)
        await becomes(lambda: (collector.report().failure, failing()), (None, set()))
        assert any("trying again" in line for line in collected.said)
        assert any("answers again" in line for line in collected.said)
        assert not collected.lags_below_zero
