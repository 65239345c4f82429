"""Fulfils a request wholly, within disks at every stage, or refuses it. Pure.

A request may ask for: nothing on removed brokers, a replication factor, relieved brokers within
their disks. All that a plan does beyond that (racks, balance) gives way where disks have no room.
"""

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import Final

import numpy as np

from control.model.ids import TopicPartition
from control.model.units import brokers_text, bytes_text, counted
from planner.disks.every_placement import search_all
from planner.disks.making_room import (
    Lacking,
    lacking,
    make_room,
    make_within_disks,
    why_no_place,
)
from planner.disks.stages import stages_of
from planner.goals import ImpossibleError
from planner.proposal import Proposal, proposal_of, room_of
from planner.search.placement import Placement
from planner.verify import Violation, verify_proposal

_ASKED: Final = frozenset({"removed", "replicas"})
"""Rules of the judge that tell what is left undone."""
_TRIES_MAX: Final = 20
"""So often what is stuck is left as it is, before all that was not asked for is."""


class Asked:
    """The parts of one request that must be fulfilled, for one placement before anything moves."""

    def __init__(self, original: Placement) -> None:
        self.original = original
        self.told: dict[Proposal, str] = {}
        """Parts of proposals that were left out for lack of room."""
        self.mended: dict[tuple[bool, bool], Placement] = {}
        """With racks repaired; by whether leaders stay, and whether only what is asked is done."""
        self._request = original.request
        self._must = self._partitions()

    def _partitions(self) -> list[int]:
        original = self.original
        if self._request.replication_factor is not None:
            return list(np.flatnonzero(original.is_movable).tolist())
        ranks = {
            rank for b in np.flatnonzero(original.is_removed) for rank in original.by_size[int(b)]
        }
        return sorted(original.partition_at[rank] for rank in ranks)

    def is_whole(self, violations: Iterable[Violation]) -> bool:
        """Whether all that is asked for is done; others may have been left."""
        left = {it.where for it in violations if it.rule in _ASKED}
        partitions = self.original.topology.partitions
        return not left or left.isdisjoint(str(partitions[p].key) for p in self._must)

    @property
    def is_anything(self) -> bool:
        """Whether replicas must be placed."""
        return bool(self._must)

    def complete(self, placement: Placement) -> Placement:
        """A placement that has all that is asked for: this one, where others make way, or else
        another one.

        :raises ImpossibleError: there is none, or none is found; with what stands in the way.
        """
        self._relieve(placement)
        if not self._must:
            return placement
        self._check_left(placement)
        missing = lacking(placement, self._must)
        if missing and placement.capacity is not None:
            make_room(placement, missing)
            missing = lacking(placement, self._must)
        if not missing and not self._stuck(placement):
            return placement
        if self.anyhow is not None:
            return self.anyhow.copied()
        raise ImpossibleError(self._refusal(placement, missing))

    def _check_left(self, placement: Placement) -> None:
        left = [p for p in self._must if not placement.is_movable[p]]
        if left:
            key = placement.topology.partitions[left[0]].key
            raise ImpossibleError(
                f"{self._what}: only replicas of {key} on excluded brokers would stay, and they "
                "are not in sync. Exclude fewer brokers, or keep the partition"
            )

    @cached_property
    def anyhow(self) -> Placement | None:
        """A placement of all that is asked for that breaks nothing anew, however uneven; None where
        none is found."""
        return search_all(self.original, self._must, self._is_fine)

    def _is_fine(self, placement: Placement) -> bool:
        proposal = self._proposal(placement)
        if stuck_of(proposal, placement):
            return False
        return not broken_anew(verify_proposal(placement.topology, self._request, proposal))

    def _proposal(self, placement: Placement) -> Proposal:
        held = self.original.bytes
        return proposal_of("asked", placement.topology, placement.targets(), held)

    def _stuck(self, placement: Placement) -> Collection[TopicPartition]:
        if placement.capacity is None:
            return ()
        return stuck_of(self._proposal(placement), placement)

    def _relieve(self, placement: Placement) -> None:
        ids = placement.topology.broker_ids
        relieved = [ids.index(id_) for id_ in self._request.relieve_brokers]
        if any(map(placement.is_full, relieved)):
            make_within_disks(placement, relieved)
            if stuck := self._stuck(placement):
                key, ids_told = min(stuck), sorted(self._request.relieve_brokers)
                why = why_stuck(self._proposal(placement), placement, key)
                raise ImpossibleError(
                    f"no plan was found that relieves brokers {ids_told}: {key} {why}"
                )
        for broker in relieved:
            if placement.is_full(broker):
                assert placement.capacity is not None
                over = bytes_text(int(placement.bytes[broker] - placement.capacity[broker]))
                raise ImpossibleError(
                    f"broker {ids[broker]} cannot be relieved: {over} more than its disks take "
                    "would stay, because the other brokers have no room for its partitions, also "
                    "where others make way. Add a broker, or delete data (retention)"
                )

    def within_disks(self, proposal: Proposal, asked: Callable[[], Placement]) -> Proposal:
        """The proposal without what finds no room in any stage; that is told. `asked`: what is
        asked for and nothing else, which finds room."""
        original = self.original
        topology, held = original.topology, original.bytes
        stuck = stuck_of(proposal, original)
        if not stuck:
            return proposal
        why = f"{min(stuck)} {why_stuck(proposal, original, min(stuck))}"
        least, wanted = asked().targets(), proposal.targets()
        targets, made = dict(wanted), proposal
        for _ in range(_TRIES_MAX):
            for key in stuck:
                del targets[key]
                targets |= {key: least[key]} if key in least else {}
            made = proposal_of(proposal.name, topology, targets, held)
            stuck = frozenset(it for it in stuck_of(made, original) if targets[it] != least.get(it))
            if not stuck:
                break
        if stuck_of(made, original):
            made = proposal_of(proposal.name, topology, least, held)
        kept = made.targets()
        left = sum(kept.get(key) != after for key, after in wanted.items())
        words = f"leaves out what it would do with {counted(left, 'partition')}"
        self.told[made] = f"the plan {proposal.name} {words}: {why}"
        return made

    @property
    def _what(self) -> str:
        factor, removed = self._request.replication_factor, self._request.remove_brokers
        if factor is not None:
            return f"no plan was found that gives every partition {counted(factor, 'replica')}"
        return f"no plan was found that empties {brokers_text(removed)}"

    def _refusal(self, placement: Placement, missing: list[Lacking]) -> str:
        if missing:
            more = len({it.partition for it in missing}) - 1
            others = f" ({more:,} more partitions find none)" if more else ""
            why = f"{why_no_place(placement, missing[0])}{others}"
        else:
            key = min(self._stuck(placement))
            why = f"{key} {why_stuck(self._proposal(placement), placement, key)}"
        is_factor = self._request.replication_factor is not None
        instead = "ask for fewer replicas, or name fewer topics"
        instead = instead if is_factor else "remove fewer brokers at a time"
        return f"{self._what}: {why}. Add a broker, delete data (retention), or {instead}"


def broken_anew(violations: Collection[Violation]) -> list[Violation]:
    """Those that a plan would bring."""
    return [violation for violation in violations if violation.is_new]


def stuck_of(proposal: Proposal, placement: Placement) -> frozenset[TopicPartition]:
    """Changes for which disks have no room in any order of stages."""
    if placement.capacity is None:
        return frozenset()
    room = room_of(placement.topology, placement.columns.held())
    return stages_of(room, proposal.changes).stuck


def why_stuck(proposal: Proposal, placement: Placement, key: TopicPartition) -> str:
    """Which broker lacks how many bytes while a partition moves."""
    change = next(change for change in proposal.changes if change.key == key)
    room = room_of(placement.topology, placement.columns.held())
    told = {b: change.size_bytes - room[b] for b in change.adding if b in room}
    broker = max(told, key=lambda b: told[b])
    lacks = f" and lacks {bytes_text(told[broker])}" if told[broker] > 0 else ""
    return (
        f"would go to broker {broker}, which has {bytes_text(max(0, room[broker]))} free{lacks} "
        "until others have left it, and they find no room either"
    )
