"""What a watched cluster lists without a leader is told, whoever is left; and one node that hangs
holds up no other."""

import asyncio
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.cimpl import NewTopic

from control.collector.source import wall_ms
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.model.ids import TopicPartition
from tests.support.collecting import Collected, becomes, collecting
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.patience import WAIT_S, patience_s

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(400)]
LONELY: Final = "lonely"
GAP_MS_MAX: Final = patience_s(3_000)
"""Between two rounds of a node that answers, while another one hangs; turns are 300 ms apart."""


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    """Four nodes, the last one a broker alone, and a topic of two partitions on it."""
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka", brokers=4, late=1) as started:
        started.start_node(104)
        started.wait_ready()
        admin = ready_admin(**{"bootstrap.servers": started.bootstrap})
        new = NewTopic(LONELY, replica_assignment=[[104], [104]], num_partitions=2)
        admin.create_topics([new])[LONELY].result(WAIT_S)
        yield started


async def test_partitions_without_a_living_broker_are_told(cluster: KafkaCluster) -> None:
    both = {TopicPartition(LONELY, 0), TopicPartition(LONELY, 1)}
    settings = KafkaSettings(bootstrap=cluster.bootstrap, request_timeout_ms=3_000)
    async with collecting(settings) as (_, collected):
        await becomes(lambda: both <= set(collected.leaders), True)
        assert not collected.orphans
        await asyncio.to_thread(cluster.kill, 104)
        await becomes(lambda: {it.leader for it in collected.orphans.values()}, {-1})
        assert set(collected.orphans) == both

        async with KafkaAdmin.to(cluster.bootstrap) as admin:
            await admin.unregister_broker(104)
        since_ms = wall_ms()
        await becomes(lambda: _began_ms(collected) > since_ms + 3_000, True)
        assert set(collected.orphans) == both, "Kafka lists them still"

    async with collecting(settings) as (_, begun_later):
        await becomes(lambda: set(begun_later.orphans), both)
        tool = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
        tool.delete_topics([LONELY])[LONELY].result(WAIT_S)
        await becomes(lambda: set(begun_later.orphans), set())


async def test_a_node_that_hangs_holds_up_no_other(cluster: KafkaCluster) -> None:
    settings = KafkaSettings(bootstrap=cluster.bootstrap)
    async with collecting(settings) as (_, collected):
        for hung in (101, 103):
            others = [it for it in (101, 102, 103) if it != hung]
            cluster.processes[hung].send_signal(signal.SIGSTOP)
            until_ms, widest_ms = wall_ms() + 8_000, 0
            while (now_ms := wall_ms()) < until_ms:
                began = [collected.rounds[it][0].envelope.round_ms for it in others]
                widest_ms = max(widest_ms, now_ms - min(began))
                await asyncio.sleep(0.05)
            cluster.processes[hung].send_signal(signal.SIGCONT)
            assert widest_ms < GAP_MS_MAX
            since_ms = wall_ms()
            await becomes(partial(_is_back, collected, hung, since_ms), True)


def _began_ms(collected: Collected) -> int:
    return max(records[0].envelope.round_ms for records in collected.rounds.values())


def _is_back(collected: Collected, broker: int, since_ms: int) -> bool:
    return collected.rounds[broker][0].envelope.round_ms > since_ms
