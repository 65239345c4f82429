"""The job, unchanged, with executors in pods, as the documents say; the cluster is a stand-in."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.spark.test_job import TOPIC, Samples, each_counted_once, high_watermark
from tests.support.cluster import LocalCluster
from tests.support.kubernetes import StandInKubernetes
from tests.support.metrics_job import MetricsJob
from tests.support.node_cluster import ROOT
from tests.support.patience import WAIT_S

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(580)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(base_dir=tmp_path / "cluster", brokers=1) as running:
        yield running


def test_executors_are_pods(cluster: LocalCluster, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    samples = Samples(cluster.bootstrap)
    template = ROOT / "examples" / "kubernetes" / "spark-executor.yaml"
    settings = {
        "spark.kubernetes.container.image": "partiscope",
        "spark.kubernetes.executor.podTemplateFile": str(template),
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.instances": "1",
    }
    with StandInKubernetes(tmp_path / "kubernetes") as kubernetes:
        job = MetricsJob(bootstrap=cluster.bootstrap, base_dir=tmp_path)
        job.timeout_s = 300.0
        job.flags = (
            *("--topic", TOPIC, "--master", kubernetes.master),
            *("--store", f"file://{tmp_path}/store"),
            *(it for name, value in settings.items() for it in ("--conf", f"{name}={value}")),
        )
        try:
            job.start()
            job.wait_ready()
            samples.send(rounds=3, bad=1)
            job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
            (pod,) = kubernetes.pods()
            kubernetes.kill(pod)
            samples.send(rounds=5, bad=1)
            each_counted_once(job, samples)
            assert kubernetes.pods().keys() != {pod}, "another pod in its place"
            assert job.end(signal.SIGTERM) == 0
        finally:
            job.close()
