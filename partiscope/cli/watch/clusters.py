"""``partiscope clusters``: all watched clusters side by side, for a terminal line or a script."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from control.model.watched_cluster import WatchedCluster
from control.views.cluster.all_clusters import CLUSTERS, cluster_rows
from control.views.snapshots.collector_findings import read_reports
from control.views.snapshots.snapshot import OperatorSnapshot, build_snapshot_asking
from control.views.tables.rows import Cell, Row
from partiscope.cli.shared.exits import CommandError, Exit
from partiscope.cli.shared.options import Data, Json, Store, target_with, write_json
from partiscope.cli.shared.tables import room, write_rows
from partiscope.identity import Target
from spark_metrics.window.aggregates import AggregatesReader, StoreUnreadableError

ASKED_AT_ONCE_MAX = 8
"""Clusters whose brokers are asked side by side; one that is down may take a second."""
_WORDS = frozenset({"health", "groups", "brokers", "flags"})
"""Columns whose text says more than their value."""


def clusters(store: Store = None, data: Data = None, as_json: Json = False) -> None:
    """Every watched cluster: health, findings, brokers, partitions, groups by status, lag, age."""
    target = target_with(data=data, store=store)
    now_ms = time.time_ns() // 1_000_000
    snapshots = _snapshots(target, now_ms)
    built_ms = max((snapshot.built_ms for _, snapshot in snapshots), default=now_ms)
    rows = cluster_rows(snapshots, now_ms=built_ms)
    if as_json:
        write_json({"clusters": [_document(row.cells) for row in rows]})
        return
    write_rows(CLUSTERS.columns, [row if room() else _for_programs(row) for row in rows])


def _for_programs(row: Row) -> Row:
    """``3/3`` and ``STALL:1,OK:6``: one word a cell."""
    alive, groups = row.brokers.text.split(" ")[0], row.groups.text.split(" · ")
    told = (":".join(reversed(it.split(" "))) for it in groups)
    return row.with_cells(
        brokers=Cell(alive, alive), groups=replace(row.groups, text=",".join(told))
    )


def _document(cells: Mapping[str, Cell]) -> dict[str, Any]:
    return {name: cell.text if name in _WORDS else cell.value for name, cell in cells.items()}


def _snapshots(target: Target, now_ms: int) -> list[tuple[WatchedCluster, OperatorSnapshot]]:
    try:
        aggregates = AggregatesReader(target.store).now()
    except StoreUnreadableError as error:
        raise CommandError(str(error), Exit.UNREACHABLE) from error
    is_collected = any(watched.is_collected for watched in target.clusters)
    reports = read_reports(target.bus) if is_collected and target.bus is not None else {}
    tables, version = ({}, 0) if aggregates is None else (aggregates.tables, aggregates.version)
    skew_ms = 0 if aggregates is None else aggregates.clock_skew_ms

    def snapshot_of(watched: WatchedCluster) -> OperatorSnapshot:
        return build_snapshot_asking(
            tables,
            bootstrap=watched.bootstrap,
            version=version,
            now_ms=now_ms - skew_ms,
            cluster=watched.cluster_id,
            watch=reports.get(watched.cluster_id or ""),
        )

    with ThreadPoolExecutor(ASKED_AT_ONCE_MAX) as threads:
        return list(zip(target.clusters, threads.map(snapshot_of, target.clusters), strict=True))
