"""The tables behind the screens' lists, one Arrow table per list, built once per snapshot.

They hold what the store holds and what follows from it (status, lag of the worst group, time to
clear), in plain columns to filter and sort; text is made later, for one page of rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import (
    BoolColumn,
    FloatColumn,
    IntColumn,
    codes,
    floats,
    ints,
    list_lengths,
    look_up,
    partition_keys,
)
from control.model.health import Evidence
from control.model.isr_age import places_in
from control.model.status import (
    BEHIND,
    GROUP_SEVERITIES,
    INTERNAL_PREFIX,
    NO_COMMIT,
    NOT_KNOWN,
    OK,
    PARTITION_SEVERITIES,
    RANKS,
    UNJUDGED,
    VELOCITY_DEAD_BAND_RECORDS_PER_S,
    preferred_leaders,
    words_of,
)
from control.views.format import plural_text

NEVER_MS: Final = float("inf")
"""Time to clear of lag that does not shrink."""


def partition_table(evidence: Evidence, short_isr: pa.Table) -> pa.Table:
    """One row per partition, by name; ``short_isr`` as ``control.model.isr_age`` makes it.

    Adds to the store's columns: name, status, statuses (all words that apply), rank (of the
    status, 0 worst), judged_rank and led_by (to sort by: null where unknown), is_preferred,
    isr_short_ms (for how long the ISR is short; null: it is
    whole), is_at_least (it may be short for longer), records, all_bytes (of all replicas), lag (of
    the worst group), groups, age_ms (of its leader's figures).
    """
    store = evidence.snapshot.partitions
    ranks = evidence.statuses.ranks()
    words = words_of(ranks, PARTITION_SEVERITIES)
    lag, groups = _lag_by_partition(evidence)
    short_ms, is_at_least = _isr_short(evidence, short_isr)
    leader = ints(store["leader"])
    records = floats(store["high_watermark"]) - floats(store["log_start_offset"])
    added = {
        "name": _names(store),
        "status": words,
        "statuses": evidence.statuses.words(),
        "rank": pa.array(ranks, pa.int32()),
        "is_preferred": pa.array((leader < 0) | (leader == preferred_leaders(store))),
        "judged_rank": _judged(ranks, words),
        "led_by": _led(ints(store["leader"], unknown=-1)),
        "replica_count": pa.array(list_lengths(store["replicas"])),
        "isr_count": pa.array(list_lengths(store["isr"])),
        "isr_short_ms": _nullable(short_ms),
        "is_at_least": pa.array(is_at_least),
        "records": _nullable(records),
        "all_bytes": _nullable(_bytes_of_all_replicas(evidence)),
        "lag": _nullable(lag),
        "groups": pa.array(groups),
        "age_ms": _nullable(np.maximum(evidence.now_ms - floats(store["read_ms"]), 0.0)),
    }
    return _sorted(_with(store, added), [_INTERNAL, "topic", "partition"])


def topic_table(partitions: pa.Table) -> pa.Table:
    """One row per topic, summed up from ``partition_table``; ``statuses`` are all words that apply
    to one of its partitions."""
    replicas = pa.array(list_lengths(partitions["replicas"]))
    plus = _with(partitions, {"replicas_count": replicas})
    sums = ["all_bytes", "in_records_per_s", "in_bytes_per_s", "out_bytes_per_s"]
    grouped = plus.group_by("topic").aggregate(
        [
            ("partition", "count"),
            ("rank", "min"),
            ("statuses", "distinct"),
            ("replicas_count", "min"),
            ("replicas_count", "max"),
            ("lag", "max"),
            *((name, "sum") for name in sums),
        ]
    )
    words = list(PARTITION_SEVERITIES)
    statuses = [words[rank] for rank in grouped["rank_min"].to_pylist()]
    told = grouped["statuses_distinct"].to_pylist()
    named = _with(
        grouped.drop_columns("statuses_distinct"),
        {
            "status": pa.array(statuses, pa.string()),
            "judged_rank": _judged(grouped["rank_min"], pa.array(statuses, pa.string())),
            "statuses": pa.array(map(_united, told), pa.string()),
        },
    )
    return _sorted(named, [_INTERNAL, "topic"])


def _united(told: Sequence[str]) -> str:
    """The words of some partitions together, as of one; it is ok where all of them are."""
    words = {word: None for each in told for word in each.split()}
    if len(words) > 1:
        words.pop(OK, None)
    return f" {' '.join(words)} "


def commit_table(evidence: Evidence) -> pa.Table:
    """One row per group and partition that it committed or owns; worst first, then most lag.

    Adds to the store's columns: name, status, statuses, rank, verdict (the status, null where
    there is none) and unjudged (why), lag_ms (the job's; where it knows none, lag over the
    produce rate, at least as long as the group has stood still), clears_ms, readable (records that
    are there to read: lag less what is lost, without a commit all that the log holds), leader.

    A commit beyond the end of the log has no lag, nor what follows from it.
    """
    commits, partitions = evidence.snapshot.commits, evidence.snapshot.partitions
    wanted, present = partition_keys(commits, partitions)
    place = look_up(wanted, present)
    rates = np.append(floats(partitions["in_records_per_s"]), np.nan)[place]
    leaders = np.append(ints(partitions["leader"]), -1)[place]
    records = floats(partitions["high_watermark"]) - floats(partitions["log_start_offset"])
    held = np.append(records, np.nan)[place]
    ranks = evidence.commit_ranks
    words = words_of(ranks, GROUP_SEVERITIES)
    is_dead = pc.is_valid(evidence.unjudged).to_numpy(zero_copy_only=False)
    is_beyond = floats(commits["committed_offset"]) > floats(commits["end_offset"])
    has_commit = pc.is_valid(commits["committed_offset"]).to_numpy()
    lag = np.where(is_beyond, np.nan, floats(commits["lag"]))
    stuck_ms = evidence.now_ms - floats(commits["stuck_since_ms"])
    estimated_ms = _lag_ms(lag, rates, stuck_ms)
    told_ms = floats(commits["time_lag_ms"])
    time_ms = np.where(np.isnan(told_ms), estimated_ms, told_ms)
    readable = np.where(has_commit, lag - np.nan_to_num(floats(commits["lost_records"])), held)
    risk_ms = np.where(ranks == RANKS["LOST"], 0.0, floats(commits["retention_risk_ms"]))
    added = {
        "name": pc.binary_join_element_wise(commits["group_id"], _names(commits), " "),
        "status": words,
        "statuses": pc.binary_join_element_wise("", words, "", " "),
        "rank": pa.array(ranks, pa.int32()),
        "judged_rank": _judged(ranks, words),
        **_verdicts(words, _reasons(words, readable, evidence.unjudged)),
        "lag": _nullable(lag).cast(pa.int64()),
        "lag_ms": _nullable(np.where(is_dead | is_beyond, np.nan, time_ms)),
        "clears_ms": _nullable(np.where(is_dead, np.nan, _clears_ms(commits, lag))),
        "stuck_ms": _nullable(stuck_ms),
        "retention_risk_ms": _nullable(risk_ms),
        "readable": _nullable(readable),
        "leader": pa.array(leaders),
        "led_by": _led(leaders),
    }
    made = _with(commits, added)
    return _sorted(made, ["group_id", "rank", "-lag", _INTERNAL, "topic", "partition"])


def group_table(evidence: Evidence, commits: pa.Table) -> pa.Table:
    """One row per group, those that never committed included; worst first, then most lag.

    Trends of lag are summed up, and the slowest partition decides when it clears: of those that a
    verdict worse than OK is about, else of all. So a group that falls behind in one partition does
    not seem to catch up because of its others.
    """
    sums = ("lag", "consumed_records_per_s")
    is_owned = pc.equal(commits["status"], NO_COMMIT)
    unread = pc.if_else(is_owned, commits["readable"], None)
    grouped = (
        _with(commits, {"is_owned": is_owned, "unread": unread})
        .group_by("group_id")
        .aggregate(
            [
                ("partition", "count"),
                ("committed_offset", "count"),
                ("rank", "min"),
                ("lag_ms", "max"),
                ("stuck_ms", "max"),
                ("is_owned", "sum"),
                ("unread", "sum"),
                ("retention_risk_ms", "min"),
                ("topic", "distinct"),
                *((name, "sum") for name in sums),
            ]
        )
    )
    topics = [", ".join(sorted(item)) for item in grouped["topic_distinct"].to_pylist()]
    grouped = _with(
        grouped.drop_columns("topic_distinct"), {"topics": pa.array(topics, pa.string())}
    )
    grouped = grouped.join(_judged_by(commits), "group_id")
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
        "judged_rank": _judged(ranks, statuses),
        "verdict": pc.if_else(pc.is_in(statuses, pa.array(list(UNJUDGED))), None, statuses),
        **_group_pace(joined, ranks),
    }
    made = _with(joined, added)
    made = _with(made, _bases(made, commits))
    order = [("rank", "ascending"), ("lag_sum", "descending"), ("group_id", "ascending")]
    return made.sort_by(order)


def _judged_by(commits: pa.Table) -> pa.Table:
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
        "trend_per_s": _nullable(np.where(stays, floats(groups["trend_max"]), trend)),
        "clears_ms": _nullable(np.where(is_open & (slowest != NEVER_MS), np.nan, slowest)),
    }


def _reasons(words: pa.Array, readable: FloatColumn, reasons: pa.Array) -> pa.Array:
    """Why there can be no verdict, and of what has no commit what is there to read."""
    rows = np.flatnonzero(np.asarray(words, dtype=object) == NO_COMMIT)
    if not rows.size:
        return reasons
    counts = (plural_text(it, "record") for it in readable[rows])
    told = [f"nothing committed; {count} there to read" for count in counts]
    of_commits = pa.array(told, pa.string()).take(_places(rows, len(words)))
    return pc.coalesce(reasons, of_commits)


def _places(rows: IntColumn, count: int) -> pa.Array:
    """Place of each row among these; null: it is none of them."""
    places = np.full(count, -1)
    places[rows] = np.arange(rows.size)
    return pa.array(places, mask=places < 0)


def _judged(ranks: Any, words: pa.Array) -> pa.Array:
    """Sort key of statuses; null without a verdict, so that they come last."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    return pc.if_else(pc.is_null(place), pc.cast(pa.array(ranks), pa.int64()), None)


