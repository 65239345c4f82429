"""One unknown figure is told, and the others still count."""

from dataclasses import replace

from planner.goals import Goal, PlanRequest
from planner.optimizer import plan
from planner.topology import parse_topology, topology_document
from tests.unit.planner.clusters import cluster


def test_unknown_sizes_disks_and_rates_are_told_and_switch_nothing_off() -> None:
    known = cluster(dict.fromkeys((1, 2, 3)), [(1, 2)] * 8, size=100)
    brokers = tuple(replace(b, capacity_bytes=None if b.id == 3 else 900) for b in known.brokers)
    partitions = tuple(
        replace(p, size_bytes=0, is_size_known=False, is_rate_known=False)
        if p.partition == 7
        else replace(p, in_bytes_per_s=10)
        for p in known.partitions
    )
    topology = replace(known, brokers=brokers, partitions=partitions)
    told = {
        "size": "t-7 is of unknown size, which counts as 0 bytes",
        "traffic": "t-7 is of unknown traffic, which counts as none",
        "disk": "broker 3 does not tell the size of its disks: nothing is known to be too much "
        "for it",
    }
    made = plan(topology, PlanRequest(goal=Goal.TRAFFIC))
    assert set(told.values()) <= set(made.limits)
    balance = plan(topology, PlanRequest())
    assert told["traffic"] not in balance.limits
    assert balance.alternatives[0].balance.bytes.max < 700, "what is known is evened"
    assert plan(known, PlanRequest()).limits == ()
    # What a topology file cannot tell is the rate of a single partition.
    document = topology_document(topology)
    assert "size" not in document["partitions"][7]
    assert not parse_topology(document).partitions[7].is_size_known
