"""Exchanging a large replica for a small one, where numbers must stay."""

from typing import Final

import numpy as np

from planner.search.candidates import GAIN_MIN, Reach

_SMALL_TRIED: Final = 12


class Exchanger(Reach):
    """Makes one exchange at a time. Each lowers the penalty of both brokers together."""

    def relieve(self, source: int) -> bool:
        """A large replica against a small one of a lighter broker."""
        placement, bounds = self.placement, self.bounds
        room = (bounds.bytes_max - placement.bytes)[self.targets]
        lightest = self.targets[np.argsort(-room, kind="stable")]
        return any(self._exchange_with(source, b) for b in self.nearby(lightest, source))

    def _exchange_with(self, source: int, target: int) -> bool:
        placement, bounds = self.placement, self.bounds
        excess = float(placement.bytes[source] - bounds.bytes_max[source])
        room = float(bounds.bytes_max[target] - placement.bytes[target])
        shift = min(excess, room)
        if shift <= 0:
            return False
        if placement.topics is not None and self._exchange_in_topic(source, target, shift):
            return True
        small = [placement.partition_at[r] for r in placement.by_size[target][:_SMALL_TRIED]]
        for back in small:
            if not placement.may_move(back, target, source):
                continue
            for forth in self.around(source, shift + placement.size[back]):
                if self._swap(source, target, forth, back):
                    return True
        return False

    def _exchange_in_topic(self, source: int, target: int, shift: float) -> bool:
        """Against a smaller one of the same topic, so that every topic stays as even as it is."""
        placement, topics = self.placement, self.placement.topics
        assert topics is not None
        for forth in self.around(source, shift):
            for back in topics.members(int(topics.of[forth])):
                if not placement.is_movable[back] or placement.size[back] >= placement.size[forth]:
                    continue
                if target not in placement.replicas[back]:
                    continue
                may_return = placement.may_move(back, target, source, for_=forth)
                if may_return and self._swap(source, target, forth, back):
                    return True
        return False

    def _swap(self, source: int, target: int, forth: int, back: int) -> bool:
        placement = self.placement
        shift = placement.size[forth] - placement.size[back]
        if shift <= 0 or forth == back or not placement.may_move(forth, source, target, for_=back):
            return False
        if self.gain(source, target, shift, 0) <= GAIN_MIN * 100:
            return False
        placement.move(forth, source, target)
        placement.move(back, target, source)
        return True
