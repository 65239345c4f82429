"""All clusters that one installation watches, side by side: which of them needs somebody?"""

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.compute as pc

from control.model.status import GROUP_SEVERITIES, Severity
from control.model.watched_cluster import WatchedCluster
from control.views import format as text
from control.views.snapshots.overview import trouble_cell
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.tables import cells, units
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.commits import LAG_HELP
from control.views.tables.partitions import AGE_HELP, IN_HELP, OUT_HELP, PARTITIONS_HELP
from control.views.tables.rows import TONE_OF, Cell, Row, Tone


class _Watched(NamedTuple):
    cluster: WatchedCluster
    snapshot: OperatorSnapshot
    now_ms: int

    @property
    def name(self) -> str:
        return self.cluster.name or self.snapshot.headline.cluster.text

    @property
    def path(self) -> str:
        """That cluster's overview."""
        name = self.cluster.name
        return f"overview?{urlencode({'cluster': name})}" if name else "overview"


def cluster_rows(
    clusters: Iterable[tuple[WatchedCluster, OperatorSnapshot]], *, now_ms: int
) -> tuple[Row, ...]:
    """One row per cluster, in the order that is given."""
    return CLUSTERS.rows(_Watched(watched, snapshot, now_ms) for watched, snapshot in clusters)


def _known(cell: Callable[[OperatorSnapshot], Cell]) -> Callable[[_Watched], Cell]:
    """Cells that are n/a for a cluster without figures."""
    return lambda it: cells.UNKNOWN if it.snapshot.is_empty else cell(it.snapshot)


def _findings(severity: Severity) -> Callable[[_Watched], Cell]:
    def cell(snapshot: OperatorSnapshot) -> Cell:
        count = sum(finding.severity is severity for finding in snapshot.findings)
        return trouble_cell(count, TONE_OF[severity])

    return _known(cell)


def _groups(snapshot: OperatorSnapshot) -> Cell:
    """``1 STALL · 6 OK``."""
    found: list[str] = snapshot.group_table["status"].to_pylist()
    counts = {word: found.count(word) for word in GROUP_SEVERITIES if word in found}
    words = " · ".join(f"{count} {word}" for word, count in counts.items())
    worst = max((GROUP_SEVERITIES[word] for word in counts), default=Severity.FINE)
    tone = TONE_OF[worst] if worst > Severity.FINE else Tone.PLAIN
    return Cell(len(found), words or text.NONE, tone)


def _lag(it: _Watched) -> Cell:
    groups = it.snapshot.group_table.filter(pc.field("has_lag_sum") > 0)
    known = pc.sum(groups["lag_known"].cast(pa.float64(), safe=False)).as_py()
    whole = None if groups["lag_sum"].null_count else known
    return cells.sum_cell(whole, known, cells.count_cell)


def _age(it: _Watched) -> Cell:
    age_ms = it.snapshot.age_ms(it.now_ms)
    if age_ms is None:
        return cells.UNKNOWN
    tone = Tone.CRITICAL if it.snapshot.is_stale(it.now_ms) else Tone.PLAIN
    return Cell(age_ms, text.age_text(age_ms), tone)


CLUSTERS: Final = Table(
    name="clusters",
    about="A row per cluster that one installation watches",
    key=lambda it: it.name,
    path=lambda it: it.path,
    columns=(
        name_column("cluster", "cluster", rank=1, cell=worded(lambda it: it.name)),
        column("health", "health", units.TEXT, "The worst finding", rank=1,
               cell=lambda it: it.snapshot.health),
        column("critical", "critical", units.COUNT, "Findings", rank=2,
               cell=_findings(Severity.CRITICAL)),
        column("warnings", "warnings", units.COUNT,
               "Findings", rank=2, cell=_findings(Severity.WARNING)),
        column("notices", "notices", units.COUNT, "Findings", cell=_findings(Severity.NOTICE)),
        column("brokers", "brokers", units.TEXT, "Alive of registered", rank=2,
               cell=_known(lambda it: it.headline.brokers)),
        column("topics", "topics", units.COUNT, cell=_known(lambda it: it.headline.topics)),
        column("partitions", "partitions", units.COUNT, PARTITIONS_HELP, rank=2,
               cell=_known(lambda it: it.headline.partitions)),
        column("groups", "groups", units.TEXT,
               "By status, worst first", rank=2, cell=_known(_groups)),
        column("lag", "lag", units.COUNT,
               f"{LAG_HELP}; sum over all groups, ≥ while that of some is unknown", rank=2,
               cell=_lag),
        column("in_bytes", "in/s", units.BYTE_RATE, IN_HELP,
               cell=_known(lambda it: it.headline.in_bytes)),
        column("out_bytes", "out/s", units.BYTE_RATE, OUT_HELP,
               cell=_known(lambda it: it.headline.out_bytes)),
        column("age", "age", units.AGE, f"{AGE_HELP}; the newest of them", rank=1,
               cell=_age),
        column("flags", "flags", rank=2, cell=worded(lambda it: " ".join(it.cluster.flags))),
    ),
)  # fmt: skip