def _led(leaders: Any) -> pa.Array:
    """Sort key of leaders; null: no leader."""
    return pa.array(leaders, pa.int64(), mask=np.asarray(leaders) < 0)


def _verdicts(words: pa.Array, reasons: pa.Array) -> dict[str, pa.Array]:
    """The words that are verdicts, and why the others are none: the reason that stands against
    one, or what the word itself means."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    meant = pa.array(list(UNJUDGED.values()), pa.string()).take(place)
    why = pc.if_else(pc.is_null(place), None, pc.coalesce(reasons, meant))
    return {"verdict": pc.if_else(pc.is_null(place), words, None), "unjudged": why}


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


def _clears_ms(commits: pa.Table, lag: FloatColumn) -> FloatColumn:
    """When lag will be gone, as the job tells it; ``NEVER_MS``: not at this speed.

    NaN where lag or speed is not known. Of lag that falls and of which nothing is told (a mean of
    the past) it follows from both.
    """
    velocity = floats(commits["lag_records_per_s"])
    falls = velocity < -VELOCITY_DEAD_BAND_RECORDS_PER_S
    told_ms = np.where(lag > 0, floats(commits["time_to_clear_ms"]), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        told_ms = np.where(np.isnan(told_ms) & falls, lag / -velocity * 1000.0, told_ms)
    told_ms = np.where(falls | np.isnan(velocity), told_ms, np.nan)
    is_never = np.isnan(told_ms) & (lag > 0) & ~np.isnan(velocity)
    return np.where(lag == 0, 0.0, np.where(is_never, NEVER_MS, told_ms))


def _lag_ms(lag: FloatColumn, in_rate: FloatColumn, stuck_ms: FloatColumn) -> FloatColumn:
    with np.errstate(divide="ignore", invalid="ignore"):
        by_rate = np.where(in_rate > 0, lag / in_rate * 1000.0, np.nan)
    # fmax takes the one that is known where the other is not.
    estimate = np.fmax(by_rate, stuck_ms)
    return np.where(lag == 0, 0.0, estimate)


def _lag_by_partition(evidence: Evidence) -> tuple[FloatColumn, Any]:
    """The lag of the worst group, NaN where no group reads, and how many groups read."""
    commits, partitions = evidence.snapshot.commits, evidence.snapshot.partitions
    wanted, present = partition_keys(commits, partitions)
    place = look_up(wanted, present)
    lag = floats(commits["lag"])
    known = (place >= 0) & ~np.isnan(lag)
    worst = np.full(partitions.num_rows, -np.inf)
    np.maximum.at(worst, place[known], lag[known])
    groups = np.bincount(place[place >= 0], minlength=partitions.num_rows)
    return np.where(np.isinf(worst), np.nan, worst), groups


def _isr_short(evidence: Evidence, short: pa.Table) -> tuple[FloatColumn, BoolColumn]:
    """For how long each ISR is short (NaN: it is whole), and whether it may be so for longer."""
    place = places_in(short, evidence.snapshot.partitions)
    since = np.append(floats(short["since_ms"]), np.nan)[place]
    at_least = np.append(np.asarray(short["is_at_least"], dtype=np.bool_), False)[place]
    # A second at the least: it is short, if only since now.
    return np.maximum(evidence.now_ms - since, 1000.0), at_least


def _bytes_of_all_replicas(evidence: Evidence) -> FloatColumn:
    """By partition; NaN where no replica's size is known."""
    placed, rows = evidence.placement, evidence.snapshot.partitions.num_rows
    known = ~np.isnan(placed.size_bytes)
    total = np.bincount(placed.row[known], weights=placed.size_bytes[known], minlength=rows)
    return np.where(np.bincount(placed.row[known], minlength=rows) > 0, total, np.nan)


def _names(table: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(table["topic"], pc.cast(table["partition"], "string"), "-")


def _nullable(values: FloatColumn) -> pa.Array:
    return pa.array(values, pa.float64(), from_pandas=True)


def _with(table: pa.Table, columns: Mapping[str, Any]) -> pa.Table:
    """The table with these columns, in the place of those that it has under such names."""
    kept = table.drop_columns([name for name in columns if name in table.column_names])
    for name, values in columns.items():
        kept = kept.append_column(name, values)
    return kept


def _sorted(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """By these columns; with ``-`` in front: descending. What is not known comes last."""
    names = {key: key.removeprefix("-") for key in keys}
    known = _with(table, {_INTERNAL: pc.starts_with(table["topic"], INTERNAL_PREFIX)})
    order = [(name, "ascending" if name == key else "descending") for key, name in names.items()]
    return table.take(pc.sort_indices(known, sort_keys=order)).combine_chunks()


_INTERNAL: Final = "is_internal"
"""Sorts topics of bookkeeping behind the others."""
