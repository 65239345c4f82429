"""A plan that was applied and is made again is empty, so no two plans undo each other for ever."""

from collections.abc import Iterable
from typing import Any

import pytest

from planner.proposal import PartitionChange
from tests.oracle.planner.cases import Case
from tests.oracle.planner.planned import planned
from tests.oracle.planner.steady import steady_case
from tests.oracle.planner.tight import tight_case
from tests.oracle.seeds import long_run

ORDINARY = 10
TIGHT = 10
ONCE_RESTLESS = (66, 116, 120, 179, 273, 374, 444, 462, 793, 916, 999, 1404, 114220)
"""Orders permuted by tries that were undone, data moved there and back, endless cycles; a replica
on an unknown rack that was kept in the place of one on a known rack."""
LEADERS_STAY = ("racks", "decommission only", "relieved")
SOAK = 20_000
CHUNK = 500


def applied(topology: dict[str, Any], changes: Iterable[PartitionChange]) -> dict[str, Any]:
    """As Kafka does it: every copy in sync, the first replica leads."""
    new = {(change.topic, change.partition): list(change.after) for change in changes}
    return topology | {
        "partitions": [
            p if now is None else p | {"replicas": now, "isr": now, "leader": now[0]}
            for p in topology["partitions"]
            for now in (new.get((p["topic"], p["partition"])),)
        ]
    }


def restless(case: Case) -> list[str]:
    """Alternatives that are not empty once they were applied, or that permute what stays."""
    made = planned(case)
    found = []
    for alternative in made.alternatives if made is not None else ():
        changes, name = alternative.proposal.changes, alternative.name
        found += [
            f"{name}: {change.before} → {change.after}"
            for change in changes
            if set(change.before) == set(change.after)
            and (name in LEADERS_STAY or change.before[0] == change.after[0])
        ]
        again = planned(Case(topology=applied(case.topology, changes), request=case.request))
        found += [
            f"{name}, made again: {change.key} {change.before} → {change.after}"
            for other in (again.alternatives if again is not None else ())
            if other.name == name
            for change in other.proposal.changes
        ]
    return found


@pytest.mark.parametrize("first", range(0, ORDINARY, 10))
def test_a_plan_made_again_is_empty(first: int) -> None:
    seeds = range(first, first + 10)
    assert {seed: bad for seed in seeds if (bad := restless(steady_case(seed)))} == {}


@pytest.mark.parametrize("first", range(0, TIGHT, 10))
def test_a_plan_on_tight_disks_made_again_is_empty(first: int) -> None:
    seeds = range(first, first + 10)
    assert {seed: bad for seed in seeds if (bad := restless(tight_case(seed)))} == {}


@pytest.mark.parametrize("seed", ONCE_RESTLESS)
def test_what_was_restless_once_is_not_again(seed: int) -> None:
    assert restless(steady_case(seed)) == []


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seeds", long_run(0, SOAK, CHUNK))
def test_every_plan_made_again_is_empty(seeds: range) -> None:
    assert {seed: bad for seed in seeds if (bad := restless(steady_case(seed)))} == {}
    assert {seed: bad for seed in seeds if (bad := restless(tight_case(seed)))} == {}
