"""State of a partition or a group in one word, over whole columns.

A partition can be several things at once (``not-preferred`` and ``under-replicated``); its
status is the worst. Replicas that a running reassignment adds are not missed while they catch
up: a planned move is ``moving``, never "wrong".

Groups carry Burrow's words, as the metrics job judged them (docs/reference/definitions.md).
``STALL``: it has a member and stands still while records wait; ``STOP``: it stopped committing;
``REWIND``: it went back; ``WARN``: it falls behind; ``OK``. Before them go ``LOST``: records it
would read next are deleted already, and ``BEYOND``: its commit lies beyond the end of the log.
Where there is no verdict, that is told instead: never ``OK``.

A row must not contradict itself: who has no member does not ``STALL``, whose lag falls does not
``WARN``, and what waits for nothing is ``OK``. ``commit_ranks`` sees to it, whoever judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control.model.columns import (
    BoolColumn,
    FloatColumn,
    IntColumn,
    exploded,
    floats,
    ints,
    list_lengths,
)
from control.model.snapshot import ClusterSnapshot


class Severity(IntEnum):
    """How bad; ``FINE`` is no finding at all."""

    FINE = 0
    NOTICE = 1
    WARNING = 2
    CRITICAL = 3


OK: Final = "ok"
NOT_KNOWN: Final = "not-known"
BROKER_SEVERITIES: Final[Mapping[str, Severity]] = {
    "fenced": Severity.CRITICAL,
    "disk failed": Severity.CRITICAL,
    "silent": Severity.WARNING,
    "no address": Severity.WARNING,
    "cordoned": Severity.NOTICE,
    "alive": Severity.FINE,
}
"""Worst first. ``disk failed``: at least one of its log directories; ``silent``: not fenced, but
its figures do not come; ``no address``: it runs, but lacks the listener by which the cluster is
asked; ``cordoned``: it receives no new replicas."""
PARTITION_SEVERITIES: Final[Mapping[str, Severity]] = {
    "offline": Severity.CRITICAL,
    "under-min-isr": Severity.CRITICAL,
    "at-min-isr": Severity.WARNING,
    "under-replicated": Severity.WARNING,
    "moving": Severity.NOTICE,
    "not-preferred": Severity.NOTICE,
    NOT_KNOWN: Severity.FINE,
    OK: Severity.FINE,
}
"""Worst first: a partition's status is the first word that applies. ``not-known``: nothing was
wrong when its leader, which is silent now, was last heard of."""

BEHIND: Final = "WARN"
"""A group that falls behind; no finding, for it may catch up."""
NO_COMMIT: Final = "no-commit"
"""A member owns a partition with records, and nothing was committed there. Nobody is to blame:
with ``auto.offset.reset=latest`` there is nothing to commit before a new record comes."""
BEYOND: Final = "BEYOND"
FINE: Final = "OK"
GROUP_SEVERITIES: Final[Mapping[str, Severity]] = {
    "LOST": Severity.CRITICAL,
    BEYOND: Severity.WARNING,
    "STALL": Severity.WARNING,
    "STOP": Severity.WARNING,
    "REWIND": Severity.WARNING,
    BEHIND: Severity.NOTICE,
    NOT_KNOWN: Severity.FINE,
    NO_COMMIT: Severity.FINE,
    FINE: Severity.FINE,
}
"""Worst first. A group is OK when each of its partitions is."""
RANKS: Final[Mapping[str, int]] = {word: rank for rank, word in enumerate(GROUP_SEVERITIES)}
UNJUDGED: Final[Mapping[str, str]] = {
    NOT_KNOWN: "no end offset was read at or after its commit yet, or only once",
    NO_COMMIT: "it has committed nothing",
}
"""Words for the absence of a verdict, and why there is none."""

VELOCITY_DEAD_BAND_RECORDS_PER_S: Final = 1.0
"""Lag that changes slower than this is steady."""

STALL_COMMITS_AFTER_MS: Final = 1_000
"""A commit this long after the offset last moved shows that the group is alive: STALL."""


STUCK_MS_MIN: Final = 15_000
"""A group that stands still for less than this (three of Kafka's default commit intervals) may
just be between two commits."""

INTERNAL_PREFIX: Final = "__"
"""Topics of Kafka's and our own bookkeeping; lists show them last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatuses:
    """``flags[word]`` says for every row of the partitions table whether the word applies."""

    flags: Mapping[str, BoolColumn]

    def ranks(self) -> IntColumn:
        """The status of each row, as its place in ``PARTITION_SEVERITIES`` (0 is the worst)."""
        ranks: IntColumn = np.stack([self.flags[word] for word in PARTITION_SEVERITIES]).argmax(0)
        return ranks

    def words(self) -> pa.Array:
        """All words that apply to each row, every one between blanks: `` moving offline ``.

        Few combinations occur: each is written once, and rows point to theirs.
        """
        bits = np.zeros(len(self.flags[OK]), dtype=np.int64)
        for place, flags in enumerate(self.flags.values()):
            bits |= flags.astype(np.int64) << place
        found, which = np.unique(bits, return_inverse=True)
        names = list(self.flags)
        texts = [
            " " + "".join(f"{name} " for place, name in enumerate(names) if mask >> place & 1)
            for mask in found.tolist()
        ]
        return pa.array(texts, pa.string()).take(pa.array(which))

    def count(self, word: str) -> int:
        return int(self.flags[word].sum())


def partition_statuses(
    snapshot: ClusterSnapshot, is_silent: BoolColumn | None = None
) -> PartitionStatuses:
    """Judge every row of the partitions table; ``is_silent``: its leader is not heard of."""
    table = snapshot.partitions
    leader = ints(table["leader"])
    in_sync = list_lengths(table["isr"])
    adding = list_lengths(table["adding_replicas"])
    lacking = _lacks_replicas(table)
    min_isr = floats(table["min_isr"])
    is_online = leader >= 0
    is_moving = (adding > 0) | (list_lengths(table["removing_replicas"]) > 0)
    flags = {
        "offline": ~is_online,
        "under-min-isr": is_online & (in_sync < min_isr),
        "at-min-isr": is_online & lacking & (in_sync == min_isr),
        "under-replicated": is_online & lacking,
        "moving": is_moving,
        # A move puts its target first and elects at its end: until then another one leads.
        "not-preferred": is_online & ~is_moving & (leader != preferred_leaders(table)),
    }
    any_flag = np.logical_or.reduce(list(flags.values()))
    unknown = np.zeros(table.num_rows, np.bool_) if is_silent is None else is_silent & ~any_flag
    return PartitionStatuses(flags={**flags, NOT_KNOWN: unknown, OK: ~(any_flag | unknown)})


def commit_ranks(
    commits: pa.Table,
    log_start_offset: IntColumn,
    unjudged: pa.Array | None = None,
    memberless: BoolColumn | None = None,
) -> IntColumn:
    """The status of each row of ``commits``: its place in ``GROUP_SEVERITIES`` (0 is the worst).

    ``log_start_offset`` is -1 where unknown. ``unjudged``: why there can be no verdict, null where
    there can; that records are deleted stays true in any case. ``memberless`` says whose group has
    no members.

    The job's word counts, unless the row's own figures contradict it. Rows without one are judged
    here by what they tell of standing still and of velocity; where they tell neither, and there is
    lag or none is known, nothing is.
    """
    lag, committed = ints(commits["lag"], unknown=0), ints(commits["committed_offset"])
    end = ints(commits["end_offset"])
    velocity = np.nan_to_num(floats(commits["lag_records_per_s"]))
    told = ints(pc.index_in(commits["status"], pa.array(list(RANKS))))
    is_owned = pc.is_valid(commits["member_id"]).to_numpy()
    is_alone = np.zeros(len(lag), np.bool_) if memberless is None else ~is_owned & memberless
    ranks = np.where(told >= 0, told, _judged(commits, lag, velocity, unjudged))
    has_commit = pc.is_valid(commits["committed_offset"]).to_numpy()
    falls = velocity < -VELOCITY_DEAD_BAND_RECORDS_PER_S
    is_beyond = has_commit & (end >= 0) & (committed > end)
    is_waiting = (lag > 0) | is_beyond | pc.is_null(commits["lag"]).to_numpy()
    rules: list[tuple[BoolColumn, str]] = [
        ((ranks == RANKS[BEHIND]) & falls, FINE),
        ((ranks == RANKS["STALL"]) & is_alone, "STOP"),
        (~is_waiting & np.isin(ranks, _WAITING), FINE),
        ((ranks == RANKS[BEYOND]) & ~is_beyond, NOT_KNOWN),
        (is_beyond & (told < 0), NOT_KNOWN),
        (~has_commit, FINE),
        (~has_commit & ((end < 0) | (end > np.maximum(log_start_offset, 0))), NO_COMMIT),
        (has_commit & (committed < log_start_offset) & (lag > 0), "LOST"),
    ]
    for applies, word in rules:
        ranks = np.where(applies, RANKS[word], ranks)
    return ranks


_WAITING: Final = [RANKS[word] for word in ("STALL", "STOP", BEHIND)]
"""Said only of what waits for something."""


def _judged(
    commits: pa.Table, lag: IntColumn, velocity: FloatColumn, unjudged: pa.Array | None
) -> IntColumn:
    """Ranks by what rows without a word tell of themselves."""
    stuck_since = ints(commits["stuck_since_ms"], unknown=0)
    stands_ms = ints(commits["read_ms"], unknown=0) - stuck_since
    stuck = pc.is_valid(commits["stuck_since_ms"]).to_numpy() & (stands_ms >= STUCK_MS_MIN)
    is_alive = ints(commits["commit_ms"], unknown=0) - stuck_since > STALL_COMMITS_AFTER_MS
    grows = (velocity > VELOCITY_DEAD_BAND_RECORDS_PER_S) & (lag > 0)
    is_unknown = pc.is_null(commits["lag"]).to_numpy() | (
        (lag > 0) & pc.is_null(commits["lag_records_per_s"]).to_numpy()
    )
    if unjudged is not None:
        is_lost = pc.is_valid(unjudged).to_numpy(zero_copy_only=False)
        is_unknown, stuck, grows = is_unknown | is_lost, stuck & ~is_lost, grows & ~is_lost
    ranks: IntColumn = np.select(
        [stuck & is_alive, stuck, grows, is_unknown],
        [RANKS[word] for word in ("STALL", "STOP", BEHIND, NOT_KNOWN)],
        default=RANKS[FINE],
    )
    return ranks


def words_of(ranks: IntColumn, severities: Mapping[str, Severity]) -> pa.Array:
    """The word of each rank."""
    return pa.array(list(severities), pa.string()).take(pa.array(ranks))


def elected_leaders(table: pa.Table) -> IntColumn:
    """Leader of each partition once the preferred leaders are elected. If the first replica is not
    in sync, the present leader stays."""
    preferred = preferred_leaders(table)
    row, broker = exploded(table["isr"])
    in_sync = np.isin(
        np.arange(table.num_rows) * _WIDTH + preferred, row.astype(np.int64) * _WIDTH + broker
    )
    leaders: IntColumn = np.where(in_sync, preferred, ints(table["leader"]))
    return leaders


def preferred_leaders(table: pa.Table) -> IntColumn:
    """The first replica of each partition; -2 where it has none."""
    row, broker = exploded(table["replicas"])
    preferred = np.full(table.num_rows, -2, dtype=np.int64)
    # Written back to front, so that the first replica of each row is what stays.
    preferred[row[::-1]] = broker[::-1]
    return preferred


def _lacks_replicas(table: pa.Table) -> BoolColumn:
    """Some replica that is not just being added is out of the ISR."""
    settled = list_lengths(table["replicas"]) - list_lengths(table["adding_replicas"])
    in_sync = list_lengths(table["isr"]).copy()
    row, broker = exploded(table["isr"])
    added_row, added_broker = exploded(table["adding_replicas"])
    if added_row.size:
        early = np.isin(row * _WIDTH + broker, added_row * _WIDTH + added_broker)
        np.subtract.at(in_sync, row[early], 1)
    lacks: BoolColumn = in_sync < settled
    return lacks


_WIDTH: Final = 1 << 32
