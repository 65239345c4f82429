"""The job, unchanged, on a standalone Spark; its store and checkpoint are URLs."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.spark.test_job import TOPIC, Samples, each_counted_once, high_watermark
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob
from tests.support.spark_standalone import StandaloneSpark

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(580)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(base_dir=tmp_path / "cluster", brokers=1) as running:
        yield running


def test_an_executor_that_is_killed_neither_loses_nor_doubles(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    with StandaloneSpark(tmp_path / "spark") as spark:
        job = MetricsJob(bootstrap=cluster.bootstrap, base_dir=tmp_path)
        job.environment = spark.environment
        job.timeout_s = 300.0
        job.flags = (
            *("--topic", TOPIC, "--master", spark.master),
            *("--store", f"file://{tmp_path}/store"),
            *("--conf", "spark.executor.memory=512m"),
        )
        samples = Samples(cluster.bootstrap)
        samples.send(rounds=3, bad=1)
        job.start()
        try:
            job.wait_ready()
            for _ in range(2):
                job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
                job.wait_until(lambda: bool(spark.executors()), "an executor")
                samples.send(rounds=5, bad=1)
                for pid in spark.executors():
                    os.kill(pid, signal.SIGKILL)
                samples.send(rounds=5)
            each_counted_once(job, samples)
            assert job.end(signal.SIGTERM) == 0
        finally:
            job.close()
