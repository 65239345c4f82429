"""Seeds of the long runs of `make soak`."""

from typing import Final

import pytest

from tests.support.isolation import MACHINE

FIRST: Final = int(MACHINE.get("PARTISCOPE_ORACLE_FIRST", "0"))
COUNT: Final = int(MACHINE.get("PARTISCOPE_ORACLE_COUNT", "0"))
"""So many cases of each kind; 0: as many as each kind has."""
AT_ONCE: Final = 600
"""So many histories of figures are folded by one job: a batch of 600 rows is hardly dearer than one
of 60."""


def long_run(first: int, count: int, each: int) -> list[object]:
    """Ranges of `each` seeds; `pytest -v` tells by their names how far a run is."""
    first, last = max(first, FIRST), max(first, FIRST) + (COUNT or count)
    parts = (range(start, min(start + each, last)) for start in range(first, last, each))
    return [pytest.param(part, id=f"{part.start}-{part.stop - 1}") for part in parts]
