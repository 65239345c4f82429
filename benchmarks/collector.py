"""The collector on real Kafka: how soon it shows a large cluster, and what it costs the brokers.

    python -m benchmarks.collector [--partitions 10000] [--replication-factor 3] [--groups 1000]
                                   [--seconds 30] [--with-store]

Three nodes of Kafka with that many partitions and groups of ten committed offsets each, and one
broker of ours as the bus. Timed: from the start of the collector until the names of all topics
are there, until every broker's first round with offsets and groups is written, with a store
until that has them all (the metrics job runs already), then the distance of turns. The brokers'
CPU is measured before the collector starts and while it runs; the difference is its price. The
same figures are read once by Kafka's own tools, for comparison (each in a JVM that is warm
already).
"""

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from confluent_kafka.cimpl import NewTopic

from control.kafka.admin import KafkaAdmin
from control.kafka.collector.collector import Collector, CollectorSettings
from control.kafka.collector.delivery import Delivery
from control.kafka.collector.report import WatchReport
from control.kafka.errors import RefusedError
from control.kafka.settings import KafkaSettings
from control.model.ids import TopicPartition
from spark_metrics.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster, ready_admin, run_tool
from tests.support.metrics_job import MetricsJob

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
TOPIC_PARTITIONS: Final = 250
OFFSETS_PER_GROUP: Final = 10
IN_FLIGHT_MAX: Final = 20
TRIES_MAX: Final = 200
BUS: Final = {"partiscope.metrics.enable": "false"}
"""It is not what is watched."""


