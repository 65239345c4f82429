"""History as lines."""

from pathlib import Path

import numpy as np
import pytest

from control.model.ids import TopicPartition
from control.views import series
from control.views.series import Span
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import CLUSTER, StoreBuilder, SyntheticSizes

AT_MS = 1_790_000_000_000
SPAN = Span.last(60_000, now_ms=AT_MS)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> AggregatesReader:
    store: Path = tmp_path_factory.mktemp("store")
    sizes = SyntheticSizes(topics=3, partitions=4)
    StoreBuilder(store).write_synthetic(sizes, history_s=60, at_ms=AT_MS)
    return AggregatesReader(str(store))


def test_throughput_of_the_cluster_is_the_sum_of_its_partitions(reader: AggregatesReader) -> None:
    incoming, outgoing, records = series.cluster_throughput(reader, CLUSTER, SPAN)

    assert incoming.last == sum(1_000 + 100 * number for number in range(12))
    assert outgoing.last == 12 * 500
    assert records.unit == "records/s"


def test_throughput_of_a_topic_and_a_broker(reader: AggregatesReader) -> None:
    topic = series.topic_throughput(reader, CLUSTER, "topic-0", SPAN)
    broker = series.broker_throughput(reader, CLUSTER, 101, SPAN)

    assert topic[0].last == sum(1_000 + 100 * number for number in range(4))
    assert broker[0].last == sum(1_000 + 100 * number for number in range(0, 12, 3))


def test_one_partition(reader: AggregatesReader) -> None:
    name = TopicPartition("topic-0", 2)
    found = {item.name: item for item in series.partition_series(reader, CLUSTER, name, SPAN)}

    assert found["in sync"].last == 3
    assert found["size"].last == 100 * 10_200
    assert len(found["in"].at_ms) == 61


def test_lag_of_a_group_by_partition_and_in_all(reader: AggregatesReader) -> None:
    lines = series.group_lag(reader, CLUSTER, "group-1", SPAN)
    total = series.total_lag(reader, CLUSTER, "group-1", SPAN)

    assert [line.name for line in lines] == [f"topic-1-{number}" for number in range(4)]
    assert {line.last for line in lines} == {2_000}
    assert total.last == 8_000
    only = series.group_lag(reader, CLUSTER, "group-1", SPAN, only=TopicPartition("topic-1", 3))
    assert [line.name for line in only] == ["topic-1-3"]


def test_a_group_without_history_has_an_empty_line(reader: AggregatesReader) -> None:
    assert series.total_lag(reader, CLUSTER, "nobody", SPAN).last is None
    assert series.group_lag(reader, CLUSTER, "nobody", SPAN) == ()


def test_a_pause_breaks_the_line() -> None:
    at = np.array([0, 1_000, 2_000, 60_000, 61_000])

    times, values = series.with_gaps(at, np.ones(5))

    assert times.tolist() == [0, 1_000, 2_000, 2_001, 60_000, 61_000]
    assert np.isnan(values[3])


@pytest.mark.parametrize(
    ("first_ms", "shown_ms"),
    [(0, 600_000), (100_000, 600_000), (400_000, 200_000), (590_000, 60_000), (None, 600_000)],
)
def test_a_young_clusters_chart_begins_with_its_figures(
    first_ms: int | None, shown_ms: int
) -> None:
    values = [
        None if first_ms is None or at < first_ms else 1.0 for at in range(0, 600_001, 10_000)
    ]
    line = series.Series(name="in", unit="", at_ms=range(0, 600_001, 10_000), values=values)

    shown = series.known_stretch([line], Span(since_ms=0, until_ms=600_000))

    assert (shown.until_ms - shown.since_ms, shown.until_ms) == (shown_ms, 600_000)


def test_the_newest_figure_is_unknown_where_the_last_known_one_is_older() -> None:
    line = series.Series(name="lag", unit="records", at_ms=[1, 2, 3], values=[7.0, 8.0, None])
    assert (line.newest, line.last) == (None, 8.0)
    assert series.Series(name="lag", unit="records", at_ms=[], values=[]).newest is None
