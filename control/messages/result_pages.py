"""Pages of what a search found: the one that is shown, and those before it."""

from collections import deque
from typing import Final

from control.kafka.records.browsing import Browsed
from control.kafka.records.newest import kept_bytes

PAGES_BYTES_MAX: Final = 4 << 20
"""Of keys, values and headers; the first pages are forgotten beyond, never the one shown."""


class ResultPages:
    """Pages in the order in which they were read. Numbers count the records that were found."""

    def __init__(self, bytes_max: int = PAGES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._pages: deque[Browsed] = deque()
        self._shown = 0
        self._forgotten = 0
        """Records on pages that are forgotten."""

    def clear(self) -> None:
        """Another search begins."""
        self._pages.clear()
        self._shown = self._forgotten = 0

    @property
    def shown(self) -> Browsed | None:
        """The page that is shown; None: nothing was read."""
        return self._pages[self._shown] if self._pages else None

    @property
    def newest(self) -> Browsed | None:
        """The page that was read last: reading goes on from its end."""
        return self._pages[-1] if self._pages else None

    @property
    def has_previous(self) -> bool:
        """Whether a page before the shown one is kept."""
        return self._shown > 0

    @property
    def has_next(self) -> bool:
        """Whether a page after it is kept, or more can be read."""
        newest = self.newest
        return newest is not None and (self.shown is not newest or bool(newest.rest))

    @property
    def first(self) -> int:
        """Number of the first record that is shown, from 1."""
        before = (len(self._pages[it].records) for it in range(self._shown))
        return 1 + self._forgotten + sum(before)

    def add(self, page: Browsed) -> None:
        """Show a page that was just read; it replaces one on which nothing was found."""
        if self._pages and not self._pages[-1].records:
            self._pages.pop()
        self._pages.append(page)
        while len(self._pages) > 1 and self._bytes() > self._bytes_max:
            self._forgotten += len(self._pages.popleft().records)
        self._shown = len(self._pages) - 1

    def previous(self) -> bool:
        """Show the page before; False: there is none."""
        if not self.has_previous:
            return False
        self._shown -= 1
        return True

    def next(self) -> bool:
        """Show the page after it; False: it must be read."""
        if self.shown is self.newest:
            return False
        self._shown += 1
        return True

    def _bytes(self) -> int:
        return sum(kept_bytes(record) for page in self._pages for record in page.records)
