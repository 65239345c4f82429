"""The optimizer's working state: who holds what, with single moves in microseconds.

Partitions and brokers are numbered as in the topology; `replicas[p]` are broker numbers, the
preferred leader first, and the same object as `home[p]` until they change. `by_size[b]` are the
movable replicas of a broker as ranks: partitions sorted by size, so that the one nearest to a
wanted size is a binary search away. Only `move`, `lead`, `add` and `drop` change anything, so the
figures per broker always agree with the lists (`check_invariants`).
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from control.model.ids import TopicPartition
from planner.columns import (
    Columns,
    Flags,
    Floats,
    Numbers,
    capacities,
    columns_of,
)
from planner.goals import PlanRequest
from planner.roles import roles_of
from planner.search.sync_facts import SyncFacts
from planner.search.topic_counts import TopicCounts
from planner.topology import Topology

Step = tuple[int, int, int]
"""(partition, source, target) of a move."""


class Placement:
    """A mutable placement of all partitions of a topology under one request."""

    def __init__(
        self, topology: Topology, request: PlanRequest, columns: Columns | None = None
    ) -> None:
        self.topology = topology
        self.request = request
        self.columns = columns = columns or columns_of(topology)
        self.brokers = len(topology.brokers)
        on = iter(columns.on.tolist())
        self.home = [tuple(islice(on, width)) for width in columns.width.tolist()]
        """Replicas before anything moved."""
        self.replicas = self.home.copy()
        self.size: list[int] = columns.size.tolist()
        self.is_movable = movable_partitions(topology, request)
        roles = roles_of(topology, request)
        self.is_removed, self.is_excluded = roles.removed, roles.excluded
        self.is_target = roles.target
        """Brokers that may receive replicas; these are the ones to be balanced."""
        self.is_down, self.is_unnamable = roles.down, roles.unnamable
        self.sync = SyncFacts(topology, columns, roles, self.is_movable)
        self.rack: list[int] = roles.rack.tolist()
        self.racks, self.known_racks = roles.racks, roles.known_racks
        self.widest = max(int(columns.width.max(initial=0)), request.replication_factor or 0)
        """Replicas of a partition, at most."""
        kept = roles.rack[~roles.removed]
        self.rack_brokers = tuple(np.bincount(kept, minlength=roles.racks).tolist())
        """Brokers that stay on each rack."""
        self.capacity = capacities(topology)
        """Bytes that each may hold; None where nothing is known of any."""
        self.topics: TopicCounts | None = None
        """Kept within their bounds while it is there."""
        self.touched: list[int] = []
        """Partitions in the order in which they were placed elsewhere, held or released."""
        self.journal: list[Step] | None = None
        """Each move is noted while it is there."""
        self.shares: dict[tuple[int, int], tuple[Floats, Floats]] = {}
        """Fair shares (search.bounds) by what brokers hold in all, for replica numbers as now."""
        self.count = columns.count()
        self.bytes = columns.held()
        self.leaders = columns.leaders()
        self.on_rack = counted_by_rack(columns, roles.rack, roles.racks)
        """Replicas of each partition (row) on each rack (column)."""
        self.partition_at = np.argsort(columns.size, kind="stable").tolist()
        """The partition of each rank."""
        self.rank_of = _inverse(self.partition_at)
        self.by_size = self._ranks_by_broker()

    def copied(self) -> "Placement":
        """Another one to work on, sharing what never changes."""
        other = copy(self)
        other.replicas = self.replicas.copy()
        other.by_size = [ranks.copy() for ranks in self.by_size]
        other.count, other.bytes = self.count.copy(), self.bytes.copy()
        other.leaders, other.on_rack = self.leaders.copy(), self.on_rack.copy()
        other.is_movable, other.touched = self.is_movable.copy(), self.touched.copy()
        assert self.topics is None
        return other

    def _ranks_by_broker(self) -> list[list[int]]:
        columns = self.columns
        kept = self.is_movable[columns.of]
        if pinned := self.sync.pinned_codes():
            kept &= ~np.isin(columns.of * self.brokers + columns.on, pinned)
        on, ranks = columns.on[kept], np.array(self.rank_of, dtype=np.int64)[columns.of[kept]]
        order = np.lexsort((ranks, on))
        edges = np.searchsorted(on[order], np.arange(self.brokers + 1))
        sorted_ranks = ranks[order]
        return [
            [] if self.is_excluded[b] else sorted_ranks[edges[b] : edges[b + 1]].tolist()
            for b in range(self.brokers)
        ]

    def distinct_racks(self, partition: int) -> int:
        """Racks of brokers that stay which the partition uses."""
        return len({r for b in self.replicas[partition] if (r := self.rack[b]) < self.racks})

    def wanted_racks(self, partition: int) -> int:
        """On how many racks it should be: no more than are known."""
        return min(len(self.replicas[partition]), self.known_racks)

    def has_room(self, broker: int, size: int) -> bool:
        """Whether a broker's disks take so many bytes more."""
        return size == 0 or not self.is_full(broker, size)

    def is_full(self, broker: int, more: int = 0) -> bool:
        """Whether it holds more than its disks take, or would with so many bytes more."""
        return self.capacity is not None and bool(self.bytes[broker] + more > self.capacity[broker])

    def may_move(
        self, partition: int, source: int, target: int, *, for_: int | None = None
    ) -> bool:
        """Whether the replica on `source` may go to `target`. The target has no replica of it and
        has room. The partition stays on as many racks as it can be and is, and within its topic's
        bounds. `for_`: the partition whose replica comes back in exchange."""
        replicas = self.replicas[partition]
        if self.sync.has_any and not self.sync.keeps(partition, source, target, replicas):
            return False
        returning = 0 if for_ is None else self.size[for_]
        if target in replicas or not self.has_room(target, self.size[partition] - returning):
            return False
        topics = self.topics
        if topics is not None and not topics.may_move(partition, source, target, for_):
            return False
        return self.may_change_racks(partition, source, target)

    def may_change_racks(self, partition: int, source: int, target: int) -> bool:
        """Whether racks allow that move."""
        left, entered = self.rack[source], self.rack[target]
        if self.racks == 1 or left == entered:
            return True
        there, here = self.on_rack[partition, entered], self.on_rack[partition, left]
        if here == 1 and left < self.known_racks < self.racks:
            others = [self.rack[b] for b in self.replicas[partition] if b != source]
            if others and any(self.known_racks <= r < self.racks for r in (entered, *others)):
                return False  # an unknown rack may be the one that it goes to, or be used already
        if there == 0:
            return True
        if here == 1 and left < self.racks:
            is_unknown = left >= self.known_racks
            if not is_unknown or self.distinct_racks(partition) <= self.wanted_racks(partition):
                return False  # one rack fewer
        if len(self.replicas[partition]) <= self.known_racks:
            return True
        return bool(there < max(rack_limit(self, partition), here))

    def move(self, partition: int, source: int, target: int) -> None:
        """Put the replica on `source` to `target`, at the same place in the order."""
        replicas = self.replicas[partition]
        position = replicas.index(source)
        assert target not in replicas
        self.replicas[partition] = (*replicas[:position], target, *replicas[position + 1 :])
        if self.journal is not None:
            self.journal.append((partition, source, target))
        self._list(partition, source, -1, is_leader=position == 0)
        self._list(partition, target, 1, is_leader=position == 0)

    def add(self, partition: int, target: int) -> None:
        """One more replica, last in the order."""
        assert target not in self.replicas[partition]
        self.replicas[partition] += (target,)
        self.shares = {}
        self._list(partition, target, 1, is_leader=False)

    def drop(self, partition: int, source: int) -> None:
        """One replica fewer; who was second leads when the leader goes."""
        replicas = self.replicas[partition]
        is_leader = replicas.index(source) == 0
        self.shares = {}
        self.replicas[partition] = left = tuple(b for b in replicas if b != source)
        self._list(partition, source, -1, is_leader=is_leader)
        if is_leader:
            self.leaders[left[0]] += 1

    def lead(self, partition: int, broker: int) -> None:
        """Make `broker`, which holds a replica, the preferred leader; no data moves."""
        first, *others = self.replicas[partition]
        assert broker in self.replicas[partition]
        self.leaders[first] -= 1
        self.leaders[broker] += 1
        followers = (first if b == broker else b for b in others)
        self.replicas[partition] = (broker, *followers)

    def _list(self, partition: int, broker: int, sign: int, *, is_leader: bool) -> None:
        self.touched.append(partition)
        self.count[broker] += sign
        self.bytes[broker] += sign * self.size[partition]
        self.leaders[broker] += sign * is_leader
        self.on_rack[partition, self.rack[broker]] += sign
        if self.topics is not None:
            self.topics.count[self.topics.of[partition], broker] += sign
        if not self.is_movable[partition] or self.is_excluded[broker]:
            return
        if self.sync.has_any and self.sync.is_pinned(partition, broker):
            return
        ranks, rank = self.by_size[broker], self.rank_of[partition]
        if sign > 0:
            insort(ranks, rank)
        else:
            del ranks[bisect_left(ranks, rank)]

    def movable_on(self, broker: int) -> list[int]:
        """Partitions with a replica on `broker` that may move, the largest first."""
        return [self.partition_at[rank] for rank in reversed(self.by_size[broker])]

    def targets(self) -> dict[TopicPartition, tuple[int, ...]]:
        """Replicas of every partition that differs from the topology, as broker ids."""
        ids, partitions = self.topology.broker_ids, self.topology.partitions
        return {
            partitions[p].key: followers_in_order(
                partitions[p].replicas, tuple(ids[b] for b in self.replicas[p])
            )
            for p in self.changed()
        }

    def changed(self) -> list[int]:
        """Partitions that are placed or ordered otherwise than before."""
        both = zip(self.home, self.replicas, strict=True)
        return [p for p, (home, now) in enumerate(both) if now is not home and now != home]

    def received(self) -> Iterator[tuple[int, int]]:
        """(partition, broker) of each replica that is not at home."""
        for p in self.changed():
            home = self.home[p]
            yield from ((p, broker) for broker in self.replicas[p] if broker not in home)

    def check_invariants(self) -> None:
        """The figures per broker agree with the lists."""
        fresh: Numbers = np.zeros(self.brokers, dtype=np.int64)
        for p, replicas in enumerate(self.replicas):
            assert len(set(replicas)) == len(replicas)
            np.add.at(fresh, list(replicas), self.size[p])
        assert fresh.tolist() == self.bytes.tolist()
        now = columns_now(self)
        assert now.count().tolist() == self.count.tolist()
        racks = counted_by_rack(now, np.array(self.rack), self.racks)
        assert racks.tolist() == self.on_rack.tolist()
        firsts = [replicas[0] for replicas in self.replicas]
        assert np.bincount(firsts, minlength=self.brokers).tolist() == self.leaders.tolist()
        for b, ranks in enumerate(self.by_size):
            assert ranks == sorted(ranks)
            assert all(b in self.replicas[self.partition_at[rank]] for rank in ranks)


