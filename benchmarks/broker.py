"""Our brokers beside real Apache Kafka, in one run on one machine, with the ratios.

    python -m benchmarks.broker [--rounds 5] [--seconds 5] [--warm-seconds 180] [--record-bytes N]

Three nodes of each run on loopback at once; while one works, the other idles. Kafka is warmed up
first (its JVM compiles what is hot), then rounds alternate: ours, Kafka, ours, … Every figure is
the median of the rounds. Absolute figures are this machine's; the ratios are what counts.

CPU is told apart in user and kernel time: what the kernel takes to copy a byte from the socket
and into the page cache is the same for both, and where memory is slow to hand out (a virtual
machine whose host populates pages at first touch) it is what bounds both.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks import processes
from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster

MB: Final = 1e6
BATCH_RECORDS: Final = 1_000
FLUSH_S: Final = 120
TIDY: Final = {"log.retention.check.interval.ms": "3000", "log.segment.delete.delay.ms": "1000"}
"""A fast machine fills its disk within a minute where retention looks every five."""
IN_FLIGHT_MAX: Final = 200_000


class Peer(Protocol):
    """A cluster of three processes."""

    processes: dict[int, Any]

    @property
    def bootstrap(self) -> str:
        """``host:port,…``."""
        ...

    def story(self, lines: int = 20) -> str:
        """The ends of what all nodes said."""
        ...

    def start(self) -> None:
        """Start all nodes; returns when they are registered."""

    def stop(self) -> None:
        """End all nodes."""


@dataclass
class Figures:
    """What one peer did, round by round."""

    start_s: float = 0.0
    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, value: float) -> None:
        """One more round."""
        self.rounds.setdefault(name, []).append(value)

    def medians(self) -> dict[str, float]:
        """The figure of each name, start-up first."""
        found = {name: statistics.median(values) for name, values in self.rounds.items()}
        return {"start to acks=all, s": self.start_s, **found}


def start(peer: Peer) -> float:
    """Seconds from the start of the processes until a record is acknowledged by all."""
    started_s = time.perf_counter()
    peer.start()
    create(peer, "first", 1, 3)
    producer = Producer({"bootstrap.servers": peer.bootstrap, "acks": "all", "log_level": 0})
    producer.produce("first", b"ready?")
    assert producer.flush(60) == 0
    return time.perf_counter() - started_s


def create(peer: Peer, topic: str, partitions: int, factor: int) -> None:
    """A topic whose every partition has a leader."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    new = NewTopic(topic, partitions, factor, config={"retention.bytes": "2000000000"})
    admin.create_topics([new])[topic].result(60)


def produce(peer: Peer, topic: str, acks: str, seconds: float, record_bytes: int) -> float:
    """MB/s of one librdkafka producer, by what was acknowledged."""
    producer = Producer(
        {
            "bootstrap.servers": peer.bootstrap,
            "acks": acks,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "batch.num.messages": 10_000,
            "queue.buffering.max.messages": 2 * IN_FLIGHT_MAX,
            "queue.buffering.max.kbytes": 1_048_576,
            "log_level": 0,
        }
    )
    batch = [{"value": os.urandom(record_bytes)} for _ in range(BATCH_RECORDS)]
    count = 0
    started_s = time.perf_counter()
    while time.perf_counter() - started_s < seconds:
        if len(producer) > IN_FLIGHT_MAX:
            producer.poll(0.01)
            continue
        count += producer.produce_batch(topic, [dict(item) for item in batch])
        producer.poll(0)
    left = producer.flush(FLUSH_S)
    assert left == 0, (
        f"{type(peer).__name__}: {left} records to {topic} with acks={acks} were not acknowledged "
        f"in {FLUSH_S} s\n{peer.story()}"
    )
    return count * record_bytes / MB / (time.perf_counter() - started_s)


