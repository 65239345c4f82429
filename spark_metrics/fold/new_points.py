"""The points that a batch adds to history: the readings that it brought. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from spark_metrics.arrow_tables import conform, with_column
from spark_metrics.fold.sums import RATES, Sums, added, with_known_rates
from spark_metrics.window.history_points import ALL_BROKERS, HISTORY_TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Begin of each cluster's newest round: the time of what is not read but summed up."""

    before_ms: Mapping[str, int]
    now_ms: Mapping[str, int] = field(default_factory=dict)

    def stamped(self, table: pa.Table) -> pa.Table:
        """Rows of clusters that had a new round, with ``at_ms``."""
        at_ms = [
            now if (now := self.now_ms.get(name, 0)) > self.before_ms.get(name, 0) else None
            for name in table["cluster"].to_pylist()
        ]
        stamped = table.append_column("at_ms", pa.array(at_ms, pa.int64()))
        return stamped.filter(pc.is_valid(stamped["at_ms"]))


def partition_points(partitions: pa.Table, clocks: Clocks) -> pa.Table:
    """Points of what was read anew, and of what is offline: nobody reads that any more."""
    readings = _told(partitions, "partition_history", "is_fresh")
    silent = pc.and_(pc.invert(readings["is_fresh"]), pc.less(readings["leader"], 0))
    fresh = _only(readings, readings["is_fresh"])
    points = fresh.append_column("at_ms", fresh["read_ms"])
    if pc.any(silent).as_py():
        points = pa.concat_tables([points, clocks.stamped(readings.filter(silent))])
    for name, listed in {"isr_count": "isr", "replicas_count": "replicas"}.items():
        points = points.append_column(name, pc.list_value_length(points[listed]))
    for name in ("replicas", "isr"):
        points = with_column(points, name, id_texts(points[name]))
    return conform(points, HISTORY_TABLES["partition_history"])


def commit_points(commits: pa.Table) -> pa.Table:
    """Points of the commits that were paired anew."""
    readings = _told(commits, "commit_history", "is_fresh")
    fresh = _only(readings, readings["is_fresh"])
    return conform(fresh.append_column("at_ms", fresh["read_ms"]), HISTORY_TABLES["commit_history"])


def _told(answer: pa.Table, table: str, *further: str) -> pa.Table:
    """The columns that history keeps: the state beside them is several times as much."""
    names = dict.fromkeys(("read_ms", *further, *HISTORY_TABLES[table].names))
    return answer.select([name for name in names if name in answer.column_names])


def _only(rows: pa.Table, wanted: pa.ChunkedArray) -> pa.Table:
    """The wanted rows; usually that is all of them."""
    return rows if pc.all(wanted, min_count=0).as_py() else rows.filter(wanted)


def sum_points(sums: Sums, now: Mapping[str, pa.Table], clocks: Clocks) -> dict[str, pa.Table]:
    """Points of topics, brokers and groups, where their cluster had a new round."""
    made = {
        "topic_history": with_known_rates(sums.topics, ("cluster", "topic"), "partitions"),
        "broker_history": _broker_points(sums, now["brokers"]),
        "group_history": now["groups"],
    }
    return {
        name: conform(clocks.stamped(table), HISTORY_TABLES[name]) for name, table in made.items()
    }


def job_points(health: pa.Table, interval_ms: int) -> pa.Table:
    """The job's own health."""
    further = {"at_ms": health["written_ms"], "interval_ms": pa.array([interval_ms])}
    for name, column in further.items():
        health = health.append_column(name, column)
    return conform(health, HISTORY_TABLES["job_history"])


def id_texts(ids: pa.ChunkedArray) -> pa.ChunkedArray:
    """``101 102`` of lists of numbers."""
    return pc.binary_join(ids.cast(pa.list_(pa.string())), " ")


def _broker_points(sums: Sums, brokers: pa.Table) -> pa.Table:
    """Each registered broker with the rates of what it leads, and the sums of all."""
    led = with_known_rates(sums.leaders, ("cluster", "leader"), "led").rename_columns(
        ["cluster", "broker", "led", "led_bytes", *RATES]
    )
    kept = brokers.drop_columns(["in_bytes_per_s", "out_bytes_per_s", "directories"])
    each = kept.join(led, ["cluster", "broker"])
    names = ("replicas", "leaders", "size_bytes", "disk_total_bytes", "disk_usable_bytes")
    total = each.group_by("cluster").aggregate([(name, "sum") for name in names])
    total = total.rename_columns(["cluster", *names])
    of_all = with_known_rates(added([sums.topics], ["cluster"]), ["cluster"], "partitions")
    total = total.join(of_all.select(["cluster", *RATES]), "cluster")
    all_of_them = pa.array([ALL_BROKERS] * total.num_rows, pa.int32())
    total = total.append_column("broker", all_of_them)
    leads_nothing = pc.is_null(each["led"])
    for name in RATES:  # of nothing they are 0; of what is led they may be unknown
        each = with_column(each, name, pc.if_else(leads_nothing, 0.0, each[name]))
    return pa.concat_tables([each, total], promote_options="permissive")
