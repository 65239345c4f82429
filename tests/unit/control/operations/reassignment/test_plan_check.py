"""A plan judged beside a topology: figures equal to those counted here one by one."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from control.kafka.errors import UnsupportedApiError
from control.kafka.ports import (
    BrokerNode,
    MissingRight,
    OngoingReassignment,
    PartitionMetadata,
)
from control.model.ids import TopicPartition
from control.move.check import Verdict
from control.operations.reassignment.facts import ClusterFacts, topology_of
from control.operations.reassignment.plan_check import check_document, check_offline, check_plan
from control.operations.reassignment.preflight import preflight
from planner.proposal import proposal_of
from planner.topology import (
    Topology,
    TopologyBroker,
    TopologyPartition,
    parse_topology,
    topology_document,
)
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import FROM, TO, FakeCluster

Places = Mapping[TopicPartition, tuple[int, ...]]
BROKERS = (1, 2, 3)
SIZES = (70, 20, 20, 10)
FULL = Topology(
    brokers=tuple(
        TopologyBroker(id=id_, rack=rack, capacity_bytes=1000)
        for id_, rack in zip(BROKERS, "aab", strict=True)
    ),
    partitions=tuple(
        TopologyPartition(topic="t", partition=number, replicas=(1,), size_bytes=size)
        for number, size in enumerate(SIZES)
    ),
)
"""All of it stands on broker 1."""


def _plan(**replicas: tuple[int, ...]) -> Places:
    return {TopicPartition("t", int(name[1:])): after for name, after in replicas.items()}


def _moved(places: Places) -> int:
    """Counted by hand: a replica on a broker that has none of the partition is copied whole."""
    return sum(SIZES[key.partition] * len(set(after) - {1}) for key, after in places.items())


def _held(places: Places) -> tuple[int, int, int]:
    """Fewest and most replicas of a broker, and the most bytes."""
    numbers, held = Counter(dict.fromkeys(BROKERS, 0)), Counter(dict.fromkeys(BROKERS, 0))
    for number, size in enumerate(SIZES):
        for broker in places.get(TopicPartition("t", number), (1,)):
            numbers[broker] += 1
            held[broker] += size
    return min(numbers.values()), max(numbers.values()), max(held.values())


def _every_placement() -> Iterator[Places]:
    for brokers in product(BROKERS, repeat=len(SIZES)):
        yield {TopicPartition("t", n): (broker,) for n, broker in enumerate(brokers)}


@pytest.mark.parametrize(
    ("plan", "wasted"),
    [
        (_plan(p1=(2,), p2=(3,)), 0),
        (_plan(p1=(2,), p2=(2,), p3=(3,)), 0),
        (_plan(p0=(2,), p3=(3,)), 30),
        (_plan(p0=(2,)), 20),
    ],
)
def test_figures_are_those_of_a_search_through_every_placement(plan: Places, wasted: int) -> None:
    found = check_document(check_offline(FULL, plan, waste_percent_max=100), is_strict=False)
    low, high, held = _held(plan)
    least = min(
        _moved(other)
        for other in _every_placement()
        if (reached := _held(other))[0] >= low and reached[1] <= high and reached[2] <= held
    )
    assert found["moved_bytes"] == _moved(plan)
    assert found["moved_replicas"] == len(plan)
    assert found["least_bytes"] == least
    assert found["wasted_bytes"] == _moved(plan) - least == wasted


def test_a_plan_fails_for_what_it_breaks_and_for_waste_above_the_limit() -> None:
    lost = check_offline(FULL, _plan(p0=(9,)), waste_percent_max=100)
    assert lost.verdict() is Verdict.FAIL
    assert [it.name for it in lost.checks if it.verdict is Verdict.FAIL] == ["brokers"]
    wasteful = check_offline(FULL, _plan(p0=(2,), p3=(3,)), waste_percent_max=30)
    (waste,) = [it for it in wasteful.checks if it.verdict is Verdict.FAIL]
    assert waste.name == "waste"
    assert not lacking(waste.reason, "80 B move", "at least 50 B")
    assert check_offline(FULL, _plan(p1=(2,)), waste_percent_max=0).verdict() is Verdict.OK


def test_a_plan_that_crowds_a_broker_warns_and_fails_where_it_is_strict() -> None:
    even = FULL.with_replicas(_plan(p1=(2,), p2=(3,)))
    crowded = check_offline(even, _plan(p0=(2,)), waste_percent_max=100)
    (balance,) = [it for it in crowded.checks if it.name == "balance"]
    assert "gets 90 B, it has 80 B" in balance.reason
    assert crowded.verdict() is Verdict.WARN
    assert crowded.verdict(is_strict=True) is Verdict.FAIL


def test_a_broker_that_is_emptied_does_not_count_in_the_balance() -> None:
    plan = _plan(p0=(2,), p1=(3,), p2=(3,), p3=(3,))
    found = check_document(check_offline(FULL, plan, waste_percent_max=0), is_strict=True)
    assert (found["emptied_brokers"], found["wasted_bytes"]) == ([1], 0)
    assert found["passes"]
    (waste,) = [it for it in found["checks"] if it["name"] == "waste"]
    assert not lacking(waste["reason"], "empties brokers 1")


def test_racks_are_judged_as_they_are_although_a_broker_is_emptied() -> None:
    """Broker 3 alone is on rack b: it is emptied, and all replicas are on rack a afterwards."""
    spread = FULL.with_replicas(_plan(p0=(1, 3), p1=(1, 3), p2=(1, 3), p3=(1, 3)))
    found = check_offline(
        spread, _plan(p0=(1, 2), p1=(1, 2), p2=(1, 2), p3=(1, 2)), waste_percent_max=100
    )
    assert found.emptied == (3,)
    (racks,) = [it for it in found.checks if it.name == "racks"]
    assert racks.reason.startswith("t-0 is on 1 rack afterwards, on 2 now")
    assert found.verdict(is_strict=True) is Verdict.FAIL


def _random_facts(dice: Random) -> ClusterFacts:
    """A cluster that tells everything: dead, cordoned and rackless brokers, slow replicas."""
    ids = range(1, dice.randint(3, 6) + 1)
    live = [id_ for id_ in ids if dice.random() < 0.85] or [1]
    partitions, sizes = {}, {}
    for number in range(4):
        replicas = tuple(dice.sample(list(ids), dice.randint(1, 3)))
        isr = tuple(id_ for id_ in replicas if id_ in live and dice.random() < 0.8)
        leader = dice.choice(isr) if isr else -1
        key = TopicPartition("t", number)
        partitions[key] = PartitionMetadata(
            topic="t", partition=number, leader=leader, leader_epoch=0, replicas=replicas, isr=isr
        )
        sizes[key] = dice.choice((0, 100, 500))
    racks = {id_: dice.choice(("a", "b", None)) for id_ in live}
    moving = dice.choice(list(partitions.values()))
    ongoing = OngoingReassignment(
        topic="t",
        partition=moving.partition,
        replicas=moving.replicas,
        adding_replicas=(),
        removing_replicas=(),
    )
    return ClusterFacts(
        cluster_id="c",
        brokers=tuple(BrokerNode(id=id_, host="h", port=1, rack=racks[id_]) for id_ in live),
        partitions=partitions,
        reassigning={moving.key: ongoing} if dice.random() < 0.2 else {},
        sizes=sizes,
        usable_bytes={id_: dice.choice((100, 10**6)) for id_ in live},
        min_isr={"t": dice.choice((1, 2))},
        cordoned=frozenset(id_ for id_ in live if dice.random() < 0.05),
    )


@pytest.mark.parametrize("seed", range(0, 300, 100))
def test_a_topology_file_is_judged_as_the_cluster_that_it_tells_of(seed: int) -> None:
    verdicts: Counter[Verdict] = Counter()
    for number in range(seed, seed + 100):
        dice = Random(number)
        facts = _random_facts(dice)
        topology = parse_topology(topology_document(topology_of(facts)))
        known = list(topology.broker_ids)
        targets = {
            p.key: tuple(dice.sample(known, min(len(known), dice.randint(1, 3))))
            for p in topology.partitions
            if dice.random() < 0.5
        }
        changes = proposal_of("x", topology_of(facts), targets).changes
        live = preflight(facts, changes, throttle_bytes_per_s=None)
        offline = check_offline(topology, targets, waste_percent_max=100)
        of_live = {c.name: c.verdict for c in live}
        found = {c.name: c.verdict for c in offline.checks if c.name in of_live}
        assert found == {name: of_live[name] for name in found}, (number, live, offline.checks)
        assert of_live.keys() - found.keys() <= {"throttle", "time", "groups"}
        verdicts.update([offline.verdict()])
    assert verdicts.keys() == {Verdict.WARN, Verdict.FAIL}


@pytest.mark.parametrize(
    ("after", "isr", "name", "verdict"),
    [
        ((3, 1), (1,), "brokers", Verdict.FAIL),
        ((3,), (1,), "brokers", Verdict.FAIL),
        ((1, 3), (1,), "partitions", Verdict.FAIL),
        ((1, 2, 4), (1,), "replicas", Verdict.WARN),
        ((1, 2), (1,), "replicas", Verdict.OK),
        ((1,), None, "in-sync replicas", Verdict.WARN),
    ],
    ids=["dead leads", "only the dead", "nothing", "factor", "dead replaced", "unknown"],
)
def test_offline_fails_what_a_cluster_would(
    after: tuple[int, ...], isr: tuple[int, ...] | None, name: str, verdict: Verdict
) -> None:
    """Broker 3 is dead."""
    topology = Topology(
        brokers=tuple(
            TopologyBroker(id=id_, capacity_bytes=1000, is_running=id_ != 3) for id_ in (1, 2, 3, 4)
        ),
        partitions=(
            TopologyPartition(
                topic="t", partition=0, replicas=(1, 3), size_bytes=1, isr=isr, min_isr=1
            ),
        ),
    )
    found = check_offline(topology, _plan(p0=after), waste_percent_max=100)
    assert {it.name: it.verdict for it in found.checks}[name] is verdict, found.checks


class Watching(FakeCluster):
    """A cluster to one who may only look."""

    async def missing_rights(self, *_: Any) -> Any:
        return (MissingRight(operation="ALTER", resource="cluster", grant="kafka-acls.sh …"),)


async def test_who_may_not_run_a_plan_may_check_it() -> None:
    key = TopicPartition("t", 0)
    cluster: Any = Watching({key: FROM})

    async def no_groups() -> None:
        raise UnsupportedApiError("list groups", served=None)

    cluster.groups = SimpleNamespace(list_groups=no_groups)
    found = await check_plan(cluster, {key: TO}, throttle="none", waste_percent_max=100.0)
    (rights,) = (it for it in found.checks if it.name == "rights")
    assert rights.verdict is Verdict.OK
    assert not lacking(rights.reason, "needs ALTER on the cluster", "grant")
