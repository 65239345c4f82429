"""Lag of which no consumer gets anything: no alarm, however long it stays, whoever deletes it."""

from typing import Any, Final

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
FIGURES: Final = ("lag", "status", "lost_records", "time_lag_ms", "retention_risk_ms")


def told(
    rounds: FoldedRounds, second: int, *, start: int, end: int, readable: int | None
) -> tuple[Any, ...]:
    """Figures of a group that has committed 100."""
    at_ms = T0_MS + 1_000 * second
    rounds.round(
        1,
        at_ms,
        BrokerSample(host="h", port=9092, fenced=False, id=1, read_ms=at_ms),
        GroupSample(group_id="g", state="Stable", members=1, read_ms=at_ms),
        CommitSample(
            group_id="g", topic="t", partition=0, committed_offset=100, member_id="m",
            read_ms=at_ms, commit_ms=T0_MS - 1,
        ),
        ReplicaSample(
            topic="t", partition=0, leader=1, leader_epoch=1, replicas=(1,), isr=(1,),
            log_start_offset=start, high_watermark=end, log_end_offset=end, size_bytes=end,
            read_ms=at_ms, readable_offset=readable, retention_ms=3_600_000,
        ),
    )  # fmt: skip
    (row,) = rounds.batch(at_ms).state.commits.to_pylist()
    return (*(row[name] for name in FIGURES), row["stuck_since_ms"])


def test_a_marker_at_the_end_is_no_alarm_and_a_record_behind_it_is_one() -> None:
    rounds = FoldedRounds()
    for second in range(0, 1_200, 60):
        figures = told(rounds, second, start=0, end=101, readable=100)
    assert figures == (1, "OK", 0, 0, None, None)
    for second in range(1_200, 2_400, 60):
        figures = told(rounds, second, start=101, end=101, readable=100)
    assert figures == (1, "OK", 0, 0, None, None)
    for second in range(2_400, 2_520, 20):
        figures = told(rounds, second, start=0, end=102, readable=None)
    assert figures[:2] == (2, "STOP")
    assert figures[-1] == T0_MS + 2_400_000


def test_what_a_consumer_gets_counts_as_lost() -> None:
    rounds = FoldedRounds()
    for second in range(0, 60, 10):
        figures = told(rounds, second, start=110, end=111, readable=108)
    assert figures[0] == 11
    assert figures[2] == 8
