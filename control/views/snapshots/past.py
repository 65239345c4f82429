"""The past as the screens show it: the same snapshot, of another moment."""

from collections.abc import Iterator, Sequence
from typing import Final

from control.model.ids import ClusterId
from control.views.format import clock_text, duration_text
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot
from control.views.snapshots.store import Aggregates, StoreReader

AHEAD_MS_MAX: Final = 1_000
"""So far clocks of screens may run ahead of each other."""


class NothingKeptError(ValueError):
    """Nothing of a moment can be shown; the text says why, and what can."""


def look_back(
    reader: StoreReader, *, cluster: ClusterId, at_ms: int, now_ms: int
) -> OperatorSnapshot:
    """``snapshot_at``, where there is one.

    Raises:
        NothingKeptError: the moment is to come, was before history begins, or nobody measured.
        StoreUnreadableError: there is a store, but it cannot be read.
    """
    when = clock_text(at_ms, now_ms=now_ms)
    if at_ms > now_ms + AHEAD_MS_MAX:
        ahead = duration_text(at_ms - now_ms)
        raise NothingKeptError(f"{when} is in the future, {ahead} from now; choose a past time")
    found = snapshot_at(reader, cluster=cluster, at_ms=at_ms)
    if found is not None:
        return found
    since_ms = reader.kept_since_ms
    if since_ms is None:
        raise NothingKeptError("no history is kept yet: the metrics job has written nothing")
    begins = clock_text(since_ms, now_ms=now_ms)
    if at_ms < since_ms:
        raise NothingKeptError(f"{when} is before history begins; choose {begins} or later")
    raise NothingKeptError(
        f"nothing of {when} is kept: nothing was measured then; history begins at {begins}"
    )


def snapshot_at(reader: StoreReader, *, cluster: ClusterId, at_ms: int) -> OperatorSnapshot | None:
    """Tables and findings as of that time; None: nothing of it is kept.

    It is of that second within the last two hours, of that minute within seven days, then of
    that hour. Ages count from ``at_ms``. What history does not keep is n/a: sizes of segments,
    members, what followers say of themselves. Nothing can be changed there. Where nothing was
    measured it is the state before, of a cluster that is not heard of.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
    """
    found = reader.as_of(cluster=cluster, at_ms=at_ms)
    return None if found is None else _snapshot_of(found, cluster, history=reader)


def snapshots_at(
    reader: StoreReader, *, cluster: ClusterId, moments: Sequence[int]
) -> Iterator[OperatorSnapshot | None]:
    """``snapshot_at`` each of these moments, which are in order; findings have no date that would
    have to be looked for in history.

    Raises:
        StoreUnreadableError: there is a store, but it cannot be read.
    """
    for found in reader.states(cluster=cluster, moments=moments):
        yield None if found is None else _snapshot_of(found, cluster)


def _snapshot_of(
    found: Aggregates, cluster: ClusterId, *, history: StoreReader | None = None
) -> OperatorSnapshot:
    return build_snapshot(
        found.tables,
        version=found.version,
        now_ms=found.written_ms,
        cluster=cluster,
        history=history,
        is_past=True,
        gap_since_ms=found.gap_since_ms,
    )
