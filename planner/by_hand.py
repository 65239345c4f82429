"""Placing partitions by hand: texts in, a judged alternative out. Pure.

One entry a line, or with ``;`` between::

    orders-3: 101,102,103      its replicas, the leader first
    orders-4: now              stays where it is, whatever the plan says

or Kafka's reassignment JSON, whole.
"""

import difflib
import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from itertools import islice
from typing import Final

from control.model.ids import TopicPartition, no_partition_words
from planner.goals import GoalError, PlanRequest, Tolerance
from planner.in_sync import why_unsafe
from planner.nearest import Nearest
from planner.proposal import Proposal, proposal_of
from planner.reassignment_json import ReassignmentJsonError, parse_reassignment, quoted
from planner.search.leaders import even_leaders, leader_bounds
from planner.search.placement import Placement
from planner.topology import Topology, TopologyPartition

NAME: Final = "by hand"
NOW: Final = "now"
_ENTRY: Final = re.compile(
    r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})\s*[:=]\s*(?P<ids>.*)"
)
_IDS: Final = re.compile(r"\[?\s*([0-9]{1,10}(\s*,\s*[0-9]{1,10})*)\s*\]?")
WRONG_MAX: Final = 10
"""So many wrong entries are named: a file of another cluster has nothing else."""
NOTHING: Final = Proposal(name=NAME)
"""Where every partition stays as it is."""
_LEADERS_EVEN: Final = Tolerance(name=NAME, replicas=None, leaders=0.0, bytes=None)

Edits = Mapping[TopicPartition, tuple[int, ...] | None]
"""Wanted replicas, the leader first; None: as the partition is now."""


class HandError(GoalError):
    """An entry that cannot be; the message names it, says why, and what would work."""


class LeaderOrder(StrEnum):
    """GIVEN: the first replica leads, as typed. KEEP: who leads now goes on, where it keeps a
    replica. BALANCE: leaders of all changed partitions are evened over the brokers."""

    GIVEN = "given"
    KEEP = "keep"
    BALANCE = "balance"


def parse_edits(text: str) -> Edits:
    """Entries as typed, pasted or read from a file.

    :raises HandError: an entry that is none, or one that is there twice.
    """
    if text.lstrip().startswith(("{", "[")):
        try:
            return dict(parse_reassignment(text))
        except ReassignmentJsonError as error:
            raise HandError(str(error)) from error
    edits: dict[TopicPartition, tuple[int, ...] | None] = {}
    for entry in filter(None, (part.strip() for part in re.split(r"[;\n]", text))):
        key, replicas = _parse_entry(entry)
        if key in edits:
            raise HandError(f"{key} is there twice: leave one of them")
        edits[key] = replicas
    return edits


def check_edits(topology: Topology, edits: Edits) -> None:
    """Whether all of it can be on this cluster.

    :raises HandError: naming entries that cannot (the first `WRONG_MAX`, and how many more), each
        with the nearest that would work.
    """
    known = {partition.key: partition for partition in topology.partitions}
    brokers = {broker.id: broker.why_no_target for broker in topology.brokers}
    wrong: dict[TopicPartition, str] = {}
    for key, replicas in edits.items():
        if key not in known:
            wrong[key] = ""
        elif replicas is not None:
            reason = _wrong_with(brokers, replicas) or _loses(known[key], replicas, topology.down)
            if reason:
                wrong[key] = reason
    if not wrong:
        return
    nearest = Nearest(topology)
    told = []
    for key, reason in islice(wrong.items(), WRONG_MAX):
        if key in known:
            told.append(f"{key}: {reason}; {nearest.words(known[key], edits[key] or ())}")
        else:
            told.append(_unknown_words(key, known))
    more = len(wrong) - len(told)
    raise HandError("; ".join([*told, f"and {more:,} more entries like these"] if more else told))


