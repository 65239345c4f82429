"""All clusters that one installation watches, side by side: which of them needs somebody?"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import pyarrow.compute as pc

from control.model.fleet import WatchedCluster
from control.model.status import GROUP_SEVERITIES, Severity
from control.views import format as text
from control.views.cluster.overview import trouble_cell
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables import row_builders
from control.views.tables.column import Column
from control.views.tables.rows import TONE_OF, Cell, Row, Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow(Row):
    """One cluster; its path is that cluster's overview."""

    cluster: Cell
    health: Cell
    critical: Cell
    warnings: Cell
    notices: Cell
    brokers: Cell
    topics: Cell
    partitions: Cell
    groups: Cell
    lag: Cell
    in_bytes: Cell
    out_bytes: Cell
    age: Cell
    flags: Cell


CLUSTER_COLUMNS: Final = (
    Column(id="cluster", title="cluster", is_number=False, rank=1, is_long=True),
    Column(id="health", title="health", why="The worst finding", is_number=False, rank=1),
    Column(id="critical", title="critical", why="Findings", rank=2),
    Column(id="warnings", title="warnings", why="Findings", rank=2),
    Column(id="notices", title="notices", why="Findings"),
    Column(id="brokers", title="brokers", why="Alive of registered", is_number=False, rank=2),
    Column(id="topics", title="topics"),
    Column(id="partitions", title="partitions", rank=2),
    Column(id="groups", title="groups", why="By status, worst first", is_number=False, rank=2),
    Column(id="lag", title="lag", why="Sum over all groups", rank=2),
    Column(id="in_bytes", title="in/s", why="Bytes per second that producers append"),
    Column(id="out_bytes", title="out/s", why="Bytes per second that consumers read"),
    Column(id="age", title="age", why="Since the newest figure was read at its source", rank=1),
    Column(id="flags", title="flags", is_number=False, rank=2),
)


def cluster_rows(
    clusters: Iterable[tuple[WatchedCluster, OperatorSnapshot]], *, now_ms: int
) -> tuple[ClusterRow, ...]:
    """One row per cluster, in the order that is given."""
    return tuple(_row(watched, snapshot, now_ms) for watched, snapshot in clusters)


def _row(watched: WatchedCluster, snapshot: OperatorSnapshot, now_ms: int) -> ClusterRow:
    head, is_known = snapshot.headline, not snapshot.is_empty
    count = snapshot.cluster.partitions.num_rows
    name = watched.name or head.cluster.text
    query = f"?{urlencode({'cluster': watched.name})}" if watched.name else ""
    flags = " ".join(watched.flags)
    unknown = Cell(None, text.NA, Tone.MUTED)
    return ClusterRow(
        key=name,
        path=f"overview{query}",
        cluster=Cell(name, name),
        health=snapshot.health,
        critical=_findings(snapshot, Severity.CRITICAL) if is_known else unknown,
        warnings=_findings(snapshot, Severity.WARNING) if is_known else unknown,
        notices=_findings(snapshot, Severity.NOTICE) if is_known else unknown,
        brokers=head.brokers if is_known else unknown,
        topics=head.topics if is_known else unknown,
        partitions=Cell(count, text.count_text(count)) if is_known else unknown,
        groups=_groups(snapshot) if is_known else unknown,
        lag=row_builders.count_cell(pc.sum(snapshot.group_table["lag_sum"]).as_py()),
        in_bytes=head.in_bytes if is_known else unknown,
        out_bytes=head.out_bytes if is_known else unknown,
        age=_age(snapshot, now_ms),
        flags=Cell(flags, flags or text.NONE),
    )


def _findings(snapshot: OperatorSnapshot, severity: Severity) -> Cell:
    count = sum(finding.severity is severity for finding in snapshot.findings)
    return trouble_cell(count, TONE_OF[severity])


def _groups(snapshot: OperatorSnapshot) -> Cell:
    """``1 STALL · 6 OK``."""
    found: list[str] = snapshot.group_table["status"].to_pylist()
    counts = {word: found.count(word) for word in GROUP_SEVERITIES if word in found}
    words = " · ".join(f"{count} {word}" for word, count in counts.items())
    worst = max((GROUP_SEVERITIES[word] for word in counts), default=Severity.FINE)
    tone = TONE_OF[worst] if worst > Severity.FINE else Tone.PLAIN
    return Cell(len(found), words or text.NONE, tone)


def _age(snapshot: OperatorSnapshot, now_ms: int) -> Cell:
    age_ms = snapshot.age_ms(now_ms)
    if age_ms is None:
        return Cell(None, text.NA, Tone.MUTED)
    tone = Tone.CRITICAL if snapshot.is_stale(now_ms) else Tone.PLAIN
    return Cell(age_ms, text.age_text(age_ms), tone)
