"""A recorded cluster of 8 brokers and 1,200 partitions: how good the plans are, kept from sliding.

What peers make of the same input: kafka-reassign-partitions moves 2,301 replicas (2,620 GB) to
reach 443 to 455 replicas a broker; topicmappr moves nothing.
"""

import json
from pathlib import Path

from control.planner.goals import PlanRequest
from control.planner.optimizer import plan
from control.planner.topology import parse_topology

CASE = Path(__file__).parents[3] / "golden" / "norack_skew.json"


def test_the_recorded_case_is_balanced_with_few_moves() -> None:
    planned = plan(parse_topology(json.loads(CASE.read_text())), PlanRequest())
    by_name = {alternative.name: alternative for alternative in planned.alternatives}
    even = by_name["even"]
    assert (even.balance.replicas.min, even.balance.replicas.max) == (450, 450)
    assert (even.balance.leaders.min, even.balance.leaders.max) == (150, 150)
    assert even.proposal.moved_replicas <= 85
    balanced = by_name["balanced"]
    assert planned.alternatives[0] is balanced
    assert balanced.balance.bytes.max <= 1.0351 * balanced.balance.bytes.mean
    assert (balanced.balance.replicas.min, balanced.balance.replicas.max) == (437, 462)
    for alternative in planned.alternatives:
        bound = alternative.lower_bound_bytes
        assert bound is not None
        assert alternative.violations == ()
        assert bound <= alternative.proposal.moved_bytes <= 1.05 * bound + 10**9
    assert even.balance.bytes.max <= 1.0101 * even.balance.bytes.mean
