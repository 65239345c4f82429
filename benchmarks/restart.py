"""A start after kill -9 beside real Apache Kafka: seconds until every partition takes a record.

    python -m benchmarks.restart [--gigabytes 2] [--partitions 20] [--segment-mb 1024] [--rounds 3]

One node of each, one after the other, on the same load and segment size. The logs are as large as
asked for, and removed in the end. What a crash leaves unforced is checked at the start: with few
large segments that is nearly everything. The page cache is warm for both. A start after SIGTERM is
told beside it: it has nothing to check.
"""

import argparse
import json
import os
import signal
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.cluster import LocalCluster
from tests.support.kafka_oracle import KafkaCluster
from tests.support.node_cluster import NodeCluster

TOPIC: Final = "logs"
NODE: Final = 101
RECORD_BYTES: Final = 1_000
QUEUE_RECORDS_MAX: Final = 100_000
START_S_MAX: Final = 120
GIGABYTES_MAX: Final = 5.0
CLIENT: Final = {
    "acks": "all",
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 50,
    "log_level": 0,
}


def fill(peer: NodeCluster, gigabytes: float, partitions: int) -> None:
    """The topic, with as many bytes in each partition."""
    admin = AdminClient({"bootstrap.servers": peer.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(60)
    producer = Producer(
        {
            **CLIENT,
            "bootstrap.servers": peer.bootstrap,
            "linger.ms": 20,
            "batch.size": 500_000,
            "queue.buffering.max.messages": 2 * QUEUE_RECORDS_MAX,
        }
    )
    value = os.urandom(RECORD_BYTES)
    for number in range(int(gigabytes * 1e9 / RECORD_BYTES)):
        while len(producer) > QUEUE_RECORDS_MAX:
            producer.poll(0.01)
        producer.produce(TOPIC, value, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(START_S_MAX) == 0


def start_s(peer: NodeCluster, partitions: int) -> float:
    """Seconds from the start of the process until every partition has taken a record."""
    begun_s = time.perf_counter()
    peer.start_node(NODE)
    producer = Producer({**CLIENT, "bootstrap.servers": peer.bootstrap})
    for partition in range(partitions):
        producer.produce(TOPIC, b"ready?", partition=partition)
    left = producer.flush(START_S_MAX)
    assert left == 0, f"{left} partitions do not serve after {START_S_MAX} s\n{peer.story()}"
    return time.perf_counter() - begun_s


def measure(peer: NodeCluster, options: argparse.Namespace) -> dict[str, Any]:
    """The medians of all rounds."""
    seconds: dict[str, list[float]] = {"kill -9": [], "SIGTERM": []}
    peer.start()
    try:
        fill(peer, options.gigabytes, options.partitions)
        files = peer.log_dir(NODE).glob(f"{TOPIC}-*/*.log")
        size_bytes = sum(file.stat().st_size for file in files)
        for _ in range(options.rounds):
            for name, number in (("kill -9", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)):
                peer.kill(NODE, number)
                seconds[name].append(start_s(peer, options.partitions))
    finally:
        peer.stop()
    return {
        "GB of logs": round(size_bytes / 1e9, 2),
        **{f"s after {name}": round(statistics.median(all_), 2) for name, all_ in seconds.items()},
    }


def main() -> None:
    """Measure both, and print a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--segment-mb", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if options.gigabytes > GIGABYTES_MAX:
        parser.error(f"--gigabytes is at most {GIGABYTES_MAX}: the disk is bounded")
    overrides = {"log.segment.bytes": str(options.segment_mb << 20)}
    found = dict[str, dict[str, Any]]()
    for name in ("ours", "Kafka"):
        with tempfile.TemporaryDirectory(prefix="bench-restart-") as folder:
            peer: NodeCluster = LocalCluster(Path(folder), brokers=1, overrides=overrides)
            if name == "Kafka":
                peer = KafkaCluster(Path(folder), brokers=1, overrides=overrides, jvm_flags=())
            found[name] = measure(peer, options)
            print(f"{name}: {found[name]}", flush=True)
    print(json.dumps({"load": os.getloadavg()[0], **found}))


if __name__ == "__main__":
    main()
