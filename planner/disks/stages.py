"""Stages of a reassignment: what has to end before disks have room for the rest. Pure.

While a partition moves, both copies exist. So a stage takes only what fits beside all that is there
when it begins: room that its own moves free counts for the next stage. Where disks have room for
everything at once, there is one stage.

Worked example: brokers 2 and 3 have 10 bytes free each. q (20 bytes) shall go from 3 to 4, then p
(30 bytes) from 1 to 3: q is of stage 0, p of stage 1.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from control.model.ids import TopicPartition

_STAGES_MAX: Final = 200
"""Brokers delete what has left them a minute later: more stages would take half a day."""
_SEARCHED_MAX: Final = 12
"""Moves that wait for each other: of so many every order is tried."""


class Copying(Protocol):
    """A change of one partition's replicas."""

    @property
    def key(self) -> TopicPartition:
        """The partition's name."""

    @property
    def adding(self) -> tuple[int, ...]:
        """Brokers that receive a copy."""

    @property
    def removing(self) -> tuple[int, ...]:
        """Brokers that drop theirs."""

    @property
    def size_bytes(self) -> int:
        """Bytes of one replica."""

    @property
    def stage(self) -> int:
        """Its stage so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """`of`: the stage of each change that has one above 0. `stuck`: changes for which no order
    makes room; they are of the last stage."""

    of: Mapping[TopicPartition, int]
    stuck: frozenset[TopicPartition]


ONE: Final = Stages(of={}, stuck=frozenset())


def stages_words(name: str, changes: Iterable[Copying]) -> str:
    """Words about a plan that disks cannot take all at once; empty where they can."""
    number = 1 + max((change.stage for change in changes), default=0)
    if number == 1:
        return ""
    return (
        f"the plan {name} has {number} stages, for disks have no room for all of it at once: "
        "`partiscope reassign` makes room first, a tool that moves all at once would not"
    )


def stages_of(room: Mapping[int, int], changes: Collection[Copying]) -> Stages:
    """`room`: bytes free on each broker that tells it; below 0 where it is over its disks."""
    tight = _tight(room, changes)
    if not tight:
        return ONE
    stages, left = _greedy(room, changes, tight)
    if left and len(changes) <= _SEARCHED_MAX:
        order = _order(room, changes)
        stages, left = (stages, left) if order is None else (_in_stages(room, order), ())
    of = {it.key: number for number, stage in enumerate(stages) for it in stage if number}
    of |= dict.fromkeys((it.key for it in left), len(stages))
    return Stages(of=of, stuck=frozenset(it.key for it in left))


def _tight(room: Mapping[int, int], changes: Iterable[Copying]) -> set[int]:
    """Brokers that have no room for all that comes."""
    left = dict(room)
    for change in changes:
        for broker in change.adding:
            if broker in left:
                left[broker] -= change.size_bytes
    coming = {broker for change in changes for broker in change.adding if change.size_bytes}
    return {broker for broker in coming if left.get(broker, 0) < 0}


def _greedy(
    room: Mapping[int, int], changes: Iterable[Copying], tight: Collection[int]
) -> tuple[list[list[Copying]], tuple[Copying, ...]]:
    """(stages, what finds no room): what leaves tight brokers first, then the smallest."""
    left = sorted(
        changes,
        key=lambda it: (set(it.removing).isdisjoint(tight), it.size_bytes, it.key),
    )
    stages: list[list[Copying]] = []
    now = dict(room)
    while left and len(stages) < _STAGES_MAX:
        stage: list[Copying] = []
        later: list[Copying] = []
        for change in left:
            (stage if _take(now, change) else later).append(change)
        if not stage:
            break
        stages.append(stage)
        _free(now, stage)
        left = later
    return stages, tuple(left)


def _order(room: Mapping[int, int], changes: Iterable[Copying]) -> list[Copying] | None:
    """An order in which all find room one after the other; None: there is none."""
    vain: set[frozenset[TopicPartition]] = set()

    def rest(now: dict[int, int], left: tuple[Copying, ...]) -> list[Copying] | None:
        keys = frozenset(it.key for it in left)
        for change in () if keys in vain else left:
            then = dict(now)
            if _take(then, change):
                _free(then, (change,))
                found = rest(then, tuple(it for it in left if it.key != change.key))
                if found is not None:
                    return [change, *found]
        vain.add(keys)
        return None if left else []

    return rest(dict(room), tuple(changes))


def _in_stages(room: Mapping[int, int], order: Iterable[Copying]) -> list[list[Copying]]:
    """As few stages in this order as its room allows."""
    now, stages = dict(room), list[list[Copying]]([[]])
    for change in order:
        if not _take(now, change):
            _free(now, stages[-1])
            stages.append([])
            _take(now, change)
        stages[-1].append(change)
    return stages


def _take(now: dict[int, int], change: Copying) -> bool:
    """Takes the room of its copies, where there is enough."""
    size, adding = change.size_bytes, change.adding
    if size and any(now.get(broker, size) < size for broker in adding):
        return False
    for broker in adding:
        if broker in now:
            now[broker] -= size
    return True


def _free(now: dict[int, int], changes: Iterable[Copying]) -> None:
    for change in changes:
        for broker in change.removing:
            if broker in now:
                now[broker] += change.size_bytes
