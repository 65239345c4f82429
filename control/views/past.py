"""The past as the screens show it: the same snapshot, of another moment."""

from typing import Any, Protocol

from control.model.ids import ClusterId
from control.views.snapshot import OperatorSnapshot, build_snapshot


class PastReader(Protocol):
    """What the past is asked of (``spark_metrics.aggregates.AggregatesReader``)."""

    def as_of(self, *, cluster: str, at_ms: int) -> Any: ...


def snapshot_at(reader: PastReader, *, cluster: ClusterId, at_ms: int) -> OperatorSnapshot | None:
    """Tables and findings as of that time; None: nothing of it is kept.

    It is of that second within the last two hours, of that minute within seven days, then of
    that hour. Ages count from ``at_ms``. What history does not keep is n/a: sizes of segments,
    members, what followers say of themselves. Nothing can be changed there.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
    """
    found = reader.as_of(cluster=cluster, at_ms=at_ms)
    if found is None:
        return None
    return build_snapshot(
        found.tables, version=found.version, now_ms=at_ms, cluster=cluster, is_past=True
    )
