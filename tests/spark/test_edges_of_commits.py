"""Commits that are not there, lie beyond the log's end, or belong to nobody any more."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from broker.metrics_schema import NO_COMMIT, Row
from spark_metrics.window.aggregates import AggregatesReader
from tests.spark.story import CLUSTER, T0_MS, Story, broker, commit, group, replica

pytestmark = [
    pytest.mark.spark,
    pytest.mark.thorough,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]
STEP_S = 5
Now = dict[str, list[dict[str, Any]]]


@pytest.fixture
def story(spark: SparkSession, tmp_path: Path) -> Story:
    return Story(session=spark, store=tmp_path)


def tell(story: Story, second: int, *rows: Row, group_type: str = "") -> Now:
    """One round of the coordinator, which leads t-0 to t-2 with 1,000 records each (t-2: none)."""
    at_ms = 1_000 * second
    ends = [
        replica(at_ms + 1, end, partition=number, log_start_offset=start)
        for number, (start, end) in enumerate([(0, 1_000), (400, 1_000), (70, 70)])
    ]
    of_group = group(at_ms, group_type=group_type)
    story.round(101, at_ms, broker(at_ms, 101), of_group, *rows, *ends)
    return story.batch()


def commits_of(now: Now) -> dict[int, dict[str, Any]]:
    return {row["partition"]: row for row in now["commits"]}


def owned(at_ms: int, partition: int) -> Row:
    return commit(at_ms, NO_COMMIT, partition=partition, member_id="m")


def test_what_a_member_owns_without_a_commit_is_there_and_the_group_is_not_green(
    story: Story,
) -> None:
    for second in range(0, 4 * STEP_S, STEP_S):
        at_ms = 1_000 * second
        done = commit(at_ms, 1_000, commit_ms=T0_MS, member_id="m")
        now = tell(story, second, done, owned(at_ms, 1), owned(at_ms, 2))
        rows = commits_of(now)
        committed = {number: row["committed_offset"] for number, row in rows.items()}
        assert committed == {0: 1_000, 1: None, 2: None}
        assert [rows[n]["lag"] for n in range(3)] == [0, None, None]
        assert [rows[n]["status"] for n in range(3)] == ["OK", None, "OK"]
        assert rows[1]["end_offset"] == 1_000
        assert rows[1]["member_id"] == "m"
        assert [rows[1][it] for it in ("time_lag_ms", "time_to_clear_ms", "stuck_since_ms")] == (
            [None] * 3
        )
        (told,) = now["groups"]
        assert (told["partitions"], told["lag"], told["status"]) == (1, 0, None)


def test_a_first_commit_begins_a_history_of_its_own(story: Story) -> None:
    tell(story, 0, owned(0, 1))
    first = commits_of(tell(story, 5, commit(5_000, 500, partition=1, member_id="m")))[1]
    assert (first["lag"], first["status"], first["history_ms"]) == (500, None, 0)
    second = commits_of(tell(story, 10, commit(10_000, 600, partition=1, member_id="m")))[1]
    assert (second["lag"], second["status"]) == (400, "OK")
    assert second["consumed_records_per_s"] == pytest.approx(20.0)


def test_offsets_that_are_deleted_under_a_member_leave_no_figures_behind(story: Story) -> None:
    for second in (0, 5, 10):
        tell(story, second, commit(1_000 * second, 100 * second, partition=0, member_id="m"))
    gone = commits_of(tell(story, 15, owned(15_000, 0)))[0]
    figures = ("committed_offset", "lag", "consumed_records_per_s", "lag_records_per_s", "status")
    assert [gone[it] for it in figures] == [None] * 5
    again = commits_of(tell(story, 20, commit(20_000, 10, partition=0, member_id="m")))[0]
    assert (again["lag"], again["consumed_records_per_s"], again["status"]) == (990, None, None)


def test_who_neither_owns_nor_commits_has_no_row(story: Story) -> None:
    assert commits_of(tell(story, 0, commit(0, NO_COMMIT, partition=1))) == {}
    assert commits_of(tell(story, 5, owned(5_000, 1))).keys() == {1}
    assert commits_of(tell(story, 10)) == {}, "its member is gone"


def test_a_commit_beyond_the_end_is_told_so_and_a_reset_mends_it(story: Story) -> None:
    words = []
    for second in (0, 5, 10):
        row = commits_of(tell(story, second, commit(1_000 * second, 1_500)))[0]
        words.append(row["status"])
        assert (row["committed_offset"], row["end_offset"], row["lag"]) == (1_500, 1_000, 0)
        assert row["stuck_since_ms"] is None
    assert words == [None, "BEYOND", "BEYOND"]
    (told,) = story.now()["groups"]
    assert told["status"] == "BEYOND"
    mended = [
        commits_of(tell(story, second, commit(1_000 * second, 1_000)))[0]["status"]
        for second in (15, 20)
    ]
    assert mended == ["OK", "OK"]


def test_a_group_that_reads_on_near_the_end_is_not_beyond_it(story: Story) -> None:
    """Each commit lies one record beyond an end that was read a moment too early."""
    words = []
    for second in range(0, 30, STEP_S):
        at_ms = 1_000 * second
        end = 1_000 + 10 * second
        rows = commit(at_ms, end + 1), replica(at_ms + 1, end)
        story.round(101, at_ms, broker(at_ms, 101), group(at_ms), *rows)
        words.append(commits_of(story.batch())[0]["status"])
    assert words == [None, *["OK"] * 5]


@pytest.mark.parametrize(("member_id", "word"), [("m", "STALL"), (None, "STOP")])
def test_without_a_member_it_is_stop_whatever_was_committed_again(
    story: Story, member_id: str | None, word: str
) -> None:
    for second in range(0, 40, STEP_S):
        at_ms = 1_000 * second
        row = commit(at_ms, 100, commit_ms=T0_MS + min(at_ms, 10_000), member_id=member_id)
        now = tell(story, second, row)
    assert commits_of(now)[0]["status"] == word


def test_the_lag_that_a_broker_tells_of_a_share_group_is_its_lag(story: Story) -> None:
    for second, start, lag in ((0, 100, 640), (5, 100, 610), (10, 400, None)):
        told = commit(1_000 * second, start, told_lag=lag)
        row = commits_of(tell(story, second, told, group_type="share"))[0]
        assert (row["lag"], row["told_lag"]) == (1_000 - start if lag is None else lag, lag)
        assert row["end_offset"] == 1_000
        if second == 5:
            assert row["lag_records_per_s"] == -6.0, "acknowledged beyond the start offset"
    reader = AggregatesReader(str(story.store))
    for second, lag in ((5, 610), (10, None)):
        past = reader.as_of(cluster=CLUSTER, at_ms=T0_MS + 1_000 * second + 500)
        assert past is not None
        assert past.tables["commits"]["told_lag"].to_pylist() == [lag]
        assert past.tables["groups"]["group_type"].to_pylist() == ["share"]
