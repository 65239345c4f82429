"""How long the phases of a batch take, as a clock on the wall tells."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Times by name, in order of first use; what is entered again adds up."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Count the time spent within."""
        began_s = time.perf_counter()
        try:
            yield
        finally:
            spent_s = time.perf_counter() - began_s
            self._seconds[name] = self._seconds.get(name, 0.0) + spent_s

    @property
    def ms(self) -> dict[str, int]:
        return {name: round(1_000 * spent_s) for name, spent_s in self._seconds.items()}
