"""The overview: the cluster in one line, its brokers, its groups, its heat map."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import pyarrow.compute as pc

from control.model.columns import FloatColumn, floats
from control.model.finding_rules import Evidence
from control.model.job_health import stale_after_ms
from control.model.load import BrokerLoads, sum_of_rates
from control.model.snapshot import JobHealth
from control.model.status import INTERNAL_PREFIX, Severity
from control.views import format as text
from control.views.tables import cells
from control.views.tables.cells import UNKNOWN, count_cell
from control.views.tables.rows import Cell, Tone
from spark_metrics.window.totals import has_lag

HEAT_TOPICS_MAX: Final = 60
"""The heat map shows the topics with the most of what is measured; the rest is their sum."""
REST: Final = "(other topics)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The top bar: one line on the cluster."""

    cluster: Cell
    brokers: Cell
    """``3/3 brokers``: alive of registered."""
    controller: Cell
    topics: Cell
    partitions: Cell
    replicas: Cell
    size_bytes: Cell
    in_bytes: Cell
    out_bytes: Cell
    in_records: Cell
    under_replicated: Cell
    offline: Cell
    moving: Cell
    """``3 partitions moving``, by whomever; empty where none is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """``values[broker][topic]`` of one measure; NaN where the broker holds nothing of it, or the
    value is unknown."""

    measure: str
    brokers: Sequence[int]
    topics: Sequence[str]
    values: Sequence[Sequence[float]]
    lacks: Sequence[Sequence[bool]] = ()
    """Whether parts of a value are unknown, so that it is a least; empty: of none."""

    def words(self, to_text: Callable[[float], str]) -> list[list[str]]:
        """The values in words, empty where there is nothing."""
        lacks = self.lacks or [[False] * len(row) for row in self.values]
        return [
            [_heat_words(*cell, to_text) for cell in zip(*rows, strict=True)]
            for rows in zip(self.values, lacks, strict=True)
        ]


def _heat_words(value: float, lacks: bool, to_text: Callable[[float], str]) -> str:
    if math.isnan(value):
        return text.NA if lacks else ""
    return f"{text.AT_LEAST if lacks else ''}{to_text(value)}"


NO_FIGURES: Final = Cell(None, "no figures yet", Tone.MUTED)
"""The health of a cluster of which nothing was told."""


def headline(evidence: Evidence) -> Headline:
    """The top bar's figures; n/a where nothing was ever told."""
    snapshot, loads = evidence.snapshot, evidence.loads
    statuses = evidence.statuses
    if snapshot.is_empty:
        named = Cell(snapshot.cluster, snapshot.cluster or text.NONE)
        every = {item.name: UNKNOWN for item in fields(Headline)}
        return Headline(**{**every, "cluster": named})
    return Headline(
        cluster=Cell(snapshot.cluster, snapshot.cluster or text.NONE),
        brokers=_brokers_cell(evidence),
        controller=_controller_cell(evidence),
        topics=count_cell(len(snapshot.topics)),
        partitions=count_cell(snapshot.partitions.num_rows),
        replicas=count_cell(len(evidence.placement.row)),
        size_bytes=_bytes_cell(loads),
        in_bytes=cells.byte_rate_cell(_rate(evidence, "in_bytes_per_s")),
        out_bytes=cells.byte_rate_cell(_rate(evidence, "out_bytes_per_s")),
        in_records=cells.record_rate_cell(_rate(evidence, "in_records_per_s")),
        under_replicated=trouble_cell(statuses.count("under-replicated"), Tone.WARNING),
        offline=trouble_cell(statuses.count("offline"), Tone.CRITICAL),
        moving=_moving_cell(statuses.count("moving")),
    )


def _moving_cell(count: int) -> Cell:
    words = f"{text.plural_text(count, 'partition')} moving" if count else ""
    return Cell(count, words, Tone.NOTICE)


def health_cell(worst: Severity, count: int, behind: int = 0, *, words: str = "") -> Cell:
    """The badge of the whole: worst finding's severity, and how many findings there are; where
    there is none, how many groups fall ``behind``. ``words``: what is told instead of a count."""
    if worst is Severity.FINE and behind:
        words = f"{text.plural_text(behind, 'group')} {'warns' if behind == 1 else 'warn'}"
        return Cell(int(worst), words, Tone.MUTED)
    tones = {
        Severity.FINE: (Tone.FINE, "all well"),
        Severity.NOTICE: (Tone.NOTICE, text.plural_text(count, "notice")),
        Severity.WARNING: (Tone.WARNING, text.plural_text(count, "finding")),
        Severity.CRITICAL: (Tone.CRITICAL, text.plural_text(count, "finding")),
    }
    tone, counted = tones[worst]
    return Cell(int(worst), words or counted, tone)


def job_cell(health: JobHealth | None, *, interval_ms: int, now_ms: int) -> Cell:
    """``job 0.3 s`` (its newest batch), ``job late 42 s`` when nothing was written since."""
    if health is None:
        return Cell(None, "no metrics job yet", Tone.MUTED)
    late_ms = now_ms - health.written_ms
    if late_ms > stale_after_ms(interval_ms):
        return Cell(late_ms, f"job late {text.duration_text(late_ms)}", Tone.CRITICAL)
    return Cell(health.batch_ms, f"job {text.duration_text(health.batch_ms)}", Tone.FINE)


