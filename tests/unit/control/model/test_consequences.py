"""A broker that is down is one finding, with what follows from it under it."""

from typing import Any

from control.model.consequences import gathered
from control.model.finding import Finding
from control.model.finding_rules import Evidence, find_all
from control.model.status import Severity
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

BROKERS = [clusters.broker(1), clusters.broker(2), clusters.broker(3, is_fenced=True)]


def told(**rows: list[dict[str, Any]]) -> tuple[Finding, ...]:
    evidence = Evidence.gather(clusters.snapshot(**rows), now_ms=NOW_MS)
    return gathered(find_all(evidence), evidence)


def counts(finding: Finding) -> dict[str, object]:
    return {item.kind: item.facts["count"] for item in finding.consequences}


def partitions_without_3() -> list[dict[str, Any]]:
    return [
        clusters.partition("t", 0, [3, 1, 2], leader=1, isr=[1, 2]),
        clusters.partition("t", 1, [2, 3], isr=[2], min_isr=2),
        clusters.partition("t", 2, [3], leader=-1, isr=[3]),
        clusters.partition("t", 3, [1, 2]),
    ]


def test_one_broker_down_is_one_finding_with_its_consequences_under_it() -> None:
    (found,) = told(brokers=BROKERS, partitions=partitions_without_3())
    assert (found.kind, found.severity) == ("broker-fenced", Severity.CRITICAL)
    assert counts(found) == {
        "offline": 1,
        "under-min-isr": 1,
        "under-replicated": 2,
        "not-preferred": 1,
    }


def test_what_has_another_cause_as_well_stays_a_finding_of_its_own_and_counts_all() -> None:
    whole = clusters.partition("u", 0, [1, 2, 4], isr=[1, 2])
    others = [*partitions_without_3(), whole]
    findings = {item.kind: item for item in told(brokers=BROKERS, partitions=others)}
    assert findings["under-replicated"].facts["count"] == 3
    assert "under-replicated" not in counts(findings["broker-fenced"])
    assert counts(findings["broker-fenced"])["offline"] == 1


def test_an_offline_partition_whose_last_replica_is_up_has_another_cause() -> None:
    rows = [clusters.partition("t", 0, [1, 3], leader=-1, isr=[1])]
    assert {item.kind for item in told(brokers=BROKERS, partitions=rows)} == {
        "broker-fenced",
        "offline",
    }


def test_leaders_that_are_uneven_only_while_it_is_down_are_its_consequence() -> None:
    rows = [
        clusters.partition("t", n, order, leader=order[0] if order[0] != 3 else order[1],
                           isr=[it for it in order if it != 3])
        for n in range(18)
        for order in [[1 + n % 3, 1 + (n + 1) % 3, 1 + (n + 2) % 3]]
    ]  # fmt: skip
    (found,) = told(brokers=BROKERS, partitions=rows)
    assert "skew-leaders" in {item.kind for item in found.consequences}


def test_groups_whose_verdict_is_lost_with_it_are_under_it() -> None:
    brokers = [clusters.broker(1), clusters.broker(3, is_fenced=True)]
    rows = [clusters.partition("t", 0, [3], leader=-1, isr=[3])]
    commits = [clusters.commit("g", "t", 0, status=None, lag=5)]
    (found,) = told(brokers=brokers, partitions=rows, commits=commits, groups=[clusters.group("g")])
    assert counts(found) == {"offline": 1, "groups-not-known": 1}


def test_two_brokers_down_share_what_follows() -> None:
    brokers = [clusters.broker(1), clusters.broker(4)]
    brokers += [clusters.broker(n, is_fenced=True) for n in (2, 3)]
    rows = [
        clusters.partition("t", 0, [1, 4, 2], isr=[1, 4]),
        clusters.partition("t", 1, [1, 4, 3], isr=[1, 4]),
        clusters.partition("t", 2, [1, 4, 3], isr=[1, 4]),
    ]
    findings = told(brokers=brokers, partitions=rows)
    assert [counts(it) for it in findings if it.label == "broker 3"] == [{"under-replicated": 3}]
    assert [counts(it) for it in findings if it.label == "broker 2"] == [{}]


def test_with_all_brokers_up_nothing_is_a_consequence() -> None:
    rows = [clusters.partition("t", 0, [1, 2, 4], isr=[1, 2])]
    (found,) = told(brokers=BROKERS[:2], partitions=rows)
    assert (found.kind, found.consequences) == ("under-replicated", ())


def test_a_partition_that_moves_is_no_finding_for_its_own_move() -> None:
    """Its target stands first in its replicas, its new replicas are not in sync yet."""
    moving = clusters.partition(
        "t", 0, [2, 1, 3], leader=1, isr=[1, 3], adding_replicas=[2], removing_replicas=[3]
    )
    assert told(brokers=[clusters.broker(n) for n in (1, 2, 3)], partitions=[moving]) == ()
    settled = clusters.partition("t", 0, [2, 1], leader=1)
    (found,) = told(brokers=BROKERS[:2], partitions=[settled])
    assert found.kind == "not-preferred"