def keep_orders(placement: Placement) -> None:
    """Put replicas that stay where they were in the order (`in_order`)."""
    for partition in dict.fromkeys(placement.touched):
        now, home = placement.replicas[partition], placement.home[partition]
        ordered = in_order(home, now)
        is_other = placement.request.replication_factor is not None and set(home) != set(now)
        if ordered != now and not is_other:
            placement.leaders[now[0]] -= 1
            placement.leaders[ordered[0]] += 1
            placement.replicas[partition] = ordered


def in_order(home: tuple[int, ...], now: tuple[int, ...]) -> tuple[int, ...]:
    """`now` with those of `home` at their places there; as it is where the first of `home` is gone
    or the number is another."""
    if len(home) != len(now) or home[0] not in now:
        return now
    others = iter([b for b in now if b not in home])
    return tuple([b if b in now else next(others) for b in home])


def followers_in_order(home: tuple[int, ...], now: tuple[int, ...]) -> tuple[int, ...]:
    """`now` with its followers as in `home`, where the brokers are the same."""
    if set(home) != set(now):
        return now
    return now[0], *(b for b in home if b != now[0])


def leave(placement: Placement, partition: int) -> None:
    """Put a partition back where it was, and keep it there."""
    home, (kept, *others) = placement.home[partition], placement.replicas[partition]
    for broker in others:
        placement.drop(partition, broker)
    for broker in home:
        if broker != kept:
            placement.add(partition, broker)
    if kept not in home:
        placement.drop(partition, kept)
    placement.lead(partition, home[0])
    placement.replicas[partition] = home
    for broker in home:
        if is_offered(placement, partition, broker):
            hold(placement, partition, broker)
    placement.is_movable[partition] = False


