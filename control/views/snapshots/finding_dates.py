"""Since when a finding stands that carries no date of its own, read from the store's history.

Every face asks the same history, so all of them say the same time, whenever they were started. A
date is told as history keeps it: to the minute, of what is older than seven days to the hour. It is
the first minute of the newest stretch of minutes at whose ends the finding stood. Minutes of which
nothing is known do not end a stretch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from control.model.columns import BoolColumn, FloatColumn, IntColumn, floats, ints
from control.model.disk_rules import DISK_WARNING_PERCENT
from control.model.finding import Finding, each_of
from control.model.finding_rules import (
    SKEW_BYTES_MIN,
    SKEW_MEASURES,
    SKEW_PERCENT_MAX,
    SKEW_REPLICAS_MIN,
    Evidence,
)
from control.views.snapshots.store import StoreReader
from spark_metrics.window.aggregates import ALL_BROKERS, MetricsError

MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * MINUTE_MS
LOOK_BACKS: Final = (
    (2 * _HOUR_MS, MINUTE_MS),
    (24 * _HOUR_MS, MINUTE_MS),
    (7 * 24 * _HOUR_MS, MINUTE_MS),
    (400 * 24 * _HOUR_MS, _HOUR_MS),
)
"""How far back, and how finely: the next one only where it stood all the time."""
PARTITIONS_MAX: Final = 20
"""Of so many partitions of a finding the one that is so for longest dates it."""
_BROKER_COLUMNS: Final = (
    *SKEW_MEASURES,
    *("disk_total_bytes", "disk_usable_bytes"),
)
_PARTITION_COLUMNS: Final = ("leader", "replicas", "isr_count", "replicas_count", "min_isr")


Stretch = tuple[IntColumn, BoolColumn]
"""Times, increasing, and whether the finding stood then."""


def dated(
    findings: Iterable[Finding],
    earlier: Iterable[Finding] | None,
    evidence: Evidence,
    history: StoreReader | None,
    *,
    now_ms: int,
) -> tuple[Finding, ...]:
    """The findings with their dates. ``earlier``: those of the version before, which keep theirs;
    None at the first look. What no history tells of begins now, or, at the first look, at a time
    that is not known."""
    seen = {item.id: item for item in each_of(earlier or ())}
    past = None if history is None else _Past(history, evidence, now_ms=now_ms)

    def date(item: Finding) -> Finding:
        known = seen.get(item.id)
        if item.since_ms is not None:
            return item
        # One that names another broker, or more partitions, is dated as whoever looks first does.
        if known is not None and known.is_date_final and known.label == item.label:
            return replace(item, since_ms=known.since_ms)
        found = None if past is None else past.since(item)
        if found is not None:
            return replace(item, since_ms=found)
        # History may tell a moment later: what has only just begun is asked for again.
        begun = known.since_ms if known is not None else None if earlier is None else now_ms
        return replace(item, since_ms=begun, is_date_final=past is None)

    return tuple(map(date, findings))


class _Past:
    """History of one cluster; of all its brokers it is read once for each look-back."""

    def __init__(self, history: StoreReader, evidence: Evidence, *, now_ms: int) -> None:
        self._history, self._evidence, self._now_ms = history, evidence, now_ms
        self._brokers: dict[int, Any] = {}

    def since(self, finding: Finding) -> int | None:
        """None: history does not tell."""
        measure = _MEASURE_OF.get(finding.kind)
        try:
            if measure is not None:
                broker, is_more = _broker_of(finding), float(finding.facts["skew"] or 0.0) > 0
                return self._longest(
                    lambda since_ms, points, step_ms: skewed(
                        self._of_brokers(since_ms, points),
                        measure,
                        broker,
                        step_ms=step_ms,
                        is_more=is_more,
                    )
                )
            if finding.kind == "disk":
                return self._longest(
                    lambda since_ms, points, step_ms: filling(
                        self._of_brokers(since_ms, points), _broker_of(finding), step_ms=step_ms
                    )
                )
            if finding.kind in _APPLIES:
                return self._of_partitions(finding.kind)
        except MetricsError:  # The store's own finding tells of it.
            pass
        return None

    def _longest(self, stretch: Callable[[int, int, int], Stretch]) -> int | None:
        """From the shortest look-back on, until it began within one."""
        found: int | None = None
        for back_ms, step_ms in LOOK_BACKS:
            since_ms = (self._now_ms - back_ms) // step_ms * step_ms
            at_ms, stood = stretch(since_ms, back_ms // step_ms + 1, step_ms)
            began, is_whole = begin_of(at_ms // step_ms * step_ms, stood)
            if began is not None and (found is None or began < found // step_ms * step_ms):
                found = began  # Else nothing older is kept, and the finer step says it better.
            if began is None or not is_whole:
                return found
        return found

    def _of_brokers(self, since_ms: int, points: int) -> Any:
        if points not in self._brokers:
            self._brokers[points] = self._history.broker_history(
                cluster=self._evidence.snapshot.cluster,
                broker=None,
                since_ms=since_ms,
                until_ms=self._now_ms,
                points_max=points,
                columns=_BROKER_COLUMNS,
            )
        return self._brokers[points]

    def _of_partitions(self, kind: str) -> int | None:
        rows = np.flatnonzero(self._evidence.statuses.flags[kind])[:PARTITIONS_MAX]
        names = self._evidence.snapshot.partitions.select(["topic", "partition"]).take(rows)
        began = [self._of_partition(kind, name) for name in names.to_pylist()]
        return min((at_ms for at_ms in began if at_ms is not None), default=None)

    def _of_partition(self, kind: str, name: Mapping[str, Any]) -> int | None:
        def stretch(since_ms: int, points: int, _: int) -> Stretch:
            table = self._history.partition_history(
                cluster=self._evidence.snapshot.cluster,
                topic=name["topic"],
                partition=name["partition"],
                since_ms=since_ms,
                until_ms=self._now_ms,
                points_max=points,
                columns=_PARTITION_COLUMNS,
            )
            return ints(table["at_ms"]), _APPLIES[kind](table)

        return self._longest(stretch)


def begin_of(at_ms: IntColumn, stood: BoolColumn) -> tuple[int | None, bool]:
    """Begin of the newest stretch (None: it does not stand at the end), and whether it reaches to
    the first time.

    Times 1, 2, 3, 4 at which it stood, did not, stood, stood: it began at 3.
    """
    if not stood.size or not stood[-1]:
        return None, False
    breaks = np.flatnonzero(~stood)
    first = int(breaks[-1]) + 1 if breaks.size else 0
    return int(at_ms[first]), not breaks.size


def skewed(table: Any, measure: str, broker: int, *, step_ms: int, is_more: bool) -> Stretch:
    """When a broker had this much more, or less, than the mean of all."""
    at_ms, brokers, values = _by_step(table, measure, step_ms)
    replicas = _by_step(table, "replicas", step_ms)[2]
    place = np.flatnonzero(brokers == broker)
    if not place.size:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    count = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    mean = np.nansum(values, axis=1) / count
    own = values[:, place[0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        skew = np.where(mean > 0, (own - mean) / mean * 100.0, 0.0)
    stood = (skew if is_more else -skew) > SKEW_PERCENT_MAX
    stood &= np.nansum(replicas, axis=1) >= SKEW_REPLICAS_MIN
    if measure == "size_bytes":
        stood &= mean >= SKEW_BYTES_MIN
    known = ~np.isnan(own)
    return at_ms[known], stood[known]


def filling(table: Any, broker: int, *, step_ms: int) -> Stretch:
    """When a broker's disks were as full as a finding needs."""
    at_ms, brokers, total = _by_step(table, "disk_total_bytes", step_ms)
    usable = _by_step(table, "disk_usable_bytes", step_ms)[2]
    place = np.flatnonzero(brokers == broker)
    if not place.size:
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    own, left = total[:, place[0]], usable[:, place[0]]
    known = ~np.isnan(own) & ~np.isnan(left) & (own > 0)
    used = (own[known] - left[known]) / own[known] * 100.0
    return at_ms[known], used >= DISK_WARNING_PERCENT


