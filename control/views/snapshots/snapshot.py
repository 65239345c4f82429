"""Everything the screens show, as of one version of the store; immutable and shared by all."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from control.collector.report_writer import WatchReport
from control.kafka.connection.broker_probe import answering_brokers
from control.model.consequences import gathered
from control.model.finding import Finding, sorted_findings
from control.model.finding_rules import Evidence, find_all
from control.model.freshness import Freshness, doubtful_brokers
from control.model.ids import ClusterId, TopicPartition
from control.model.isr_age import SHORT_ISR, short_isr
from control.model.job_health import sampling_interval_ms, stale_after_ms
from control.model.snapshot import ClusterSnapshot
from control.model.status import BEHIND, INTERNAL_PREFIX, Severity
from control.move.state import OperationState
from control.views.alert_tables import NO_ALERTS, AlertsTold
from control.views.format import plural_text
from control.views.plan_costs import NO_COSTS, PlacementKey, PlanCosts
from control.views.refusals import refusals
from control.views.snapshots import overview
from control.views.snapshots.collector_findings import watch_findings
from control.views.snapshots.finding_dates import dated
from control.views.snapshots.findings_by_kind import by_kind
from control.views.snapshots.overview import Headline, HeatMap
from control.views.snapshots.store import StoreReader
from control.views.tables.brokers import BROKERS, broker_table
from control.views.tables.column import Table
from control.views.tables.commits import COMMITS, commit_table
from control.views.tables.findings import FindingRow, finding_row
from control.views.tables.groups import GROUPS, group_table
from control.views.tables.partition_parts import REPLICAS
from control.views.tables.partition_parts import segment_rows as segment_rows_of
from control.views.tables.partitions import PARTITIONS, partition_table
from control.views.tables.query import Page, SortCache, TableQuery, page_of
from control.views.tables.rows import Cell, Row, Tone
from control.views.tables.topics import TOPICS, topic_table

STORE_KIND: Final = "store-unreadable"
"""The finding that no newer figures can be read."""


@dataclass(frozen=True, kw_only=True)
class OperatorSnapshot:
    """One moment of one cluster. Tables and figures are made when first asked for, once."""

    version: int
    """Of the store; 0: there is no store yet."""
    built_ms: int
    evidence: Evidence
    findings: tuple[Finding, ...] = field(default=())
    watch: WatchReport | None = None
    """The collector's own word where the cluster is watched from outside."""
    short_isr: pa.Table = field(default_factory=SHORT_ISR.empty_table)
    """Partitions whose ISR is short, and since when (``control.model.isr_age``)."""
    is_read_only: bool = False
    """Nothing may be changed from here."""
    is_past: bool = False
    """It is of a moment that was asked for, not the newest."""
    why_empty: str = ""
    """Why nothing of that moment can be shown; empty: it can."""
    unwatched: str = ""
    """Why nobody brings figures of this cluster, and what would; empty: somebody does."""
    moves: tuple[OperationState, ...] = ()
    """Reassignments of this cluster that run, as the bus told them last."""
    alerts: AlertsTold = NO_ALERTS
    """Those of this cluster, and all silences."""
    plan_costs: PlanCosts = NO_COSTS
    """Of the plans that findings lead to."""

    @property
    def cluster(self) -> ClusterSnapshot:
        return self.evidence.snapshot

    @cached_property
    def denied_operations(self) -> Mapping[str, str]:
        """Per operation of the catalogue that may not be done here, why not and what would help."""
        return refusals(self.watch, is_read_only=self.is_read_only, is_past=self.is_past)

    def denied_words(self, operation: str) -> str:
        """Why an operation of the catalogue may not be done; empty: it may."""
        return self.denied_operations.get(operation, "")

    @property
    def is_empty(self) -> bool:
        """Nothing has been heard of any cluster yet."""
        return self.cluster.is_empty

    @property
    def interval_ms(self) -> int:
        """How often the slowest broker samples itself; 1 s until one has told."""
        return sampling_interval_ms(self.cluster)

    def age_ms(self, now_ms: int) -> int | None:
        """Since the newest figure was read at its source; None: nothing was ever read."""
        sampled = self.cluster.sampled_ms
        return None if sampled is None else max(now_ms - sampled, 0)

    def is_stale(self, now_ms: int) -> bool:
        age = self.age_ms(now_ms)
        is_old = age is None or age > stale_after_ms(self.interval_ms)
        return is_old or self.evidence.freshness.are_all_unheard

    @cached_property
    def headline(self) -> Headline:
        return overview.headline(self.evidence)

    @cached_property
    def health(self) -> Cell:
        unreadable = next((item for item in self.findings if item.kind == STORE_KIND), None)
        if unreadable is not None:
            worst = max(item.severity for item in self.findings)
            return overview.health_cell(worst, len(self.findings), words="figures cannot be read")
        if self.is_empty and not self.findings:
            return overview.NO_FIGURES
        worst = max((item.severity for item in self.findings), default=Severity.FINE)
        if self.is_empty and worst is Severity.FINE:
            return Cell(None, "nothing known", Tone.MUTED)
        return overview.health_cell(worst, len(self.findings), self.behind_count)

    @property
    def behind_count(self) -> int:
        """Groups that fall behind; none where something is worse."""
        return 0 if self.findings else self.evidence.behind_groups

    @property
    def health_path(self) -> str:
        """The view with more about ``health``; empty: there is none."""
        if self.findings:
            return "findings"
        return f"groups?q=status:{BEHIND}" if self.behind_count else ""

    @property
    def behind_words(self) -> str:
        """``2 groups fall behind (WARN)``; empty: none does."""
        verb = "falls" if self.behind_count == 1 else "fall"
        words = f"{plural_text(self.behind_count, 'group')} {verb} behind ({BEHIND})"
        return words if self.behind_count else ""

    @cached_property
    def broker_table(self) -> pa.Table:
        return broker_table(self.evidence)

    @cached_property
    def partition_table(self) -> pa.Table:
        return partition_table(self.evidence, self.short_isr)

    @cached_property
    def topic_table(self) -> pa.Table:
        return topic_table(self.partition_table, self.evidence.snapshot.commits)

    @cached_property
    def commit_table(self) -> pa.Table:
        return commit_table(self.evidence)

    @cached_property
    def group_table(self) -> pa.Table:
        return group_table(self.evidence, self.commit_table)

    @cached_property
    def orders(self) -> SortCache:
        """Orders of these tables that were asked for: pages of one table share theirs."""
        return SortCache()

    @cached_property
    def finding_rows(self) -> tuple[FindingRow, ...]:
        return tuple(map(self.finding_row, self.findings))

    def finding_row(self, finding: Finding) -> FindingRow:
        """A finding in words, with what its plan costs where that is known."""
        row = finding_row(finding, now_ms=self.built_ms)
        return self.plan_costs.on(row, lambda: self.placement)

    @cached_property
    def placement(self) -> PlacementKey | None:
        """A digest for plans; None: in the past, of old figures, and while replicas move."""
        fresh, moving = self.evidence.freshness, self.headline.moving.value
        is_vain = self.is_past or self.is_empty or fresh.are_all_unheard or moving
        return None if is_vain else PlacementKey.of(self.cluster, fresh.down)

    def job_cell(self, now_ms: int) -> Cell:
        """The metrics job in a word: how long its batches take, or that it is late."""
        return overview.job_cell(self.cluster.health, interval_ms=self.interval_ms, now_ms=now_ms)

    def heat_map(self, measure: str) -> HeatMap:
        return overview.heat_map(self.evidence, measure)


