"""Spark's classes, loaded once and kept: a JVM that maps them starts in two thirds of the time.

    python -m spark_metrics.job.class_archive FILE

runs the job over made-up samples, from a stream to a store, and lets the JVM write what it has
loaded into FILE (class data sharing, JEP 350). Set-up does so once per Java and Spark; without
the archive, or with one that does not fit, everything works, only later.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from broker.metrics_schema import BrokerSample, Envelope, ReplicaSample, encode_round
from spark_metrics.job.micro_batch import BatchReport, MicroBatchSink
from spark_metrics.job.spark_session import (
    JAVA_OPTIONS,
    SessionSettings,
    archive_file,
    build_session,
)
from spark_metrics.store.writer import StoreWriter, wall_clock_ms

MAKE_TIMEOUT_S: Final = 300
BATCHES: Final = 3


def make_archive() -> Path | None:
    """The archive that fits this Java and Spark, made if need be; None when that failed."""
    wanted = archive_file()
    if wanted.exists():
        return wanted
    made = wanted.with_suffix(".new")
    made.unlink(missing_ok=True)
    try:
        subprocess.run(
            [sys.executable, "-m", "spark_metrics.job.class_archive", str(made)],
            capture_output=True,
            timeout=MAKE_TIMEOUT_S,
            check=True,
        )
        made.rename(wanted)
    except (OSError, subprocess.SubprocessError):
        made.unlink(missing_ok=True)
        return None
    return wanted


def _run(target: Path) -> None:
    """Run the job in a JVM that writes the archive when it ends."""
    options = " ".join((*JAVA_OPTIONS, f'"-XX:ArchiveClassesAtExit={target}"'))
    session = build_session(
        SessionSettings(master="local[2]", further={"spark.driver.extraJavaOptions": options})
    )
    with tempfile.TemporaryDirectory(prefix="partiscope-archive-") as folder:
        _stream(session, folder)
    session.stop()
    process = SparkContext._gateway.proc  # type: ignore[union-attr]  # the session made it
    process.stdin.close()
    process.wait(MAKE_TIMEOUT_S)


def _stream(session: SparkSession, folder: str) -> None:
    """Run some batches through the very sink of the job."""
    seen: list[BatchReport] = []
    sink = MicroBatchSink(
        StoreWriter(f"{folder}/store"),
        query_id=lambda: "archive",
        on_batch=seen.append,
    )

    def commit(batch: DataFrame, batch_id: int) -> None:
        sink(batch, batch_id)

    # Loads the connector's classes; the topic is not there, and not asked for.
    session.readStream.format("kafka").option("subscribe", "none").option(
        "kafka.bootstrap.servers", "127.0.0.1:1"
    ).load()
    rate = session.readStream.format("rate").option("rowsPerSecond", 5).load()
    records = rate.select(
        sql.lit(_sample()).cast("binary").alias("value"),
        sql.lit(0).alias("partition"),
        sql.col("value").alias("offset"),
        "timestamp",
    )
    query = (
        records.writeStream.option("checkpointLocation", f"{folder}/checkpoint")
        .trigger(processingTime="500 milliseconds")
        .foreachBatch(commit)
        .start()
    )
    deadline_s = time.monotonic() + MAKE_TIMEOUT_S / 2
    while len(seen) < BATCHES and query.isActive and time.monotonic() < deadline_s:
        time.sleep(0.1)
    query.stop()


def _sample() -> str:
    now_ms = wall_clock_ms()
    replica = ReplicaSample(
        topic="t",
        partition=0,
        leader=101,
        leader_epoch=1,
        replicas=(101,),
        isr=(101,),
        log_start_offset=0,
        high_watermark=1,
        log_end_offset=1,
        read_ms=now_ms,
    )
    broker = BrokerSample(id=101, host="localhost", port=9092, fenced=False, read_ms=now_ms)
    envelope = Envelope(
        cluster="archive", broker=101, broker_epoch=1, round_ms=now_ms, interval_ms=1_000
    )
    return encode_round(envelope, [replica, broker])[0].decode()


if __name__ == "__main__":
    _run(Path(sys.argv[1]))
