"""Clocks that differ: what the job makes of them from when samples say they were sent."""

from random import Random

import pytest

from broker.metrics_schema import (
    CommitSample,
    Envelope,
    GroupSample,
    UnchangedCommit,
    encode_round,
)
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head, seen_of, set_right
from spark_metrics.decode.record_rows import parse_rows
from spark_metrics.state.job_state import JobState
from spark_metrics.state.known_groups import SILENT_MS_MAX, merge_groups
from spark_metrics.state.rounds import SourceKey, observe_rounds
from spark_metrics.state.source_clocks import (
    SEEN_MIN,
    TOLERATED_MS,
    Seen,
    SourceClock,
    decode_clocks,
    encode_clocks,
    observe_clocks,
)

T0_MS = 1_800_000_000_000
KEY = SourceKey("c", 1)
MINUTE_MS = 60_000


def run(
    skews_ms: list[int], *, dice: Random | None = None, late_ms: int = 0, reaches: bool = True
) -> list[SourceClock]:
    """The clock after each of as many batches, a second apart: its true skew is given."""
    clocks: dict[SourceKey, SourceClock] = {}
    reached: int | None = None
    told = []
    for second, skew_ms in enumerate(skews_ms):
        now_ms = T0_MS + 1_000 * second
        delay_ms = late_ms + (dice.randrange(100, 900) if dice else 200)
        sent_ms = now_ms - delay_ms + skew_ms
        seen = {KEY: Seen(first_ms=sent_ms - 50, sent_ms=sent_ms)}
        clocks = observe_clocks(clocks, seen, seen_ms=now_ms, reached_ms=reached)
        reached = now_ms if reaches else reached
        told.append(clocks[KEY])
    return told


@pytest.mark.parametrize("skew_ms", [45_000, 11 * MINUTE_MS, 5_000, -45_000, -5_000])
def test_a_clock_that_is_off_is_corrected_to_within_a_second(skew_ms: int) -> None:
    told = run([skew_ms] * 20, dice=Random(7))
    since = 0 if skew_ms > 0 else SEEN_MIN
    assert all(abs(clock.skew_ms - skew_ms) < 1_000 for clock in told[since:])
    assert len({clock.skew_ms for clock in told[since:]}) <= 2, "times do not wobble"


@pytest.mark.parametrize("skew_ms", [0, 900, -1_200, TOLERATED_MS])
def test_a_clock_within_what_is_tolerated_is_left_alone(skew_ms: int) -> None:
    assert {clock.skew_ms for clock in run([skew_ms] * 30, dice=Random(1))} == {0}


def test_a_clock_that_is_set_right_is_believed_within_seconds() -> None:
    told = run([45_000] * 10 + [0] * 10)
    assert told[9].skew_ms == pytest.approx(45_000, abs=300)
    assert {clock.skew_ms for clock in told[9 + SEEN_MIN :]} == {0}


def test_a_clock_that_is_set_wrong_is_seen_at_once() -> None:
    told = run([0] * 10 + [45_000] * 10)
    assert told[9].skew_ms == 0
    assert all(clock.skew_ms == pytest.approx(45_000, abs=300) for clock in told[10:])


def test_one_late_delivery_is_no_clock_and_what_lay_in_the_topic_is_neither() -> None:
    assert {clock.skew_ms for clock in run([0] * 5 + [-9_000] + [0] * 5)} == {0}
    hour = 3_600_000
    assert {clock.skew_ms for clock in run([0] * 20, late_ms=hour, reaches=False)} == {0}


def test_clocks_are_kept_from_batch_to_batch() -> None:
    clocks = {KEY: run([45_000] * 4)[-1]}
    assert decode_clocks(encode_clocks(clocks)) == clocks


def heads_of(broker: int, round_ms: int, *rows: object) -> list[Head]:
    envelope = Envelope(
        cluster="c", broker=broker, broker_epoch=1, round_ms=round_ms, interval_ms=1_000
    )
    return [
        read_head(KafkaRecord(partition=0, offset=n, timestamp_ms=round_ms + 20, value=value))
        for n, value in enumerate(encode_round(envelope, rows))  # type: ignore[arg-type]
    ]


def test_all_times_of_a_sample_are_set_right() -> None:
    ahead_ms = T0_MS + 45_000
    commit = CommitSample(
        group_id="g",
        topic="t",
        partition=0,
        committed_offset=7,
        read_ms=ahead_ms + 5,
        commit_ms=ahead_ms - 300,
    )
    before = UnchangedCommit(
        group_id="g", topic="t", partition=1, read_ms=ahead_ms + 5, since_ms=T0_MS - 4_000
    )
    after = UnchangedCommit(
        group_id="g", topic="t", partition=2, read_ms=ahead_ms + 5, since_ms=ahead_ms
    )
    group = GroupSample(group_id="g", state="Stable", members=1, read_ms=ahead_ms + 1)
    heads = heads_of(1, ahead_ms, group, commit, before, after)
    # The clock was right until then: its source refers to a row of that time.
    clock = SourceClock(cluster="c", broker=1, skew_ms=45_000, since_ms=ahead_ms, before_ms=0)
    (head,) = set_right(heads, {KEY: clock})
    assert head.part is not None
    assert head.part.round_ms == T0_MS
    assert (head.groups[0].read_ms, head.groups[0].round_ms) == (T0_MS + 1, T0_MS)
    rows = parse_rows("commits", [(0, head)]).rows.sort_by("partition").to_pylist()
    assert (rows[0]["read_ms"], rows[0]["commit_ms"]) == (T0_MS + 5, T0_MS - 300)
    assert [row["round_ms"] or row["again_round_ms"] for row in rows] == [T0_MS] * 3
    assert [row["again_read_ms"] for row in rows[1:]] == [T0_MS + 5] * 2
    assert [row["again_since_ms"] for row in rows[1:]] == [T0_MS - 4_000, T0_MS]


def test_a_broker_eleven_minutes_ahead_does_not_hide_the_groups_of_others() -> None:
    group = GroupSample(group_id="g", state="Stable", members=1, read_ms=T0_MS)
    ahead_ms = T0_MS + 11 * MINUTE_MS
    heads = [*heads_of(1, T0_MS, group), *heads_of(2, ahead_ms)]
    clocks = observe_clocks({}, seen_of(heads), seen_ms=T0_MS + 100, reached_ms=None)
    assert ahead_ms - T0_MS > SILENT_MS_MAX
    right = set_right(heads, clocks)
    parts = [head.part for head in right if head.part is not None]
    sources = observe_rounds({}, parts, at_ms=T0_MS + 100)
    groups = [group for head in right for group in head.groups]
    (kept,) = merge_groups((), groups, {}, JobState(sources=sources).silent_sources())
    assert kept.group_id == "g"
