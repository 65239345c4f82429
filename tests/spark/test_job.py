"""The job as a process beside our own brokers: restarts, bad records, waiting, ending."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from broker.metrics_schema import encode_round
from spark_metrics.job.java import find_java
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import COMMITS, MANIFEST, SET_ASIDE, decode_manifest
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.history_points import FINE, PARTITION_HISTORY
from tests.spark.story import T0_MS, envelope, replica
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob, is_running
from tests.support.patience import WAIT_S, patience_s
from tests.support.phrases import lacking

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(400)]
TOPIC = "samples"
STOP_S_MAX: Final = patience_s(10.0)
"""A stop takes two seconds; a loaded machine needs some more."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(base_dir=tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
def job(cluster: LocalCluster, tmp_path: Path) -> Iterator[MetricsJob]:
    made = MetricsJob(bootstrap=cluster.bootstrap, base_dir=tmp_path)
    yield made
    made.close()


class Samples:
    """Produces rounds of one partition whose end offset counts the rounds, and bad records."""

    def __init__(self, bootstrap: str, topic: str = TOPIC) -> None:
        self.topic = topic
        self.producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self.began_ms = time.time_ns() // 1_000_000 - 3_600_000
        self.rounds = 0
        self.bad = 0

    def send(self, rounds: int, bad: int = 0) -> None:
        for _ in range(rounds):
            self.rounds += 1
            at_ms = self.began_ms + 1_000 * self.rounds - T0_MS
            for value in encode_round(envelope(101, at_ms), [replica(at_ms, self.rounds)]):
                self.producer.produce(self.topic, value)
        for _ in range(bad):
            self.bad += 1
            self.producer.produce(self.topic, b"neither JSON nor a sample")
        assert self.producer.flush(WAIT_S) == 0


def health(job: MetricsJob) -> dict[str, Any]:
    now = AggregatesReader(job.store).now()
    return {} if now is None else now.tables["health"].to_pylist()[0]


def high_watermark(job: MetricsJob) -> int:
    now = AggregatesReader(job.store).now()
    ends = [] if now is None else now.tables["partitions"]["high_watermark"].to_pylist()
    return max(ends, default=-1)


@pytest.mark.parametrize(
    "kills_s", [(0.3,), pytest.param((0.0, 0.7, 1.5, 3.0), marks=pytest.mark.soak)]
)
def test_kill_9_neither_loses_nor_doubles(
    cluster: LocalCluster, job: MetricsJob, kills_s: tuple[float, ...]
) -> None:
    """Killed so long after samples came: before, within and after their batch."""
    topic = f"{TOPIC}-{len(kills_s)}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(WAIT_S)
    job.flags = ("--topic", topic)
    samples = Samples(cluster.bootstrap, topic)
    samples.send(rounds=3, bad=1)
    job.start()
    job.wait_ready()
    for after_s in kills_s:
        job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
        jvms = job.jvms()
        assert jvms
        samples.send(rounds=20, bad=2)
        time.sleep(after_s)
        assert job.end(signal.SIGKILL) == -signal.SIGKILL
        samples.send(rounds=5, bad=1)
        job.start()
        job.wait_ready()
        assert not [pid for pid in jvms if is_running(pid)], "a killed job leaves no JVM"
    ends = each_counted_once(job, samples)
    assert readings_by_the_hour(job) == len(ends), "each reading once, however it was merged"
    jvms = job.jvms()
    began_s = time.monotonic()
    assert job.end(signal.SIGTERM) == 0
    assert time.monotonic() - began_s < STOP_S_MAX
    assert "Traceback" not in job.words(), job.words()
    assert not [pid for pid in jvms if is_running(pid)]
    assert_goes_on_without_its_store(job, samples)


def each_counted_once(job: MetricsJob, samples: Samples) -> list[int]:
    """Wait for everything that was sent; none of it is lost or there twice. The end offset of each
    reading in its history."""
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
    job.wait_until(lambda: health(job)["bad_records_total"] >= samples.bad, "counted")
    assert health(job)["bad_records_total"] == samples.bad
    assert health(job)["lost_records_total"] == 0
    files = StoreFiles(job.store)
    written = files.read_bytes(MANIFEST)
    assert written is not None
    manifest = decode_manifest(written)
    assert manifest.memory["next_offsets"] == {"0": samples.rounds + samples.bad}
    fine = [it.path for it in manifest.history["partition_history"] if it.span == FINE]
    ends = sorted(files.read_table(fine, PARTITION_HISTORY)["high_watermark"].to_pylist())
    assert ends == sorted(set(ends)), "no reading twice in the history"
    return ends


