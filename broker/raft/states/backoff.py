"""Pauses between retries."""


class Backoff:
    """Growing pauses between retries to one peer."""

    def __init__(self, *, first_ms: int, max_ms: int) -> None:
        self._first_ms = first_ms
        self._max_ms = max_ms
        self._failures = 0

    def next_ms(self) -> int:
        """The pause after one more failure; four quick ones first, then doubling."""
        self._failures += 1
        return int(min(self._first_ms << max(0, self._failures - 4), self._max_ms))

    def reset(self) -> None:
        """After a success."""
        self._failures = 0
