"""Places for replicas: what each partition may fill, and which of them it fills at given prices."""

from dataclasses import dataclass

import numpy as np

from planner.columns import Columns, Flags, Floats, Numbers
from planner.proofs.demand import Demand
from planner.search.placement import most_per_rack


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice of `wanted` slots of `slots[partition][rack]`: at most `limit` of a rack, and with
    `everywhere` at least one."""

    slots: Numbers
    wanted: int
    limit: int
    everywhere: bool

    def filled(self, value: Floats) -> Flags:
        """The cheapest, shaped as `slots`."""
        offered = value[self.slots]
        if self.everywhere or self.limit < offered.shape[2]:
            place = offered.argsort(axis=2, kind="stable").argsort(axis=2)
            offered[place >= self.limit] = np.inf
            if self.everywhere:
                offered[place == 0] = -np.inf
        rows = offered.reshape(len(offered), -1)
        filled = np.zeros(rows.shape, dtype=np.bool_)
        cheapest = rows.argpartition(self.wanted - 1, axis=1)[:, : self.wanted]
        np.put_along_axis(filled, cheapest, True, axis=1)
        return filled.reshape(offered.shape)


@dataclass(frozen=True, slots=True)
class Slots:
    """Places to fill: `of` which partition, in which `zone` of `members` (a rack, anywhere, or
    nowhere for one that can only be filled from home). Several of a partition in one zone want
    distinct brokers, so each is a zone of its own: all first ones (`zone` < zones), then all second
    ones, of `turns`. Broker `home_on` fills slot `home_slot` (ascending) without a move. Slots
    outside all `choices` are filled."""

    of: Numbers
    zone: Numbers
    members: tuple[Numbers, ...]
    turns: int
    home_slot: Numbers
    home_on: Numbers
    choices: tuple[_Choice, ...]


class _SlotMaker:
    """Slots of every partition, kind by kind."""

    def __init__(
        self, columns: Columns, rack: tuple[Numbers, int], removed: Flags, scope: Flags
    ) -> None:
        self._columns, self._removed, self._scope = columns, removed, scope
        self._rack, self._racks = rack
        self._slot_of = np.full(len(columns.of), -1)
        """Of each replica: the slot that it fills by staying."""
        self._of: list[Numbers] = []
        self._zone: list[Numbers] = []
        self._choices: list[_Choice] = []
        self._number = 0
        self._turns = 1

    def made(self, mended: Flags, leaves: Flags) -> Slots:
        """All of them."""
        columns, racks = self._columns, self._racks
        members = [np.flatnonzero((self._rack == r) & ~self._removed) for r in range(racks)]
        spread = mended & (racks > 1)
        for width in np.unique(columns.width[spread]).tolist():
            chosen = np.flatnonzero(spread & (columns.width == width))
            if width <= racks:
                self._one_a_rack(chosen, width)
            else:
                limit = most_per_rack(width, tuple(len(brokers) for brokers in members))
                self._several_a_rack(chosen, width, limit)
        self._free(np.flatnonzero(~spread[columns.of]))
        slot = np.where(self._removed[columns.on] & leaves[columns.of], -1, self._slot_of)
        homes = np.argsort(slot, kind="stable")
        homes = homes[slot[homes] >= 0]
        return Slots(
            of=np.concatenate(self._of),
            zone=np.concatenate(self._zone),
            members=(*members, np.flatnonzero(~self._removed), np.zeros(0, np.int64)),
            turns=self._turns,
            home_slot=slot[homes],
            home_on=columns.on[homes],
            choices=tuple(self._choices),
        )

    def _one_a_rack(self, partitions: Numbers, width: int) -> None:
        """A slot for each rack, filled by whoever is there."""
        racks = self._racks
        slots = self._add(partitions, np.arange(racks)[None, :]).reshape(-1, racks, 1)
        mine, row, rack = self._replicas_of(partitions)
        known = rack < racks
        self._slot_of[mine[known]] = slots[row[known], rack[known], 0]
        if width < racks:
            self._choose(slots, width, limit=1)

    def _several_a_rack(self, partitions: Numbers, width: int, limit: int) -> None:
        """For each rack a slot for each replica that may stay, and `limit` for what comes."""
        racks, nowhere = self._racks, self._racks + 1
        mine, row, rack = self._replicas_of(partitions)
        known = rack < racks
        mine, row, rack = mine[known], row[known], rack[known]
        place = _place_within(row * racks + rack)
        staying = int(place.max(initial=0)) + 1
        zones = np.full((racks, staying + limit), nowhere)
        zones[:, staying:] = np.arange(racks)[:, None] + np.arange(limit) * (racks + 2)
        self._turns = max(self._turns, limit)
        slots = self._add(partitions, zones.reshape(1, -1)).reshape(-1, racks, staying + limit)
        self._slot_of[mine] = slots[row, rack, place]
        self._choose(slots, width, limit)

    def _free(self, replicas: Numbers) -> None:
        """Each replica stays, or goes anywhere where its partition may move."""
        partitions = self._columns.of[replicas]
        zones = np.where(self._scope[partitions], self._racks, self._racks + 1)
        self._slot_of[replicas] = self._add(partitions, zones[:, None])[:, 0]

    def _add(self, partitions: Numbers, zones: Numbers) -> Numbers:
        """New slots, a row for each partition; `zones`: a row for each, or one for all."""
        zones = np.broadcast_to(zones, (len(partitions), zones.shape[1]))
        self._of.append(np.repeat(partitions, zones.shape[1]))
        self._zone.append(zones.ravel())
        slots = self._number + np.arange(zones.size).reshape(zones.shape)
        self._number += zones.size
        return slots

    def _replicas_of(self, partitions: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(replica, which of the partitions, rack) of each of their replicas."""
        row = np.full(len(self._columns.size), -1)
        row[partitions] = np.arange(len(partitions))
        mine = np.flatnonzero(row[self._columns.of] >= 0)
        return mine, row[self._columns.of[mine]], self._rack[self._columns.on[mine]]

    def _choose(self, slots: Numbers, width: int, limit: int) -> None:
        everywhere = width >= self._racks
        self._choices.append(_Choice(slots=slots, wanted=width, limit=limit, everywhere=everywhere))


def _place_within(group: Numbers) -> Numbers:
    """Number of elements of its group before each element."""
    order = np.argsort(group, kind="stable")
    _, starts, sizes = np.unique(group[order], return_index=True, return_counts=True)
    place = np.empty_like(order)
    place[order] = np.arange(len(group)) - np.repeat(starts, sizes)
    return place


def slots_of(demand: Demand, columns: Columns, chosen: Numbers) -> Slots:
    """Slots of these partitions, which `columns` has alone."""
    maker = _SlotMaker(columns, demand.rack, demand.removed, demand.scope[chosen])
    return maker.made(demand.mended[chosen], demand.leaves[chosen])