def history_ends(job: MetricsJob) -> list[int]:
    """The end offsets of the finest points of a chart; readings of one second are one point."""
    history = AggregatesReader(job.store).partition_history(
        cluster="story", topic="t", since_ms=0, until_ms=1 << 53, points_max=1 << 53
    )
    return list(history["high_watermark"].to_pylist())


def readings_by_the_hour(job: MetricsJob) -> int:
    history = AggregatesReader(job.store).partition_history(
        cluster="story", topic="t", since_ms=0, until_ms=1 << 53, points_max=100
    )
    return sum(history["readings"].to_pylist())


def assert_goes_on_without_its_store(job: MetricsJob, samples: Samples) -> None:
    """Spoilt versions: said, and begun afresh from the next samples."""
    for path in (Path(job.store) / MANIFEST, *(Path(job.store) / COMMITS).iterdir()):
        path.write_text("{")
    samples.send(rounds=1)
    job.start()
    job.wait_ready()
    assert "fresh store" in job.words()
    assert [*(Path(job.store) / SET_ASIDE).rglob("*history*.parquet")], "nothing is deleted"
    assert high_watermark(job) == samples.rounds


def test_it_waits_for_the_topic_and_says_so(job: MetricsJob) -> None:
    job.flags = ("--topic", "not-there-yet")
    job.start()
    job.wait_until(lambda: "not-there-yet does not exist yet" in job.words(), "waiting")
    began_s = time.monotonic()
    assert job.end(signal.SIGTERM) == 0
    assert time.monotonic() - began_s < STOP_S_MAX
    assert job.out() == ""


def test_without_its_jars_it_says_what_to_do(job: MetricsJob) -> None:
    job.environment = {
        "PARTISCOPE_CACHE": str(job.base_dir / "empty"),
        "PARTISCOPE_MAVEN": "http://127.0.0.1:1",
    }
    job.start()
    assert job.process is not None
    assert job.process.wait(WAIT_S) == 1
    assert not lacking(job.words(), "127.0.0.1:1", "partiscope setup")
    assert json.dumps(job.out()) == '""'


@pytest.mark.parametrize("failing", ["memory", "java"])
def test_a_jvm_that_cannot_start_says_why(job: MetricsJob, tmp_path: Path, failing: str) -> None:
    """A heap that no machine has, and a Java whose libraries are gone."""
    job.flags = ("--topic", "not-there-yet")
    if failing == "memory":
        job.flags += ("--driver-memory", "900000g")
    else:
        broken = tmp_path / "java"
        (broken / "bin").mkdir(parents=True)
        real = find_java().home
        (broken / "release").write_bytes((real / "release").read_bytes())
        shutil.copy2((real / "bin" / "java").resolve(), broken / "bin" / "java")
        job.environment = {"JAVA_HOME": str(broken)}
    job.start()
    assert job.process is not None
    assert job.process.wait(WAIT_S) == 1
    words = job.words()
    assert "metrics: Spark's JVM does not start: " in words
    assert ("reserve" if failing == "memory" else "libj") in words, "in Java's own words"
    assert "lower --driver-memory (now " in words
    assert "set JAVA_HOME to another Java 17 or 21" in words
    assert "Traceback" not in words


@pytest.mark.soak
def test_a_master_that_takes_no_job_is_named_while_the_topic_is_waited_for(job: MetricsJob) -> None:
    job.flags = ("--topic", "not-there-yet", "--master", "local[many]")
    job.start()
    assert job.process is not None
    assert job.process.wait(WAIT_S) == 1
    assert "Spark does not start with --master local[many]: " in job.words()
    assert "Traceback" not in job.words()


