"""A group that keeps up with traffic in bursts, and commits once a minute, raises no alarm."""

from typing import Any, Final

from broker.metrics_schema import BrokerSample, CommitSample, GroupSample, ReplicaSample
from tests.support.folded_rounds import FoldedRounds

T0_MS: Final = 1_800_000_000_000
RATE: Final = 60
KEPT_S: Final = 1_800
BURST_S: Final = 20
EACH_S: Final = 120
LEARNT_S: Final = 300
"""The second burst in which it waits has taught it."""
ENDS_S: Final = 720
HOUR_MS: Final = 3_600_000


def figures() -> list[tuple[int, dict[str, Any]]]:
    """Each burst begins with a commit, so every second commit has waited, the others have not."""
    rounds, found, end, offset, committed_s = FoldedRounds(), [], 100_000, 100_000, 0
    for second in range(ENDS_S):
        end += RATE if second % EACH_S < BURST_S else 0
        if second % 60 == 0:
            offset, committed_s = end, second
        if second % 20:
            continue
        at_ms = T0_MS + 1_000 * second
        rounds.round(
            1,
            at_ms,
            BrokerSample(host="h", port=9092, fenced=False, id=1, read_ms=at_ms),
            GroupSample(group_id="g", state="Empty", members=0, read_ms=at_ms),
            CommitSample(
                group_id="g", topic="t", partition=0, committed_offset=offset, member_id=None,
                read_ms=at_ms, commit_ms=T0_MS + 1_000 * committed_s,
            ),
            ReplicaSample(
                topic="t", partition=0, leader=1, leader_epoch=1, replicas=(1,), isr=(1,),
                log_start_offset=0, high_watermark=end, log_end_offset=end, read_ms=at_ms,
                size_bytes=100 * end, retention_bytes=100 * KEPT_S * RATE * BURST_S // EACH_S,
                retention_ms=-1,
            ),
        )  # fmt: skip
        found.append((second, *rounds.batch(at_ms).state.commits.to_pylist()))
    return found


def test_a_group_that_keeps_up_with_bursts_raises_no_alarm() -> None:
    told = figures()
    assert [it for it in told if (it[1]["retention_risk_ms"] or HOUR_MS) < HOUR_MS] == []
    assert {row["status"] for second, row in told if second > LEARNT_S} <= {"OK", "WARN"}
