"""The newest batch boundaries of an active segment, in memory.

Nearly every fetch is for the newest data. For these a look-up is one bisection in an array
instead of a search in the index file and a walk over headers.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from broker.log.segment.batch_scan import BatchSpot

RECENT_BATCHES_MAX: Final = 512
"""24 bytes each, per active segment."""


class RecentBatches:
    """Rising base offsets, last offsets and positions of at most RECENT_BATCHES_MAX batches."""

    __slots__ = ("_base_offsets", "_last_offsets", "_positions")

    def __init__(self) -> None:
        self._base_offsets = array("q")
        self._last_offsets = array("q")
        self._positions = array("q")

    def __len__(self) -> int:
        return len(self._positions)

    def add(self, base_offset: int, last_offset: int, position: int) -> None:
        """Remember the batch just appended."""
        self._base_offsets.append(base_offset)
        self._last_offsets.append(last_offset)
        self._positions.append(position)
        if len(self._positions) > RECENT_BATCHES_MAX:
            # Half at a time: dropping from the front of an array moves all the rest.
            for column in self._columns():
                del column[: RECENT_BATCHES_MAX // 2]

    def covers_offset(self, offset: int) -> bool:
        """Whether the first batch at or after `offset` can be told from here."""
        return bool(self._base_offsets) and offset >= self._base_offsets[0]

    def covers_position(self, position: int) -> bool:
        """Whether the last boundary at or before `position` can be told from here."""
        return bool(self._positions) and position >= self._positions[0]

    def locate(self, offset: int, end: int) -> BatchSpot | None:
        """The first batch whose last offset is >= `offset`; `end` is the segment's size."""
        slot = bisect_left(self._last_offsets, offset)
        if slot == len(self._positions):
            return None
        position = self._positions[slot]
        following = self._positions[slot + 1] if slot + 1 < len(self._positions) else end
        return BatchSpot(
            self._base_offsets[slot], self._last_offsets[slot], position, following - position
        )

    def boundary(self, position: int) -> int:
        """The last batch start at or before `position`."""
        return self._positions[bisect_right(self._positions, position) - 1]

    def truncate(self, position: int) -> None:
        """Forget the batches from `position` on."""
        kept = bisect_left(self._positions, position)
        for column in self._columns():
            del column[kept:]

    def _columns(self) -> "tuple[array[int], array[int], array[int]]":
        return self._base_offsets, self._last_offsets, self._positions