def reorderable(placement: Placement) -> list[int]:
    """Partitions whose preferred leader may change: who is out of sync should not lead."""
    chosen = placement.is_movable.copy()
    chosen[placement.sync.partly_synced] = False
    return list(np.flatnonzero(chosen).tolist())


def hold(placement: Placement, partition: int, broker: int) -> None:
    """Offer that replica to nobody until it is released."""
    if placement.sync.is_pinned(partition, broker):
        return
    placement.touched.append(partition)
    ranks = placement.by_size[broker]
    del ranks[bisect_left(ranks, placement.rank_of[partition])]


def release(placement: Placement, partition: int, broker: int) -> None:
    """It may be moved again."""
    if placement.sync.is_pinned(partition, broker):
        return
    placement.touched.append(partition)
    insort(placement.by_size[broker], placement.rank_of[partition])


def is_offered(placement: Placement, partition: int, broker: int) -> bool:
    """Whether that broker holds a replica of it which may be moved."""
    ranks, rank = placement.by_size[broker], placement.rank_of[partition]
    place = bisect_left(ranks, rank)
    return place < len(ranks) and ranks[place] == rank


def rack_limit(placement: Placement, partition: int) -> int:
    """How many replicas a rack need hold of it at most: 1 where there is a rack for each."""
    width = len(placement.replicas[partition])
    known = placement.known_racks
    return 1 if width <= known else most_per_rack(width, placement.rack_brokers[:known])