def heat_map(evidence: Evidence, measure: str) -> HeatMap:
    """Broker x topic, for ``replicas``, ``leaders``, ``size_bytes``, ``in_bytes_per_s`` or
    ``lag`` (of all groups, where the leader is: which broker carries what waits)."""
    placed, loads = evidence.placement, evidence.loads
    encoded = evidence.snapshot.partitions["topic"].combine_chunks().dictionary_encode()
    names: list[str] = encoded.dictionary.to_pylist()
    topic = np.asarray(encoded.indices)[placed.row] if len(placed.row) else placed.row
    amount = _amounts(evidence, measure)
    held = np.isin(placed.broker, loads.brokers)
    row = np.searchsorted(loads.brokers, placed.broker[held])
    shape = len(loads.brokers), len(names)
    cell, amount = row * shape[1] + topic[held], amount[held]
    parts = (np.nan_to_num(amount), np.isnan(amount))
    grid = np.stack(
        [np.bincount(cell, each, shape[0] * shape[1]).reshape(shape) for each in parts]
    ).astype(np.float64)
    return _trimmed(measure, [int(item) for item in loads.brokers], names, grid)


def _amounts(evidence: Evidence, measure: str) -> FloatColumn:
    placed = evidence.placement
    if measure == "replicas":
        return np.ones(len(placed.row))
    if measure == "leaders":
        return placed.is_leader.astype(np.float64)
    if measure == "size_bytes":
        return placed.size_bytes
    if measure == "lag":
        return np.where(placed.is_leader, _lag_by_partition(evidence)[placed.row], 0.0)
    rates = floats(evidence.snapshot.partitions[measure])[placed.row]
    return np.where(placed.is_leader, rates, 0.0)


def _lag_by_partition(evidence: Evidence) -> FloatColumn:
    """Records that wait in each partition, for all groups that committed there together; NaN where
    the lag of one of them is unknown."""
    commits, partitions = evidence.snapshot.commits, evidence.snapshot.partitions
    place = evidence.snapshot.commit_places
    found = (place >= 0) & has_lag(commits).to_numpy()
    lag = floats(commits["lag"])[found]
    return np.bincount(place[found], weights=lag, minlength=partitions.num_rows).astype(np.float64)


def _trimmed(
    measure: str, brokers: Sequence[int], names: Sequence[str], grid: FloatColumn
) -> HeatMap:
    """``grid``: what is known of each cell, and how many of its parts are unknown."""
    most = grid[0].sum(axis=0)
    order = sorted(range(len(names)), key=lambda place: (-most[place], names[place]))
    shown, rest = (
        sorted(order[:HEAT_TOPICS_MAX], key=lambda place: _place_of(names[place])),
        order[HEAT_TOPICS_MAX:],
    )
    columns = [grid[:, :, place] for place in shown]
    topics = [names[place] for place in shown]
    if rest:
        columns.append(grid[:, :, rest].sum(axis=2))
        topics.append(REST)
    known, unknown = np.stack(columns, axis=2) if columns else np.zeros((2, len(brokers), 0))
    return HeatMap(
        measure=measure,
        brokers=brokers,
        topics=topics,
        values=np.where(known > 0, known, np.nan).tolist(),
        lacks=(unknown > 0).tolist(),
    )


def _place_of(topic: str) -> tuple[bool, str]:
    """By name, topics of bookkeeping last, as in the lists."""
    return topic.startswith(INTERNAL_PREFIX), topic


def _rate(evidence: Evidence, name: str) -> float | None:
    """The cluster's rate, over all partitions."""
    if evidence.freshness.are_all_unheard:
        return None
    return sum_of_rates(floats(evidence.snapshot.partitions[name]))


def _brokers_cell(evidence: Evidence) -> Cell:
    """``2/3 brokers`` of those that are registered; whoever is silent is not said to be alive."""
    registered, fresh = evidence.snapshot.brokers.num_rows, evidence.freshness
    heard = registered - len(fresh.lost)
    words = "brokers heard" if fresh.silent else "brokers"
    tone = Tone.CRITICAL if fresh.lost else Tone.PLAIN
    return Cell(heard, f"{heard}/{registered} {words}", tone)


def _controller_cell(evidence: Evidence) -> Cell:
    snapshot = evidence.snapshot
    if evidence.freshness.are_all_unheard:
        return Cell(None, "controller not known")
    mask = pc.fill_null(snapshot.brokers["is_controller"], False)
    ids = snapshot.brokers.filter(mask)["broker"].to_pylist()
    return Cell(ids[0], f"controller {ids[0]}") if ids else Cell(None, "no controller")


def trouble_cell(count: int, tone: Tone) -> Cell:
    """A number of things that should be none."""
    return Cell(count, text.count_text(count), tone if count else Tone.FINE)


def _bytes_cell(loads: BrokerLoads) -> Cell:
    known = loads.known_bytes[~np.isnan(loads.known_bytes)]
    total = float(known.sum()) if known.size or not loads.brokers.size else None
    is_whole = not np.isnan(loads.size_bytes).any()
    return cells.sum_cell(total if is_whole else None, total, cells.bytes_cell)
