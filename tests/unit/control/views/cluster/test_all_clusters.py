"""Several clusters side by side: each row tells one, and nothing is made up for a silent one."""

from pathlib import Path

from control.model.finding import Finding
from control.model.status import Severity
from control.model.watched_cluster import WatchedCluster
from control.views.cluster.all_clusters import CLUSTERS, cluster_rows
from control.views.snapshots.snapshot import build_snapshot
from control.views.tables.rows import Tone
from spark_metrics.window.aggregates import AggregatesReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes

NOW_MS = 1_795_000_000_000


def test_a_row_tells_what_its_cluster_is_like(tmp_path: Path) -> None:
    sizes = SyntheticSizes(topics=3, partitions=4, groups=2)
    StoreBuilder(tmp_path).write_synthetic(sizes, history_s=30, at_ms=NOW_MS)
    found = AggregatesReader(str(tmp_path)).now()
    assert found is not None
    full = build_snapshot(found.tables, version=1, now_ms=NOW_MS)
    prod = WatchedCluster(name="prod", is_production=True, is_read_only=True)
    silent = build_snapshot({}, version=0, now_ms=NOW_MS)
    rows = cluster_rows(((prod, full), (WatchedCluster(name="new"), silent)), now_ms=NOW_MS)

    told, unknown = rows
    assert told.path == "overview?cluster=prod"
    assert (told.topics.value, told.partitions.value, told.groups.value) == (3, 12, 2)
    assert told.brokers.text == full.headline.brokers.text
    assert told.critical.value == _count(full.findings, Severity.CRITICAL)
    assert told.warnings.value == _count(full.findings, Severity.WARNING)
    assert told.lag.value == sum(filter(None, full.group_table["lag_sum"].to_pylist()))
    assert sum(int(part.split()[0]) for part in told.groups.text.split(" · ")) == 2
    assert told.flags.text == "PRODUCTION read-only"
    assert told.age.tone is Tone.PLAIN
    (late,) = cluster_rows([(prod, full)], now_ms=NOW_MS + 3_600_000)
    assert late.age.tone is Tone.CRITICAL

    assert unknown.health.text == "no figures yet"
    figures = ("brokers", "topics", "partitions", "groups", "lag", "in_bytes", "age")
    assert {unknown.cell(name).value for name in figures} == {None}, "unknown, and not 0"
    assert {column.id for column in CLUSTERS.columns} == {name for name, _ in told.cells.items()}


def _count(findings: tuple[Finding, ...], severity: Severity) -> int:
    return sum(finding.severity is severity for finding in findings)
