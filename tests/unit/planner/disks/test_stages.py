"""Stages: what has to end before disks have room for the rest."""

from dataclasses import replace

from control.model.ids import TopicPartition
from planner.disks.stages import stages_of
from planner.proposal import PartitionChange, Proposal, proposal_of
from planner.topology import Topology, TopologyBroker
from planner.waves import LeaderTurn, WaveRules, plan_waves
from tests.unit.planner.clusters import single


def key(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


def change(
    partition: int, before: tuple[int, ...], after: tuple[int, ...], size: int, stage: int = 0
) -> PartitionChange:
    return PartitionChange(
        topic="t", partition=partition, before=before, after=after, size_bytes=size, stage=stage
    )


def with_disks(topology: Topology, *capacities: int | None) -> Topology:
    pairs = zip(topology.brokers, capacities, strict=True)
    brokers: tuple[TopologyBroker, ...] = tuple(
        replace(broker, capacity_bytes=most) for broker, most in pairs
    )
    return replace(topology, brokers=brokers)


def test_what_has_to_make_room_is_of_an_earlier_stage() -> None:
    p, q = change(0, (1,), (3,), 30), change(1, (3,), (4,), 20)
    assert stages_of({1: 0, 3: 10, 4: 20}, (p, q)).of == {key(0): 1}
    assert stages_of({1: 0, 3: 30, 4: 20}, (p, q)).of == {}
    assert stages_of({}, (p, q)).of == {}, "nobody tells the size of disks"


def test_what_makes_room_for_a_tight_broker_comes_before_what_is_small() -> None:
    """The small one alone would take the room that the one that makes way needs."""
    away, small, large = (
        change(0, (2,), (3,), 40),
        change(1, (1,), (3,), 10),
        change(2, (1,), (2,), 40),
    )
    stages = stages_of({1: 0, 2: 0, 3: 45}, (small, away, large))
    assert stages.stuck == {key(1)}
    assert stages.of == {key(2): 1, key(1): 2}


def test_two_full_brokers_cannot_change_places() -> None:
    stages = stages_of({1: 0, 2: 0}, (change(0, (1,), (2,), 10), change(1, (2,), (1,), 10)))
    assert stages.stuck == {key(0), key(1)}


def test_every_order_is_tried_where_few_wait() -> None:
    """Smallest first ends in a deadlock, largest first does not."""
    a, b = change(0, (1,), (2,), 10), change(1, (3,), (2,), 20)
    c, d = change(2, (2,), (3,), 15), change(3, (4,), (1,), 10)
    stages = stages_of({1: 0, 2: 20, 3: 0, 4: 0}, (a, b, c, d))
    assert not stages.stuck
    assert stages.of == {key(2): 1, key(0): 2, key(3): 3}


def test_a_proposal_has_its_stages_and_goes_back_in_the_other_order() -> None:
    topology = with_disks(single(4, [30, 20], on=[1, 3]), 30, 0, 30, 20)
    proposal = proposal_of("p", topology, {key(0): (3,), key(1): (4,)})
    assert [(c.partition, c.stage) for c in proposal.changes] == [(0, 1), (1, 0)]
    assert [(c.partition, c.stage) for c in proposal.inverse().changes] == [(0, 0), (1, 1)]
    roomy = with_disks(single(4, [30, 20], on=[1, 3]), 30, None, None, 20)
    made = proposal_of("p", roomy, {key(0): (3,), key(1): (4,)})
    assert {c.stage for c in made.changes} == {0}


def test_waves_never_mix_stages_whatever_the_rules() -> None:
    changes = (
        change(0, (1,), (3,), 1, stage=1),
        change(1, (3,), (4,), 900),
        change(2, (3,), (4,), 5),
    )
    for rules in (WaveRules(), WaveRules(partitions=1), WaveRules(leaders=LeaderTurn.LAST)):
        order = [c.partition for wave in plan_waves(changes, rules) for c in wave]
        assert order == [2, 1, 0]
    assert len(plan_waves(changes)) == 2
    assert len(plan_waves(Proposal(name="p", changes=changes).inverse().changes)) == 2
