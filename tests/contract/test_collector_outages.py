"""The collector while nodes hang, die and come back: it says so, goes on, recovers alone."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.cimpl import NewTopic

from control.collector.source import wall_ms
from control.kafka.connection.settings import KafkaSettings
from tests.support.collecting import becomes, collecting
from tests.support.kafka_oracle import KafkaCluster, ready_admin
from tests.support.kafka_proxied import PROXIED, LoopbackProxy, ProxiedKafka
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.kafka_oracle, pytest.mark.soak, pytest.mark.timeout(300)]

PARTITIONS = 6
SLOW_S = 2.0


@pytest.fixture
def cluster(kafka_libs: Path, tmp_path: Path) -> Iterator[KafkaCluster]:
    """Three nodes with a topic whose every partition is everywhere."""
    assert kafka_libs.exists()
    with KafkaCluster(tmp_path / "kafka") as started:
        _create(started.bootstrap)
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
        stopped_ms = round_ms(101)
        await becomes(lambda: round_ms(101) > stopped_ms + 1_000, True)  # none is under way
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

        # All are away: it says so once, and is back by itself. Meanwhile nothing is told of any
        # of them, nor of 102, which leads nothing since it returned.
        for process in cluster.processes.values():
            process.send_signal(signal.SIGSTOP)
        away_ms = wall_ms()
        await becomes(lambda: collector.report().failure is not None, True)
        assert all(round_ms(broker) <= away_ms for broker in (101, 102, 103))
        for process in cluster.processes.values():
            process.send_signal(signal.SIGCONT)
        await becomes(lambda: (collector.report().failure, failing()), (None, set()))
        assert any("trying again" in line for line in collected.said)
        assert any("answers again" in line for line in collected.said)
        assert not collected.lags_below_zero


def _race(bootstrap: str, stopped: threading.Event) -> None:
    """Produces to every partition, and a group commits what it has read at once."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "racer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    while not stopped.is_set():
        for partition in range(PARTITIONS):
            producer.produce("orders", b"x", partition=partition)
        producer.poll(0)
        if consumer.consume(100, timeout=0.2):
            consumer.commit(asynchronous=True)
    producer.flush(WAIT_S)
    consumer.close()


@pytest.fixture
def proxied(kafka_libs: Path, tmp_path: Path) -> Iterator[ProxiedKafka]:
    """Three nodes, one of them behind a proxy."""
    assert kafka_libs.exists()
    with ProxiedKafka(tmp_path / "kafka") as started:
        yield started


async def test_a_slow_node_delays_only_its_own_figures(proxied: ProxiedKafka) -> None:
    """What one node answers is seconds late, while a group commits what it reads at once."""
    stopped = threading.Event()
    async with LoopbackProxy(proxied.proxy_port, proxied.ports[PROXIED]) as proxy:
        await asyncio.to_thread(_create, proxied.bootstrap)
        racing = asyncio.create_task(asyncio.to_thread(_race, proxied.bootstrap, stopped))
        try:
            await _slow_and_quick(proxied, proxy)
        finally:
            proxy.delay_s = 0.0
            stopped.set()
            await racing


async def _slow_and_quick(cluster: ProxiedKafka, proxy: LoopbackProxy) -> None:
    async with collecting(KafkaSettings(bootstrap=cluster.bootstrap)) as (collector, collected):

        def round_ms(broker: int) -> int:
            return collected.rounds[broker][0].envelope.round_ms

        def read_ms(broker: int) -> int:
            rows = collected.leaders.values()
            return max(row.read_ms for row in rows if row.leader == broker)

        await becomes(lambda: {row.leader for row in collected.leaders.values()}, {101, 102, 103})
        await becomes(lambda: "racer" in collected.groups, True)
        proxy.delay_s = SLOW_S
        slow, quick = round_ms(PROXIED), round_ms(101)
        await becomes(lambda: round_ms(101) > quick + 20_000, True)
        # Late, but its figures come, and say when they were read.
        assert round_ms(PROXIED) > slow
        await becomes(lambda: read_ms(PROXIED) < read_ms(101), True)
        assert collector.report().failure is None
        proxy.delay_s = 0.0
        begun = round_ms(PROXIED)
        await becomes(lambda: round_ms(PROXIED) > begun + 5_000, True)
        await becomes(lambda: abs(round_ms(PROXIED) - round_ms(101)) < 2_000, True)
        assert not [line for line in collected.lags_below_zero if line.startswith("racer ")]


def _create(bootstrap: str) -> None:
    admin = ready_admin(**{"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS, 3)])["orders"].result(WAIT_S)