def consume(peer: Peer, topic: str, records_max: int) -> float:
    """MB/s of one librdkafka consumer over what the topic holds."""
    consumer = Consumer(
        {
            "bootstrap.servers": peer.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 4_000_000,
            "queued.max.messages.kbytes": 262_144,
            "log_level": 0,
        }
    )
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    wanted = min(high - low, records_max)
    consumer.assign([TopicPartition(topic, 0, low)])
    count = size = 0
    started_s = time.perf_counter()
    while count < wanted:
        for message in consumer.consume(10_000, 1.0):
            count += 1
            size += len(message)
    took_s = time.perf_counter() - started_s
    consumer.close()
    return size / MB / took_s


def cpu_seconds(peer: Peer) -> tuple[float, float]:
    """User and system time of all its processes so far."""
    user = system = 0.0
    for process in peer.processes.values():
        spent = processes.cpu_by_mode(processes.stat_of(process.pid))
        user, system = user + spent[0], system + spent[1]
    return user, system


def resident_mb(peer: Peer) -> float:
    """Resident memory of an average node."""
    held = [processes.resident_mb(process.pid) for process in peer.processes.values()]
    return statistics.mean(held)


def measure(peer: Peer, figures: Figures, seconds: float, record_bytes: int) -> None:
    """One round."""
    for name, topic, acks in (
        ("produce acks=1 RF 1, MB/s", "one", "1"),
        ("produce acks=all RF 3, MB/s", "three", "all"),
    ):
        before, started_s = cpu_seconds(peer), time.perf_counter()
        speed = produce(peer, topic, acks, seconds, record_bytes)
        gigabytes = speed * (time.perf_counter() - started_s) / 1000
        figures.add(name, speed)
        title = name.removeprefix("produce ").removesuffix(", MB/s")
        for mode, was_s, is_s in zip(("user", "kernel"), before, cpu_seconds(peer), strict=True):
            figures.add(f"broker {mode} s per GB, {title}", (is_s - was_s) / gigabytes)
    figures.add("consume, MB/s", consume(peer, "one", int(5e8 / record_bytes)))
    figures.add("resident MB a node", resident_mb(peer))


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Both peers, alternating."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        (Path(folder) / "kafka").mkdir()
        peers: dict[str, Peer] = {
            "ours": LocalCluster(Path(folder) / "ours", overrides=TIDY),
            "Kafka": KafkaCluster(Path(folder) / "kafka", overrides=TIDY, jvm_flags=()),
        }
        figures = {name: Figures() for name in peers}
        try:
            for name, peer in peers.items():
                figures[name].start_s = start(peer)
                create(peer, "one", 1, 1)
                create(peer, "three", 1, 3)
            warm_up(peers["Kafka"], options.warm_seconds, options.record_bytes)
            for number in range(options.rounds):
                for name, peer in peers.items():
                    measure(peer, figures[name], options.seconds, options.record_bytes)
                print(f"round {number + 1} of {options.rounds}", flush=True)
        finally:
            for peer in peers.values():
                peer.stop()
    return {name: item.medians() for name, item in figures.items()}


def warm_up(peer: Peer, seconds: float, record_bytes: int) -> None:
    """Until the JVM has compiled what is hot."""
    print(f"warming Kafka up for {seconds:.0f} s", flush=True)
    for topic, acks in (("one", "1"), ("three", "all")):
        produce(peer, topic, acks, seconds / 2, record_bytes)


def table(results: dict[str, dict[str, float]]) -> Sequence[str]:
    """Lines for people: figure, ours, Kafka, ratio."""
    ours, kafkas = results["ours"], results["Kafka"]
    lines = [f"{'':<40}{'ours':>10}{'Kafka':>10}{'ratio':>8}"]
    for name, value in ours.items():
        ratio = value / kafkas[name] if kafkas[name] else float("nan")
        lines.append(f"{name:<40}{value:>10.1f}{kafkas[name]:>10.1f}{ratio:>8.2f}")
    return lines


def main() -> None:
    """Measure and print a table and a JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warm-seconds", type=float, default=180.0)
    parser.add_argument("--record-bytes", type=int, default=1024)
    load = os.getloadavg()[0]
    results = run(parser.parse_args())
    print(f"load before the run: {load:.2f} on {os.cpu_count()} cores")
    print("\n".join(table(results)))
    print(json.dumps({"load": load, **results}))


if __name__ == "__main__":
    main()
