"""Recorded clusters of 8 to 44 brokers: how good the plans are beside what peers made of the same
inputs (Cruise Control 3.0.4 with its default goals, topicmappr of kafka-kit 4), kept from sliding.
"""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from planner.goals import PlanRequest
from planner.optimizer import plan
from planner.topology import parse_topology
from tests.unit.planner.clusters import seeded

GOLDEN: Final = Path(__file__).parents[2] / "golden"


@dataclass(frozen=True, slots=True)
class Peers:
    """Of Cruise Control: bytes moved, fewest and most replicas and leaders on a broker; of
    topicmappr: most bytes on a broker over the mean."""

    moved_gb: int
    replicas: tuple[int, int]
    leaders: tuple[int, int]
    bytes_max: float


RECORDED: Final = {
    "disorder": Peers(364, (468, 545), (156, 182), 1.135),
    "join3": Peers(1703, (389, 440), (13, 257), 1.046),
    "leave1": Peers(544, (482, 688), (160, 200), 1.133),
    "large_disorder": Peers(857, (855, 982), (278, 319), 1.151),
    "large_join4": Peers(5256, (744, 834), (178, 708), 1.038),
}


@pytest.mark.parametrize("case", RECORDED)
def test_the_first_plan_is_evener_than_peers_and_near_the_proven_minimum(case: str) -> None:
    document = json.loads(gzip.decompress((GOLDEN / f"{case}.json.gz").read_bytes()))
    peers = RECORDED[case]
    (ours,) = plan(parse_topology(document), PlanRequest(alternatives=1)).alternatives
    balance, moved, bound = ours.balance, ours.proposal.moved_bytes, ours.lower_bound_bytes
    assert ours.violations == ()
    for spread, theirs in ((balance.replicas, peers.replicas), (balance.leaders, peers.leaders)):
        assert theirs[0] <= spread.min
        assert spread.max <= theirs[1]
    assert balance.bytes.max <= (peers.bytes_max + 0.0005) * balance.bytes.mean
    assert bound is not None
    assert bound <= moved <= max(1.03 * bound, (peers.moved_gb + 0.5) * 1e9)


def test_the_recorded_case_is_balanced_with_few_moves() -> None:
    planned = plan(
        parse_topology(json.loads((GOLDEN / "norack_skew.json").read_text())), PlanRequest()
    )
    by_name = {alternative.name: alternative for alternative in planned.alternatives}
    even = by_name["even"]
    assert (even.balance.replicas.min, even.balance.replicas.max) == (450, 450)
    assert (even.balance.leaders.min, even.balance.leaders.max) == (150, 150)
    assert even.proposal.moved_replicas <= 70
    balanced = by_name["balanced"]
    assert planned.alternatives[0] is balanced
    assert balanced.balance.bytes.max <= 1.0351 * balanced.balance.bytes.mean
    assert balanced.balance.replicas.min >= 437
    assert balanced.balance.replicas.max <= 462
    for alternative in planned.alternatives:
        bound = alternative.lower_bound_bytes
        assert bound is not None
        assert alternative.violations == ()
        assert bound <= alternative.proposal.moved_bytes <= 1.01 * bound + 10**6
    assert even.balance.bytes.max <= 1.0101 * even.balance.bytes.mean


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("racks", "factor", "brokers", "joined", "removed"),
    [
        (3, 3, 15, 0, ()),
        (3, 3, 15, 3, ()),
        (0, 3, 13, 4, (101,)),
        (0, 3, 13, 0, (101,)),
        (4, 3, 16, 4, (101,)),
        (4, 3, 16, 0, ()),
        (2, 2, 16, 4, ()),
    ],
)
def test_clusters_of_other_shapes_are_balanced_near_the_proven_minimum(
    seed: int, racks: int, factor: int, brokers: int, joined: int, removed: tuple[int, ...]
) -> None:
    before = seeded(
        seed, partitions=1500, racks=racks, factor=factor, brokers=brokers, joined=joined
    )
    made = plan(before, PlanRequest(remove_brokers=removed, alternatives=1))
    (first,) = made.alternatives
    assert first.violations == ()
    assert first.balance.bytes.max <= 1.0351 * first.balance.bytes.mean
    for spread in (first.balance.replicas, first.balance.leaders):
        assert spread.max <= 1.04 * spread.mean + 1
        assert spread.min >= 0.96 * spread.mean - 1
    assert first.lower_bound_bytes is not None
    moved = first.proposal.moved_bytes
    assert first.lower_bound_bytes <= moved <= 1.05 * first.lower_bound_bytes