def build_snapshot(
    tables_now: Mapping[str, pa.Table],
    *,
    version: int,
    now_ms: int,
    cluster: ClusterId | None = None,
    earlier: Iterable[Finding] | None = None,
    earlier_isr: pa.Table | None = None,
    watch: WatchReport | None = None,
    history: StoreReader | None = None,
    is_read_only: bool = False,
    is_past: bool = False,
    unwatched: str = "",
    why_empty: str = "",
    answering: frozenset[int] | None = None,
    gap_since_ms: int | None = None,
    operations: Iterable[Finding] = (),
    moves: tuple[OperationState, ...] = (),
    alerts: AlertsTold = NO_ALERTS,
    plan_costs: PlanCosts = NO_COSTS,
) -> OperatorSnapshot:
    """From the store's now-tables to what the screens show.

    ``earlier`` are the findings shown so far: one that still stands keeps its date (None: nothing
    was shown); ``earlier_isr`` likewise the ``short_isr`` of the version before. ``history`` dates
    what is new. ``watch`` is the collector's report where the cluster is watched from outside.
    ``answering`` are the brokers that answer, where somebody asked them; ``operations`` the
    findings about operations, ``moves`` those that run, ``alerts`` what the bus tells of them,
    ``plan_costs`` what plans of findings cost. ``gap_since_ms``: when the figures of a past moment
    were told, where nothing was measured then.
    """
    chosen = ClusterSnapshot.from_tables(tables_now, cluster=cluster)
    # Of a past moment is shown what was heard before it; who was silent then is not kept.
    fresh = Freshness() if is_past else None
    if gap_since_ms is not None:
        fresh = Freshness.in_gap(chosen, gap_since_ms)
    evidence = Evidence.gather(chosen, now_ms=now_ms, fresh=fresh, answering=answering)
    told = () if watch is None else tuple(watch_findings(watch, now_ms=now_ms))
    found = gathered((*find_all(evidence), *told, *operations), evidence)
    findings = dated(found, earlier, evidence, history, now_ms=now_ms)
    return OperatorSnapshot(
        version=version,
        built_ms=now_ms,
        evidence=evidence,
        findings=sorted_findings(by_kind(findings)),
        watch=watch,
        short_isr=short_isr(
            chosen.partitions,
            evidence.statuses.flags["under-replicated"],
            earlier_isr,
            now_ms=now_ms,
        ),
        is_read_only=is_read_only,
        is_past=is_past,
        unwatched=unwatched,
        why_empty=why_empty,
        moves=moves,
        alerts=alerts,
        plan_costs=plan_costs,
    )


