"""Offsets and sizes of all 64 bits: whatever Kafka may hold is computed, and costs no other row."""

from typing import Any, Final

import pytest

from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    GroupSample,
    ReplicaSample,
)
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
LONG_MAX: Final = 2**63 - 1
BEYOND_FLOATS: Final = 2**53 + 1_001
ENDS: Final = (100, BEYOND_FLOATS, 2**61, 2**62 + 5, LONG_MAX)


def told(rounds: FoldedRounds, second: int, *, end: int, offset: int, start: int = 0) -> Any:
    """A partition with an odd log and commit beside ordinary ones; the rows of commits."""
    at_ms = T0_MS + 1_000 * second
    logs = [(0, start, end), (1, 0, 1_000 + 10 * second)]
    commits = [(0, offset), (1, 900 + 10 * second)]
    rounds.round(
        1,
        at_ms,
        BrokerSample(host="h", port=9092, fenced=False, id=1, read_ms=at_ms),
        GroupSample(group_id="g", state="Stable", members=1, read_ms=at_ms),
        *(
            CommitSample(
                group_id="g", topic="t", partition=number, committed_offset=at, read_ms=at_ms,
                commit_ms=at_ms,
            )
            for number, at in commits
        ),
        *(
            ReplicaSample(
                topic="t", partition=number, leader=1, leader_epoch=1, replicas=(1,), isr=(1,),
                log_start_offset=begin, high_watermark=until, log_end_offset=until,
                size_bytes=until, segments=1, read_ms=at_ms + 1,
                log_points=[begin, at_ms - 60_000, max(begin, until - 1), at_ms],
            )
            for number, begin, until in logs
        ),
    )  # fmt: skip
    return rounds.batch(at_ms + 500)


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("offset", [0, 50, *ENDS])
def test_an_odd_offset_is_computed_and_costs_no_other_row(end: int, offset: int) -> None:
    rounds = FoldedRounds()
    for second in range(6):
        folded = told(rounds, second, end=end, offset=offset)
    assert rounds.bad_records == 0
    odd, plain = folded.state.commits.sort_by("partition").to_pylist()
    assert (plain["lag"], plain["status"]) == (100, "OK")
    assert plain["consumed_records_per_s"] == pytest.approx(10)
    assert odd["lag"] == max(0, end - offset)
    if offset > end:
        assert odd["status"] == "BEYOND"
    (group,) = rounds.group_rows(folded)
    assert group["lag"] == min(LONG_MAX, 100 + max(0, end - offset))


def test_sums_stay_at_the_end_of_64_bits() -> None:
    rounds = FoldedRounds()
    folded = told(rounds, 0, end=LONG_MAX, offset=0)
    (topic,) = folded.sums.topics.to_pylist()
    assert topic["size_bytes_sum"] == LONG_MAX


@pytest.mark.parametrize("step", [1, 2**40, 2**61])
def test_an_odd_log_that_grows_has_a_rate(step: int) -> None:
    rounds = FoldedRounds()
    for second in range(3):
        folded = told(rounds, second, end=2**61 + step * second, offset=5, start=step * second)
    odd, _ = folded.state.partitions.sort_by("partition").to_pylist()
    assert odd["in_records_per_s"] == pytest.approx(step)
