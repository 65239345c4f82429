"""Leaders and in-sync replicas, for the search. Brokers and partitions are numbered as in the
topology.

Where only some replicas of a partition are in sync, these stay: they are *pinned*. They move only
off removed brokers, or for racks. Its other replicas move like any other.
"""

from collections.abc import Collection

from planner.columns import Columns, Flags, Numbers
from planner.roles import Roles
from planner.topology import Topology


class SyncFacts:
    """Facts about the cluster before anything moves; nothing is known of some partitions."""

    def __init__(
        self, topology: Topology, columns: Columns, roles: Roles, is_movable: Flags
    ) -> None:
        self._topology, self._columns = topology, columns
        self._number_of = {id_: b for b, id_ in enumerate(topology.broker_ids)}
        down = topology.down
        self._isr = {
            number: frozenset(map(self._number_of.__getitem__, p.isr))
            for number, p in enumerate(topology.partitions)
            if p.isr is not None
            and (len(p.isr) < len(p.replicas) or (down and not down.isdisjoint(p.replicas)))
            and is_movable[number]
        }
        """Brokers in sync, by partition that is only partly so."""
        unpinned = roles.removed | roles.down
        self._pins = {
            partition: frozenset(b for b in isr if not unpinned[b])
            for partition, isr in self._isr.items()
        }
        self._is_down = roles.down
        self.has_any = bool(self._isr)
        """Whether any partition is only partly in sync: asked before each of many moves."""

    @property
    def partly_synced(self) -> list[int]:
        """Partitions with replicas in sync and others that are not."""
        return list(self._isr)

    def pinned_codes(self) -> list[int]:
        """Pinned replicas, each as its partition times the number of brokers, plus its broker."""
        brokers = self._columns.brokers
        return [p * brokers + b for p, pins in self._pins.items() for b in pins]

    def is_pinned(self, partition: int, broker: int) -> bool:
        """Whether the replica there stays."""
        pins = self._pins.get(partition)
        return pins is not None and broker in pins

    def is_in_sync(self, partition: int, broker: int) -> bool:
        """Whether the replica there is in sync, as far as is known."""
        isr = self._isr.get(partition)
        return isr is None or broker in isr

    def stale_homes(self, partition: int) -> list[int]:
        """Brokers with a replica out of sync before anything moved."""
        isr = self._isr.get(partition)
        return [] if isr is None else [b for b in self._home(partition) if b not in isr]

    def _home(self, partition: int) -> list[int]:
        first = int(self._columns.first[partition])
        row: Numbers = self._columns.on[first : first + int(self._columns.width[partition])]
        return list(row.tolist())

    def keeps(self, partition: int, source: int, target: int, replicas: Collection[int]) -> bool:
        """Whether a move leaves what is pinned, and nothing out of sync takes its place again."""
        pins = self._pins.get(partition)
        if pins is None:
            return True
        if source in pins:
            return False
        return pins.issubset(replicas) or target not in self.stale_homes(partition)

    def leader(self, partition: int) -> int | None:
        """The broker that leads now; None where that is unknown."""
        leader = self._topology.partitions[partition].leader
        return None if leader is None else self._number_of.get(leader)

    def has_lost_all(self, partition: int, replicas: Collection[int]) -> bool:
        """Whether nothing that runs and is in sync today is among these."""
        isr = self._isr.get(partition)
        in_sync = [b for b in isr or () if not self._is_down[b]]
        return bool(in_sync) and not any(b in replicas for b in in_sync)