def racks_let_go(placement: Placement, partitions: Numbers, source: int, target: int) -> Flags:
    """`may_change_racks` of many at once: which of them racks let go from source to target."""
    left, entered, racks = placement.rack[source], placement.rack[target], placement.racks
    known = placement.known_racks
    if racks == 1 or left == entered:
        return np.ones(len(partitions), dtype=np.bool_)
    there, here = placement.on_rack[partitions, entered], placement.on_rack[partitions, left]
    is_new: Flags = there == 0
    keeps_both: Flags = (here > 1) | (left >= racks)
    if known < racks:
        on_rack = placement.on_rack[partitions, :racks] > 0
        if left < known:
            is_unsure = (entered >= known) | on_rack[:, known:].any(axis=1)
            is_alone = placement.on_rack[partitions].sum(axis=1) == 1
            is_new &= (here > 1) | is_alone | ~is_unsure
        elif left < racks:
            width = placement.on_rack[partitions].sum(axis=1)
            keeps_both |= on_rack.sum(axis=1) > np.minimum(width, known)
    if placement.widest > known:
        width = placement.on_rack[partitions].sum(axis=1)
        most = np.ones(placement.widest + 1, dtype=np.int64)
        for wide in range(known + 1, len(most)):
            most[wide] = most_per_rack(wide, placement.rack_brokers[:known])
        keeps_both &= (width <= known) | (there < np.maximum(most[width], here))
    return is_new | keeps_both


def counted_by_rack(columns: Columns, rack: Numbers, racks: int) -> NDArray[np.int16]:
    """Replicas of each partition (row) on each rack; those that only removed brokers have count
    together, in the last column."""
    code = columns.of * (racks + 1) + rack[columns.on]
    counted = np.bincount(code, minlength=len(columns.size) * (racks + 1))
    return counted.astype(np.int16).reshape(-1, racks + 1)


@cache
def most_per_rack(width: int, brokers: tuple[int, ...]) -> int:
    """The smallest number that no rack exceeds when `width` replicas lie as evenly over racks of
    so many brokers as they can."""
    fits = (most for most in range(1, width + 1) if sum(min(b, most) for b in brokers) >= width)
    return next(fits, width)


def columns_now(placement: Placement) -> Columns:
    """Where everything is now, in columns."""
    width = np.fromiter(map(len, placement.replicas), np.int64, len(placement.replicas))
    ends = np.cumsum(width)
    flat = chain.from_iterable(placement.replicas)
    on = np.fromiter(flat, np.int64, int(width.sum()))
    of = np.repeat(np.arange(len(width)), width)
    return replace(placement.columns, width=width, first=ends - width, of=of, on=on)


def movable_partitions(topology: Topology, request: PlanRequest) -> Flags:
    """Which partitions the request allows to move."""
    if request.is_everything:
        return np.ones(len(topology.partitions), dtype=np.bool_)
    may_touch = request.scope()
    return np.fromiter((may_touch(p.key) for p in topology.partitions), np.bool_)


def _inverse(order: list[int]) -> list[int]:
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return list(ranks.tolist())
