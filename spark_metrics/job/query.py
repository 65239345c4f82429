"""The job as an un-started query, and how a run of it is watched."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_metrics.buckets.on_driver import DriverFold
from spark_metrics.buckets.on_executors import ExecutorFold
from spark_metrics.buckets.plan import BucketFold
from spark_metrics.job.checkpoint import checkpoint_id
from spark_metrics.job.kafka_source import SourceSettings, read_between, read_samples
from spark_metrics.job.micro_batch import BatchReport, MicroBatchSink
from spark_metrics.job.readable_offsets import ReadableOffsets
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.errors import MetricsError, StoreAwayError

TRIGGER_MS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSettings:
    """One run of the job."""

    source: SourceSettings
    store: str
    checkpoint: str
    trigger_ms: int = TRIGGER_MS
    has_executors: bool = False
    """Whether the master has executors beside the driver: they fold then."""

    def bucket_fold(self) -> BucketFold:
        """The fold that fits the master."""
        return ExecutorFold() if self.has_executors else DriverFold()


def build_job(
    session: SparkSession,
    settings: JobSettings,
    *,
    writer: StoreWriter,
    on_batch: Callable[[BatchReport], None],
    on_notice: Callable[[str], None],
    on_fatal: Callable[[MetricsError], None],
) -> DataStreamWriter:
    """The query, ready to be started.

    ``on_fatal`` is told of errors after which starting the query again would not help.
    """
    sink = MicroBatchSink(
        writer,
        query_id=lambda: checkpoint_id(settings.checkpoint),
        buckets=settings.bucket_fold(),
        records_max=settings.source.records_per_batch_max,
        on_batch=on_batch,
        on_notice=on_notice,
    )

    def commit(batch: DataFrame, batch_id: int) -> None:
        try:
            sink(batch, batch_id)
        except StoreAwayError:
            raise  # it may come back
        except MetricsError as error:
            on_fatal(error)
            raise

    return (
        read_samples(session, settings.source)
        .writeStream.queryName("partiscope-metrics")
        .option("checkpointLocation", settings.checkpoint)
        .trigger(processingTime=f"{settings.trigger_ms} milliseconds")
        .foreachBatch(commit)
    )


def take_in(
    session: SparkSession,
    settings: JobSettings,
    found: ReadableOffsets,
    *,
    writer: StoreWriter,
) -> None:
    """Commit the records before and between those that are damaged, without a stream."""
    sink = MicroBatchSink(
        writer,
        query_id=lambda: "before what is damaged",
        buckets=settings.bucket_fold(),
        compares_clocks=False,
    )
    for number, (begins, ends) in enumerate(found.ranges()):
        sink(read_between(session, settings.source, begins, ends), number)
