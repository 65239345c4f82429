"""The metrics job at size: from samples in a real topic to the store, and back out of it.

    python -m benchmarks.metrics [--partitions 1000 10000 100000] [--groups 0|200] [--seconds 45]

Starts one broker of ours and the job, writes the samples of so many partitions (RF 3, three
brokers' worth; with ``--groups``, each partition is read by ten groups) every interval, and
watches the store: how long from a round's begin until the store shows it, what a batch takes, CPU
and memory of the job. All partitions have traffic: nothing is saved by rounds that repeat
nothing. Then it times the reader on what was stored. Tells how far it is, and prints a JSON line
for each size and at last a table. A size that does not come to an end is told as that, and the next
one is measured.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.broker_path import cpu_seconds, resident_mb
from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    Row,
    cut_round,
    encode_part,
)
from spark_metrics.aggregates import AggregatesReader
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob

TOPIC: Final = "samples"
CLUSTER: Final = "bench"
BROKERS: Final = (101, 102, 103)
PER_TOPIC: Final = 50
READERS: Final = 10
"""Groups that read each partition."""
INTERVALS_MS: Final = {1_000: 1_000, 10_000: 1_000, 100_000: 5_000}
WITH_GROUPS_MS: Final = 10_000
WARM_S: Final = 45.0
VERSIONS_MIN: Final = 4
SIZE_S_MAX: Final = 190.0
"""No size is watched for longer, so three of them end within ten minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One row of the table."""

    partitions: int
    groups: int
    interval_ms: int
    seconds: float


class Generator(threading.Thread):
    """Writes a round of every broker each interval.

    The rows of a round are made once; each round only moves the numbers in them on, so that the
    generator costs less than what it measures.
    """

    def __init__(self, bootstrap: str, size: Size) -> None:
        super().__init__(daemon=True)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "1",
                "linger.ms": 20,
                "compression.type": "zstd",
                "queue.buffering.max.kbytes": 1_000_000,
            }
        )
        self._size = size
        self.stopped = threading.Event()
        self.late_ms: list[float] = []
        self.rounds = 0
        self.bytes = 0
        self._templates = {broker: self._template(broker) for broker in BROKERS}

    def _template(self, broker: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The records of a broker's round, decoded."""
        now_ms = time.time_ns() // 1_000_000
        envelope = Envelope(
            cluster=CLUSTER,
            broker=broker,
            broker_epoch=1,
            round_ms=now_ms,
            interval_ms=self._size.interval_ms,
        )
        chunks = cut_round(self._rows(broker, now_ms))
        found = []
        for part, chunk in enumerate(chunks):
            value = encode_part(replace(envelope, part=part, parts=len(chunks)), chunk)
            head, _, body = value.partition(b"\n")
            found.append((json.loads(head), json.loads(body) if body else {}))
        return found

    def _rows(self, broker: int, now_ms: int) -> list[Row]:
        place = BROKERS.index(broker)
        rows: list[Row] = [
            BrokerSample(id=it, host="127.0.0.1", port=9_000 + it, fenced=False, read_ms=now_ms)
            for it in BROKERS
        ]
        rows += [
            GroupSample(group_id=f"group-{n}", state="Stable", members=3, read_ms=now_ms)
            for n in range(self._size.groups)
            if n % len(BROKERS) == place
        ]
        for number in range(self._size.partitions):
            rows.append(_replica(number, broker, now_ms))
            if self._size.groups:
                rows += [
                    _commit(number, group, now_ms)
                    for group in _readers(number, self._size.groups)
                    if group % len(BROKERS) == place
                ]
        return rows

    def run(self) -> None:
        interval_s = self._size.interval_ms / 1_000
        due_s = time.time()
        while not self.stopped.is_set():
            began_s = time.time()
            self.late_ms.append((began_s - due_s) * 1_000)
            self._round(int(began_s * 1_000))
            due_s = max(due_s + interval_s, time.time() - interval_s)
            self.stopped.wait(max(0.0, due_s - time.time()))

    def _round(self, now_ms: int) -> None:
        self.rounds += 1
        for broker in BROKERS:
            for head, body in self._templates[broker]:
                value = _moved_on(head, body, now_ms, self.rounds)
                self.bytes += len(value)
                self._produce(value, broker)
        self._producer.flush(30)

    def _produce(self, value: bytes, broker: int) -> None:
        while True:
            try:
                self._producer.produce(TOPIC, value, partition=broker % 3)
                return
            except BufferError:
                self._producer.poll(0.05)


