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
    floats,
    ints,
    list_lengths,
    look_up,
    partition_keys,
)
from control.model.health import Evidence
from control.model.isr_age import places_in
from control.model.status import (
    GROUP_SEVERITIES,
    INTERNAL_PREFIX,
    OK,
    PARTITION_SEVERITIES,
    UNJUDGED,
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
    records = floats(store["high_watermark"]) - floats(store["log_start_offset"])
    added = {
        "name": _names(store),
        "status": words,
        "statuses": evidence.statuses.words(),
        "rank": pa.array(ranks, pa.int32()),
        "is_preferred": pa.array(~evidence.statuses.flags["not-preferred"]),
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
    return _sorted(_with(store, added), ["topic", "partition"])


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
    return _sorted(named, ["topic"])


def _united(told: Sequence[str]) -> str:
    """The words of some partitions together, as of one; it is ok where all of them are."""
    words = {word: None for each in told for word in each.split()}
    if len(words) > 1:
        words.pop(OK, None)
    return f" {' '.join(words)} "


def commit_table(evidence: Evidence) -> pa.Table:
    """One row per group and partition.

    Adds to the store's columns: name, status, statuses, rank, verdict (the status, null where
    there is none) and unjudged (why), lag_ms (the job's; where it knows none, lag over the
    produce rate, at least as long as the group has stood still), clears_ms, leader.
    """
    commits, partitions = evidence.snapshot.commits, evidence.snapshot.partitions
    wanted, present = partition_keys(commits, partitions)
    place = look_up(wanted, present)
    rates = np.append(floats(partitions["in_records_per_s"]), np.nan)[place]
    leaders = np.append(ints(partitions["leader"]), -1)[place]
    ranks = evidence.commit_ranks
    words = words_of(ranks, GROUP_SEVERITIES)
    is_dead = pc.is_valid(evidence.unjudged).to_numpy(zero_copy_only=False)
    stuck_ms = evidence.now_ms - floats(commits["stuck_since_ms"])
    estimated_ms = _lag_ms(floats(commits["lag"]), rates, stuck_ms)
    told_ms = floats(commits["time_lag_ms"])
    added = {
        "name": pc.binary_join_element_wise(commits["group_id"], _names(commits), " "),
        "status": words,
        "statuses": pc.binary_join_element_wise("", words, "", " "),
        "rank": pa.array(ranks, pa.int32()),
        "judged_rank": _judged(ranks, words),
        **_verdicts(words, evidence.unjudged),
        "lag_ms": _nullable(
            np.where(is_dead, np.nan, np.where(np.isnan(told_ms), estimated_ms, told_ms))
        ),
        "clears_ms": _nullable(np.where(is_dead, np.nan, _clears_ms(commits))),
        "stuck_ms": _nullable(stuck_ms),
        "leader": pa.array(leaders),
        "led_by": _led(leaders),
    }
    return _sorted(_with(commits, added), ["group_id", "topic", "partition"])


def group_table(evidence: Evidence, commits: pa.Table) -> pa.Table:
    """One row per group, those that never committed included; most lag first."""
    sums = ("lag", "lag_records_per_s", "consumed_records_per_s")
    is_unknown = pc.and_kleene(pc.is_null(commits["clears_ms"]), pc.not_equal(commits["lag"], 0))
    grouped = (
        _with(commits, {"is_unknown": is_unknown})
        .group_by("group_id")
        .aggregate(
            [
                ("partition", "count"),
                ("rank", "min"),
                ("lag_ms", "max"),
                ("stuck_ms", "max"),
                ("clears_ms", "max"),
                ("is_unknown", "any"),
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
    known = evidence.snapshot.groups.select(["group_id", "state", "protocol", "members"])
    joined = known.join(grouped, "group_id", join_type="full outer").combine_chunks()
    words = list(GROUP_SEVERITIES)
    ranks = ints(joined["rank_min"], unknown=len(words) - 1)
    statuses = pa.array([words[rank] for rank in ranks], pa.string())
    # The slowest partition decides: one that never clears, else one of which it is not known.
    slowest = floats(joined["clears_ms_max"])
    is_open = ints(pc.cast(joined["is_unknown_any"], pa.int64()), unknown=0) > 0
    added = {
        "status": statuses,
        "statuses": pc.binary_join_element_wise("", statuses, "", " "),
        "rank": pa.array(ranks),
        "judged_rank": _judged(ranks, statuses),
        "verdict": pc.if_else(pc.is_in(statuses, pa.array(list(UNJUDGED))), None, statuses),
        **_bases(joined, commits),
        "clears_ms": _nullable(np.where(is_open & (slowest != NEVER_MS), np.nan, slowest)),
    }
    order = [("rank", "ascending"), ("lag_sum", "descending"), ("group_id", "ascending")]
    return _with(joined, added).sort_by(order)


def _judged(ranks: Any, words: pa.Array) -> pa.Array:
    """What statuses are sorted by: null where there is no verdict, so that it comes last."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    return pc.if_else(pc.is_null(place), pc.cast(pa.array(ranks), pa.int64()), None)


def _led(leaders: Any) -> pa.Array:
    """What leaders are sorted by: null where there is none."""
    return pa.array(leaders, pa.int64(), mask=np.asarray(leaders) < 0)


def _verdicts(words: pa.Array, reasons: pa.Array) -> dict[str, pa.Array]:
    """The words that are verdicts, and why the others are none: the reason that stands against
    one, or what the word itself means."""
    place = pc.index_in(words, pa.array(list(UNJUDGED)))
    meant = pa.array(list(UNJUDGED.values()), pa.string()).take(place)
    why = pc.if_else(pc.is_null(place), None, pc.coalesce(reasons, meant))
    return {"verdict": pc.if_else(pc.is_null(place), words, None), "unjudged": why}


def _bases(groups: pa.Table, commits: pa.Table) -> dict[str, pa.Array]:
    """What each group's verdict rests on: ``rests_on``, and why a partition has none (the first
    that has none, by name)."""
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
    for group, partitions in zip(
        groups["group_id"].to_pylist(), groups["partition_count"].to_pylist(), strict=True
    ):
        lacking, reason = found.get(group, (0, None))
        rests.append(_rests_text(partitions or 0, lacking))
        reasons.append(reason if partitions else UNJUDGED["no-commit"])
    return {"rests_on": pa.array(rests, pa.string()), "unjudged": pa.array(reasons, pa.string())}


def _rests_text(partitions: int, lacking: int) -> str:
    """``2 of 3 partitions``: of so many a verdict is known."""
    whole = plural_text(partitions, "partition")
    return f"{partitions - lacking} of {whole}" if lacking else whole


def _clears_ms(commits: pa.Table) -> FloatColumn:
    """When lag will be gone, as the job tells it; ``NEVER_MS``: not at this speed.

    NaN where lag or speed is not known.
    """
    lag, velocity = floats(commits["lag"]), floats(commits["lag_records_per_s"])
    told_ms = floats(commits["time_to_clear_ms"])
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


def _sorted(table: pa.Table, keys: list[str]) -> pa.Table:
    """By these columns; topics of bookkeeping come last."""
    internal = pc.starts_with(table["topic"], INTERNAL_PREFIX)
    columns = pa.table({"internal": internal, **{key: table[key] for key in keys}})
    order = [(name, "ascending") for name in columns.column_names]
    return table.take(pc.sort_indices(columns, sort_keys=order)).combine_chunks()
