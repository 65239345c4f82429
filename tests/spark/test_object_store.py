"""The store on a real S3 server: two writers, kill -9 of the job and of executors, readers."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from deltalake import DeltaTable

import spark_metrics.store.writer as store_writer
from spark_metrics.history.export import export_history
from spark_metrics.read.history_sql import ask_history
from spark_metrics.store.files import StoreFiles
from spark_metrics.store.layout import COMMITS, Manifest, successor_path
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from spark_metrics.window.errors import SqlError, StoreTakenError
from tests.spark.test_job import (
    TOPIC,
    Samples,
    each_counted_once,
    health,
    high_watermark,
    history_ends,
    readings_by_the_hour,
)
from tests.support.cluster import LocalCluster
from tests.support.metrics_job import MetricsJob
from tests.support.patience import WAIT_S
from tests.support.s3_server import S3Server
from tests.support.spark_standalone import StandaloneSpark
from tests.support.store_builder import CLUSTER, StoreBuilder
from tests.unit.spark_metrics.store.test_writer import batch

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(580)]
RACES = 25


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    with S3Server(tmp_path / "s3") as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    with LocalCluster(base_dir=tmp_path / "cluster", brokers=1) as running:
        yield running


def test_of_two_writers_that_put_at_once_one_commits(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have written their files, and neither has seen the other's version."""
    store = s3.url(tmp_path.name)
    StoreWriter(store).commit(batch(0))
    together = threading.Barrier(2)
    where: Any = store_writer
    really = where.put_if_absent

    def at_once(*arguments: Any) -> bool:
        together.wait(WAIT_S)
        return bool(really(*arguments))

    monkeypatch.setattr(where, "put_if_absent", at_once)

    def commit(writer: StoreWriter) -> Manifest | None:
        try:
            return writer.commit(batch(1, state_rows=id(writer)))
        except StoreTakenError:
            return None

    for _ in range(RACES):
        writers = [StoreWriter(store), StoreWriter(store)]
        before = [it.manifest for it in writers]
        assert before[0] == before[1] is not None
        with ThreadPoolExecutor(2) as threads:
            done = [it for it in threads.map(commit, writers) if it is not None]
        assert len(done) == 1, "one version, one writer"
        after = StoreWriter(store).manifest
        assert after is not None
        assert after.state_rows == done[0].state_rows, "readers see what was committed"
    successors = StoreFiles(store).list_files(COMMITS)
    assert len(successors) == RACES + 1
    assert successor_path(0) in successors


def test_history_is_exported_into_a_bucket(s3: S3Server, tmp_path: Path) -> None:
    """From a folder and from a bucket; each version is put only if absent."""
    lake, options = s3.url("lake"), {**s3.environment, "AWS_ALLOW_HTTP": "true"}
    for number, store in enumerate((str(tmp_path / "store"), s3.url("store"))):
        builder = StoreBuilder(store)
        for second in range(2):
            point = {"cluster": CLUSTER, "broker": 101, "at_ms": second, "leaders": second}
            builder.write({}, broker_history=[point])
            export_history(store, f"{lake}/{number}", now_ms=second)
        table = DeltaTable(f"{lake}/{number}/broker_history", storage_options=options)
        assert (table.version(), sorted(table.to_pyarrow_table()["leaders"].to_pylist())) == (
            1,
            [0, 1],
        )


def test_sql_reads_history_in_a_bucket(s3: S3Server) -> None:
    builder = StoreBuilder(s3.url("store"))
    for second in range(2):
        point = {"cluster": CLUSTER, "broker": 101, "at_ms": second, "leaders": second}
        builder.write({}, broker_history=[point])
    sql = "SELECT span, sum(leaders) AS leaders FROM broker_history GROUP BY ALL"
    answer = ask_history(s3.url("store"), sql)
    assert answer is not None
    assert answer.rows.to_pylist() == [{"span": "fine", "leaders": 1}]
    none = ask_history(s3.url("store"), "SELECT count(*) AS n FROM broker_history, job_history")
    assert none is not None
    assert none.rows.to_pylist() == [{"n": 0}]
    with pytest.raises(SqlError):
        ask_history(s3.url("store"), "FROM read_text('/etc/passwd')")
    files = AggregatesReader(s3.url("store")).history_files("broker_history", span="hour")
    assert files is not None
    assert {path.rpartition("/")[0] for path in files.paths} == {f"{s3.url('store')}/history"}


