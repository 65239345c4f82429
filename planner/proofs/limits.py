"""Why a balance cannot be better, whatever the plan: proofs in one sentence each."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from control.model.units import bytes_text
from planner.columns import Flags, Numbers
from planner.goals import Goal, PlanRequest
from planner.in_sync import keeps_some
from planner.proposal import PartitionChange, Proposal
from planner.racks import Racks, unknown_words
from planner.search.bounds import fair_shares
from planner.search.placement import Placement, most_per_rack
from planner.topology import Topology, TopologyPartition
from planner.verify import Violation

NAMES_MAX: Final = 5
"""So many partitions of which something is unknown are named."""
LISTED_MAX: Final = 20
"""So many partitions that a plan leaves out are named."""


def proofs(placement: Placement, violations: Iterable[Violation]) -> tuple[str, ...]:
    """Limits that no assignment within the request can pass. `violations`: what a plan leaves."""
    left = {violation.where for violation in violations}
    is_left = [bool(left) and str(p.key) in left for p in placement.topology.partitions]
    return (*_rack_proofs(placement, np.array(is_left, dtype=np.bool_)), *_size_proofs(placement))


def unknown_figures(topology: Topology, goal: Goal) -> tuple[str, ...]:
    """Figures that are not told; a plan counts them as nothing, or as enough."""
    partitions = topology.partitions
    told = []
    if partitions and not any(p.size_bytes for p in partitions):
        told.append(
            "no partition has any bytes as far as is known: only numbers are evened (a cluster "
            "tells sizes to those who may Describe it)"
        )
    elif sizeless := [p for p in partitions if not p.is_size_known]:
        told.append(f"{_of(sizeless)} of unknown size, which counts as 0 bytes")
    if goal is Goal.TRAFFIC and (rateless := [p for p in partitions if not p.is_rate_known]):
        told.append(f"{_of(rateless)} of unknown traffic, which counts as none")
    silent = [b for b in topology.brokers if b.is_running and b.capacity_bytes is None]
    if len(silent) < sum(broker.is_running for broker in topology.brokers):
        told += [
            f"broker {broker.id} does not tell the size of its disks: nothing is known to be too "
            "much for it"
            for broker in silent
        ]
    return tuple(told)


def _of(partitions: Sequence[TopologyPartition]) -> str:
    more = f" and {len(partitions) - NAMES_MAX:,} more" if len(partitions) > NAMES_MAX else ""
    names = ", ".join(str(p.key) for p in partitions[:NAMES_MAX]) + more
    return f"{names} {'is' if len(partitions) == 1 else 'are'}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED_MAX:,} more" if len(names) > LISTED_MAX else ""
    return ", ".join(names[:LISTED_MAX]) + more


def leaderless(topology: Topology) -> tuple[str, ...]:
    """Which partitions no plan moves, and what would let them move."""
    stuck = [p for p in topology.partitions if not p.has_leader]
    if not stuck:
        return ()
    running = {broker.id for broker in topology.brokers if broker.is_running}
    away = sorted({id_ for p in stuck for id_ in p.replicas} - running)
    names = _listed([str(p.key) for p in stuck])
    have = "1 partition has" if len(stuck) == 1 else f"{len(stuck):,} partitions have"
    back = f": bring back broker {' or '.join(map(str, away))}" if away else ""
    return (f"{have} no leader and cannot move, so the plan leaves out {names}{back}",)


def reassigning(topology: Topology) -> tuple[str, ...]:
    """Which partitions no plan moves because they move already."""
    moving = [str(p.key) for p in topology.partitions if p.is_reassigning]
    if not moving:
        return ()
    are = "1 partition is" if len(moving) == 1 else f"{len(moving):,} partitions are"
    return (
        f"{are} being reassigned already, so the plan leaves out {_listed(moving)}: plan again "
        "when that is done",
    )


def unknown_sync(topology: Topology, changes: Iterable[PartitionChange]) -> tuple[str, ...]:
    """Partitions that lose replicas while nobody tells which are in sync."""
    dropping = {c.key for c in changes if keeps_some(c.before, c.after)}
    unknown = [p for p in topology.named(dropping).values() if p.isr is None] if dropping else []
    if not unknown:
        return ()
    names = _listed([str(p.key) for p in unknown])
    return (
        f"nobody tells which replicas of {names} are in sync: those on brokers that run are taken "
        "for it. Look before you run the plan",
    )


def partly_in_sync(topology: Topology, request: PlanRequest) -> tuple[str, ...]:
    """Partitions with replicas out of sync on brokers that run, and what a plan does not move."""
    if request.goal is Goal.LEADERS or request.replication_factor is not None:
        return ()
    down, may_touch = topology.down, request.scope()
    slow = [
        str(p.key)
        for p in topology.partitions
        if p.isr is not None
        and len(p.isr) < len(p.replicas)
        and set(p.replicas).difference(p.isr, down)
        and may_touch(p.key)
    ]
    if not slow:
        return ()
    are = "1 partition is" if len(slow) == 1 else f"{len(slow):,} partitions are"
    return (
        f"{are} only partly in sync: {_listed(slow)}. Their replicas in sync move only off brokers "
        "that leave, or for racks; plan again once all are in sync",
    )


def stopped_brokers(topology: Topology, request: PlanRequest) -> tuple[str, ...]:
    """Brokers that cannot take part because they do not run."""
    stopped = sorted(topology.down.difference(request.remove_brokers))
    if not stopped:
        return ()
    may_touch = request.scope()
    held = Counter(
        id_
        for partition in topology.partitions
        if not topology.down.isdisjoint(partition.replicas)
        and (request.replication_factor is None or not may_touch(partition.key))
        for id_ in partition.replicas
    )
    return tuple(
        f"broker {id_} does not run: it gets nothing{_staying(held[id_])}; start it, or "
        "decommission it to move them elsewhere"
        for id_ in stopped
    )


def _staying(replicas: int) -> str:
    if not replicas:
        return ""
    return f", and its {_replicas(replicas)}, because a move of the partition would wait for it"


def hidden_brokers(topology: Topology) -> tuple[str, ...]:
    """Brokers that run, and cannot be reached as the cluster was asked."""
    return tuple(
        f"broker {broker.id} runs, but has no listener {broker.lacks_listener}: it gets nothing, "
        "as its disk can be neither read nor its copies throttled from here; ask the cluster by "
        "an address of a listener that every broker has"
        for broker in topology.brokers
        if broker.lacks_listener
    )


def cordoned_brokers(topology: Topology, removed: Collection[int]) -> tuple[str, ...]:
    """Tells which brokers are cordoned and how a plan can still empty them."""
    cordoned = [b.id for b in topology.brokers if b.is_cordoned and b.id not in removed]
    if not cordoned:
        return ()
    held = Counter(id_ for partition in topology.partitions for id_ in partition.replicas)
    return tuple(
        f"broker {id_} is cordoned: it gets nothing, its {_replicas(held[id_])}, and the plan "
        "leaves out their partitions (Kafka refuses every list that names the broker); uncordon "
        "it, or decommission it to move them elsewhere"
        for id_ in cordoned
    )


def unknown_racks(topology: Topology, removed: Collection[int]) -> tuple[str, ...]:
    """Brokers without a rack beside others with one, and their place in a plan."""
    racks = Racks(of={b.id: b.rack for b in topology.brokers if b.is_running})
    unknown = [broker for broker in racks.unknown if broker not in removed]
    if not unknown:
        return ()
    counts = "it counts" if len(unknown) == 1 else "each counts"
    return (
        f"{unknown_words(unknown)} (broker.rack): {counts} as a rack of its own, and partitions "
        "there keep their known racks. Set it and restart, or require racks to plan nothing before "
        "that, as Kafka's own tool does",
    )


_NOT_ASKED: Final = {
    Goal.LEADERS: "goal leaders moves no data",
    Goal.RELIEVE: "goal relieve only takes bytes off the named brokers",
    Goal.REPLICATION: "goal replication changes nothing else",
}


def left_broken(goal: Goal, violations: Iterable[Violation]) -> tuple[str, ...]:
    """Rules that a plan leaves broken because its goal does not ask for them, and the goal that
    mends them."""
    if goal not in _NOT_ASKED:
        return ()
    broken = Counter(violation.rule for violation in violations if not violation.is_new)
    told = []
    if racks := broken["racks"]:
        are = "1 partition is" if racks == 1 else f"{racks:,} partitions are"
        told.append(f"{are} not on as many racks as possible; goal racks mends that")
    if disks := broken["capacity"]:
        hold = "1 broker holds" if disks == 1 else f"{disks:,} brokers hold"
        told.append(f"{hold} more than the disks take; goal relieve mends that")
    return tuple(f"{words}: {_NOT_ASKED[goal]}" for words in told)


def assumed(request: PlanRequest, proposal: Proposal) -> tuple[str, ...]:
    """Demands of a proven minimum beside the balance that is shown: other plans may move less."""
    if not any(change.adding for change in proposal.changes):
        return ()
    brokers = ", ".join(map(str, request.relieve_brokers))
    asked = {
        Goal.RELIEVE: f"leave as few bytes on the relieved brokers {brokers} as it does",
        Goal.TOPICS: "spread each topic as evenly as it does",
        Goal.TRAFFIC: "keep the bytes per second that any broker receives as low as it does",
    }.get(request.goal)
    return () if asked is None else (f"the proven minimum of a plan is for plans that {asked}",)


def _replicas(number: int) -> str:
    return "1 replica stays" if number == 1 else f"{number} replicas stay"


def _rack_proofs(placement: Placement, left: Flags) -> list[str]:
    """Racks with fewer brokers than others must still hold their share of every partition, unless
    a broker of an unknown rack may hold it."""
    if placement.racks == 1 or placement.known_racks < placement.racks:
        return []
    target, rack, width = placement.is_target, np.array(placement.rack), _width(placement)
    forced = _forced(placement, width, left)
    held = int(placement.count[~(target | placement.is_removed)].sum())
    mean = (int(width.sum()) - held) / max(1, int(target.sum()))
    found = []
    for number in range(placement.racks):
        here = np.flatnonzero(target & (rack == number))
        most = -(-int(forced[number]) // max(1, len(here)))
        if len(here) and most > np.ceil(mean):
            name = placement.topology.brokers[int(here[0])].rack
            one = "it" if len(here) == 1 else "each of them"
            found.append(
                f"rack {name} has {len(here)} of {int(target.sum())} brokers for a replica of "
                f"every partition: no plan gives {one} fewer than {most} (mean {mean:.0f})"
            )
    return found


def _width(placement: Placement) -> Numbers:
    """Replicas that each partition is to have."""
    width = placement.columns.width
    factor = placement.request.replication_factor
    return width if factor is None else np.where(placement.is_movable, factor, width)


def _forced(placement: Placement, width: Numbers, left: Flags) -> Numbers:
    """Replicas that brokers which may receive some must hold in all, by rack: of partitions that
    spread over racks as many as the others have no brokers for; of those that stay, or that racks
    do not mend (`left`), what is there or nothing."""
    columns, target, racks = placement.columns, placement.is_target, placement.racks
    rack = np.array(placement.rack)
    kept = np.array(placement.rack_brokers)
    least = np.zeros((len(width), racks), dtype=np.int64)
    spreads = placement.is_movable & ~left
    for wide in np.unique(width[spreads]).tolist():
        room = np.minimum(kept, most_per_rack(wide, tuple(kept.tolist())))
        least[spreads & (width == wide)] = np.maximum(wide - (room.sum() - room), wide >= racks)
    stays = (~placement.is_movable)[columns.of] & target[columns.on]
    np.add.at(least, (columns.of[stays], rack[columns.on[stays]]), 1)
    held = spreads[columns.of] & placement.is_excluded[columns.on] & (rack[columns.on] < racks)
    np.subtract.at(least, (columns.of[held], rack[columns.on[held]]), 1)
    forced: Numbers = np.maximum(least, 0).sum(axis=0)
    return forced


def _size_proofs(placement: Placement) -> list[str]:
    """A partition larger than a broker's share."""
    if not placement.size:
        return []
    _, held = fair_shares(placement)
    share = float(held[placement.is_target].max(initial=0.0))
    largest = placement.partition_at[-1]
    size = placement.size[largest]
    if share <= 0 or size <= share:
        return []
    on = placement.columns.on[placement.columns.of == largest]
    if not placement.is_movable[largest] and placement.is_removed[on].all():
        return []
    key = placement.topology.partitions[largest].key
    return [
        f"one replica of {key} has {bytes_text(size)}, more than a broker's share of "
        f"{bytes_text(share)}: "
        f"no plan brings the largest broker below it"
    ]
