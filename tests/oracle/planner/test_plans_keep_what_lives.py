"""Plans, hand-made plans and waves for random clusters, judged by an oracle of their own."""

from collections.abc import Sequence
from random import Random

import pytest

from control.model.ids import TopicPartition
from control.move.check import Verdict
from control.operations.reassignment.plan_check import check_offline
from planner.topology import parse_topology
from planner.waves import WaveRules, plan_waves
from tests.oracle.planner.cases import Case, case_of
from tests.oracle.planner.judge import Judge, Key, crowded
from tests.oracle.planner.planned import planned
from tests.oracle.seeds import long_run

ORDINARY, CHECKED = 300, 1_500
ONCE_BROKEN = (13528, 25213, 26311, 119898, 119988, 121492)
"""What random runs of many seeds have found."""
SOAK = 200_000
CHUNK = 2_000


def broken(case: Case) -> list[str]:
    """What every alternative, and its waves, break."""
    made = planned(case)
    if made is None:
        return []
    judge = Judge(case.topology, case.request)
    found = []
    for alternative in made.alternatives:
        changes = alternative.proposal.changes
        targets = {(c.topic, c.partition): c.after for c in changes}
        found += judge.broken(targets, map(str, alternative.violations))
        entries = [
            [((c.topic, c.partition), c.before, c.after, leader_of(judge, c.key)) for c in wave]
            for wave in plan_waves(changes, WaveRules(per_broker=1))
        ]
        found += crowded(entries, 1)
    return found


def leader_of(judge: Judge, key: Key) -> int:
    partition = judge.partitions[key[0], key[1]]
    leader: int = partition.get("leader", partition["replicas"][0])
    return leader


@pytest.mark.parametrize("first", range(0, ORDINARY, 50))
def test_a_plan_keeps_what_lives(first: int) -> None:
    found = {seed: bad for seed in range(first, first + 50) if (bad := broken(case_of(seed)))}
    assert found == {}


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_the_order_of_a_file_changes_no_plan(seed: int) -> None:
    case, dice = case_of(seed), Random(seed)
    brokers, partitions = (
        dice.sample(case.topology[key], len(case.topology[key]))
        for key in ("brokers", "partitions")
    )
    other = Case(topology={"brokers": brokers, "partitions": partitions}, request=case.request)
    found, again = planned(case), planned(other)
    assert (found is None) is (again is None)
    if found is not None and again is not None:
        assert [a.proposal for a in found.alternatives] == [a.proposal for a in again.alternatives]
        assert found.limits == again.limits


def test_what_was_broken_once_is_not_again() -> None:
    assert {seed: bad for seed in ONCE_BROKEN if (bad := broken(case_of(seed)))} == {}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seeds", long_run(ORDINARY, SOAK, CHUNK))
def test_every_plan_keeps_what_lives(seeds: range) -> None:
    assert {seed: bad for seed in seeds if (bad := broken(case_of(seed)))} == {}


def by_hand(dice: Random, judge: Judge) -> dict[Key, Sequence[int]]:
    """One partition, placed anywhere."""
    key = dice.choice(sorted(judge.partitions))
    now = judge.partitions[key]["replicas"]
    after = dice.sample(sorted(judge.known), dice.randint(1, min(4, len(judge.known))))
    return {key: dice.choice((after, dice.sample(now, dice.randint(1, len(now)))))}


def checked(seed: int) -> tuple[bool, bool]:
    """(whether one partition that was placed anywhere waits for ever, is refused by Kafka, loses
    what is in sync or stays as it is, whether the check fails it)."""
    case = case_of(seed)
    judge = Judge(case.topology, {"goal": "balance"})
    ((key, after),) = by_hand(Random(seed), judge).items()
    found = check_offline(
        parse_topology(case.topology),
        {TopicPartition(*key): tuple(after)},
        waste_percent_max=100.0,
    )
    now, in_sync = judge.partitions[key]["replicas"], judge.in_sync(key) or set()
    is_lost = in_sync and not in_sync & set(after) and set(after) < set(now)
    is_bad = is_lost or set(after) & (judge.down | judge.cordoned) or list(after) == now
    return bool(is_bad), found.verdict() is Verdict.FAIL


def test_the_check_fails_what_keeps_the_dead() -> None:
    judged = {seed: checked(seed) for seed in range(CHECKED)}
    assert sum(is_bad for is_bad, _ in judged.values()) > CHECKED // 10
    assert [seed for seed, (is_bad, fails) in judged.items() if is_bad and not fails] == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seeds", long_run(CHECKED, SOAK, CHUNK))
def test_the_check_fails_whatever_keeps_the_dead(seeds: range) -> None:
    judged = {seed: checked(seed) for seed in seeds}
    assert [seed for seed, (is_bad, fails) in judged.items() if is_bad and not fails] == []