def fill(cluster: KafkaCluster, partitions: int, replicas: int, groups: int) -> None:
    """Topics of 250 partitions, and groups that committed on ten of them."""
    admin = ready_admin(**{"bootstrap.servers": cluster.bootstrap})
    names = [f"topic-{number:03d}" for number in range(partitions // TOPIC_PARTITIONS)]
    for start in range(0, len(names), 4):
        new = [NewTopic(name, TOPIC_PARTITIONS, replicas) for name in names[start : start + 4]]
        for future in admin.create_topics(new, request_timeout=60).values():
            future.result(90)
    asyncio.run(commit(cluster.bootstrap, names, groups))


async def commit(bootstrap: str, topics: Sequence[str], groups: int) -> None:
    """Offset 0 of ten partitions for every group."""
    at_once = asyncio.Semaphore(IN_FLIGHT_MAX)
    async with KafkaAdmin.to(bootstrap) as admin:

        async def one(number: int) -> None:
            first = number % (TOPIC_PARTITIONS - OFFSETS_PER_GROUP)
            keys = (
                TopicPartition(topics[number % len(topics)], first + n)
                for n in range(OFFSETS_PER_GROUP)
            )
            async with at_once:
                await until_known(f"group-{number:04d}", dict.fromkeys(keys, 0))

        async def until_known(group: str, offsets: dict[TopicPartition, int]) -> None:
            """Brokers that make thousands of logs learn late of topics and of who coordinates."""
            for _ in range(TRIES_MAX):
                try:
                    return await admin.groups.commit_offsets(group, offsets)
                except RefusedError as error:
                    refusal = error
                await asyncio.sleep(0.5)
            raise refusal

        await asyncio.gather(*map(one, range(groups)))


def cpu_seconds(pids: Sequence[int]) -> list[float]:
    """User and system time of each process."""
    spent = []
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        spent.append((int(fields[11]) + int(fields[12])) / TICKS_PER_S)
    return spent


class Stopwatch:
    """A delivery that notes when each broker's rounds were written."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self.rounds_s: dict[int, list[float]] = {}

    async def write(self, broker: int, values: Sequence[bytes], *, round_ms: int) -> None:
        await self._delivery.write(broker, values, round_ms=round_ms)
        self.rounds_s.setdefault(broker, []).append(time.monotonic())

    async def write_report(self, report: WatchReport) -> None:
        await self._delivery.write_report(report)


def is_whole(store: str, partitions: int, groups: int) -> bool:
    """Whether the store has a figure of every partition and every group."""
    found = AggregatesReader(store).now()
    if found is None:
        return False
    ends = found.tables["partitions"]["high_watermark"]
    known: int = len(ends) - ends.null_count
    return known >= partitions and int(found.tables["groups"].num_rows) >= groups


def wait_whole(store: str, partitions: int, groups: int) -> float:
    """When it was whole, by the monotonic clock."""
    while not is_whole(store, partitions, groups):
        time.sleep(0.05)
    return time.monotonic()


async def measure(
    watched: KafkaCluster, bus: LocalCluster, asked: argparse.Namespace, store: str | None
) -> dict[str, Any]:
    """One run of the collector."""
    partitions, seconds = asked.partitions, asked.seconds
    pids = [process.pid for process in watched.processes.values()]
    before = cpu_seconds(pids)
    await asyncio.sleep(seconds)
    idle = [b - a for a, b in zip(before, cpu_seconds(pids), strict=True)]
    settings = CollectorSettings(
        watched=KafkaSettings(bootstrap=watched.bootstrap),
        bus=KafkaSettings(bootstrap=bus.bootstrap),
    )
    async with Delivery(settings.bus) as delivery:
        stopwatch = Stopwatch(delivery)
        collector = Collector(settings, stopwatch, print)
        started_s = time.monotonic()
        running = asyncio.create_task(collector.run())
        while len(collector.image.partitions) < partitions:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        names_s = time.monotonic() - started_s
        await collector.is_complete.wait()
        picture_s = time.monotonic() - started_s
        stored_s = None
        if store is not None:
            at_s = await asyncio.to_thread(wait_whole, store, partitions, asked.groups)
            stored_s = round(at_s - started_s, 2)
        await asyncio.sleep(10.0)  # the first readings of everything are behind it
        before, own_before = cpu_seconds(pids), time.process_time()
        begun_s = time.monotonic()
        await asyncio.sleep(seconds)
        spent_s = time.monotonic() - begun_s
        busy = [b - a for a, b in zip(before, cpu_seconds(pids), strict=True)]
        own = time.process_time() - own_before
        report = collector.report()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    distances = [
        later - earlier
        for at in stopwatch.rounds_s.values()
        for earlier, later in pairwise(at)
        if earlier >= begun_s
    ]
    return {
        "names_s": round(names_s, 2),
        "first_picture_s": round(picture_s, 2),
        "first_picture_in_store_s": stored_s,
        "refresh_s_median": round(statistics.median(distances), 2),
        "refresh_s_max": round(max(distances), 2),
        "broker_cpu_percent_idle": [round(100 * it / seconds, 1) for it in idle],
        "broker_cpu_percent_watched": [round(100 * it / spent_s, 1) for it in busy],
        "broker_cpu_percent_extra": [
            round(100 * (b / spent_s - i / seconds), 1) for b, i in zip(busy, idle, strict=True)
        ],
        "collector_cpu_percent": round(100 * own / spent_s, 1),
        "requests_per_s": [broker.requests_per_s for broker in report.brokers],
        "received_bytes_per_s": [broker.received_bytes_per_s for broker in report.brokers],
    }


def time_tools(cluster: KafkaCluster) -> dict[str, float]:
    """Seconds that Kafka's own tools take for the same figures."""
    flags = ("--bootstrap-server", cluster.bootstrap, "--describe")
    tools = {
        "kafka-topics": ("org.apache.kafka.tools.TopicCommand", *flags),
        "kafka-log-dirs": ("org.apache.kafka.tools.LogDirsCommand", *flags),
        "kafka-consumer-groups": (
            "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
            *flags,
            *("--all-groups", "--timeout", "60000"),
        ),
    }
    took = {}
    for name, command in tools.items():
        begun_s = time.monotonic()
        done = run_tool(*command)
        assert done.returncode == 0, done.stderr
        took[name] = round(time.monotonic() - begun_s, 2)
    return took


def main() -> None:
    """Run and print a table and a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--replication-factor", type=int, default=1)
    parser.add_argument("--with-store", action="store_true", help="run the metrics job as well")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--skip-tools", action="store_true", help="without Kafka's own tools")
    asked = parser.parse_args()
    small_indexes = {"log.index.size.max.bytes": "4096", "offsets.topic.num.partitions": "12"}
    with (
        tempfile.TemporaryDirectory(prefix="bench-collector-") as folder,
        LocalCluster(Path(folder) / "bus", brokers=1, overrides=BUS) as bus,
        KafkaCluster(Path(folder) / "kafka", overrides=small_indexes) as watched,
    ):
        begun_s = time.monotonic()
        fill(watched, asked.partitions, asked.replication_factor, asked.groups)
        print(f"filled in {time.monotonic() - begun_s:.0f} s", flush=True)
        job = MetricsJob(bus.bootstrap, Path(folder) / "job")
        try:
            if asked.with_store:
                job.start()
                job.wait_ready()
            store = job.store if asked.with_store else None
            figures = asyncio.run(measure(watched, bus, asked, store))
        finally:
            job.close()
        if not asked.skip_tools:
            figures["tools_s"] = time_tools(watched)
    for name, value in figures.items():
        print(f"{name:<28} {value}")
    print(json.dumps({"benchmark": "collector", **vars(asked), **figures}))


if __name__ == "__main__":
    main()