def _by_step(table: Any, column: str, step_ms: int) -> tuple[IntColumn, IntColumn, FloatColumn]:
    """Times (begins of steps), brokers, and a value for each of both; NaN where none is known."""
    broker = ints(table["broker"])
    is_one = broker != ALL_BROKERS
    steps, row = np.unique(ints(table["at_ms"])[is_one] // step_ms, return_inverse=True)
    brokers, place = np.unique(broker[is_one], return_inverse=True)
    values = np.full((len(steps), len(brokers)), np.nan)
    values[row, place] = floats(table[column])[is_one]
    return steps * step_ms, brokers, values


def _preferred(table: Any) -> IntColumn:
    texts = table["replicas"].to_pylist()
    return np.array([int((text or "-2").split()[0]) for text in texts], dtype=np.int64)


def _lacks(table: Any) -> BoolColumn:
    return ints(table["isr_count"]) < ints(table["replicas_count"])


_APPLIES: Final[Mapping[str, Callable[[Any], BoolColumn]]] = {
    "offline": lambda table: ints(table["leader"]) < 0,
    "under-min-isr": lambda table: (
        (ints(table["leader"]) >= 0) & (ints(table["isr_count"]) < floats(table["min_isr"]))
    ),
    "at-min-isr": lambda table: (
        (ints(table["leader"]) >= 0)
        & _lacks(table)
        & (ints(table["isr_count"]) == floats(table["min_isr"]))
    ),
    "under-replicated": lambda table: (ints(table["leader"]) >= 0) & _lacks(table),
    "not-preferred": lambda table: (
        (ints(table["leader"]) >= 0) & (ints(table["leader"]) != _preferred(table))
    ),
}
"""By kind, at which points of a partition it applied."""
_MEASURE_OF: Final = {f"skew-{word}": measure for measure, word in SKEW_MEASURES.items()}


def _broker_of(finding: Finding) -> int:
    return int(finding.subject.removeprefix("brokers/"))