def build_snapshot_asking(
    tables_now: Mapping[str, pa.Table],
    *,
    bootstrap: str | None,
    now_ms: int,
    cluster: ClusterId | None,
    **known: Any,
) -> OperatorSnapshot:
    """As ``build_snapshot`` does; where figures are in doubt, the brokers at ``bootstrap`` are
    asked first whether they answer, for at most a second."""
    snapshot = build_snapshot(tables_now, now_ms=now_ms, cluster=cluster, **known)
    doubtful = doubtful_brokers(snapshot.cluster, now_ms=now_ms)
    answering = answering_brokers(bootstrap, doubtful, cluster_id=cluster)
    if answering is None:
        return snapshot
    return build_snapshot(tables_now, now_ms=now_ms, cluster=cluster, answering=answering, **known)


@dataclass(frozen=True, slots=True)
class _List:
    kind: Table
    table: Callable[[OperatorSnapshot], pa.Table]
    scope: str = ""
    """Column of what a list can be narrowed to: a topic, a group."""
    hidden_by: str = ""
    """Column of names that hide internal rows, where the list may leave them out."""


LISTS: Final[Mapping[str, _List]] = {
    it.kind.name: it
    for it in (
        _List(TOPICS, lambda snapshot: snapshot.topic_table, hidden_by="topic"),
        _List(PARTITIONS, lambda snapshot: snapshot.partition_table, "topic"),
        _List(BROKERS, lambda snapshot: snapshot.broker_table),
        _List(GROUPS, lambda snapshot: snapshot.group_table, hidden_by="group_id"),
        _List(COMMITS, lambda snapshot: snapshot.commit_table, "group_id"),
    )
}
"""The large tables, by the names that addresses and exports have for them."""


