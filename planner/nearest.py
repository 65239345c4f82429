"""The working assignment nearest to one that cannot be. Pure.

What is wrong (a broker that does not exist, does not run, is named twice, is full, or is out of
sync and stays in place of those in sync) is replaced; what is right keeps its place, so the leader
stays the leader where it can.
"""

from collections.abc import Collection, Iterable, Sequence

from planner.columns import columns_of
from planner.in_sync import why_unsafe
from planner.racks import Racks
from planner.topology import Topology, TopologyPartition


class Nearest:
    """Answers for one cluster."""

    def __init__(self, topology: Topology) -> None:
        self._down = topology.down
        self._racks = Racks(of={broker.id: broker.rack for broker in topology.brokers})
        held = dict(zip(topology.broker_ids, columns_of(topology).held().tolist(), strict=True))
        self._held = {b.id: held[b.id] for b in topology.brokers if not b.why_no_target}
        self._room = {
            b.id: b.capacity_bytes - held[b.id]
            for b in topology.brokers
            if b.capacity_bytes is not None
        }

    def working(
        self, partition: TopologyPartition, wanted: Sequence[int], *, without: Collection[int] = ()
    ) -> tuple[int, ...] | None:
        """As many distinct running brokers with room as were wanted (of a broker named twice one
        counts as wrong), or None where there are too few. First choice in place of a wrong one is
        a rack that no other replica uses, then who holds a replica already, then who holds least.
        `without`: brokers that must not be chosen."""
        width = len(wanted) or len(partition.replicas)
        without = {*without, *self._out_of_sync(partition, wanted)}
        fits = [b for b in self._held if b not in without and self._fits(partition, b)]
        chosen: list[int | None] = []
        for wish in wanted:
            chosen.append(wish if wish in fits and wish not in chosen else None)
        chosen += [None] * (width - len(chosen))
        for place, broker in enumerate(chosen):
            if broker is None:
                free = [b for b in fits if b not in chosen]
                if not free:
                    return None
                chosen[place] = min(free, key=lambda b: self._rank(partition, b, chosen))
        return tuple(broker for broker in chosen if broker is not None)

    def words(
        self, partition: TopologyPartition, wanted: Sequence[int], *, without: Collection[int] = ()
    ) -> str:
        """``[101, 102] would work``, or that nothing would."""
        works = self.working(partition, wanted, without=without)
        if works is None:
            run = "1 broker runs" if len(self._held) == 1 else f"{len(self._held):,} brokers run"
            return f"{run}, too few for it: ask for fewer replicas"
        return f"{list(works)} would work"

    def _out_of_sync(self, partition: TopologyPartition, wanted: Sequence[int]) -> Collection[int]:
        """Its replicas that should not stay in place of those in sync."""
        in_sync = partition.in_sync(self._down)
        if not why_unsafe(partition.replicas, wanted, in_sync):
            return ()
        return set(partition.replicas).difference(in_sync)

    def _fits(self, partition: TopologyPartition, broker: int) -> bool:
        room = self._room.get(broker)
        return broker in partition.replicas or room is None or room >= partition.size_bytes

    def _rank(
        self, partition: TopologyPartition, broker: int, chosen: Iterable[int | None]
    ) -> tuple[bool, bool, bool, bool, int, int]:
        used = self._racks.known(b for b in chosen if b is not None)
        rack, held = self._racks.of[broker], self._held[broker]
        leads_not = partition.leader != broker
        is_new = broker not in partition.replicas
        return rack in used, rack is None, is_new, leads_not, held, broker
