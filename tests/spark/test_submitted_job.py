"""The job by `spark-submit` on a standalone Spark: worker and driver are killed, nothing is lost.

The oracle imports nothing of the job: it counts the rows of the topic by the heads of its records,
as docs/reference/metrics-topic.md tells them, and the points of the store's files by DuckDB.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.metrics_schema import encode_round
from tests.spark.story import T0_MS, envelope, replica
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.metrics_job import ROOT, MetricsJob, is_running
from tests.support.patience import WAIT_S, patience_s
from tests.support.settle import wait_until
from tests.support.spark_standalone import SPARK_HOME, StandaloneSpark

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(580)]
TOPIC: Final = "samples"
PARTITIONS: Final = 4_200
"""More than 4,000 rows are folded by two tasks."""
ROUNDS_MAX: Final = 4
"""A batch keeps a point of each of so many rounds; of more it keeps the newest."""
MERGED_FILES: Final = 16
"""So many files of history become one."""


class Rounds:
    """Produces rounds of live samples, in which all partitions end at the number of the round."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self.count = self.records = 0

    def send(self) -> None:
        """A whole round."""
        self.finish(self.begin())

    def begin(self) -> list[bytes]:
        """Send half the records of a round; the others."""
        self.count += 1
        at_ms = time.time_ns() // 1_000_000 - T0_MS
        rows = [replica(at_ms, self.count, partition=number) for number in range(PARTITIONS)]
        values = encode_round(envelope(101, at_ms), rows)
        self.finish(values[: len(values) // 2])
        return values[len(values) // 2 :]

    def finish(self, values: list[bytes]) -> None:
        for value in values:
            self._producer.produce(TOPIC, value)
            self.records += 1
        assert self._producer.flush(WAIT_S) == 0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path / "cluster", brokers=1, overrides=NOBODY_DIES) as running:
        admin = AdminClient({"bootstrap.servers": running.bootstrap})
        admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
        yield running


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[StandaloneSpark]:
    with StandaloneSpark(tmp_path / "spark", hosts=("127.0.0.1", "localhost")) as started:
        yield started


@pytest.fixture
def job(cluster: LocalCluster, spark: StandaloneSpark, tmp_path: Path) -> Iterator[MetricsJob]:
    """The job as docs/operate/spark.md submits it."""
    package = (sys.executable, "-m", "spark_metrics.buckets.python_package")
    subprocess.run([*package, str(tmp_path)], check=True, cwd=ROOT)
    submitted = MetricsJob(
        bootstrap=cluster.bootstrap,
        base_dir=tmp_path,
        command=(
            *(str(SPARK_HOME / "bin" / "spark-submit"), "--master", spark.master),
            *("--py-files", str(tmp_path / "partiscope-metrics.zip")),
            str(tmp_path / "partiscope-metrics.py"),
        ),
        flags=(
            *("--topic", TOPIC, "--master", spark.master, "--store", f"file://{tmp_path}/store"),
            *("--conf", "spark.executor.memory=512m"),
        ),
        environment={**spark.environment, "PYSPARK_PYTHON": sys.executable},
        timeout_s=patience_s(300.0),
    )
    yield submitted
    kill(submitted)


def kill(job: MetricsJob) -> None:
    """Kill the driver: the JVM of `spark-submit`, and the Python that it has started."""
    for pid in job.jvms() if job.process is not None else ():
        os.kill(pid, signal.SIGKILL)
    job.close()


def manifest(job: MetricsJob) -> dict[str, Any]:
    """The newest version, as docs/reference/history.md tells it."""
    path = Path(job.store, "manifest.json")
    return dict(json.loads(path.read_text())) if path.exists() else {}


def taken_in(job: MetricsJob) -> int:
    """How many records of the topic the store holds."""
    return int(manifest(job).get("memory", {}).get("next_offsets", {}).get("0", 0))


def records_of_topic(job: MetricsJob) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": job.bootstrap, "group.id": "oracle"})
    place = TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(place, WAIT_S)
    consumer.assign([place])
    found = consumer.consume(end, WAIT_S)
    consumer.close()
    assert len(found) == end
    return [it.value() or b"" for it in found]


def produced(job: MetricsJob) -> Counter[int]:
    """Rows of replicas in the topic, by the number of their round."""
    heads = [json.loads(it.partition(b"\n")[0]) for it in records_of_topic(job)]
    numbers = {at_ms: n for n, at_ms in enumerate(sorted({it["round_ms"] for it in heads}), 1)}
    rows: Counter[int] = Counter()
    for head in heads:
        rows[numbers[head["round_ms"]]] += head.get("replicas", 0)
    return rows


def stored(job: MetricsJob) -> Counter[int]:
    """Points of partitions in the store's files, by the number of their round."""
    files = [
        str(Path(job.store, it["path"]))
        for it in manifest(job)["history"]["partition_history"]
        if it["span"] == "fine"
    ]
    query = "SELECT high_watermark, count(*), count(DISTINCT partition) FROM read_parquet(?)"
    rows = duckdb.execute(f"{query} GROUP BY ALL", [files]).fetchall()
    assert all(count == distinct for _, count, distinct in rows), "a partition counts twice"
    return Counter({number: count for number, count, _ in rows})


def readings_stored(job: MetricsJob) -> int:
    """Readings that all points stand for, of files that were not merged into coarser ones."""
    files = [
        str(Path(job.store, it["path"]))
        for it in manifest(job)["history"]["partition_history"]
        if not it.get("is_rolled")
    ]
    query = "SELECT sum(coalesce(readings, 1))::BIGINT FROM read_parquet(?, union_by_name=true)"
    row = duckdb.execute(query, [files]).fetchone()
    assert row is not None
    return int(row[0])


def merged_unnamed(job: MetricsJob) -> bool:
    """Whether a file of merged history is there that no version names yet."""
    files = [it.name for it in Path(job.store, "history").glob("*merged*")]
    return any(name not in json.dumps(manifest(job)["history"]) for name in files)


def test_a_killed_worker_and_a_killed_driver_lose_nothing_and_double_nothing(
    cluster: LocalCluster, spark: StandaloneSpark, job: MetricsJob
) -> None:
    rounds = Rounds(cluster.bootstrap)

    def caught_up() -> bool:
        return taken_in(job) == rounds.records

    job.start()
    job.wait_ready()
    for _ in range(3):
        rounds.send()
        job.wait_until(caught_up, "caught up")
    job.wait_until(lambda: len(spark.executors()) == 2, "two executors")
    rest = rounds.begin()
    spark.kill_worker(0)
    rounds.finish(rest)
    rounds.send()
    job.wait_until(caught_up, "caught up with one worker")
    for _ in range(2 * MERGED_FILES):
        rounds.send()
        job.wait_until(lambda: merged_unnamed(job) or caught_up(), "caught up")
        if merged_unnamed(job):
            break
    kill(job)
    assert merged_unnamed(job), "it was killed while history was merged"
    for _ in range(ROUNDS_MAX - 1):
        rounds.send()
    job.start()
    job.wait_ready()
    job.wait_until(caught_up, "caught up after the driver was killed")
    driver = job.jvms()
    assert job.end(signal.SIGTERM)
    wait_until(lambda: not any(map(is_running, driver)), "its Python ends with `spark-submit`")
    assert stored(job) == produced(job)
    assert readings_stored(job) == produced(job).total()
    assert produced(job) == dict.fromkeys(range(1, rounds.count + 1), PARTITIONS)
