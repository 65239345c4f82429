"""Lag that rises until the next commit is no WARN; lag that rises from commit to commit is one."""

from typing import Final

import pytest

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
RATE: Final = 300
LEARNT_S: Final = 90
ENDS_S: Final = 200


def verdicts(period_s: int, reads_per_s: int) -> set[str]:
    """Of a group that reads so much, once its pace is known."""
    rounds, found, offset = FoldedRounds(), set(), 0
    for second in range(0, ENDS_S, 2):
        end = RATE * second
        if second % period_s == 0:
            offset = min(end, reads_per_s * second)
        at_ms = T0_MS + 1_000 * second
        rounds.round(
            1,
            at_ms,
            BrokerSample(host="h", port=9092, fenced=False, id=1, read_ms=at_ms),
            GroupSample(group_id="g", state="Stable", members=1, read_ms=at_ms),
            CommitSample(
                group_id="g", topic="t", partition=0, committed_offset=offset, member_id="m",
                read_ms=at_ms, commit_ms=at_ms,
            ),
            ReplicaSample(
                topic="t", partition=0, leader=1, leader_epoch=1, replicas=(1,), isr=(1,),
                log_start_offset=0, high_watermark=end, log_end_offset=end, read_ms=at_ms,
            ),
        )  # fmt: skip
        (row,) = rounds.batch(at_ms).state.commits.to_pylist()
        if second > LEARNT_S:
            found.add(row["status"])
    return found


@pytest.mark.parametrize(
    ("period_s", "reads_per_s", "falls_behind"),
    [
        (20, RATE, False),
        pytest.param(10, RATE, False, marks=pytest.mark.thorough),
        (20, 200, True),
        pytest.param(2, 200, True, marks=pytest.mark.thorough),
    ],
)
def test_only_what_grows_from_commit_to_commit_falls_behind(
    period_s: int, reads_per_s: int, falls_behind: bool
) -> None:
    assert ("WARN" in verdicts(period_s, reads_per_s)) is falls_behind
