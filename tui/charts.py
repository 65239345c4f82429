"""How much of the past charts show: the same stretch on every view, until told otherwise."""

from control.views.series import Span
from control.views.times import RANGE_DEFAULT, RANGES, span_of


class Stretch:
    """A range such as ``6h``; empty: the usual one."""

    def __init__(self) -> None:
        self.words = ""
        """As a path has it."""

    def take(self, words: str) -> None:
        """From now on this range.

        Raises:
            TimeError: one that cannot be read; the old one stays.
        """
        span_of("", words, now_ms=0)
        self.words = "" if words == RANGE_DEFAULT else words

    def zoom(self, step: int) -> bool:
        """The next longer range (-1: shorter) of those that one chooses from; False: there is
        none."""
        names = list(RANGES)
        length = self._ms(self.words or RANGE_DEFAULT)
        there = [name for name in names[::step] if (self._ms(name) - length) * step > 0]
        if there:
            self.take(there[0])
        return bool(there)

    def span(self, *, until_ms: int) -> Span:
        """The stretch of charts that end there."""
        return span_of("", self.words, now_ms=until_ms)

    @staticmethod
    def _ms(words: str) -> int:
        span = span_of("", words, now_ms=0)
        return span.until_ms - span.since_ms

    @property
    def title(self) -> str:
        """``last 10 minutes``."""
        range_ = self.words or RANGE_DEFAULT
        return f"last {RANGES.get(range_, range_)}"