def _readers(number: int, groups: int) -> list[int]:
    return [(number + step * (groups // READERS)) % groups for step in range(READERS)]


def _replica(number: int, broker: int, now_ms: int) -> ReplicaSample:
    replicas = [BROKERS[(number + step) % 3] for step in range(3)]
    end = 1_000_000 + number
    return ReplicaSample(
        topic=f"topic-{number // PER_TOPIC}",
        partition=number % PER_TOPIC,
        leader=replicas[0],
        leader_epoch=3,
        replicas=replicas,
        isr=replicas,
        log_start_offset=0,
        high_watermark=end,
        log_end_offset=end,
        read_ms=now_ms,
        size_bytes=1_000 * end,
        segments=2,
        segment_bytes=(800 * end, 200 * end),
        active_base_offset=end // 2,
        min_isr=2,
        bytes_in=100 * end,
        bytes_out=200 * end,
    )


def _commit(number: int, group: int, now_ms: int) -> CommitSample:
    return CommitSample(
        group_id=f"group-{group}",
        topic=f"topic-{number // PER_TOPIC}",
        partition=number % PER_TOPIC,
        committed_offset=1_000_000 + number - 100 * (group % 7),
        read_ms=now_ms - 5,
        commit_ms=now_ms - 1_000,
        member_id=f"consumer-{group}-{number % 3}",
    )


_STEPS: Final = {
    "high_watermark": 50,
    "log_end_offset": 50,
    "size_bytes": 50_000,
    "bytes_in": 50_000,
    "bytes_out": 100_000,
    "committed_offset": 50,
}


def _moved_on(head: dict[str, Any], body: dict[str, Any], now_ms: int, rounds: int) -> bytes:
    """A record of the next round: the same partitions, further on."""
    moved_by = now_ms - head["round_ms"]
    rows: dict[str, Any] = {
        kind: [{**row, "read_ms": row["read_ms"] + moved_by} for row in head[kind]]
        for kind in ("brokers", "groups")
        if kind in head
    }
    new_head = {**head, **rows, "round_ms": now_ms}
    if not body:
        return json.dumps(new_head, separators=(",", ":")).encode()
    for columns in body.values():
        for name, step in _STEPS.items():
            if name in columns:
                columns[name] = [value + step for value in columns[name]]
        if "commit_ms" in columns:
            columns["commit_ms"] = [now_ms - 1_000] * len(columns["commit_ms"])
    parts = (json.dumps(it, separators=(",", ":")) for it in (new_head, body))
    return "\n".join(parts).encode()


class Watch:
    """Looks at the store's manifest until told to stop: when did which round become visible."""

    def __init__(self, job: MetricsJob) -> None:
        self._reader = AggregatesReader(job.store)
        self.delays_ms: list[float] = []
        self.batches_ms: list[float] = []
        self.delay_ms: float | None = None
        self._seen = 0

    def for_seconds(self, seconds: float, say: str, versions_min: int = 0) -> None:
        """Look until so much time is over and so many versions were seen, and say how it goes."""
        began_s = said_s = time.monotonic()
        while (now_s := time.monotonic()) < began_s + SIZE_S_MAX / 2:
            if now_s > began_s + seconds and len(self.delays_ms) >= versions_min:
                return
            self.look()
            if now_s > said_s + 10:
                said_s = now_s
                newest = (
                    "" if self.delay_ms is None else f", the newest {self.delay_ms:,.0f} ms old"
                )
                print(f"  {say}: {now_s - began_s:.0f} s, {len(self.delays_ms)} versions{newest}")
            time.sleep(0.02)

    def look(self) -> None:
        version = self._reader.version()
        if version is None or version == self._seen:
            return
        now_ms = time.time() * 1_000
        self._seen = version
        (health,) = self._reader.now_table("health").to_pylist()
        self.delay_ms = now_ms - health["newest_round_ms"]
        self.delays_ms.append(self.delay_ms)
        self.batches_ms.append(health["batch_ms"])


def measure(size: Size, cores: int) -> dict[str, Any]:
    """One size: warm up, then watch for the wanted time."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-metrics-") as folder,
        LocalCluster(Path(folder) / "cluster", brokers=1) as cluster,
    ):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, 3, 1)])[TOPIC].result(30)
        generator = Generator(cluster.bootstrap, size)
        job = MetricsJob(
            bootstrap=cluster.bootstrap,
            base_dir=Path(folder) / "job",
            flags=(
                "--topic",
                TOPIC,
                "--master",
                f"local[{cores}]",
                "--driver-memory",
                "1600m",
                "--large",
            ),
        )
        job.start()
        generator.start()
        try:
            job.wait_ready()
            return _watch(size, generator, job)
        finally:
            generator.stopped.set()
            generator.join(30)
            job.close()


def _watch(size: Size, generator: Generator, job: MetricsJob) -> dict[str, Any]:
    watch = Watch(job)
    watch.for_seconds(WARM_S, "warming up", VERSIONS_MIN)
    watch.delays_ms.clear()
    watch.batches_ms.clear()
    assert job.process is not None
    pids = [job.process.pid, *job.jvms()]
    began_s, cpu_s = time.monotonic(), {pid: cpu_seconds(pid) for pid in pids}
    rounds = generator.rounds
    watch.for_seconds(size.seconds, "measuring", VERSIONS_MIN)
    if not watch.delays_ms:
        raise TimeoutError(
            f"no version of the store in {SIZE_S_MAX / 2:.0f} s: {job.words()[-300:]}"
        )
    took_s = time.monotonic() - began_s
    # The JVM that only starts the other one may have ended by now.
    pids = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    reader = AggregatesReader(job.store)
    return {
        "partitions": size.partitions,
        "groups": size.groups,
        "interval_s": size.interval_ms / 1_000,
        "versions": len(watch.delays_ms),
        "rounds": generator.rounds - rounds,
        "batch_ms_p50": statistics.median(watch.batches_ms),
        "batch_ms_max": max(watch.batches_ms),
        "to_store_ms_p50": statistics.median(watch.delays_ms),
        "to_store_ms_p95": _p95(watch.delays_ms),
        "cpu_s_per_s": sum(cpu_seconds(pid) - cpu_s[pid] for pid in pids) / took_s,
        "job_mb": sum(map(resident_mb, pids)),
        "sample_bytes_per_row": generator.bytes
        / generator.rounds
        / (size.partitions * (3 + (READERS if size.groups else 0))),
        "stored_bytes_per_partition_day": _stored(job, size, generator),
        "read_now_ms": _fastest(lambda: _fresh(job).now_table("partitions")),
        "read_top_lag_ms": _fastest(lambda: reader.top_commits(cluster=CLUSTER, count=50)),
    }


def _fresh(job: MetricsJob) -> AggregatesReader:
    return AggregatesReader(job.store)


def _fastest(call: Any) -> float:
    took = []
    for _ in range(5):
        began_s = time.perf_counter()
        call()
        took.append((time.perf_counter() - began_s) * 1_000)
    return statistics.median(took)


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1] if len(values) > 1 else values[0]


def _stored(job: MetricsJob, size: Size, generator: Generator) -> float:
    """Bytes of fine history per partition and day, as written so far."""
    files = (Path(job.store) / "history").glob("*.parquet")
    total = sum(path.stat().st_size for path in files)
    return total / max(1, generator.rounds) / size.partitions * 86_400_000 / size.interval_ms


def main() -> None:
    """Measure every size and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--interval-ms", type=int)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--cores", type=int, default=2)
    chosen = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    print(f"load before the run: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores")
    measured: list[dict[str, Any]] = []
    for partitions in chosen.partitions:
        usual = WITH_GROUPS_MS if chosen.groups else INTERVALS_MS.get(partitions, 1_000)
        size = Size(
            partitions=partitions,
            groups=chosen.groups,
            interval_ms=chosen.interval_ms or usual,
            seconds=chosen.seconds,
        )
        print(f"{partitions:,} partitions, {size.groups} groups, every {size.interval_ms:,} ms")
        try:
            results = measure(size, chosen.cores)
        except (TimeoutError, AssertionError, KafkaException) as error:
            print(f"  not measured: {error}")
            continue
        print(json.dumps(results))
        measured.append(results)
    print_table(measured)


def print_table(measured: list[dict[str, Any]]) -> None:
    """A column for each size."""
    for name in measured[0] if measured else ():
        print(f"{name:<34}" + "".join(f"{results[name]:>14,.2f}" for results in measured))


if __name__ == "__main__":
    main()
