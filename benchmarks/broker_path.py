"""Our broker's data path by itself: produce, and what it costs each process in CPU.

    python -m benchmarks.broker_path [--seconds 10] [--record-bytes 1024] [--idle-seconds 10]

Starts three brokers in a temporary directory, then one producer (librdkafka) against acks=1 RF 1
and acks=all RF 3, one consumer, and at last an idle period with 100 partitions of RF 3. Prints a
table and a JSON. benchmarks.broker compares with Apache Kafka; this one is for profiling.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.processes import MB, cpu_seconds, resident_mb
from tests.support.cluster import LocalCluster


class Meter:
    """Wall and CPU time of the brokers between two moments."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._processes = {node_id: p.pid for node_id, p in cluster.processes.items()}
        self._cpu = self._read()
        self._started = time.perf_counter()

    def _read(self) -> dict[int, float]:
        return {node_id: cpu_seconds(pid) for node_id, pid in self._processes.items()}

    def stop(self) -> dict[str, Any]:
        """Seconds, CPU seconds per node, resident MB per node."""
        seconds = time.perf_counter() - self._started
        cpu = {n: round(after - self._cpu[n], 2) for n, after in self._read().items()}
        resident = {n: round(resident_mb(pid), 1) for n, pid in self._processes.items()}
        return {"seconds": round(seconds, 2), "cpu_s": cpu, "resident_mb": resident}


def produce(
    cluster: LocalCluster, topic: str, *, acks: str, seconds: float, record_bytes: int
) -> dict[str, Any]:
    """Produce as fast as one librdkafka producer can."""
    settings: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "acks": acks,
        "linger.ms": 5,
        "batch.size": 1_000_000,
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": 200_000,
        "queue.buffering.max.kbytes": 262_144,
        "log_level": 0,
    }
    producer = Producer(settings)
    value = os.urandom(record_bytes)
    meter = Meter(cluster)
    deadline = time.perf_counter() + seconds
    count = 0
    while time.perf_counter() < deadline:
        for _ in range(500):
            try:
                producer.produce(topic, value)
                count += 1
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    left = producer.flush(60)
    measured = meter.stop()
    megabytes = (count - left) * record_bytes / MB
    return {
        "records": count - left,
        "mb_per_s": round(megabytes / measured["seconds"], 1),
        **measured,
    }


def consume(cluster: LocalCluster, topic: str, partitions: int) -> dict[str, Any]:
    """Read everything back with one librdkafka consumer."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "bench",
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 4_000_000,
            "log_level": 0,
        }
    )
    ends = [
        consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1]
        for p in range(partitions)
    ]
    consumer.assign([TopicPartition(topic, p, 0) for p in range(partitions)])
    meter = Meter(cluster)
    count = size = 0
    while count < sum(ends):
        for message in consumer.consume(10_000, 1.0):
            count += 1
            size += len(message)
    measured = meter.stop()
    consumer.close()
    return {"records": count, "mb_per_s": round(size / MB / measured["seconds"], 1), **measured}


def create(cluster: LocalCluster, topic: str, partitions: int, factor: int) -> None:
    """Make a topic and wait until it can be produced to."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(topic, partitions, factor)])[topic].result(30)


def run(seconds: float, record_bytes: int, idle_seconds: float) -> dict[str, Any]:
    """All measurements in one cluster."""
    results: dict[str, Any] = {}
    with (
        tempfile.TemporaryDirectory(prefix="broker-path-") as directory,
        LocalCluster(Path(directory)) as cluster,
    ):
        create(cluster, "one", 1, 1)
        create(cluster, "three", 3, 3)
        for name, topic, acks in (("acks=1 RF 1", "one", "1"), ("acks=all RF 3", "three", "all")):
            results[name] = produce(
                cluster, topic, acks=acks, seconds=seconds, record_bytes=record_bytes
            )
        results["consume"] = consume(cluster, "one", 1)
        create(cluster, "idle", 100, 3)
        time.sleep(3)
        meter = Meter(cluster)
        time.sleep(idle_seconds)
        results["idle"] = meter.stop()
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--record-bytes", type=int, default=1024)
    parser.add_argument("--idle-seconds", type=float, default=10.0)
    options = parser.parse_args()
    results = run(options.seconds, options.record_bytes, options.idle_seconds)
    for name, row in results.items():
        speed = f"{row['mb_per_s']:8.1f} MB/s" if "mb_per_s" in row else " " * 13
        print(f"{name:14} {speed}  {row['seconds']:6.1f} s  CPU s {row['cpu_s']}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
