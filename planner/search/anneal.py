"""Moving fewer bytes to the same balance, where neither a trade nor settling anew helps: chance.

Simulated annealing. Two brokers at a time are drawn; of all that they can do together (one replica
goes either way, or two change places) one thing is drawn, or nothing: the likelier, the fewer bytes
it makes move. Bytes and replicas outside of a broker's bounds count as moved bytes, few at first
and many in the end, and what costs more is done ever more rarely. So large replicas first find the
way that leaves room for others, and small ones fill it. The best that was within all bounds is
taken; nobody ends further outside of theirs than they began. The dice always fall alike.

Worked example: 1 must lose 6 bytes and has replicas of 10 and 9; 2 has room for 7, and one of 3.
No replica fits. The one of 9 goes to 2, which then has 2 bytes too many; 2 gives its 3 to 1: 12
bytes move, and all fits.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.columns import Flags, Floats, Numbers
from planner.search.bounds import Bounds
from planner.search.placement import Placement, Step, racks_let_go

_SEED: Final = 1
_LOOKED_AT: Final = 64
"""Replicas of a broker at once; of more, so many are drawn."""
_EACH: Final = 0.05
"""Of the bytes of a mean replica: what moving one more has to spare."""
_ROUNDING: Final = 1e-3
"""Of a mean replica: so far outside of their bounds brokers may be in all."""
_MISCOUNT: Final = 6.0
"""Mean replicas that one too many, or too few, counts as: bytes fill up, numbers do not."""
_PROGRESS: Final = 1e-6
_LEAST_LIKELY: Final = 50.0


@dataclass(frozen=True, slots=True)
class _Course:
    """From the first step to the last: `hot` to `cold`, in mean replicas, and what a byte outside
    counts, `lenient` to `strict`."""

    hot: float
    cold: float
    lenient: float
    strict: float


_STRICT: Final = 60.0
"""Less leaves brokers a little outside of their bounds in the end, and all was in vain."""
_COURSES: Final = (
    _Course(hot=0.05, cold=0.002, lenient=4.0, strict=_STRICT),
    _Course(hot=0.1, cold=0.002, lenient=3.0, strict=_STRICT),
    _Course(hot=0.3, cold=0.003, lenient=1.5, strict=_STRICT),
    _Course(hot=1.0, cold=0.01, lenient=1.0, strict=_STRICT),
)
"""Most plans are mended near their own ways; where that is not enough, ever further from them."""
_ROUNDS_MAX: Final = 2
_FEW: Final = 0.02
"""Of what moves: so little spared is not worth another round."""
_STEPS: Final = 12_000
"""Of a course."""
_STEPS_MIN: Final = 200
_SMALL: Final = 40
"""Replicas squared over so many are steps enough for a small cluster."""


def anneal(placement: Placement, bounds: Bounds, enough: int) -> None:
    """Course after course, each from the best so far, until no more than `enough` bytes move or
    all of them spare next to nothing."""
    if placement.topics is not None or int(placement.is_target.sum()) < 2:
        return  # exchanges within a topic are not to be undone
    dice = np.random.default_rng(_SEED)
    steps = min(_STEPS, max(_STEPS_MIN, int(placement.count.sum()) ** 2 // _SMALL))
    for _ in range(_ROUNDS_MAX):
        before = moved = _moved_bytes(placement)
        for course in _COURSES:
            if moved <= enough:
                return
            _Annealer(placement, bounds, dice).run(course, steps)
            moved = _moved_bytes(placement)
        if moved > (1 - _FEW) * before:
            return


def _moved_bytes(placement: Placement) -> int:
    return sum(placement.size[p] for p, _ in placement.received())


class _Annealer:
    """Sizes and loads in mean replicas. The placement follows each step, and goes back in the end
    to the best."""

    def __init__(self, placement: Placement, bounds: Bounds, dice: np.random.Generator) -> None:
        self._placement, self._dice = placement, dice
        columns, unit = placement.columns, bounds.unit
        partitions = len(placement.size)
        self._size: Floats = columns.size / unit
        self._costs = self._size + _EACH
        self._at_home: Flags = np.zeros((partitions, placement.brokers), dtype=np.bool_)
        self._at_home[columns.of, columns.on] = True
        self._holds: Flags = np.zeros_like(self._at_home)
        for partition, replicas in enumerate(placement.replicas):
            self._holds[partition, replicas] = True
        partition_at = np.array(placement.partition_at, dtype=np.int64)
        is_partly = np.zeros(partitions, dtype=np.bool_)
        is_partly[placement.sync.partly_synced] = True
        listed = (partition_at[ranks] for ranks in placement.by_size)
        self._movable = [chosen[~is_partly[chosen]] for chosen in listed]
        self._targets = np.flatnonzero(placement.is_target)
        self._load: Floats = placement.bytes / unit
        self._count: Floats = placement.count.astype(np.float64)
        self._most: Floats = np.maximum(bounds.bytes_max / unit, self._load)
        self._fewest = np.minimum(bounds.count_min, self._count)
        self._most_count = np.maximum(bounds.count_max, self._count)
        self._disks = None
        if placement.capacity is not None:
            self._disks = np.maximum(placement.capacity, placement.bytes)
        self._steps: list[Step] = []

    def run(self, course: _Course, steps: int) -> None:
        """So many steps, then back to the best."""
        cost = best = 0.0
        kept = 0
        pairs = self._targets[self._dice.integers(0, len(self._targets), (steps, 2))]
        heat = np.geomspace(course.hot, course.cold, steps).tolist()
        outside = np.geomspace(course.lenient, course.strict, steps).tolist()
        for step, (one, other) in enumerate(pairs.tolist()):
            if one == other:
                continue
            cost += self._step(one, other, heat[step], outside[step])
            is_better = cost < best - _PROGRESS
            if is_better and self._outside() < _ROUNDING and self._is_within_disks():
                best, kept = cost, len(self._steps)
        for partition, source, target in reversed(self._steps[kept:]):
            self._placement.move(partition, target, source)

    def _step(self, one: int, other: int, heat: float, outside: float) -> float:
        """Cost of one drawn step in moved bytes, once it is done."""
        forth, back = self._may_go(one, other), self._may_go(other, one)
        if not len(forth) and not len(back):
            return 0.0
        dearer = self._dearer(forth, one, other)[:, None] + self._dearer(back, other, one)
        total = dearer + outside * self._further_outside(one, other, forth, back)
        total[-1, -1] = 0.0
        likely = np.exp(np.minimum(-total.ravel() / heat, _LEAST_LIKELY)).cumsum()
        drawn = int(likely.searchsorted(self._dice.random() * likely[-1], side="right"))
        row, column = divmod(min(drawn, len(likely) - 1), len(back) + 1)
        if row < len(forth):
            self._move(int(forth[row]), one, other)
        if column < len(back):
            self._move(int(back[column]), other, one)
        return float(dearer[row, column])

    def _may_go(self, source: int, target: int) -> Numbers:
        """Partitions whose replica may go there, by chance if there are many."""
        partitions = self._movable[source]
        if len(partitions) > _LOOKED_AT:
            partitions = partitions[self._dice.integers(0, len(partitions), _LOOKED_AT)]
        partitions = partitions[~self._holds[partitions, target]]
        free: Numbers = partitions[racks_let_go(self._placement, partitions, source, target)]
        return free

    def _dearer(self, partitions: Numbers, source: int, target: int) -> Floats:
        """Added moved bytes of each of them going there; last: none of them."""
        at_home = self._at_home[partitions]
        left, came = at_home[:, source].astype(np.float64), at_home[:, target]
        dearer: Floats = np.append(self._costs[partitions] * (left - came), 0.0)
        return dearer

    def _further_outside(self, one: int, other: int, forth: Numbers, back: Numbers) -> Floats:
        """How much further outside of their bounds the two are in all."""
        shift = np.append(self._size[forth], 0.0)[:, None] - np.append(self._size[back], 0.0)
        over = float(self._load[one] - self._most[one])
        over_other = float(self._load[other] - self._most[other])
        further: Floats = np.maximum(over - shift, 0.0) + np.maximum(over_other + shift, 0.0)
        further -= max(over, 0.0) + max(over_other, 0.0)
        now = self._miscount(one, 0) + self._miscount(other, 0)
        further[:-1, -1] += self._miscount(one, -1) + self._miscount(other, 1) - now
        further[-1, :-1] += self._miscount(one, 1) + self._miscount(other, -1) - now
        return further

    def _miscount(self, broker: int, more: int) -> float:
        """Penalty of replicas too many, or too few, with so many more."""
        count = float(self._count[broker]) + more
        most, fewest = float(self._most_count[broker]), float(self._fewest[broker])
        return _MISCOUNT * max(0.0, count - most, fewest - count)

    def _outside(self) -> float:
        """How far brokers are outside of their bounds in all."""
        here = self._targets
        count = self._count[here]
        over = np.maximum(self._load[here] - self._most[here], 0.0)
        over += np.maximum(count - self._most_count[here], 0.0)
        over += np.maximum(self._fewest[here] - count, 0.0)
        return float(over.sum())

    def _is_within_disks(self) -> bool:
        """Whether nobody is over its disks, or fuller than before where it was: no rounding."""
        return self._disks is None or bool((self._placement.bytes <= self._disks).all())

    def _move(self, partition: int, source: int, target: int) -> None:
        self._placement.move(partition, source, target)
        self._steps.append((partition, source, target))
        self._holds[partition, source], self._holds[partition, target] = False, True
        size, movable = self._size[partition], self._movable
        self._load[source] -= size
        self._load[target] += size
        self._count[source] -= 1
        self._count[target] += 1
        movable[source] = movable[source][movable[source] != partition]
        movable[target] = np.append(movable[target], partition)
