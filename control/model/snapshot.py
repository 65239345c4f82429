"""One cluster at one moment, in columns.

A snapshot holds the now-tables of the metrics store for one cluster and nothing per row: four
hundred thousand replicas as Python objects would neither fit nor move. Everything here is pure;
every question is answered over whole columns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import IntColumn, look_up, partition_keys, text_mask
from control.model.ids import ClusterId, TopicPartition
from spark_metrics.window.aggregates import NOW_TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHealth:
    """How the metrics job fared in its newest batch. Times in milliseconds, UTC."""

    batch_id: int
    batch_ms: int
    records: int
    bad_records: int
    bad_records_total: int
    bad_rows: Sequence[str] | None = None
    """The newest rows that were left out: which, and why."""
    lost_records_total: int | None = None
    """Samples that were gone from the topic before the job read them."""
    late_rounds_total: int | None = None
    records_per_s: float | None = None
    delay_ms: int | None = None
    """From the newest round's begin until it was in the store."""
    catch_up_rate: float | None = None
    """Event time that its last batches took in, per time: 1 where it is in time."""
    state_rows: int | None = None
    """Replicas and commits that the job remembers."""
    newest_round_ms: int | None
    clock_skew_ms: int | None = None
    """The clock of the job's host less the job's time, where it is off."""
    written_ms: int


@dataclass(frozen=True, kw_only=True)
class ClusterSnapshot:
    """The now-tables of one cluster (schemas: ``spark_metrics.window.aggregates``)."""

    cluster: ClusterId
    brokers: pa.Table
    partitions: pa.Table
    replicas: pa.Table
    commits: pa.Table
    groups: pa.Table
    health: JobHealth | None = None

    @classmethod
    def from_tables(
        cls, tables: Mapping[str, pa.Table], *, cluster: ClusterId | None = None
    ) -> "ClusterSnapshot":
        """Take one cluster out of the store's tables.

        A table that is missing counts as empty. Without ``cluster``, the cluster with the most
        rows is taken (the first by name among equals).
        """
        full = {name: tables.get(name, schema.empty_table()) for name, schema in NOW_TABLES.items()}
        chosen = cluster if cluster is not None else _main_cluster(full)
        own = {name: _rows_of(full[name], chosen) for name in NOW_TABLES if name != "health"}
        return cls(cluster=chosen, health=_job_health(full["health"]), **own)

    @cached_property
    def commit_places(self) -> IntColumn:
        """Row of ``partitions`` that each row of ``commits`` is about, -1 where it is not there."""
        return look_up(*partition_keys(self.commits, self.partitions))

    @property
    def is_empty(self) -> bool:
        """Nothing of it was ever told."""
        return bool(self.brokers.num_rows == 0 and self.partitions.num_rows == 0)

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """All registered brokers, in order; empty and dead ones too."""
        return tuple(sorted(self.brokers["broker"].to_pylist()))

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(pc.unique(self.partitions["topic"]).to_pylist()))

    @property
    def sampled_ms(self) -> int | None:
        """When the newest of all figures was read at its source; None: nothing was."""
        newest = pc.max(self.brokers["sampled_ms"]).as_py()
        fallback = pc.max(self.partitions["read_ms"]).as_py()
        times = [at for at in (newest, fallback) if at is not None]
        return max(times) if times else None

    def partition(self, name: TopicPartition) -> dict[str, Any] | None:
        """One row of the partitions table, or None when there is no such partition."""
        mask = pc.and_(
            pc.equal(self.partitions["topic"], name.topic),
            pc.equal(self.partitions["partition"], name.partition),
        )
        rows: list[dict[str, Any]] = self.partitions.filter(mask).slice(0, 1).to_pylist()
        return rows[0] if rows else None

    def with_move(self, moves: Mapping[TopicPartition, Sequence[int]]) -> "ClusterSnapshot":
        """The cluster as it will be when these partitions have these replicas.

        The leader stays where it is as long as that broker keeps a replica; else the new
        preferred one leads (Kafka's rule for reassignments). All replicas are taken to be in
        sync by then, and a partition without a leader stays without one.
        Partitions that do not exist are ignored.
        """
        columns = {
            name: self.partitions[name].to_pylist()
            for name in ("topic", "partition", "replicas", "isr", "leader")
        }
        added, removed = (
            self.partitions[f"{kind}_replicas"].to_pylist() for kind in ("adding", "removing")
        )
        names = zip(columns["topic"], columns["partition"], strict=True)
        for row, name in enumerate(names):
            target = moves.get(TopicPartition(*name))
            if target is None:
                continue
            columns["replicas"][row] = columns["isr"][row] = list(target)
            added[row] = removed[row] = []
            columns["leader"][row] = _leader_after(columns["leader"][row], target)
        columns |= {"adding_replicas": added, "removing_replicas": removed}
        return replace(self, partitions=_with_columns(self.partitions, columns))


def _leader_after(leader: int, target: Sequence[int]) -> int:
    return leader if leader < 0 or leader in target else target[0]


def _with_columns(table: pa.Table, columns: Mapping[str, list[Any]]) -> pa.Table:
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        field = table.schema.field(name)
        table = table.set_column(place, field, pa.array(values, field.type))
    return table


def _rows_of(table: pa.Table, cluster: ClusterId) -> pa.Table:
    is_own = text_mask(table["cluster"], cluster)
    # Mostly a store knows one cluster: a second copy of everything would be for nothing.
    own = table if pc.all(is_own).as_py() else table.filter(is_own)
    return own.combine_chunks()


def _main_cluster(tables: Mapping[str, pa.Table]) -> ClusterId:
    weights: dict[str, int] = {}
    for name in ("brokers", "partitions", "commits", "groups"):
        for item in pc.value_counts(tables[name]["cluster"]).to_pylist():
            if item["values"] is not None:
                weights[item["values"]] = weights.get(item["values"], 0) + item["counts"]
    best = min(weights, key=lambda name: (-weights[name], name), default="")
    return ClusterId(best)


def _job_health(table: pa.Table) -> JobHealth | None:
    """The one row of ``health``; columns that this version does not know are left out."""
    known = [item.name for item in fields(JobHealth) if item.name in table.schema.names]
    rows = table.select(known).slice(0, 1).to_pylist()
    return JobHealth(**rows[0]) if rows else None