def edited(
    topology: Topology,
    base: Proposal,
    edits: Edits,
    *,
    leaders: LeaderOrder = LeaderOrder.GIVEN,
    request: PlanRequest | None = None,
) -> Proposal:
    """`base` with some partitions placed otherwise.

    :raises HandError: an entry that cannot be.
    """
    check_edits(topology, edits)
    now = {partition.key: partition.replicas for partition in topology.partitions}
    targets = {key: after for key, after in base.targets().items() if key in now}
    for key, replicas in edits.items():
        targets[key] = now[key] if replicas is None else replicas
    if leaders is LeaderOrder.KEEP:
        leads = {p.key: p.leader for p in topology.partitions if p.leader is not None}
        targets = {
            key: _led_by(leads.get(key, now[key][0]), after) for key, after in targets.items()
        }
    elif leaders is LeaderOrder.BALANCE:
        targets |= _with_even_leaders(topology, targets, request or PlanRequest())
    return proposal_of(NAME if edits else base.name, topology, targets)


def edits_text(proposal: Proposal) -> str:
    """A proposal as entries, one a line: parse_edits reads it back."""
    return "\n".join(f"{c.key}: {','.join(map(str, c.after))}" for c in proposal.changes)


def _parse_entry(entry: str) -> tuple[TopicPartition, tuple[int, ...] | None]:
    match = _ENTRY.fullmatch(entry)
    if match is None:
        raise HandError(f"{quoted(entry)} is no entry like orders-3: 101,102,103")
    key = TopicPartition(match["topic"], int(match["partition"]))
    if match["ids"] == NOW:
        return key, None
    ids = _IDS.fullmatch(match["ids"])
    if ids is None:
        raise HandError(
            f"{key}: {quoted(match['ids'])} is neither broker ids with commas between, nor {NOW}"
        )
    return key, tuple(int(id_) for id_ in ids[1].split(","))


def _wrong_with(brokers: Mapping[int, str], replicas: tuple[int, ...]) -> str:
    """``brokers``: why each gets no replica; empty where it may."""
    if not replicas:
        return "no replica is left"
    if len(set(replicas)) < len(replicas):
        return f"{quoted(list(replicas))} names a broker twice"
    unknown = [id_ for id_ in replicas if id_ not in brokers]
    if unknown:
        return f"broker {unknown[0]} does not exist or does not run"
    unfit = [id_ for id_ in replicas if brokers[id_]]
    return f"broker {unfit[0]} {brokers[unfit[0]]}" if unfit else ""


def _loses(partition: TopologyPartition, replicas: tuple[int, ...], down: Collection[int]) -> str:
    return why_unsafe(partition.replicas, replicas, partition.in_sync(down))


def _unknown_words(key: TopicPartition, known: Mapping[TopicPartition, TopologyPartition]) -> str:
    numbers = [other.partition for other in known if other.topic == key.topic]
    if numbers:
        return no_partition_words(key.topic, key.partition, max(numbers) + 1)
    topics = {other.topic for other in known}
    alike = difflib.get_close_matches(key.topic, topics, n=1, cutoff=0.0)
    hint = f"no topic has this name; {alike[0]} does" if alike else "the cluster has no topic"
    return f"{key} does not exist: {hint}"


def _led_by(leader: int, replicas: tuple[int, ...]) -> tuple[int, ...]:
    if leader not in replicas:
        return replicas
    return (leader, *(id_ for id_ in replicas if id_ != leader))


def _with_even_leaders(
    topology: Topology, targets: Mapping[TopicPartition, tuple[int, ...]], request: PlanRequest
) -> dict[TopicPartition, tuple[int, ...]]:
    """The same replicas, ordered so that leaders are even; only of what changes anyway."""
    placed = topology.with_replicas(targets)
    kept = tuple(str(p.key) for p in placed.partitions if p.key not in targets)
    scope = PlanRequest(keep_partitions=kept, remove_brokers=request.remove_brokers)
    placement = Placement(placed, scope)
    even_leaders(placement, leader_bounds(placement, _LEADERS_EVEN))
    return placement.targets()
