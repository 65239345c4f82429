"""Tables of a new snapshot are made before pages hear of it, while somebody looks at tables.

A table is made when it is first asked for. Of 400,000 replicas that takes a seventh of a second,
which the first filter, sort or jump after each version waited for.
"""

import time
from collections.abc import Callable
from typing import Final

from control.views.snapshots.snapshot import OperatorSnapshot

TABLES: Final = ("partition_table", "topic_table", "commit_table", "group_table")
LOOKED_S_MAX: Final = 15.0
"""Nobody asked for so long: nobody looks. Open tables ask at every version."""


class TablePrefetch:
    """Prefetch of one cluster's tables: who answers tables tells ``asked``; ``follow`` listens to
    the feed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked_s = -LOOKED_S_MAX
        self._before: OperatorSnapshot | None = None

    def asked(self) -> None:
        """Somebody looks at a table now."""
        self._asked_s = self._clock()

    def follow(self, snapshot: OperatorSnapshot) -> None:
        """Make the tables that were made of the snapshot before."""
        if self._before is not None and self._clock() - self._asked_s < LOOKED_S_MAX:
            for name in TABLES:
                if name in vars(self._before):
                    getattr(snapshot, name)
        self._before = snapshot
