"""Brokers whose clocks differ: lag is what it is, from the first batch on."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from broker.metrics_schema import BrokerSample, Row
from tests.spark.story import T0_MS, Story, broker, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
LEADER, COORDINATOR = 101, 102
BATCHES = 14
RATE = 60
"""Records per second; the group is 3,000 behind."""


class SentStory(Story):
    """Records carry when they were sent, by the clock of who sends them."""

    def frame(self, values: Sequence[bytes | None]) -> DataFrame:
        rows = []
        for index, value in enumerate(values):
            sent_ms = json.loads((value or b"").partition(b"\n")[0])["round_ms"]
            at = datetime.fromtimestamp(sent_ms / 1_000, tz=UTC)
            rows.append((bytearray(value or b""), 0, self.offset + index, at))
        self.offset += len(rows)
        schema = "value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP"
        return self.session.createDataFrame(rows, schema)


def known(at_ms: int) -> list[BrokerSample]:
    return [broker(at_ms, it) for it in (LEADER, COORDINATOR)]


@pytest.mark.parametrize(
    ("leader_ms", "coordinator_ms"),
    [
        (0, -45_000),
        pytest.param(0, 45_000, marks=pytest.mark.soak),
        pytest.param(45_000, 0, marks=pytest.mark.soak),
        pytest.param(-45_000, 0, marks=pytest.mark.soak),
        pytest.param(0, 660_000, marks=pytest.mark.soak),
    ],
)
def test_lag_is_right_whoever_has_the_wrong_clock(
    spark: SparkSession,
    tmp_path: Path,
    leader_ms: int,
    coordinator_ms: int,
) -> None:
    story = SentStory(session=spark, store=tmp_path, compares_clocks=True)
    found: list[dict[str, Any]] = []
    for second in range(BATCHES):
        at_ms = 1_000 * second
        story.clock_ms = T0_MS + at_ms + 400
        end = 10_000 + RATE * second
        told_ms = at_ms + coordinator_ms
        rows: list[Row] = [*known(told_ms), group(told_ms), commit(told_ms, end - 3_000)]
        story.round(COORDINATOR, told_ms, *rows, replica(told_ms, end, leader=LEADER))
        led_ms = at_ms + 100 + leader_ms
        end_row = replica(led_ms, end, leader=LEADER)
        story.round(LEADER, led_ms, *known(led_ms), end_row)
        found.append(story.batch())
    # One that is ahead is known at once, and its first commit waits for one more end offset.
    settled = found[4:] if min(leader_ms, coordinator_ms) < 0 else found[1:]
    for now in settled:
        (row,), (told,) = now["commits"], now["groups"]
        # What is paired may be a second late, not 45.
        assert row["lag"] == pytest.approx(3_000, abs=2 * RATE)
        assert abs(row["read_ms"] - row["end_read_ms"]) < 2_000
        assert told["group_id"] == "g"
        assert now["partitions"][0]["in_records_per_s"] == pytest.approx(RATE, rel=0.1)
    last = found[-1]
    assert last["commits"][0]["status"] == "OK"
    skews = {row["broker"]: row["clock_skew_ms"] for row in last["brokers"]}
    assert skews[LEADER] == pytest.approx(leader_ms, abs=1_000)
    assert skews[COORDINATOR] == pytest.approx(coordinator_ms, abs=1_000)


def test_a_clock_that_is_set_back_freezes_no_figures(spark: SparkSession, tmp_path: Path) -> None:
    story = SentStory(session=spark, store=tmp_path, compares_clocks=True)
    found: list[dict[str, Any]] = []
    for second in range(10):
        at_ms = 1_000 * second
        story.clock_ms = T0_MS + at_ms + 400
        told_ms = at_ms - (3_600_000 if second >= 4 else 0)
        end_row = replica(told_ms, 10_000 + RATE * second, leader=LEADER)
        story.round(LEADER, told_ms, broker(told_ms, LEADER), end_row)
        found.append(story.batch())
    ends = [now["partitions"][0]["high_watermark"] for now in found]
    assert ends[8:] == [10_000 + RATE * 8, 10_000 + RATE * 9]
    assert found[-1]["partitions"][0]["in_records_per_s"] == pytest.approx(RATE, rel=0.1)
