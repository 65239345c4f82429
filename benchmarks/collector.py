"""The collector on real Kafka: how soon it shows a large cluster, and what it costs the brokers.

    python -m benchmarks.collector [--partitions 10000] [--replication-factor 3] [--groups 1000]
                                   [--seconds 60] [--without-store] [--up] [--skip-tools]

Three nodes of Kafka with that many partitions and groups of ten committed offsets each, and one
broker of ours as the bus. Timed: from the start of the collector until the names of all topics
are there, until every broker's first round with offsets and groups is written, until the store
has a figure of every partition and group (the metrics job runs already), then the distance of
turns, and of versions of the store, and how old figures are when their version comes. The brokers'
CPU is measured before the collector starts and, once they have compiled what it asks for, while it
runs (by what their threads are for); the difference is its price. The same figures are read once
by Kafka's own tools, for comparison (each in a JVM that is warm already). Filling the cluster takes
most of the time.
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

import pyarrow.compute as pc
from confluent_kafka.cimpl import NewTopic

from benchmarks.java_cpu import percent_of_a_core, spent
from broker.metrics_schema import Envelope, ReplicaSample, encode_round
from control.collector.collector import Collector, CollectorSettings
from control.collector.delivery import Delivery
from control.collector.report_writer import WatchReport
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError
from control.model.ids import TopicPartition
from spark_metrics.store.writer import wall_clock_ms
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.installation import Installation
from tests.support.kafka_oracle import KafkaCluster, ready_admin, run_tool
from tests.support.metrics_job import MetricsJob

TOPIC_PARTITIONS: Final = 250
OFFSETS_PER_GROUP: Final = 10
IN_FLIGHT_MAX: Final = 20
TRIES_MAX: Final = 200
MADE_UP: Final = "made-up"
BUS: Final = {"partiscope.metrics.enable": "false"}
"""It is not what is watched."""
OVERRIDES: Final = {
    "log.index.size.max.bytes": "4096",
    "offsets.topic.num.partitions": "12",
}
JVM: Final = (
    *("-Xms3g", "-Xmx3g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-Xshare:auto"),
)
"""As Kafka's own start script has it, but for the heap: 10,000 replicas alone fill 400 MB, and one
of 1 GB would be collected all the time, watched or not."""
WARM_UP_S: Final = 150.0
"""Brokers and job compile what they are asked for; first readings of everything are over."""


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
                except KafkaPortError as error:
                    refusal = error
                await asyncio.sleep(0.5)
            raise refusal

        await asyncio.gather(*map(one, range(groups)))


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


async def warm_up(bus: str, job: MetricsJob) -> None:
    """A made-up sample, so that the job has run a batch before anything is timed."""
    at_ms = wall_clock_ms()
    envelope = Envelope(
        cluster=MADE_UP, broker=0, broker_epoch=-1, round_ms=at_ms, interval_ms=1_000
    )
    replica = ReplicaSample(
        topic="t", partition=0, leader=0, leader_epoch=0, replicas=(0,), isr=(0,), read_ms=at_ms,
        log_start_offset=0, high_watermark=0, log_end_offset=0,
    )  # fmt: skip
    async with Delivery(KafkaSettings(bootstrap=bus)) as delivery:
        await delivery.write(0, encode_round(envelope, [replica]), round_ms=at_ms)
        await asyncio.to_thread(job.wait_ready)


def told(name: str, value: object) -> None:
    """A line at once: who has waited so long shall not lose it by an interrupt."""
    print(f"{name:<28} {value}   (load {os.getloadavg()[0]:.1f})", flush=True)


class Versions:
    """Looks at a store: when it is whole, and how far its versions are apart."""

    def __init__(self, store: str) -> None:
        self._reader = AggregatesReader(store)

    def wait_whole(self, partitions: int, groups: int) -> float:
        """When it has a figure of every partition and every group, by the monotonic clock."""
        while not self._is_whole(partitions, groups):
            self._wait_for_next()
        return time.monotonic()

    def follow(self, seconds: float) -> tuple[list[float], list[float]]:
        """For so long: seconds between versions, and how old each one's figures were when it came
        (since the round of the broker that was read longest ago)."""
        begun_s, at_s, ages_s = time.monotonic(), [time.monotonic()], []
        while at_s[-1] < begun_s + seconds:
            self._wait_for_next()
            at_s.append(time.monotonic())
            ages_s.append(wall_clock_ms() / 1000 - self._oldest_round_ms() / 1000)
        return [later - earlier for earlier, later in pairwise(at_s)], ages_s

    def _oldest_round_ms(self) -> int:
        rows = self._reader.now_table("brokers")
        rounds = rows.filter(pc.not_equal(rows["cluster"], MADE_UP))["sampled_ms"]
        found: int = pc.min(rounds).as_py()
        return found

    def _wait_for_next(self) -> None:
        """The next version, or the first."""
        known = self._reader.version()
        while self._reader.version() == known:
            time.sleep(0.02)

    def _is_whole(self, partitions: int, groups: int) -> bool:
        rows = self._reader.now_table("partitions")
        known = pc.sum(
            pc.and_(pc.not_equal(rows["cluster"], MADE_UP), rows["high_watermark"].is_valid())
        )
        found: int = known.as_py() or 0
        return found >= partitions and self._reader.now_table("groups").num_rows >= groups


async def measure(
    watched: KafkaCluster, bus: LocalCluster, asked: argparse.Namespace, store: str | None
) -> dict[str, Any]:
    """One run of the collector."""
    partitions, seconds = asked.partitions, asked.seconds
    pids = [process.pid for process in watched.processes.values()]
    before = list(map(spent, pids))
    await asyncio.sleep(seconds)
    idle = percent_of_a_core(before, list(map(spent, pids)), seconds)
    told("idle, % of a core", idle)
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
        told("names, first picture, s", (round(names_s, 2), round(picture_s, 2)))
        stored_s, versions = None, None if store is None else Versions(store)
        if versions is not None:
            at_s = await asyncio.to_thread(versions.wait_whole, partitions, asked.groups)
            stored_s = round(at_s - started_s, 2)
            told("first picture in the store, s", stored_s)
        before, begun_s = list(map(spent, pids)), time.monotonic()
        await asyncio.sleep(WARM_UP_S)
        cold = percent_of_a_core(before, list(map(spent, pids)), time.monotonic() - begun_s)
        told("at first, % of a core", cold)
        before, own_before = list(map(spent, pids)), time.process_time()
        begun_s = time.monotonic()
        stored: list[float] = []
        ages: list[float] = []
        if versions is not None:
            stored, ages = await asyncio.to_thread(versions.follow, seconds)
        else:
            await asyncio.sleep(seconds)
        spent_s = time.monotonic() - begun_s
        busy = percent_of_a_core(before, list(map(spent, pids)), spent_s)
        told("watched, % of a core", busy)
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
        "refresh_in_store_s_median": round(statistics.median(stored), 2) if stored else None,
        "age_in_store_s_median": round(statistics.median(ages), 2) if ages else None,
        "broker_cpu_percent_idle": idle,
        "broker_cpu_percent_watched": busy,
        "broker_cpu_percent_extra": [
            {kind: round(b[kind] - a.get(kind, 0.0), 1) for kind in b}
            for a, b in zip(idle, busy, strict=True)
        ],
        "collector_cpu_percent": round(100 * own / spent_s, 1),
        "requests_per_s": [broker.requests_per_s for broker in report.brokers],
        "received_bytes_per_s": [broker.received_bytes_per_s for broker in report.brokers],
    }


def time_up(watched: KafkaCluster, folder: Path, partitions: int, groups: int) -> dict[str, float]:
    """Seconds from the start of a new installation that watches it until every partition and
    group has its first figures, and until the first batch."""
    flags = ("--bootstrap", watched.bootstrap)
    with Installation(folder, flags=flags) as up:
        at_s = Versions(up.store).wait_whole(partitions, groups)
        first_s = at_s - up.started_s
        told("up: first figures, s", round(first_s, 2))
        reader = AggregatesReader(up.store)
        while not reader.now_table("health").num_rows:
            time.sleep(0.05)
        batch_s = time.monotonic() - up.started_s
        told("up: first batch, s", round(batch_s, 2))
    return {"first_figures": round(first_s, 2), "first_batch": round(batch_s, 2)}


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
    parser.add_argument("--replication-factor", type=int, default=3)
    parser.add_argument("--without-store", action="store_true", help="without the metrics job")
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--up", action="store_true", help="and the whole product, started anew")
    parser.add_argument("--skip-tools", action="store_true", help="without Kafka's own tools")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-collector-") as folder,
        LocalCluster(Path(folder) / "bus", brokers=1, overrides=BUS) as bus,
        KafkaCluster(Path(folder) / "kafka", overrides=OVERRIDES, jvm_flags=JVM) as watched,
    ):
        job = MetricsJob(bus.bootstrap, Path(folder) / "job")
        try:
            if not asked.without_store:
                job.start()
            begun_s = time.monotonic()
            fill(watched, asked.partitions, asked.replication_factor, asked.groups)
            told("filled after, s", round(time.monotonic() - begun_s))
            if not asked.without_store:
                asyncio.run(warm_up(bus.bootstrap, job))
            store = None if asked.without_store else job.store
            figures = asyncio.run(measure(watched, bus, asked, store))
        finally:
            job.close()
        if asked.up:
            figures["up_s"] = time_up(watched, Path(folder) / "up", asked.partitions, asked.groups)
        if not asked.skip_tools:
            figures["tools_s"] = time_tools(watched)
    for name, value in figures.items():
        told(name, value)
    load = round(os.getloadavg()[0], 1)
    print(json.dumps({"benchmark": "collector", "load": load, **vars(asked), **figures}))


if __name__ == "__main__":
    main()
