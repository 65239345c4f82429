"""The table of groups: a row per consumer group, summed up from its partitions."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import floats, ints
from control.model.finding_rules import Evidence
from control.model.ids import path_segment
from control.model.status import GROUP_SEVERITIES, NO_COMMIT, RANKS, UNJUDGED, words_of
from control.views.format import NA, count_text, plural_text
from control.views.tables import arrow, cells, units
from control.views.tables.cells import NEVER_MS
from control.views.tables.column import Table, column, name_column, worded
from control.views.tables.commits import (
    CLEARS_HELP,
    CONSUMES_HELP,
    LAG_HELP,
    LAG_TIME_HELP,
    LOSES_HELP,
    VELOCITY_HELP,
    clears_ms,
)
from control.views.tables.filters import FieldKind, FilterField
from control.views.tables.partitions import PARTITIONS_HELP, STATUSES
from control.views.tables.rows import Cell, Tone
from spark_metrics.window.totals import aggregated, stands_for_all

FOREVER_MS: Final = -1
"""Retention of a topic that deletes nothing by age."""
Record = Mapping[str, Any]


def _if_lagging(cell: Callable[[Record], Cell]) -> Callable[[Record], Cell]:
    """Cells that show – for a group that has no lag: without a commit within its log."""
    return lambda record: cell(record) if record["has_lag_sum"] else cells.NOTHING


def _lag_cell(record: Record) -> Cell:
    """Records behind the start offset of a share group may be acknowledged already: where its
    broker tells no lag, at most so many are left."""
    cell = cells.sum_cell(record["lag_sum"], record["lag_known"], cells.count_cell)
    is_bound = record["is_bound_any"] and cell.value is not None
    return cells.at_most(cell) if is_bound else cell


def _lag_time_cell(record: Record) -> Cell:
    """The time lag of the partition that is furthest behind; of others it may be unknown."""
    return cells.sum_cell(record["lag_ms"], record["lag_ms_max"] or None, cells.lag_time_cell)


def _loses_cell(record: Record) -> Cell:
    """The soonest of the partitions that tell; others may lose records sooner."""
    cell = cells.loses_cell(record["retention_risk_ms_min"], record["waiting_sum"])
    if not record["loss_is_open_any"]:
        return cell
    return cells.UNKNOWN if cell.value is None else cells.at_most(cell)


def _epoch_cell(record: Record) -> Cell:
    """``7``; ``7, assigned 6`` while a rebalance computes the new assignment."""
    group, assignment = record["group_epoch"], record["assignment_epoch"]
    if group is None:
        return cells.NOTHING
    cell = cells.count_cell(group)
    if assignment is None or assignment >= group:
        return cell
    return Cell(group, f"{cell.text}, assigned {count_text(assignment)}", Tone.WARNING)


GROUPS: Final = Table(
    name="groups",
    about="A row per group of any type, summed up from its partitions",
    key=lambda record: record["group_id"],
    path=lambda record: f"groups/{path_segment(record['group_id'])}",
    searched="group_id",
    example="lag>10000 status:STOP loses<1d",
    columns=(
        name_column("group", "group", rank=1, source="group_id", filter="group"),
        column("status", "status", units.TEXT,
               "The worst of its partitions", rank=1, source="verdict",
               sort="judged_rank", cell=lambda record: cells.group_status_cell(record["status"]),
               filter="status", filter_on=STATUSES),
        column("lag", "lag", units.COUNT,
               f"{LAG_HELP}; sum over its partitions, ≥ while the lag of some is unknown "
               "(lag:unknown), ≤ where no broker tells the lag of a share group",
               rank=1, source="lag_sum", cell=_if_lagging(_lag_cell), filter="lag"),
        column("lag_time", "time lag", units.DURATION,
               f"{LAG_TIME_HELP}; of the partition furthest behind, ≥ while some are unknown",
               rank=2, source="lag_ms", cell=_if_lagging(_lag_time_cell),
               filter="time"),
        column("velocity", "lag trend", units.RECORD_RATE,
               f"{VELOCITY_HELP}; sum over its partitions", rank=2, source="trend_per_s",
               cell=_if_lagging(
                   lambda it: cells.velocity_cell(it["trend_per_s"], it["lag_known"])),
               filter="trend"),
        column("clears", "clears in", units.DURATION,
               f"{CLEARS_HELP}; lag over lag trend", rank=2, source="clears_ms",
               cell=_if_lagging(lambda it: cells.clears_cell(it["clears_ms"], it["status"])),
               filter="clears"),
        column("loses", "data loss in", units.DURATION,
               f"{LOSES_HELP}; the partition nearest to it",
               rank=2, source="retention_risk_ms_min",
               cell=_if_lagging(_loses_cell),
               filter="loses", is_time_left=True),
        column("consumed", "consumes", units.RECORD_RATE, CONSUMES_HELP,
               source="consumed_per_s",
               cell=_if_lagging(lambda it: cells.record_rate_cell(it["consumed_per_s"])),
               filter="consumes"),
        column("members", "members", units.COUNT, rank=2, filter="members"),
        column("partitions", "partitions", units.COUNT,
               f"{PARTITIONS_HELP}; that it committed or owns", source="partition_count",
               filter="partitions"),
        name_column("topics", "topics", filter="topic",
                    cell=worded(lambda it: it["topics"])),
        column("type", "type", units.TEXT, "Classic, consumer, share or streams",
               source="group_type", cell=worded(lambda it: it["group_type"], missing=NA),
               filter="type"),
        column("state", "state", units.TEXT, "As its coordinator says", filter="state"),
        column("epoch", "epoch", units.TEXT,
               "Group epoch; an older assignment epoch while it rebalances",
               source="group_epoch", cell=_epoch_cell,
               filter_on=FilterField("group_epoch", FieldKind.NUMBER)),
        column("assignor", "assignor", units.TEXT, "Chosen by the members or the coordinator",
               source="protocol", cell=worded(lambda it: it["protocol"]), filter="assignor"),
        column("rests_on", "rests on", units.TEXT, "Partitions with a known verdict"),
        name_column("status_unknown_because", "no verdict because",
                    "For the first partition without one",
                    source="unjudged", cell=worded(lambda it: it["unjudged"]), is_exception=True),
    ),
    unlisted=(
        column("slowest", "slowest clears in", units.DURATION,
               "When the slowest partition's lag reaches 0 at its pace", source="slowest_ms",
               cell=_if_lagging(lambda it: cells.clears_cell(it["slowest_ms"], it["status"])),
               filter="slowest"),
    ),
)  # fmt: skip


def group_table(evidence: Evidence, commits: pa.Table) -> pa.Table:
    """One row per group, those that never committed included; worst first, then most lag.

    Sums are over the partitions that have a lag: those with a commit within their log.
    """
    grouped = _grouped(evidence, commits)
    told = ["group_id", "state", "protocol", "members", "group_type", "group_epoch",
            "assignment_epoch"]  # fmt: skip
    known = evidence.snapshot.groups.select(told)
    joined = known.join(grouped, "group_id", join_type="full outer").combine_chunks()
    has_commit = ints(joined["committed_offset_count"], unknown=0) > 0
    ranks = ints(joined["rank_min"], unknown=RANKS[NO_COMMIT])
    ranks = np.where(~has_commit, np.minimum(ranks, RANKS[NO_COMMIT]), ranks)
    statuses = words_of(ranks, GROUP_SEVERITIES)
    has_nothing = pc.is_null(joined["rank_min"]).to_numpy()
    added = {
        "partition_count": pc.fill_null(joined["partition_count"], 0),
        "status": statuses,
        "statuses": pc.binary_join_element_wise("", statuses, "", " "),
        # What reads nothing comes after all others.
        "rank": pa.array(np.where(has_nothing, len(RANKS), ranks)),
        "judged_rank": arrow.judged_ranks(ranks, statuses),
        "verdict": pc.if_else(pc.is_in(statuses, pa.array(list(UNJUDGED))), None, statuses),
    }
    made = arrow.with_columns(joined, added)
    made = arrow.with_columns(made, _bases(made, commits))
    order = [("rank", "ascending"), ("lag_known", "descending"), ("group_id", "ascending")]
    return made.sort_by(order)


def _grouped(evidence: Evidence, commits: pa.Table) -> pa.Table:
    """Sums and worst cases of each group's partitions."""
    has_lag = commits["has_lag"]
    is_owned = pc.equal(commits["status"], NO_COMMIT)
    waits = pc.and_(has_lag, pc.fill_null(pc.greater(commits["waiting"], 0), True))
    is_open = pc.and_(pc.is_null(commits["retention_risk_ms"]), _may_be_deleted(evidence, commits))
    added = {
        "is_owned": is_owned,
        "unread": pc.if_else(is_owned, commits["readable"], None),
        "loss_is_open": pc.and_(waits, is_open),
        **{name: pc.if_else(has_lag, commits[name], None) for name in _OF_LAG},
    }
    grouped = aggregated(
        arrow.with_columns(commits, added),
        ["group_id"],
        [
            *(("partition", "count"), ("committed_offset", "count"), ("rank", "min")),
            *(("has_lag", "sum"), ("is_bound", "any"), ("is_owned", "sum"), ("unread", "sum")),
            *(("retention_risk_ms", "min"), ("loss_is_open", "any"), ("topic", "distinct")),
            *((name, "count") for name in _OF_LAG),
            *((name, "sum") for name in (*_SUMMED, "waiting")),
            *((name, "max") for name in ("lag_ms", "clears_ms")),
        ],
    )
    topics = [", ".join(sorted(item)) for item in grouped["topic_distinct"].to_pylist()]
    of_parts = partial(arrow.whole, grouped, parts=grouped["has_lag_sum"])
    slowest = grouped["clears_ms_max"]
    grouped = arrow.with_columns(
        grouped.drop_columns("topic_distinct"),
        {
            "topics": pa.array(topics, pa.string()),
            "lag_known": pc.if_else(pc.equal(grouped["lag_count"], 0), None, grouped["lag_sum"]),
            "lag_sum": of_parts("lag", "sum"),
            "lag_ms": of_parts("lag_ms", "max"),
            "trend_per_s": of_parts("lag_records_per_s", "sum", is_whole=stands_for_all),
            "consumed_per_s": of_parts("consumed_records_per_s", "sum", is_whole=stands_for_all),
            "slowest_ms": pc.if_else(
                pc.equal(slowest, NEVER_MS), slowest, of_parts("clears_ms", "max")
            ),
        },
    )
    left_ms = clears_ms(floats(grouped["lag_sum"]), floats(grouped["trend_per_s"]))
    return arrow.with_columns(grouped, {"clears_ms": arrow.nullable(left_ms)})


