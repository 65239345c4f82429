"""What each broker is to a request. Brokers are numbered as in the topology."""

from dataclasses import dataclass

import numpy as np

from control.planner.columns import Flags, Numbers, rack_numbers
from control.planner.goals import PlanRequest
from control.planner.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """One element a broker; racks of removed brokers alone are numbered `racks`."""

    removed: Flags
    excluded: Flags
    """Neither lose nor receive: named by the request, or down."""
    target: Flags
    """May receive replicas; these are the ones to be balanced."""
    rack: Numbers
    racks: int


def roles_of(topology: Topology, request: PlanRequest) -> Roles:
    """Who is removed, left alone, balanced."""
    ids = topology.broker_ids
    removed: Flags = np.isin(ids, request.remove_brokers)
    down = np.array([not broker.is_running for broker in topology.brokers], dtype=np.bool_)
    excluded = np.isin(ids, request.exclude_brokers) | (down & ~removed)
    rack, racks = rack_numbers(topology, removed)
    target = ~(removed | excluded)
    return Roles(removed=removed, excluded=excluded, target=target, rack=rack, racks=racks)