def test_kill_9_of_the_job_neither_loses_nor_doubles(
    s3: S3Server, cluster: LocalCluster, tmp_path: Path
) -> None:
    """Killed within and after its batches, while a reader reads."""
    job = job_on(s3, cluster, tmp_path)
    samples = Samples(cluster.bootstrap)
    samples.send(rounds=3, bad=1)
    is_over = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        try:
            job.start()
            job.wait_ready()
            reading = threads.submit(read_until, is_over, job)
            for after_s in (0.0, 0.4, 0.8, 1.2, 1.6, 2.5):
                job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
                samples.send(rounds=20, bad=2)
                time.sleep(after_s)
                assert job.end(signal.SIGKILL) == -signal.SIGKILL
                samples.send(rounds=5, bad=1)
                job.start()
                job.wait_ready()
            ends = each_counted_once(job, samples)
            assert readings_by_the_hour(job) == len(ends)
            is_over.set()
            assert reading.result(WAIT_S) > len(ends) / 10
            shown = history_ends(job)
            assert job.end(signal.SIGTERM) == 0
        finally:
            is_over.set()
            job.close()
    assert "Traceback" not in job.words(), job.words()
    assert history_ends(job) == shown, "a reader needs no job"


def test_executors_write_and_the_driver_commits(
    s3: S3Server, cluster: LocalCluster, tmp_path: Path
) -> None:
    """Executors are killed, and the whole job; the checkpoint is a folder of the driver."""
    spark = StandaloneSpark(tmp_path / "spark")
    spark.environment |= s3.environment
    with spark:
        job = job_on(s3, cluster, tmp_path)
        job.environment, job.timeout_s = spark.environment, 300.0
        job.flags += ("--master", spark.master, "--conf", "spark.executor.memory=512m")
        samples = Samples(cluster.bootstrap)
        try:
            job.start()
            job.wait_ready()
            job.wait_until(lambda: bool(spark.executors()), "an executor")
            samples.send(rounds=5, bad=1)
            for pid in spark.executors():
                os.kill(pid, signal.SIGKILL)
            samples.send(rounds=5)
            job.wait_until(lambda: high_watermark(job) == samples.rounds, "caught up")
            samples.send(rounds=5, bad=1)
            time.sleep(0.5)
            assert job.end(signal.SIGKILL) == -signal.SIGKILL
            samples.send(rounds=5)
            job.start()
            job.wait_ready()
            ends = each_counted_once(job, samples)
            assert readings_by_the_hour(job) == len(ends)
            assert job.end(signal.SIGTERM) == 0
        finally:
            job.close()


def job_on(s3: S3Server, cluster: LocalCluster, base_dir: Path) -> MetricsJob:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(WAIT_S)
    job = MetricsJob(bootstrap=cluster.bootstrap, base_dir=base_dir, store=s3.url(base_dir.name))
    job.environment, job.flags = s3.environment, ("--topic", TOPIC)
    return job


def read_until(is_over: threading.Event, job: MetricsJob) -> int:
    """Read figures and history again and again, as a screen does; how often."""
    reader, seen, times = AggregatesReader(job.store), -1, 0
    while not is_over.is_set():
        now = reader.now()
        assert now is not None
        end = max(now.tables["partitions"]["high_watermark"].to_pylist(), default=-1)
        assert end >= seen, "a version that was seen is not taken back"
        assert health(job)["lost_records_total"] == 0
        shown = history_ends(job)
        assert shown == sorted(set(shown)), "no reading is shown twice"
        seen, times = end, times + 1
    return times