_SUMMED: Final = ("lag", "lag_records_per_s", "consumed_records_per_s")
_OF_LAG: Final = (*_SUMMED, "lag_ms", "clears_ms")


def _may_be_deleted(evidence: Evidence, commits: pa.Table) -> pa.Array:
    """Whether retention may delete records of each commit's partition by their age."""
    retention = np.append(ints(evidence.snapshot.partitions["retention_ms"], unknown=0), 0)
    return pa.array(retention[evidence.snapshot.commit_places] != FOREVER_MS)


def _bases(groups: pa.Table, commits: pa.Table) -> dict[str, pa.Array]:
    """Base of each group's verdict: ``rests_on``, and why the first partition without one has none,
    or how many have no commit."""
    open_ones = commits.filter(pc.is_valid(commits["unjudged"]))
    names, firsts, counts = np.unique(
        np.asarray(open_ones["group_id"], dtype=object), return_index=True, return_counts=True
    )
    few = open_ones.select(["topic", "partition", "unjudged"]).take(pa.array(firsts)).to_pylist()
    found = {
        name: (int(count), f"{row['topic']}-{row['partition']}: {row['unjudged']}")
        for name, count, row in zip(names, counts, few, strict=True)
    }
    rests, reasons = [], []
    wanted = ("group_id", "partition_count", "status", "is_owned_sum", "unread_sum")
    for row in groups.select(wanted).to_pylist():
        partitions = row["partition_count"]
        lacking, reason = found.get(row["group_id"], (0, None))
        if row["status"] == NO_COMMIT and row["is_owned_sum"]:
            owned, unread = row["is_owned_sum"], plural_text(row["unread_sum"], "record")
            reason = f"{plural_text(owned, 'partition')} of {partitions} without a commit"
            reason += f"; {unread} there to read"
        rests.append(_rests_text(partitions, lacking))
        reasons.append(reason or (UNJUDGED[NO_COMMIT] if row["status"] == NO_COMMIT else None))
    return {"rests_on": pa.array(rests, pa.string()), "unjudged": pa.array(reasons, pa.string())}


def _rests_text(partitions: int, lacking: int) -> str:
    """``2 of 3 partitions``: of so many a verdict is known."""
    whole = plural_text(partitions, "partition")
    return f"{partitions - lacking} of {whole}" if lacking else whole
