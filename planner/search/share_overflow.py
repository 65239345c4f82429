"""Sharing what cannot be helped: who is too full although nothing more may leave, evenly.

Evening ends when no step lowers the penalty, and it is all one to the penalty who bears it: one
broker three replicas above its bound is as bad as three brokers one above. So the fullest broker
gives once more, in the stead of one that has given more than it: what that one gave goes home, and
a replica of the fullest that is no larger goes where that was. No more bytes move for it, and the
numbers of these two brokers come nearer to each other, so it ends.

Worked example: a topic of nine partitions, two replicas each, is all that may move to two new
brokers. The old ones have 15 replicas each, three topics' worth; nine would be fair. One gave all
six of the topic that it had, the others three each: 9, 12 and 12. Two go home to the first and one
of each other one goes in their stead: 11, 11 and 11.
"""

from itertools import islice
from typing import Final

import numpy as np

from planner.columns import Floats
from planner.search.bounds import Bounds
from planner.search.candidates import LOSS_MAX, Reach
from planner.search.placement import Placement

_TRIED: Final = 8
"""Replicas of the fullest for each one that might go home."""
_LOOKED_AT_MAX: Final = 200_000
"""Replicas in all: well under a second. Where racks force numbers nearly all are in vain."""


def level(placement: Placement, bounds: Bounds) -> None:
    """Bring brokers beyond their numbers nearer to each other, as far as that costs nothing."""
    is_beyond = (placement.count > bounds.count_max)[placement.is_target].any()
    if is_beyond and placement.topics is None:
        _Leveller(placement, bounds).run()


class _Leveller(Reach):
    def __init__(self, placement: Placement, bounds: Bounds) -> None:
        super().__init__(placement, bounds)
        self._homes = placement.home
        self._given: list[list[int]] = [[] for _ in range(placement.brokers)]
        """Partitions that each broker had at first and has no more."""
        for partition in placement.changed():
            for home in self._homes[partition]:
                if home not in placement.replicas[partition]:
                    self._given[home].append(partition)
        self._left = _LOOKED_AT_MAX

    def run(self) -> None:
        """Until nobody can give, or too many were looked at."""
        while self._left > 0 and self._run_once():
            pass

    def _run_once(self) -> bool:
        """Exchanges one replica of the fullest that can for one of the emptiest that can."""
        beyond: Floats = (self.placement.count - self.bounds.count_max)[self.targets]
        order = np.argsort(-beyond, kind="stable")
        for fullest in order.tolist():
            if beyond[fullest] <= 0:
                break
            for emptiest in reversed(order.tolist()):
                if beyond[fullest] - beyond[emptiest] < 2 or self._left <= 0:
                    break
                if self._give_instead(int(self.targets[fullest]), int(self.targets[emptiest])):
                    return True
        return False

    def _give_instead(self, source: int, home: int) -> bool:
        """One of the source's goes where one of `home` is, which goes home."""
        placement, size = self.placement, self.placement.size
        for returning in self._given[home]:
            for place in self._abroad(returning):
                for given in islice(self.around(source, size[returning]), _TRIED):
                    self._left -= 1
                    if self._is_no_loss(source, place, home, given, returning):
                        placement.move(returning, place, home)
                        placement.move(given, source, place)
                        self._given[home].remove(returning)
                        if source in self._homes[given]:
                            self._given[source].append(given)
                        return True
        return False

    def _abroad(self, partition: int) -> list[int]:
        homes = self._homes[partition]
        return [b for b in self.placement.replicas[partition] if b not in homes]

    def _is_no_loss(self, source: int, place: int, home: int, given: int, returning: int) -> bool:
        size, may_move = self.placement.size, self.placement.may_move
        if size[given] > size[returning]:
            return False
        saved = (
            self._saved(source, -1, -size[given])
            + self._saved(place, 0, size[given] - size[returning])
            + self._saved(home, 1, size[returning])
        )
        return (
            saved >= -LOSS_MAX
            and may_move(given, source, place, for_=returning)
            and may_move(returning, place, home)
        )