def test_a_jvm_that_dies_is_named_and_a_spoilt_checkpoint_is_gone_past(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    """Spark's newest file of offsets is empty after a crash; the store knows what was read."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("spoilt", 1, 3)])["spoilt"].result(WAIT_S)
    job.flags = ("--topic", "spoilt")
    samples = Samples(cluster.bootstrap, "spoilt")
    samples.began_ms = time.time_ns() // 1_000_000 - 60_000
    samples.send(rounds=3, bad=1)
    job.start()
    job.wait_ready()
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
    for pid in job.jvms():
        with suppress(ProcessLookupError):  # one that starts the JVM has ended by itself
            os.kill(pid, signal.SIGKILL)
    assert job.process is not None
    assert job.process.wait(WAIT_S) == 1
    assert not lacking(job.words(), "JVM has ended", "signal 9")
    assert "Traceback" not in job.words()
    assert "Connection refused" not in job.words(), job.words()
    samples.send(rounds=5, bad=1)
    offsets = job.base_dir / "checkpoint" / "offsets"
    newest = max(offsets.iterdir(), key=lambda it: int(it.name) if it.name.isdecimal() else -1)
    newest.write_bytes(b"")
    job.start()
    job.wait_ready()
    assert "begins a checkpoint anew" in job.words()
    assert [*job.base_dir.glob("checkpoint.set-aside-*")]
    assert len(each_counted_once(job, samples)) == samples.rounds


def test_a_store_put_back_under_a_newer_checkpoint_lacks_nothing(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    """The store says where reading goes on; so it does where the checkpoint's identity is gone."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("put-back", 1, 3)])["put-back"].result(WAIT_S)
    job.flags = ("--topic", "put-back")
    samples = Samples(cluster.bootstrap, "put-back")
    samples.began_ms = time.time_ns() // 1_000_000 - 60_000
    store, older = Path(job.store), job.base_dir / "older"
    checkpoint = job.base_dir / "checkpoint"

    def put_older_back() -> None:
        shutil.rmtree(store)
        older.rename(store)

    for mend, told in (
        (lambda: None, ""),
        (put_older_back, "further than the store"),
        (lambda: (checkpoint / "metadata").write_bytes(b""), "metadata is spoilt"),
    ):
        mend()
        samples.send(rounds=3)
        job.start()
        job.wait_ready()
        job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
        assert told in job.words()
        assert job.end(signal.SIGTERM) == 0
        if not told:
            shutil.copytree(store, older)
            job.start()
            job.wait_ready()
            for _ in range(2):  # Spark notes that a batch is done when it plans the next one
                samples.send(rounds=10)
                job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
            assert job.end(signal.SIGTERM) == 0
    each_counted_once(job, samples)
    assert "Traceback" not in job.words()


@pytest.mark.soak
def test_damaged_batches_of_the_topic_are_passed_over(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    """One flipped byte each, in a header and in records, on the disk of every replica: all but
    those batches is taken in."""
    topic = "damaged"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(WAIT_S)
    job.flags = ("--topic", topic)
    samples = Samples(cluster.bootstrap, topic)
    samples.began_ms = time.time_ns() // 1_000_000 - 60_000
    for _ in range(8):
        samples.send(rounds=1)
    logs = [*cluster.base_dir.rglob(f"{topic}-0/*.log")]
    assert len(logs) == 3
    for path in logs:
        value = bytearray(path.read_bytes())
        begins = batch_begins(value)
        value[begins[3] + IN_HEADER] ^= 0x20
        value[begins[6] + IN_RECORDS] ^= 0x20
        path.write_bytes(value)
    job.start()
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
    for offset in (3, 6):
        assert f"offset {offset} to {offset} of partition 0" in job.words()
    samples.send(rounds=2)
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "goes on")
    assert len(history_ends(job)) == samples.rounds - 2


IN_HEADER: Final = 25
IN_RECORDS: Final = 70


def batch_begins(log: bytes | bytearray) -> list[int]:
    """Where batches begin: each has its length behind its first offset."""
    begins, at = [], 0
    while at < len(log):
        begins.append(at)
        at += 12 + int.from_bytes(log[at + 8 : at + 12], "big")
    return begins


@pytest.mark.soak
def test_a_job_without_records_is_ready(cluster: LocalCluster, job: MetricsJob) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("quiet", 1, 3)])["quiet"].result(WAIT_S)
    job.flags = ("--topic", "quiet")
    job.start()
    job.wait_ready()
    assert job.end(signal.SIGTERM) == 0
    job.start()
    job.wait_ready()
    assert "no records yet" in job.out(), "Spark begins no batch where a checkpoint was begun"
    samples = Samples(cluster.bootstrap, "quiet")
    samples.send(rounds=3)
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")


@pytest.mark.soak
def test_a_cluster_that_reports_each_minute_delays_no_other_after_a_restart(
    cluster: LocalCluster, job: MetricsJob
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("slow", 1, 3)])["slow"].result(WAIT_S)
    job.flags = ("--topic", "slow")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    now_ms = time.time_ns() // 1_000_000
    slow = replace(envelope(9, now_ms - T0_MS), cluster="slow", interval_ms=60_000)
    rows = [replica(now_ms - T0_MS, 0, partition=number) for number in range(3_000)]
    for value in encode_round(slow, rows):
        producer.produce("slow", value)
    assert producer.flush(WAIT_S) == 0
    job.start()
    job.wait_until(lambda: health(job).get("records", 0) > 0, "known")
    assert job.end(signal.SIGTERM) == 0
    job.start()
    job.wait_ready()
    samples = Samples(cluster.bootstrap, "slow")
    samples.send(rounds=3)
    job.timeout_s = 30.0  # it waited 72 s for a round of the slow one
    job.wait_until(lambda: high_watermark(job) == samples.rounds, "shown")
