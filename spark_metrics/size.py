"""How large a cluster is to the job, and what its JVM is given for it.

A small JVM is there soonest; a large cluster gains, after minutes, from Java's second compiler and
from a heap that is whole from the beginning. Which one it is to be is known once rows are: from
the store of an earlier run, from the first samples, or when a cluster grows.
"""

from dataclasses import replace
from typing import Final

from spark_metrics.errors import MetricsError
from spark_metrics.session import SessionSettings

SMALL_ROWS_MAX: Final = 20_000
"""Replicas and commits together."""
SMALL_MEMORY: Final = "768m"
LARGE_MEMORY: Final = "1200m"


class OutgrownError(MetricsError):
    """The cluster is larger than what this process was started for."""

    def __init__(self, rows: int) -> None:
        super().__init__(
            f"{rows:,} replicas and commits",
            why="this process was started for a smaller cluster",
            what_next="It starts again, with more memory and a compiler more",
        )
        self.rows = rows


def session_for(settings: SessionSettings, *, rows: int, memory: str | None) -> SessionSettings:
    """Settings for so many replicas and commits; ``memory`` (as Java has it, ``2g``) wins."""
    is_large = rows > SMALL_ROWS_MAX
    usual = LARGE_MEMORY if is_large else SMALL_MEMORY
    return replace(settings, is_large=is_large, driver_memory=memory or usual)


def rows_max(settings: SessionSettings) -> int | None:
    """So many rows a job with that session takes in; None: whatever comes."""
    return None if settings.is_large else SMALL_ROWS_MAX
