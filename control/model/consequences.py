"""Findings that a broker which is down explains: told under its finding, not beside it. Pure.

A kind of finding about partitions goes under the broker where all of its partitions lack brokers
that are down and no others. With one partition that has another cause it stays a finding of its
own and counts all of its partitions, as tiles and lists do.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow.compute as pc

from control.model.columns import IntColumn, codes, exploded
from control.model.finding import Finding, Operation
from control.model.finding_rules import SKEW_PERCENT_MAX, Evidence
from control.model.load import skew_percent
from control.model.status import NOT_KNOWN, RANKS, Severity, preferred_leaders

BROKER_DOWN: Final = "broker-fenced"
_OF_A_BROKER: Final = frozenset({"broker-not-sampled", "stale"})
"""About one broker, which says as much by being down."""
_WIDTH: Final = 1 << 32


def gathered(findings: Iterable[Finding], evidence: Evidence) -> tuple[Finding, ...]:
    """The findings, those that follow from a broker that is down under it."""
    found = tuple(findings)
    down = {_broker_of(item): item for item in found if item.kind == BROKER_DOWN}
    if not down:
        return found
    under: dict[int, list[Finding]] = {broker: [] for broker in down}
    left: list[Finding] = []
    for item in found:
        cause = None if item.kind == BROKER_DOWN else _cause(item, evidence, down.keys())
        (left if cause is None else under[cause]).append(item)
    if (groups := _groups_not_known(evidence)) is not None:
        under[min(down)].append(groups)
    return tuple(_with(item, under[_broker_of(item)]) if item.kind == BROKER_DOWN else item
                 for item in left)  # fmt: skip


def _with(item: Finding, under: Sequence[Finding]) -> Finding:
    if not under:
        return item
    worst = max(item.severity, *(it.severity for it in under))
    return replace(item, severity=worst, consequences=tuple(under))


def _cause(item: Finding, evidence: Evidence, down: Collection[int]) -> int | None:
    """The broker that explains all of it; None: none does, or not all."""
    if item.kind in _OF_A_BROKER:
        broker = _broker_of(item)
        return broker if broker in down else None
    if item.kind == "skew-leaders":
        return min(down) if _is_even_with_all_up(evidence) else None
    if item.kind not in evidence.statuses.flags:
        return None
    rows = np.flatnonzero(evidence.statuses.flags[item.kind])
    row, lacking = _lacking(item.kind, evidence, rows)
    if not np.isin(lacking, list(down)).all() or not np.isin(rows, row).all():
        return None
    lacked, counts = np.unique(lacking, return_counts=True)
    return int(lacked[np.argmax(counts)])


def _lacking(kind: str, evidence: Evidence, rows: IntColumn) -> tuple[IntColumn, IntColumn]:
    """(row, broker) of every broker that these partitions lack for what is said of them."""
    table = evidence.snapshot.partitions
    if kind == "not-preferred":
        return rows, preferred_leaders(table)[rows]
    in_sync_row, in_sync = exploded(table["isr"])
    if kind == "offline":  # Kafka keeps the last of the ISR: only one of these may lead.
        wanted = np.isin(in_sync_row, rows)
        return in_sync_row[wanted], in_sync[wanted]
    row, broker = exploded(table["replicas"])
    added_row, added = exploded(table["adding_replicas"])
    there = np.concatenate([in_sync_row * _WIDTH + in_sync, added_row * _WIDTH + added])
    lacks = np.isin(row, rows) & ~np.isin(row * _WIDTH + broker, there)
    return row[lacks], broker[lacks]


def _is_even_with_all_up(evidence: Evidence) -> bool:
    """Whether leaders lie evenly once every broker is up and leads what it should."""
    leaders = preferred_leaders(evidence.snapshot.partitions)
    led = dict(zip(*np.unique(leaders, return_counts=True), strict=True))
    counts = np.array([led.get(broker, 0) for broker in evidence.loads.brokers], dtype=np.float64)
    return float(np.abs(skew_percent(counts)).max()) <= SKEW_PERCENT_MAX


def _groups_not_known(evidence: Evidence) -> Finding | None:
    """Groups without a verdict, where what these rest on is lost for all of them."""
    (group,) = codes(evidence.snapshot.commits["group_id"])
    if not group.size:
        return None
    worst = np.full(int(group.max()) + 1, len(RANKS), dtype=np.int64)
    np.minimum.at(worst, group, evidence.commit_ranks)
    lost = np.unique(group[pc.is_valid(evidence.unjudged).to_numpy(zero_copy_only=False)])
    unknown = np.flatnonzero(worst == RANKS[NOT_KNOWN])
    if not unknown.size or not np.isin(unknown, lost).all():
        return None
    return Finding(
        kind="groups-not-known",
        severity=Severity.FINE,
        subject=f"groups?q=status:{NOT_KNOWN}",
        label="groups",
        title="{count:plural:group} without a verdict",
        reason="The brokers that their verdicts need are down.",
        next_step="Bring the broker back",
        operation=Operation.OPEN,
        facts={"count": int(unknown.size)},
    )


def _broker_of(item: Finding) -> int:
    return int(item.subject.removeprefix("brokers/"))
