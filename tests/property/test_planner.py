"""The planner against its judge on random small clusters."""

import re
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from control.model.ids import TopicPartition
from planner.goals import Goal, GoalError, PlanRequest
from planner.optimizer import Alternative, plan
from planner.proposal import PartitionChange, Proposal
from planner.reassignment_json import format_reassignment, parse_reassignment
from planner.search.placement import Placement, rack_limit, racks_let_go
from planner.topology import (
    Topology,
    TopologyBroker,
    TopologyPartition,
    parse_topology,
    topology_document,
)
from planner.verify import verify_proposal
from tests.support.cases import examples


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    count = draw(st.integers(1, 7))
    racks = draw(st.sampled_from((1, 2, 3, 0)))
    has_unknown = draw(st.booleans())
    brokers = tuple(
        TopologyBroker(
            id=100 + b,
            rack=f"r{draw(st.integers(1, racks))}"
            if racks and not (has_unknown and draw(st.booleans()))
            else None,
        )
        for b in range(count)
    )
    ids = [broker.id for broker in brokers]
    has_traffic = draw(st.booleans())
    partitions = tuple(
        TopologyPartition(
            topic=f"t{p % 3}",
            partition=p // 3,
            replicas=tuple(draw(st.permutations(ids))[: draw(st.integers(1, min(5, count)))]),
            size_bytes=draw(st.integers(0, 1000)),
            in_bytes_per_s=draw(st.integers(0, 50)) if has_traffic else 0,
            out_bytes_per_s=draw(st.integers(0, 50)) if has_traffic else 0,
        )
        for p in range(draw(st.integers(0, 25)))
    )
    return Topology(brokers=brokers, partitions=partitions)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Topology, PlanRequest]:
    topology = draw(topologies())
    shuffled = draw(st.permutations(topology.broker_ids))
    removed = draw(st.integers(0, max(0, len(shuffled) - 1)))
    excluded = draw(st.integers(0, max(0, len(shuffled) - removed - 1)))
    has_traffic = any(p.in_bytes_per_s or p.out_bytes_per_s for p in topology.partitions)
    goals = [goal for goal in Goal if has_traffic or goal is not Goal.TRAFFIC]
    goal = draw(st.sampled_from(goals))
    factor = draw(st.integers(1, 4)) if goal is Goal.REPLICATION else None
    names = [str(p.key) for p in topology.partitions]
    topics = sorted({p.topic for p in topology.partitions})
    kept = tuple(draw(st.permutations(names))[: draw(st.integers(0, 2))])
    without = draw(st.sampled_from(((), tuple(topics[1:2]), ("t*",))))
    others = PlanRequest(keep_partitions=kept, exclude_topics=without).scope()
    left = [str(p.key) for p in topology.partitions if others(p.key)]
    request = PlanRequest(
        goal=goal,
        replication_factor=factor,
        relieve_brokers=(draw(st.sampled_from(shuffled)),) if goal is Goal.RELIEVE else (),
        keep_partitions=kept,
        partitions=draw(st.sampled_from(((), tuple(left[: -(-len(left) // 2)])))),
        exclude_topics=without,
        remove_brokers=tuple(shuffled[:removed]),
        exclude_brokers=tuple(shuffled[removed : removed + excluded]),
    )
    return topology, request


def planned(topology: Topology, request: PlanRequest) -> tuple[Alternative, ...]:
    """The alternatives; none when the wish is answered with a proof that it cannot be."""
    free = len(topology.brokers) - len(request.remove_brokers) - len(request.exclude_brokers)
    widest = max((len(p.replicas) for p in topology.partitions), default=0)
    try:
        return plan(topology, request).alternatives
    except GoalError as error:
        refusal = str(error)
    if request.goal is Goal.LEADERS and request.remove_brokers:
        assert "moves no data" in refusal
        return ()
    assert re.search("impossible|cannot be decommissioned", refusal)
    assert "left alone" in refusal or free < max(widest, request.replication_factor or 0)
    return ()


@given(cases())
@examples(40)
def test_every_alternative_satisfies_the_judge(case: tuple[Topology, PlanRequest]) -> None:
    topology, request = case
    may_touch = request.scope()
    untouched = {str(p.key) for p in topology.partitions if not may_touch(p.key)}
    for alternative in planned(topology, request):
        rules = {violation.rule for violation in alternative.violations}
        assert rules <= {"racks", "removed"}, alternative.violations
        left = {v.where for v in alternative.violations if v.rule == "removed"}
        assert left <= untouched
        may_break_racks = request.remove_brokers or request.exclude_brokers
        changes_width = request.replication_factor is not None
        assert may_break_racks or changes_width or not any(v.is_new for v in alternative.violations)


@given(cases(), st.data())
@examples(30)
def test_no_alternative_names_a_cordoned_broker(
    case: tuple[Topology, PlanRequest], data: st.DataObject
) -> None:
    topology, request = case
    cordoned = data.draw(st.sets(st.sampled_from(topology.broker_ids)))
    brokers = tuple(replace(b, is_cordoned=b.id in cordoned) for b in topology.brokers)
    topology = replace(topology, brokers=brokers)
    try:
        made = plan(topology, request)
    except GoalError:
        return
    for alternative in made.alternatives:
        changes = alternative.proposal.changes
        assert all(cordoned.isdisjoint(change.after) for change in changes)
        keeping = cordoned.difference(request.remove_brokers)
        assert all(keeping.isdisjoint(change.before) for change in changes)
        assert not [v for v in alternative.violations if v.rule == "brokers"]


@given(cases())
@examples(30)
def test_moved_bytes_never_undercut_the_proven_bound(case: tuple[Topology, PlanRequest]) -> None:
    topology, request = case
    for alternative in planned(topology, request):
        if alternative.lower_bound_bytes is None:
            assert request.replication_factor is not None
            continue
        assert alternative.proposal.moved_bytes >= alternative.lower_bound_bytes


@given(topologies(), st.data())
@examples(40)
def test_leaders_never_move_a_byte(topology: Topology, data: st.DataObject) -> None:
    """Also where racks are broken, disks are full and brokers are down."""
    brokers = tuple(
        replace(
            broker,
            capacity_bytes=data.draw(st.sampled_from((None, 0, 1_000))),
            is_running=data.draw(st.booleans()) or broker is topology.brokers[0],
        )
        for broker in topology.brokers
    )
    (found,) = plan(replace(topology, brokers=brokers), PlanRequest(goal=Goal.LEADERS)).alternatives
    assert found.proposal.moved_bytes == found.proposal.moved_replicas == 0
    assert all(sorted(c.before) == sorted(c.after) for c in found.proposal.changes)


@given(cases())
@examples(15)
def test_plans_are_deterministic_and_have_an_inverse(case: tuple[Topology, PlanRequest]) -> None:
    topology, request = case
    first, second = planned(topology, request), planned(topology, request)
    assert first == second
    for alternative in first:
        targets = alternative.proposal.targets()
        after = topology.with_replicas(targets)
        assert after.with_replicas(alternative.proposal.inverse().targets()) == topology
        if targets:
            assert parse_reassignment(format_reassignment(targets)) == targets


@given(topologies())
def test_topology_documents_round_trip(topology: Topology) -> None:
    assert parse_topology(topology_document(topology)) == topology


@given(topologies(), st.data())
def test_moves_keep_the_figures_in_step(topology: Topology, data: st.DataObject) -> None:
    placement = Placement(topology, PlanRequest())
    for _ in range(10):
        moves = [
            (p, source, target)
            for p, replicas in enumerate(placement.replicas)
            for source in replicas
            for target in range(placement.brokers)
            if target not in replicas
        ]
        if not moves:
            break
        placement.move(*data.draw(st.sampled_from(moves)))
    placement.check_invariants()


@given(topologies(), st.data())
def test_racks_let_go_what_leaves_them_as_even_as_they_are(
    topology: Topology, data: st.DataObject
) -> None:
    placement = Placement(topology, PlanRequest())
    brokers = st.integers(0, placement.brokers - 1)
    source, target = data.draw(brokers), data.draw(brokers)
    left, entered = placement.rack[source], placement.rack[target]
    holding = [p for p, replicas in enumerate(placement.replicas) if source in replicas]
    of_all = racks_let_go(placement, np.array(holding, dtype=np.int64), source, target)
    for partition, is_let_go in zip(holding, of_all.tolist(), strict=True):
        replicas = placement.replicas[partition]
        before = [placement.rack[b] for b in replicas]
        others = [placement.rack[b] for b in replicas if b != source]
        known, after = placement.known_racks, {*others, entered}
        needed = min(len(replicas), known, len(set(before)))
        is_even = (
            len(replicas) <= known
            or entered not in before
            or others.count(entered) < max(rack_limit(placement, partition), before.count(left))
        )
        is_unsure = any(rack >= known for rack in {*before, entered} - {placement.racks})
        keeps_known = not (is_unsure and others) or {r for r in before if r < known} <= after
        fits = left == entered or (is_even and keeps_known and len(after) >= needed)
        assert is_let_go == placement.may_change_racks(partition, source, target) == fits


@given(topologies(), st.data())
def test_the_judge_sees_every_broken_rule(topology: Topology, data: st.DataObject) -> None:
    if not topology.partitions:
        return
    partition = data.draw(st.sampled_from(topology.partitions))
    bad = data.draw(
        st.sampled_from(
            (
                (*partition.replicas, partition.replicas[0]),
                (*partition.replicas[1:], 999),
                (),
            )
        )
    )
    change = _change(partition, bad)
    found = verify_proposal(topology, PlanRequest(), Proposal(name="bad", changes=(change,)))
    assert any(v.where == str(TopicPartition(partition.topic, partition.partition)) for v in found)


def _change(partition: TopologyPartition, after: tuple[int, ...]) -> PartitionChange:
    return PartitionChange(
        topic=partition.topic,
        partition=partition.partition,
        before=partition.replicas,
        after=after,
        size_bytes=partition.size_bytes,
    )
