"""What plans tell as proven, beside all assignments of small clusters."""

import re
from random import Random

import pytest

from control.model.ids import TopicPartition
from planner.goals import PlanRequest
from planner.optimizer import Alternative, Plan, judged_plan
from planner.proposal import proposal_of
from planner.topology import parse_topology
from tests.oracle.planner.cases import Case
from tests.oracle.planner.least import Every, Left
from tests.oracle.planner.planned import planned
from tests.oracle.planner.small import hindered_case, small_case
from tests.oracle.seeds import long_run

ORDINARY = 40
ONCE_UNTRUE = (0, 17, 170, 383, 709, 808, 969)
"""Bounds of brokers of the same share told for all; limits that counted what cannot move, or the
replicas before another replication factor."""
SOAK = 40_000
CHUNK = 1_000
RACK = re.compile(r"rack (\w+) has .* fewer than (\d+) ")
LARGEST = "brings the largest broker below it"


def by_hand(case: Case, seed: int) -> tuple[Case, Plan]:
    """Some partitions, placed anywhere; brokers that this empties count as asked for."""
    topology, dice = parse_topology(case.topology).in_order(), Random(seed)
    ids, partitions = topology.broker_ids, case.topology["partitions"]
    targets = {
        TopicPartition(p["topic"], p["partition"]): tuple(dice.sample(ids, len(p["replicas"])))
        for p in dice.sample(partitions, dice.randint(1, len(partitions)))
    }
    proposal = proposal_of("hand", topology, targets)
    now, then = (
        {broker for p in placed.partitions for broker in p.replicas}
        for placed in (topology, topology.with_replicas(targets))
    )
    emptied = tuple(sorted(now - then))
    asked = Case(topology=case.topology, request={"goal": "balance", "remove_brokers": emptied})
    return asked, judged_plan(topology, PlanRequest(remove_brokers=emptied), proposal)


def left_of(every: Every, alternative: Alternative) -> Left:
    """Partitions about which it breaks a rule, by its own account."""
    broken = {(it.where, it.rule) for it in alternative.violations}
    names = {f"{key[0]}-{key[1]}": key for key in every.judge.partitions}
    staying = {names[where] for where, rule in broken if rule == "removed"}
    return Left({names[where] for where, _ in broken if where in names}, staying)


def untrue(case: Case, made: Plan | None) -> list[str]:
    """What is told as proven, and is not so."""
    if made is None:
        return []
    every, found = Every(case.topology, case.request), []
    for alternative in made.alternatives:
        if alternative.lower_bound_bytes is None or (
            alternative.balance.topics_uneven == 0 and every.has_racks
        ):
            continue
        after = {key: set(p["replicas"]) for key, p in every.judge.partitions.items()}
        after |= {(c.topic, c.partition): set(c.after) for c in alternative.proposal.changes}
        least = every.least(after, left_of(every, alternative))
        for word, told, true in (
            ("bytes", alternative.lower_bound_bytes, least.bytes),
            ("replicas", alternative.lower_bound_replicas, least.replicas),
        ):
            if told is not None and told > true:
                found.append(f"{alternative.name}: at least {told} {word}, {true} will do")
    left = left_of(every, made.alternatives[0])
    return found + [limit for limit in made.limits if is_wrong(limit, every, left)]


def is_wrong(limit: str, every: Every, left: Left) -> bool:
    """Whether an assignment does what the limit says none does."""
    if LARGEST in limit:
        largest = max(p["size"] for p in every.judge.partitions.values())
        return any(every.extremes(sets).fullest < largest for sets in every.allowed(left))
    told = RACK.match(limit)
    if told is None:
        return False
    here = [b for b in every.kept - every.judge.excluded if every.judge.rack[b] == told[1]]
    return any(
        all(sum(b in brokers for brokers in sets.values()) < int(told[2]) for b in here)
        for sets in every.allowed(left)
    )


def all_untrue(seed: int) -> list[str]:
    case, hindered = small_case(seed), hindered_case(seed)
    return [
        *untrue(case, planned(case)),
        *untrue(*by_hand(case, seed)),
        *untrue(hindered, planned(hindered)),
    ]


@pytest.mark.parametrize("first", range(0, ORDINARY, 20))
def test_what_is_told_as_proven_is_so(first: int) -> None:
    assert {seed: bad for seed in range(first, first + 20) if (bad := all_untrue(seed))} == {}


@pytest.mark.parametrize("seed", ONCE_UNTRUE)
def test_what_was_untrue_once_is_not_again(seed: int) -> None:
    assert all_untrue(seed) == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seeds", long_run(ORDINARY, SOAK, CHUNK))
def test_whatever_is_told_as_proven_is_so(seeds: range) -> None:
    assert {seed: bad for seed in seeds if (bad := all_untrue(seed))} == {}
