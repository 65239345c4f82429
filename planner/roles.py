"""Roles of brokers in a request. Brokers are numbered as in the topology."""

from dataclasses import dataclass

import numpy as np

from planner.columns import Flags, Numbers
from planner.goals import PlanRequest
from planner.topology import Topology


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """One element a broker; racks of removed brokers alone are numbered `racks`, unknown ones from
    `known_racks` on."""

    removed: Flags
    excluded: Flags
    """Neither lose nor receive: named by the request, down, or cordoned."""
    target: Flags
    """May receive replicas; these are the ones to be balanced."""
    down: Flags
    """Do not run."""
    unnamable: Flags
    """Do not run or are cordoned: no new list of replicas may name them."""
    rack: Numbers
    racks: int
    known_racks: int


def roles_of(topology: Topology, request: PlanRequest) -> Roles:
    """Removed, ignored and balanced brokers."""
    ids = topology.broker_ids
    removed: Flags = np.isin(ids, request.remove_brokers)
    unfit = np.array([bool(broker.why_no_target) for broker in topology.brokers], dtype=np.bool_)
    hidden = np.array([bool(broker.lacks_listener) for broker in topology.brokers], dtype=np.bool_)
    excluded = np.isin(ids, request.exclude_brokers) | (unfit & ~removed)
    rack, racks, known_racks = _numbered_racks(topology, removed)
    return Roles(
        removed=removed,
        excluded=excluded,
        target=~(removed | excluded),
        unnamable=unfit & ~hidden,
        down=np.array([not broker.is_running for broker in topology.brokers], dtype=np.bool_),
        rack=rack,
        racks=racks,
        known_racks=known_racks,
    )


def _numbered_racks(topology: Topology, removed: Flags) -> tuple[Numbers, int, int]:
    """(rack number per broker, number of racks of brokers that stay, how many of these are known).
    Known racks come first, then one for each broker that stays and has none, then all that only
    removed brokers have. Where at most one is known there is one for all."""
    kept = [b for b, gone in zip(topology.brokers, removed, strict=True) if not gone]
    known = sorted({broker.rack for broker in kept if broker.rack is not None})
    if len(known) < 2:
        return np.zeros(len(removed), dtype=np.int64), 1, 1
    unknown = [broker.id for broker in kept if broker.rack is None]
    names: list[str | int] = [*known, *unknown]
    number = {name: i for i, name in enumerate(names)}
    racks = [
        number.get(broker.id if broker.rack is None else broker.rack, len(number))
        for broker in topology.brokers
    ]
    return np.array(racks, dtype=np.int64), len(number), len(known)
