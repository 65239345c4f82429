"""The job, unchanged, on a standalone Spark; its store and checkpoint are URLs."""

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.spark.test_job import TOPIC, Samples, each_counted_once, high_watermark
from tests.support.cluster import LocalCluster
from tests.support.listening import STRANGERS_CLASS, answer, listening_ports, spark_call
from tests.support.metrics_job import MetricsJob
from tests.support.patience import WAIT_S
from tests.support.phrases import lacking
from tests.support.spark_standalone import StandaloneSpark

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(580)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(base_dir=tmp_path / "cluster", brokers=1) as running:
        yield running


LINES_MAX: Final = 12
"""Of an executor: Spark's head with the command, Java's and Hadoop's warnings."""
SMALL: Final = ("--conf", "spark.executor.memory=512m")
EAGER: Final = (
    *("--conf", "spark.speculation=true", "--conf", "spark.speculation.interval=50ms"),
    *("--conf", "spark.speculation.task.duration.threshold=50ms"),
    *("--conf", "spark.speculation.minTaskRuntime=10ms", "--conf", "spark.executor.cores=1"),
)
"""Every task of more than 50 ms has a second attempt, on the other executor."""


@pytest.fixture
def samples(cluster: LocalCluster) -> Samples:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    return Samples(cluster.bootstrap)


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[StandaloneSpark]:
    with StandaloneSpark(tmp_path / "spark", hosts=("127.0.0.1", "localhost")) as started:
        yield started


@contextmanager
def job_on(
    spark: StandaloneSpark, bootstrap: str, folder: Path, *more: str
) -> Iterator[MetricsJob]:
    """The job with its store in this folder, ready; it must end as it should.

    A new job takes in the samples of the last two minutes: those that are sent earlier may be too
    old where Spark starts slowly.
    """
    job = MetricsJob(bootstrap=bootstrap, base_dir=folder)
    job.environment = spark.environment
    job.timeout_s = 300.0
    job.flags = (
        *("--topic", TOPIC, "--master", spark.master, "--store", f"file://{folder}/store"),
        *(*SMALL, *more),
    )
    job.start()
    try:
        job.wait_ready()
        yield job
        assert job.end(signal.SIGTERM) == 0
    finally:
        job.close()


def test_an_executor_that_is_killed_neither_loses_nor_doubles(
    cluster: LocalCluster, samples: Samples, spark: StandaloneSpark, tmp_path: Path
) -> None:
    with job_on(spark, cluster.bootstrap, tmp_path) as job:
        samples.send(rounds=3, bad=1)
        for _ in range(2):
            job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
            job.wait_until(lambda: bool(spark.executors()), "an executor")
            samples.send(rounds=5, bad=1)
            for pid in spark.executors():
                os.kill(pid, signal.SIGKILL)
            samples.send(rounds=5)
        each_counted_once(job, samples)


def test_a_second_attempt_beside_a_slow_one_neither_loses_nor_doubles(
    cluster: LocalCluster, samples: Samples, spark: StandaloneSpark, tmp_path: Path
) -> None:
    events = tmp_path / "events"
    events.mkdir()
    log = (
        *("--conf", "spark.eventLog.enabled=true", "--conf", "spark.eventLog.compress=false"),
        *("--conf", f"spark.eventLog.dir=file://{events}"),
    )
    with job_on(spark, cluster.bootstrap, tmp_path, *EAGER, *log) as job:
        samples.send(rounds=3, bad=1)
        job.wait_until(lambda: len(spark.executors()) == 2, "two executors")
        for number in range(4):
            slow = spark.executors()[number % 2]
            os.kill(slow, signal.SIGSTOP)
            samples.send(rounds=5, bad=1)
            time.sleep(2)
            os.kill(slow, signal.SIGCONT)
            job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
        each_counted_once(job, samples)
    told = [it.read_text() for it in events.rglob("*") if it.is_file()]
    assert any('"Speculative":true' in text for text in told), "no task was tried twice"


def test_executors_log_errors_alone_and_an_error_with_its_cause(
    cluster: LocalCluster, samples: Samples, spark: StandaloneSpark, tmp_path: Path
) -> None:
    with job_on(spark, cluster.bootstrap, tmp_path) as job:
        for number in range(6):
            samples.send(rounds=1, bad=1)
            job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
            if number == 2:
                os.kill(spark.executors()[0], signal.SIGKILL)
        job.wait_until(lambda: len(spark.executors()) == 2, "one in its place")
        logs = spark.logs()
        assert len({path.rpartition("/")[0] for path in logs}) == 3
        for path, text in logs.items():
            assert not re.search(r"\b(INFO|DEBUG|ERROR)\b", text), f"{path}:\n{text}"
            assert len(text.splitlines()) <= LINES_MAX, f"{path}:\n{text}"
        for state in (tmp_path / "store" / "now").glob("partitions-*"):
            state.write_bytes(b"spoilt")
        samples.send(rounds=1)
        cause = "pyarrow.lib.ArrowInvalid: Parquet file size is 6 bytes"
        job.wait_until(lambda: f"the query failed: {cause}" in job.words(), "told")
        assert any("ERROR" in text and cause in text for text in spark.logs().values())


def test_ports_of_job_and_executors_take_nothing_from_strangers(
    cluster: LocalCluster, samples: Samples, spark: StandaloneSpark, tmp_path: Path
) -> None:
    with job_on(spark, cluster.bootstrap, tmp_path) as job:
        samples.send(rounds=3)
        job.wait_until(lambda: bool(spark.executors()), "an executor")
        job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
        answers = {
            port: answer(port, spark_call())
            for port in listening_ports([*job.jvms(), *spark.executors(), *spark.daemons()])
        }
        refused = [port for port, it in answers.items() if b"SaslMessage" in it]
        assert len(refused) >= 5, "driver, executor, their blocks, master and worker"
        assert not [port for port, it in answers.items() if STRANGERS_CLASS in it]
        samples.send(rounds=3)
        each_counted_once(job, samples)


def test_a_job_on_a_standalone_cluster_without_a_secret_does_not_start(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    with StandaloneSpark(tmp_path / "spark", secret=False) as open_to_all:
        job = MetricsJob(bootstrap=cluster.bootstrap, base_dir=tmp_path)
        job.environment, job.timeout_s = open_to_all.environment, 300.0
        job.flags = ("--master", open_to_all.master, "--store", f"file://{tmp_path}/store")
        job.start()
        assert job.process is not None
        assert job.process.wait(job.timeout_s) == 1
        said = job.words()
        assert not lacking(said, open_to_all.master, "spark.authenticate.secret", "0600"), said
        assert "Traceback" not in said