def list_page(
    snapshot: OperatorSnapshot,
    name: str,
    query: TableQuery | None = None,
    scope: str | None = None,
) -> Page:
    """A page of one of ``LISTS``; ``scope``: only the rows of this topic or group."""
    asked, wanted = query or TableQuery(), LISTS[name]
    table = wanted.table(snapshot)
    if scope is not None and wanted.scope:
        table = _where(table, **{wanted.scope: scope})
    hides = asked.hides_internal and wanted.hidden_by and INTERNAL_PREFIX not in asked.filter
    if hides:
        table = table.filter(pc.invert(pc.starts_with(table[wanted.hidden_by], INTERNAL_PREFIX)))
    key = (name, scope, asked.filter, asked.sort, hides)
    return page_of(table, wanted.kind, asked, known=lambda find: snapshot.orders.of(key, find))


def broker_page(snapshot: OperatorSnapshot, query: TableQuery | None = None) -> Page:
    """A page of the brokers."""
    return list_page(snapshot, "brokers", query)


def topic_page(snapshot: OperatorSnapshot, query: TableQuery | None = None) -> Page:
    """A page of the topics."""
    return list_page(snapshot, "topics", query)


def partition_page(
    snapshot: OperatorSnapshot, query: TableQuery | None = None, *, topic: str | None = None
) -> Page:
    """All partitions, or those of one topic."""
    return list_page(snapshot, "partitions", query, topic)


def group_page(snapshot: OperatorSnapshot, query: TableQuery | None = None) -> Page:
    """A page of the groups."""
    return list_page(snapshot, "groups", query)


def group_partition_page(
    snapshot: OperatorSnapshot, query: TableQuery | None = None, *, group: str
) -> Page:
    """A page of the partitions that a group has committed or owns, the worst first."""
    return list_page(snapshot, "lags", query, group)


def groups_of_partition(snapshot: OperatorSnapshot, name: TopicPartition) -> tuple[Row, ...]:
    """The groups that read this partition."""
    table = _where(snapshot.commit_table, topic=name.topic, partition=name.partition)
    table = table.sort_by([("rank", "ascending"), ("lag", "descending"), ("group_id", "ascending")])
    return COMMITS.rows(table.to_pylist())


def partition_row(snapshot: OperatorSnapshot, name: TopicPartition) -> Row | None:
    """One partition; None when it does not exist."""
    record = partition_record(snapshot, name)
    return None if record is None else PARTITIONS.row(record)


def partition_record(snapshot: OperatorSnapshot, name: TopicPartition) -> dict[str, Any] | None:
    """The partition's row of ``partition_table`` with raw values; None: no such partition."""
    table = _where(snapshot.partition_table, topic=name.topic, partition=name.partition)
    rows: list[dict[str, Any]] = table.slice(0, 1).to_pylist()
    return rows[0] if rows else None


def segment_rows(snapshot: OperatorSnapshot, name: TopicPartition) -> tuple[Row, ...]:
    """The newest segments of a partition's leader, oldest first; empty where unknown."""
    record = partition_record(snapshot, name)
    return () if record is None else segment_rows_of(record)


def replica_rows(snapshot: OperatorSnapshot, name: TopicPartition) -> tuple[Row, ...]:
    """One per assigned replica, in assignment order; what its broker did not report is n/a."""
    record = partition_record(snapshot, name)
    if record is None:
        return ()
    found = _where(snapshot.cluster.replicas, topic=name.topic, partition=name.partition)
    reported = {row["broker"]: row for row in found.to_pylist()}
    known = snapshot.broker_table.select(["broker", "rack"]).to_pylist()
    racks = {row["broker"]: row["rack"] for row in known}
    return REPLICAS.rows(
        {
            **(told := {**_UNREPORTED, **reported.get(broker, {})}),
            "broker": broker,
            "rack": racks.get(broker),
            "is_leader": broker == record["leader"],
            "is_in_sync": broker in record["isr"],
            "is_preferred": place == 0,
            "age_ms": None if (at := told["read_ms"]) is None else max(snapshot.built_ms - at, 0),
        }
        for place, broker in enumerate(record["replicas"])
    )


_UNREPORTED = dict.fromkeys(("log_end_offset", "size_bytes", "segments", "follower_lag", "read_ms"))


def _where(table: pa.Table, **wanted: str | int) -> pa.Table:
    for column, value in wanted.items():
        table = table.filter(pc.equal(table[column], value))
    return table
