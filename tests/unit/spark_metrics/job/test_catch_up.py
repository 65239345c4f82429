"""A job that reads an old topic tells how fast it takes samples in."""

from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

from broker.metrics_schema import encode_round
from spark_metrics.job.micro_batch import RATE_BATCHES, MicroBatchSink
from spark_metrics.state.job_clock import Tick
from spark_metrics.store.writer import StoreWriter
from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import T0_MS, envelope, replica

DAY_MS = 86_400_000


class Fetched:
    """Records as if Spark had fetched them."""

    def __init__(self, values: list[bytes], first: int) -> None:
        count = len(values)
        self._rows = pa.table(
            {
                "partition": pa.array([0] * count, pa.int32()),
                "offset": pa.array(range(first, first + count), pa.int64()),
                "timestamp_ms": pa.array([T0_MS] * count, pa.int64()),
                "value": pa.array(values, pa.binary()),
            }
        )

    def selectExpr(self, *columns: str) -> "Fetched":
        return self

    def toArrow(self) -> pa.Table:
        return self._rows


class Job:
    """A job whose batches take in so many seconds of the topic, and take so many."""

    def __init__(self, store: Path) -> None:
        self._store = str(store)
        self._event_ms = self._passed_ms = self._offset = self._batch = 0
        self.start()

    def start(self) -> None:
        writer = StoreWriter(self._store)
        self._sink = MicroBatchSink(
            writer, query_id=lambda: "q", tick=self._tick, compares_clocks=False
        )

    def _tick(self) -> Tick:
        now_ms = T0_MS + DAY_MS + self._passed_ms
        return Tick(wall_ms=now_ms, boot="b", steady_ms=now_ms)

    def batch(self, taken_s: int, takes_s: int) -> float | None:
        """The rate that the store tells then."""
        self._event_ms += 1_000 * taken_s
        self._passed_ms += 1_000 * takes_s
        values = encode_round(envelope(101, self._event_ms), [replica(self._event_ms, 1)])
        self._sink(cast(DataFrame, Fetched(values, self._offset)), self._batch)
        self._offset += len(values)
        self._batch += 1
        (health,) = AggregatesReader(self._store).now_table("health").to_pylist()
        assert health["delay_ms"] == DAY_MS + self._passed_ms - self._event_ms
        return cast("float | None", health["catch_up_rate"])


def test_the_rate_is_event_time_per_time_of_the_last_batches(tmp_path: Path) -> None:
    job = Job(tmp_path / "store")
    assert job.batch(60, 3) is None, "one batch has no rate"
    assert job.batch(60, 3) == pytest.approx(20)
    assert job.batch(60, 2) == pytest.approx(120 / 5)
    for _ in range(RATE_BATCHES):
        rate = job.batch(1, 2)
    assert rate == pytest.approx(0.5), "it falls behind further"
    job.start()
    assert job.batch(60, 600) is None, "a pause of the job counts for nothing"
    assert job.batch(60, 3) == pytest.approx(20)
