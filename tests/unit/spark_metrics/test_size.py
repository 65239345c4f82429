"""What the JVM is given for clusters of different sizes."""

import pytest

from spark_metrics.session import SessionSettings
from spark_metrics.size import LARGE_MEMORY, SMALL_MEMORY, SMALL_ROWS_MAX, rows_max, session_for

SETTINGS = SessionSettings(master="local[2]")


@pytest.mark.parametrize(
    ("rows", "memory", "heap", "most"),
    [
        (0, None, SMALL_MEMORY, SMALL_ROWS_MAX),
        (SMALL_ROWS_MAX, None, SMALL_MEMORY, SMALL_ROWS_MAX),
        (SMALL_ROWS_MAX + 1, None, LARGE_MEMORY, None),
        (0, "2g", "2g", SMALL_ROWS_MAX),
        (1_300_000, "3g", "3g", None),
    ],
)
def test_the_heap_follows_the_rows_unless_it_is_given(
    rows: int, memory: str | None, heap: str, most: int | None
) -> None:
    chosen = session_for(SETTINGS, rows=rows, memory=memory)
    assert chosen.driver_memory == heap
    assert rows_max(chosen) == most
