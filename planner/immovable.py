"""Partitions that no plan of a request moves, and why. Pure.

A move ends once every replica of its target is in sync. One that keeps a replica on a broker that
does not run would wait for that broker, so such a partition stays as it is, unless the dead replica
itself goes: its broker is decommissioned, or the replication factor changes.
"""

from enum import StrEnum

from control.model.ids import TopicPartition
from planner.goals import PlanRequest
from planner.topology import Topology


class Hindrance(StrEnum):
    """Reason why a partition stays. CORDONED: the controller refuses every list that names a
    cordoned broker. DOWN: it would keep a replica on a broker that does not run."""

    LEADERLESS = "leaderless"
    REASSIGNING = "reassigning"
    CORDONED = "cordoned"
    DOWN = "down"


Immovable = dict[TopicPartition, Hindrance]


def immovable(topology: Topology, request: PlanRequest) -> Immovable:
    """Partitions that stay whatever the goal."""
    removed = set(request.remove_brokers)
    cordoned = {b.id for b in topology.brokers if b.is_cordoned} - removed
    down = topology.down - removed
    kept = cordoned | down
    found: Immovable = {}
    dead = []
    for partition in topology.partitions:
        if not partition.has_leader:
            found[partition.key] = Hindrance.LEADERLESS
        elif partition.is_reassigning:
            found[partition.key] = Hindrance.REASSIGNING
        elif kept and not kept.isdisjoint(partition.replicas):
            if cordoned.isdisjoint(partition.replicas):
                dead.append(partition)
            else:
                found[partition.key] = Hindrance.CORDONED
    factor, excluded = request.replication_factor, set(request.exclude_brokers)
    unfit = {broker.id for broker in topology.brokers if broker.why_no_target}
    targets = set(topology.broker_ids) - removed - excluded - unfit
    for partition in dead:
        here = set(partition.replicas)
        has_factor = factor is None or len(here) == factor
        is_excluded = not excluded.isdisjoint(down & here)
        if has_factor or is_excluded or len(targets | (here - down - removed)) < (factor or 0):
            found[partition.key] = Hindrance.DOWN
    return found
