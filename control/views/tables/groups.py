"""The table of groups: a row per consumer group, summed up from its partitions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import IntColumn, codes, floats, ints
from control.model.finding_rules import Evidence
from control.model.ids import path_segment
from control.model.status import (
    BEHIND,
    GROUP_SEVERITIES,
    NO_COMMIT,
    NOT_KNOWN,
    RANKS,
    UNJUDGED,
    VELOCITY_DEAD_BAND_RECORDS_PER_S,
    words_of,
)
from control.views.format import NA, count_text, plural_text
from control.views.tables import arrow, cells, units
from control.views.tables.cells import NEVER_MS
from control.views.tables.column import Table, column, counted, name_column, worded
from control.views.tables.commits import CLEARS_HELP, LAG_TIME_HELP, LOSES_HELP, VELOCITY_HELP
from control.views.tables.partitions import STATUSES
from control.views.tables.rows import Cell, Tone
from spark_metrics.window.totals import aggregated

Record = Mapping[str, Any]


def _has_commit(record: Record) -> bool:
    return bool(record["committed_offset_count"])


def _if_committed(cell: Callable[[Record], Cell]) -> Callable[[Record], Cell]:
    """Cells that show – for a group without commits."""
    return lambda record: cell(record) if _has_commit(record) else cells.NOTHING


def _lag_cell(record: Record) -> Cell:
    """Records behind the start offset of a share group may be acknowledged already: where its
    broker tells no lag, at most so many are left. Where some partitions' lag is unknown, the sum
    of the others is the least."""
    if record["lag_sum"] is None and record["lag_known"] is not None and _has_commit(record):
        return cells.at_least(replace(cells.count_cell(record["lag_known"]), value=None))
    cell = cells.lag_cell(record["lag_sum"], has_group=_has_commit(record))
    return cells.at_most(cell) if record["is_bound_any"] else cell


def _loses_cell(record: Record) -> Cell:
    """The soonest of the partitions that tell; others may lose records sooner."""
    cell = cells.loses_cell(record["retention_risk_ms_min"], record["lag_known"])
    if not record["lag_is_open_any"]:
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
               filter="status", filter_on=STATUSES, width=80),
        column("lag", "lag", units.COUNT,
               "Sum over its partitions; ≥ while the lag of some is unknown (lag:unknown), ≤ where "
               "no broker tells the lag of a share group",
               rank=1, source="lag_sum", cell=_lag_cell, filter="lag"),
        column("lag_time", "time lag", units.DURATION, LAG_TIME_HELP, rank=2, source="lag_ms_max",
               cell=_if_committed(lambda it: cells.lag_time_cell(it["lag_ms_max"])),
               filter="time", width=80),
        column("velocity", "lag trend", units.RECORD_RATE,
               f"{VELOCITY_HELP}; of the partitions that its status is about", rank=2,
               source="trend_per_s",
               cell=_if_committed(
                   lambda it: cells.velocity_cell(it["trend_per_s"], it["lag_known"])),
               filter="trend", width=94),
        column("clears", "clears in", units.DURATION,
               f"{CLEARS_HELP}; of the same partitions", rank=2,
               source="clears_ms",
               cell=_if_committed(lambda it: cells.clears_cell(it["clears_ms"], it["status"])),
               filter="clears", width=84),
        column("loses", "data loss in", units.DURATION,
               f"{LOSES_HELP}; the partition nearest to it",
               rank=2, source="retention_risk_ms_min",
               cell=_loses_cell,
               filter="loses", width=98, is_time_left=True),
        column("consumed", "consumes", units.RECORD_RATE, "Records per second by its commits",
               source="consumed_records_per_s_sum",
               cell=_if_committed(
                   lambda it: cells.record_rate_cell(it["consumed_records_per_s_sum"])),
               filter="consumes", width=80),
        column("members", "members", units.COUNT, rank=2, filter="members", width=76),
        column("partitions", "partitions", units.COUNT, "Partitions that it committed or owns",
               source="partition_count", cell=counted(lambda it: it["partition_count"] or 0),
               filter="partitions", width=80),
        name_column("topics", "topics", filter="topic", width=74,
                    cell=worded(lambda it: it["topics"])),
        column("type", "type", units.TEXT, "Classic, consumer, share or streams",
               source="group_type", cell=worded(lambda it: it["group_type"], missing=NA),
               filter="type", width=64),
        column("state", "state", units.TEXT, "As its coordinator says", filter="state"),
        column("epoch", "epoch", units.TEXT,
               "Group epoch; an older assignment epoch while it rebalances",
               source="group_epoch", cell=_epoch_cell, width=56),
        column("assignor", "assignor", units.TEXT, "Chosen by the members or the coordinator",
               source="protocol", cell=worded(lambda it: it["protocol"]), filter="assignor"),
        column("rests_on", "rests on", units.TEXT, "Partitions with a known verdict"),
        name_column("status_unknown_because", "no verdict because",
                    "For the first partition without one",
                    source="unjudged", cell=worded(lambda it: it["unjudged"]), is_exception=True,
                    width=142),
    ),
)  # fmt: skip


def group_table(evidence: Evidence, commits: pa.Table) -> pa.Table:
    """One row per group, those that never committed included; worst first, then most lag.

    Trends of lag are summed up, and the slowest partition decides when it clears: of those that a
    verdict worse than OK is about, else of all. So a group that falls behind in one partition does
    not seem to catch up because of its others.
    """
    sums = ("lag", "consumed_records_per_s")
    is_owned = pc.equal(commits["status"], NO_COMMIT)
    unread = pc.if_else(is_owned, commits["readable"], None)
    is_open = pc.and_(pc.is_valid(commits["committed_offset"]), pc.is_null(commits["lag"]))
    added = {"is_owned": is_owned, "unread": unread, "lag_is_open": is_open}
    grouped = aggregated(
        arrow.with_columns(commits, added),
        ["group_id"],
        [
            ("partition", "count"),
            ("committed_offset", "count"),
            ("rank", "min"),
            ("lag_ms", "max"),
            ("stuck_ms", "max"),
            ("is_owned", "sum"),
            ("lag_is_open", "any"),
            ("lag", "count"),
            ("is_bound", "any"),
            ("unread", "sum"),
            ("retention_risk_ms", "min"),
            ("topic", "distinct"),
            *((name, "sum") for name in sums),
        ],
    )
    topics = [", ".join(sorted(item)) for item in grouped["topic_distinct"].to_pylist()]
    grouped = arrow.with_columns(
        grouped.drop_columns("topic_distinct"), {"topics": pa.array(topics, pa.string())}
    )
    known = pc.if_else(pc.equal(grouped["lag_count"], 0), None, grouped["lag_sum"])
    grouped = arrow.with_columns(
        grouped,
        {"lag_known": known, "lag_sum": pc.if_else(grouped["lag_is_open_any"], None, known)},
    )
    grouped = grouped.join(_pace_columns(commits), "group_id")
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
        "status": statuses,
        "statuses": pc.binary_join_element_wise("", statuses, "", " "),
        # What reads nothing comes after all others.
        "rank": pa.array(np.where(has_nothing, len(RANKS), ranks)),
        "judged_rank": arrow.judged_ranks(ranks, statuses),
        "verdict": pc.if_else(pc.is_in(statuses, pa.array(list(UNJUDGED))), None, statuses),
        **_group_pace(joined, ranks),
    }
    made = arrow.with_columns(joined, added)
    made = arrow.with_columns(made, _bases(made, commits))
    order = [("rank", "ascending"), ("lag_known", "descending"), ("group_id", "ascending")]
    return made.sort_by(order)


def _pace_columns(commits: pa.Table) -> pa.Table:
    """Pace and time to clear of each group, over the partitions that its status is about: its worst
    ones (the worst first), or all of a healthy group."""
    rank = ints(commits["rank"])
    (group,) = codes(commits["group_id"])
    groups, firsts = np.unique(group, return_index=True)
    worst = rank[firsts][np.searchsorted(groups, group)]
    is_about = (rank == worst) | (worst >= RANKS[NOT_KNOWN])
    open_end = pc.and_kleene(pc.is_null(commits["clears_ms"]), pc.not_equal(commits["lag"], 0))
    about = pa.table(
        {
            "group_id": commits["group_id"],
            "trend": commits["lag_records_per_s"],
            "clears": commits["clears_ms"],
            "is_open": open_end,
        }
    ).filter(pa.array(is_about))
    wanted = [("trend", "sum"), ("trend", "max"), ("clears", "max"), ("is_open", "any")]
    return about.group_by("group_id").aggregate(wanted)


def _group_pace(groups: pa.Table, ranks: IntColumn) -> dict[str, pa.Array]:
    """The trend of each group's lag, in records per second, and when it clears."""
    # The slowest partition decides: one that never clears, else one of which it is not known.
    slowest = floats(groups["clears_max"])
    is_open = ints(pc.cast(groups["is_open_any"], pa.int64()), unknown=0) > 0
    trend = floats(groups["trend_sum"])
    # Many that fall a little do not make up for one that does not.
    stays = (slowest == NEVER_MS) | (ranks == RANKS[BEHIND])
    stays &= (trend < -VELOCITY_DEAD_BAND_RECORDS_PER_S) & (ranks < RANKS[NOT_KNOWN])
    return {
        "trend_per_s": arrow.nullable(np.where(stays, floats(groups["trend_max"]), trend)),
        "clears_ms": arrow.nullable(np.where(is_open & (slowest != NEVER_MS), np.nan, slowest)),
    }


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
        partitions = row["partition_count"] or 0
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
