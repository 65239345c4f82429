"""Every pre-flight check, one broken fact at a time."""

import re
from dataclasses import replace

import pytest

from control.kafka.ports import BrokerNode, MissingRight, OngoingReassignment, PartitionMetadata
from control.model.ids import TopicPartition
from control.move.change_codec import pack, unpack
from control.operations.errors import InvalidInputError
from control.operations.reassignment.disks.preflight_disk import check_disk, peak_bytes
from control.operations.reassignment.existing_throttles import lower_rates
from control.operations.reassignment.facts import ClusterFacts, to_go, topology_of
from control.operations.reassignment.planning import preview_of, proposal_for, resolve_throttle
from control.operations.reassignment.preflight import (
    Check,
    Verdict,
    failures,
    is_refused,
    preflight,
)
from control.operations.reassignment.preflight_load import expected_seconds, waves_now
from control.operations.reassignment.producer_traffic import seconds_of
from planner.proposal import PartitionChange, Proposal
from planner.waves import WaveRules
from tests.support.phrases import lacking

KEY = TopicPartition("t", 0)
PARTITION = PartitionMetadata(
    topic="t", partition=0, leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2)
)
MOVE = PartitionChange(topic="t", partition=0, before=(1, 2), after=(3, 2), size_bytes=1000)
FACTS = ClusterFacts(
    cluster_id="c",
    brokers=tuple(BrokerNode(id=id_, host="h", port=1, rack=None) for id_ in (1, 2, 3)),
    partitions={KEY: PARTITION},
    reassigning={},
    sizes={KEY: 1000},
    usable_bytes={1: 10**9, 2: 10**9, 3: 10**9},
    min_isr={"t": 1},
    produced={KEY: 0.0},
)
MOVING = OngoingReassignment(
    topic="t", partition=0, replicas=(3, 1, 2), adding_replicas=(3,), removing_replicas=(1,)
)


def verdicts(
    facts: ClusterFacts, change: PartitionChange = MOVE, rate: int | None = 10**6
) -> dict[str, Verdict]:
    checks = preflight(facts, (change,), throttle_bytes_per_s=rate)
    assert all(check.reason for check in checks)
    return {check.name: check.verdict for check in checks if check.verdict is not Verdict.OK}


def test_rights_that_lack_are_told_with_what_grants_them_or_works_without() -> None:
    throttles = MissingRight(operation="ALTER_CONFIGS", resource="topic", grant="kafka-acls topics")
    facts = replace(FACTS, missing_rights=(throttles,))
    check = preflight(facts, (MOVE,), throttle_bytes_per_s=10**6)[-1]
    assert (check.name, check.verdict) == ("rights", Verdict.FAIL)
    assert "kafka-acls topics" in check.reason
    assert "without a throttle" in check.reason
    assert verdicts(facts, rate=None) == {"throttle": Verdict.WARN}
    assert verdicts(facts, replace(MOVE, after=(2, 1))) == {}, "no data, no throttle"
    moves = MissingRight(operation="ALTER", resource="cluster", grant="kafka-acls cluster")
    facts = replace(FACTS, missing_rights=(moves, throttles))
    assert (
        "without a throttle" not in preflight(facts, (MOVE,), throttle_bytes_per_s=1024)[-1].reason
    )
    assert verdicts(facts, rate=None)["rights"] is Verdict.FAIL


def test_thousands_of_partitions_without_data_take_their_time() -> None:
    few = [tuple(replace(MOVE, partition=n, size_bytes=0) for n in range(20))]
    many = [tuple(replace(MOVE, partition=n, size_bytes=0) for n in range(1020))]
    base, more = (seconds_of(waves, rate=10**6, produced={}) for waves in (few, many))
    assert more[0] - base[0] == pytest.approx(2.0)
    assert more[1] - base[1] == pytest.approx(12.0)


def test_a_sound_move_passes() -> None:
    assert verdicts(FACTS) == {}


@pytest.mark.parametrize(
    ("facts", "change", "expected"),
    [
        (replace(FACTS, partitions={}), MOVE, {"partitions": Verdict.FAIL}),
        (
            replace(FACTS, partitions={KEY: replace(PARTITION, replicas=(2, 3), isr=(2, 3))}),
            replace(MOVE, after=(1, 3)),
            {"plan is current": Verdict.FAIL},
        ),
        (FACTS, replace(MOVE, after=(9, 2)), {"brokers": Verdict.FAIL, "disk": Verdict.WARN}),
        (replace(FACTS, brokers=FACTS.brokers[:2]), MOVE, {"brokers": Verdict.FAIL}),
        (FACTS, replace(MOVE, after=(3, 3)), {"replicas": Verdict.FAIL}),
        (FACTS, replace(MOVE, after=(1, 2, 3)), {"replicas": Verdict.WARN}),
        (replace(FACTS, usable_bytes={3: 1000}), MOVE, {"disk": Verdict.FAIL}),
        (replace(FACTS, usable_bytes={}), MOVE, {"disk": Verdict.WARN}),
        (
            replace(FACTS, min_isr={"t": 2}),
            replace(MOVE, after=(3,)),
            {"min.insync.replicas": Verdict.FAIL, "replicas": Verdict.WARN},
        ),
        (
            replace(
                FACTS,
                partitions={KEY: replace(PARTITION, replicas=(1, 2, 3), isr=(1, 2))},
            ),
            replace(MOVE, before=(1, 2, 3), after=(1, 3, 2)),
            {"in-sync replicas": Verdict.WARN},
        ),
        (
            replace(
                FACTS,
                partitions={KEY: replace(PARTITION, replicas=(1, 2, 3), isr=(1, 2))},
                min_isr={"t": 2},
            ),
            replace(MOVE, before=(1, 2, 3), after=(1, 3, 2)),
            {"in-sync replicas": Verdict.WARN, "min.insync.replicas": Verdict.WARN},
        ),
        (
            replace(FACTS, min_isr={}),
            replace(MOVE, after=(3,)),
            {"min.insync.replicas": Verdict.WARN, "replicas": Verdict.WARN},
        ),
        (replace(FACTS, min_isr={}), MOVE, {}),
        (
            replace(FACTS, partitions={KEY: replace(PARTITION, isr=(1,))}),
            MOVE,
            {"in-sync replicas": Verdict.WARN, "min.insync.replicas": Verdict.WARN},
        ),
    ],
)
def test_each_broken_fact_is_found(
    facts: ClusterFacts, change: PartitionChange, expected: dict[str, Verdict]
) -> None:
    assert verdicts(facts, change) == expected


def test_a_running_reassignment_of_the_same_partition_is_left_out_unless_that_is_all() -> None:
    facts = replace(FACTS, reassigning={KEY: MOVING})
    assert verdicts(facts)["running reassignments"] is Verdict.FAIL
    second = replace(MOVE, partition=1)
    placed = {KEY: PARTITION, second.key: replace(PARTITION, partition=1)}
    sizes = dict.fromkeys(placed, 1000)
    facts = replace(facts, partitions=placed, sizes=sizes, produced=dict.fromkeys(placed, 0.0))
    checks = preflight(facts, (replace(MOVE, before=(7, 2)), second), throttle_bytes_per_s=10**6)
    assert [(c.name, c.reason) for c in checks if c.verdict is not Verdict.OK] == [
        ("running reassignments", "t-0 is being reassigned already: left out")
    ]
    made = preview_of(facts, Proposal(name="p", changes=(MOVE, second)), throttle="none")
    assert made.proposal.changes == (second,)
    assert [c.key for c in to_go(facts, (MOVE, second), rolled_back=None)] == [second.key]
    other = TopicPartition("other", 1)
    facts = replace(FACTS, reassigning={other: replace(MOVING, topic="other", partition=1)})
    assert verdicts(facts) == {"running reassignments": Verdict.WARN}


def test_throttles_below_kafkas_minimum_are_refused_and_none_is_a_warning() -> None:
    assert verdicts(FACTS, rate=1000) == {"throttle": Verdict.FAIL}
    assert verdicts(FACTS, rate=None) == {"throttle": Verdict.WARN}
    assert is_refused(preflight(FACTS, (), throttle_bytes_per_s=None))


def rollback_plan(facts: ClusterFacts, *changes: PartitionChange) -> dict[str, Check]:
    checks = preflight(facts, changes, throttle_bytes_per_s=10**6, rolled_back="mv-1")
    return {check.name: check for check in checks if check.verdict is not Verdict.OK}


def test_a_way_back_leaves_what_others_moved_since_and_is_refused_where_that_is_all() -> None:
    other = replace(MOVE, partition=1, after=(9,))
    elsewhere = replace(PARTITION, partition=1, replicas=(2, 3), isr=(2, 3))
    facts = replace(FACTS, partitions={KEY: PARTITION, other.key: elsewhere})
    words = ("t-1 is on [2, 3]", "not where mv-1", "left as it is")
    (said,) = rollback_plan(facts, MOVE, other).values()
    assert (said.name, said.verdict) == ("plan is current", Verdict.WARN)
    assert not lacking(said.reason, *words)
    said = rollback_plan(facts, other)["plan is current"]
    assert said.verdict is Verdict.FAIL
    assert not lacking(said.reason, *words, "first roll back")


def test_a_way_back_turns_round_what_is_in_flight_and_leaves_what_others_have() -> None:
    back = MOVE.inverse()
    facts = replace(FACTS, reassigning={KEY: MOVING})
    assert rollback_plan(facts, back) == {}
    facts = replace(FACTS, reassigning={KEY: replace(MOVING, replicas=(3, 4, 2))})
    said = rollback_plan(facts, MOVE)["plan is current"]
    assert said.verdict is Verdict.FAIL
    assert not lacking(said.reason, "t-0", "on its way to [3, 4, 2]", "left as it is")


def test_replicas_of_before_and_after_together_may_be_old_news() -> None:
    facts = replace(FACTS, partitions={KEY: replace(PARTITION, replicas=(3, 1, 2), isr=(3, 1, 2))})
    assert rollback_plan(facts, MOVE) == {}


def test_the_topology_counts_a_moving_partition_where_it_goes() -> None:
    facts = replace(
        FACTS,
        partitions={KEY: replace(PARTITION, replicas=(3, 1, 2))},
        reassigning={KEY: replace(MOVING, replicas=(3, 2, 1), removing_replicas=(1,))},
    )
    (partition,) = topology_of(facts).partitions
    assert (partition.replicas, partition.size_bytes) == ((3, 2), 1000)


def test_a_dead_broker_keeps_its_place_in_the_topology() -> None:
    facts = replace(FACTS, brokers=FACTS.brokers[1:])
    assert topology_of(facts).broker_ids == (1, 2, 3)


def test_a_broker_that_is_down_is_no_target_and_disks_have_an_end() -> None:
    facts = replace(FACTS, brokers=FACTS.brokers[1:], usable_bytes={1: 100, 2: 1000, 3: 2000})
    brokers = topology_of(facts).brokers
    assert [broker.is_running for broker in brokers] == [False, True, True]
    assert [broker.capacity_bytes for broker in brokers] == [1000 + 95, 1000 + 950, 1900]


MIB = 1 << 20

SLOW = replace(PARTITION, leader=2, replicas=(1, 2, 3), isr=(2, 3))
"""Broker 1, the preferred leader, lacks records."""
FEWER = replace(MOVE, before=(1, 2, 3), after=(1,))


def test_dropping_all_that_is_in_sync_is_refused_with_what_would_work() -> None:
    facts = replace(FACTS, partitions={KEY: SLOW})
    assert verdicts(facts, FEWER)["in-sync replicas"] is Verdict.FAIL
    assert not lacking(
        reasons(facts, FEWER, MIB)["in-sync replicas"],
        *("t-0 keeps 1", "not in sync", "drops 2, 3", "[2] would work"),
    )
    for after in ((2,), (2, 1), (4, 3, 1)):
        found = verdicts(replace(facts, brokers=FOUR), replace(FEWER, after=after))
        assert found["in-sync replicas"] is Verdict.WARN


def test_fewer_in_sync_than_producers_need_is_refused_where_it_is_new() -> None:
    facts = replace(FACTS, partitions={KEY: SLOW}, min_isr={"t": 2})
    keeps_slow = replace(FEWER, after=(1, 2))
    assert verdicts(facts, keeps_slow)["min.insync.replicas"] is Verdict.FAIL
    assert reasons(facts, keeps_slow, MIB)["min.insync.replicas"] == (
        "t-0 would have 1 in sync, fewer than min.insync.replicas 2"
    )
    assert verdicts(facts, replace(FEWER, after=(3, 2))).get("min.insync.replicas") is Verdict.WARN


def test_a_rollback_leaves_out_what_would_drop_all_that_is_in_sync() -> None:
    """Replicas 2 and 3 were added; 1, which was there before, lacks records by now."""
    back = replace(FEWER, before=(1, 2, 3), after=(1,))
    other = replace(back, partition=1)
    placed = {KEY: SLOW, other.key: replace(SLOW, partition=1, leader=1, isr=(1, 2, 3))}
    facts = replace(FACTS, partitions=placed)
    first, *rest = preflight(facts, (back, other), throttle_bytes_per_s=None, rolled_back="mv-1")
    assert (first.name, first.verdict) == ("leaders", Verdict.WARN)
    assert not lacking(first.reason, "t-0 keeps 1", "not in sync", "drops 2, 3")
    assert not is_refused(rest)
    assert [c.key for c in to_go(facts, (back, other), rolled_back="mv-1")] == [other.key]
    assert is_refused(preflight(facts, (back,), throttle_bytes_per_s=None, rolled_back="mv-1"))


def led_by_2() -> tuple[ClusterFacts, tuple[PartitionChange, ...]]:
    """t-0 [1, 2] and t-1 [2, 1], both led by 2, get a replica on 3 and 4; 11.4 MiB/s are written in
    all."""
    keys = (KEY, TopicPartition("t", 1))
    orders = ((1, 2), (2, 1))
    facts = replace(
        FACTS,
        brokers=FOUR,
        partitions={
            key: replace(PARTITION, partition=key.partition, leader=2, replicas=order, isr=order)
            for key, order in zip(keys, orders, strict=True)
        },
        sizes=dict.fromkeys(keys, 100 * MIB),
        produced=dict.fromkeys(keys, 5.7 * MIB),
    )
    made = proposal_for(facts, {KEY: (1, 2, 3), keys[1]: (2, 1, 4)})
    return facts, made.changes


def test_throttle_time_and_waves_go_by_who_leads_now() -> None:
    facts, changes = led_by_2()
    assert [change.leader for change in changes] == [2, 2]
    said = next(
        c
        for c in preflight(facts, changes, throttle_bytes_per_s=15_000_000)
        if c.name == "throttle"
    )
    assert said.verdict is Verdict.FAIL
    assert "22.8 MiB/s to the moving partitions through broker 2" in said.reason
    idle = replace(facts, produced={})
    waves = waves_now(idle, changes, WaveRules())
    takes = expected_seconds(idle, waves, 10 * MIB)
    assert takes is not None
    assert takes[0] > 18.0, "one broker sends all 200 MiB"
    spread = waves_now(idle, changes, WaveRules(per_broker=1))
    assert [len(wave) for wave in spread] == [1, 1]
    rates = {2: {"leader.replication.throttled.rate": MIB}}
    assert lower_rates(rates, changes, 10 * MIB) == {2: MIB}
    assert lower_rates({1: rates[2]}, changes, 10 * MIB) == {}


def test_who_leads_by_now_counts_where_the_plan_is_old() -> None:
    facts, changes = led_by_2()
    old = tuple(replace(change, leader=1) for change in changes)
    assert [change.sender for change in facts.as_now(old)] == [2, 2]
    gone = replace(facts, partitions={})
    assert [change.sender for change in gone.as_now(old)] == [1, 1]
    assert unpack(pack(old)) == old
    many = tuple(replace(old[0], partition=n, leader=n % 3 or None) for n in range(2000))
    assert unpack(pack(many)) == many


def test_the_topology_tells_who_lives_leads_and_is_in_sync() -> None:
    """Broker 1, which metadata name as the leader, has just died."""
    facts = replace(FACTS, brokers=FACTS.brokers[1:], partitions={KEY: replace(PARTITION)})
    (partition,) = topology_of(facts).partitions
    assert (partition.leader, partition.isr, partition.has_leader) == (2, (1, 2), True)
    assert topology_of(facts).down == {1}
    moving = topology_of(replace(FACTS, reassigning={KEY: MOVING})).partitions[0]
    assert (moving.is_reassigning, moving.isr) == (True, (2,))


FOUR = (*FACTS.brokers, BrokerNode(id=4, host="h", port=1, rack=None))


def reasons(facts: ClusterFacts, change: PartitionChange, rate: int) -> dict[str, str]:
    return {c.name: c.reason for c in preflight(facts, (change,), throttle_bytes_per_s=rate)}


@pytest.mark.parametrize(
    ("facts", "change", "check", "words"),
    [
        (FACTS, replace(MOVE, after=(9, 2)), "brokers", "for t-0 [1, 2] would work"),
        (replace(FACTS, brokers=FACTS.brokers[:2]), MOVE, "brokers", "[1, 2] would work"),
        (FACTS, replace(MOVE, after=(3, 3)), "replicas", "for t-0 [3, 1] would work"),
        (
            replace(FACTS, brokers=FOUR, usable_bytes={1: 10**9, 2: 10**6, 3: 1000, 4: 10**5}),
            MOVE,
            "disk",
            "to broker 4, which has 97.7 KiB free",
        ),
        (
            replace(FACTS, partitions={KEY: replace(PARTITION, replicas=(2, 3), isr=(2, 3))}),
            replace(MOVE, after=(1, 3)),
            "plan is current",
            "made for [1, 2]; plan again from",
        ),
    ],
)
def test_a_refusal_says_what_would_work(
    facts: ClusterFacts, change: PartitionChange, check: str, words: str
) -> None:
    assert words in reasons(facts, change, MIB)[check]


def test_a_wave_whose_list_kafka_would_not_take_is_refused_with_one_that_works() -> None:
    def refusal(partitions_per_wave: int) -> str | None:
        checks = preflight(
            FACTS,
            tuple(replace(MOVE, partition=number) for number in range(5000)),
            throttle_bytes_per_s=10**6,
            rules=WaveRules(partitions=partitions_per_wave),
        )
        (check,) = [check for check in checks if check.name == "throttle"]
        return check.reason if check.verdict is Verdict.FAIL else None

    said = refusal(5000)
    assert said is not None
    found = re.fullmatch(r".*Kafka takes 32,767; waves of (\d+) partitions work", said)
    assert found is not None, said
    assert refusal(int(found[1])) is None


def test_a_throttle_below_what_producers_write_is_refused_with_one_that_works() -> None:
    facts = replace(FACTS, produced={KEY: 4.0 * MIB})
    assert verdicts(facts, rate=6 * MIB) == {"throttle": Verdict.FAIL}
    said = reasons(facts, MOVE, 6 * MIB)["throttle"]
    # The leader, broker 1, sends 4 MiB/s to each of 2 and 3.
    assert "8.0 MiB/s" in said
    assert "broker 1" in said
    assert "never catch up; 10.0 MiB/s works" in said
    assert verdicts(facts, rate=10 * MIB) == {"throttle": Verdict.WARN}
    assert verdicts(facts, rate=20 * MIB) == {}


def test_an_unknown_produce_rate_is_said_not_taken_for_none() -> None:
    facts = replace(FACTS, produced={})
    assert verdicts(facts) == {"throttle": Verdict.WARN}
    assert "unknown" in reasons(facts, MOVE, MIB)["throttle"]


def test_the_automatic_throttle_leaves_room_for_producers() -> None:
    assert resolve_throttle("auto", (MOVE,), {KEY: 100.0 * MIB}) == 500 * MIB
    assert resolve_throttle("50MiB", (MOVE,)) == 50 * MIB
    assert resolve_throttle("none", (MOVE,)) is None
    with pytest.raises(InvalidInputError, match="rate"):
        resolve_throttle("fast", (MOVE,))
    with pytest.raises(InvalidInputError, match="more than Kafka takes"):
        resolve_throttle("99999999999T", (MOVE,))


def test_disk_is_judged_wave_by_wave() -> None:
    """Two brokers exchange a partition: small waves make room before they need it."""
    there = replace(MOVE, before=(1,), after=(2,), size_bytes=600)
    back = replace(MOVE, partition=1, before=(2,), after=(1,), size_bytes=500)
    assert peak_bytes([(there, back)]) == {2: 600, 1: 500}
    assert peak_bytes([(back,), (there,)]) == {1: 500, 2: 100}


@pytest.mark.parametrize(
    ("usable", "words"),
    [
        ({1: 10**9, 3: 100}, "free its disk first"),
        ({3: 100, 4: 500}, "free its disk first"),
        ({3: 100, 4: 10**6}, "move 1 of 2 to broker 4, which has 977 KiB "),
    ],
    ids=["the other holds both", "no room there either", "one of two"],
)
def test_only_a_broker_that_can_take_it_is_named(usable: dict[int, int], words: str) -> None:
    held_there = replace(MOVE, partition=1, before=(1, 4), after=(3, 4))
    facts = replace(FACTS, brokers=FOUR, usable_bytes=usable)
    check = check_disk(facts, [(MOVE, held_there)])
    assert words in check.reason
    assert ("to broker" in words) == ("to broker" in check.reason)


def test_groups_that_read_what_moves_are_named() -> None:
    facts = replace(FACTS, readers={"billing": frozenset({KEY}), "other": frozenset()})
    assert reasons(facts, MOVE, MIB)["groups"] == "billing reads 1 of them"


def test_what_producers_may_wait_for_is_told_and_not_judged() -> None:
    facts = replace(FACTS, fetch_backoff_ms={1: 5000, 2: 1000, 3: 500})
    assert verdicts(facts) == {}
    words = reasons(facts, MOVE, MIB)["producers"]
    assert not lacking(words, "acks=all", "wait 1.0 s", "replica.fetch.backoff.ms=100")
    for change in (replace(MOVE, after=(1, 2, 3)), replace(MOVE, after=(4, 5))):
        assert "producers" not in reasons(facts, change, MIB), "no new epoch; nobody there tells"
    leads = replace(MOVE, after=(2, 1))
    assert "wait 5.0 s" in reasons(facts, leads, MIB)["producers"]
    facts = replace(FACTS, fetch_backoff_ms={2: 100})
    assert reasons(facts, MOVE, MIB)["producers"].endswith("when its leader epoch changes")


@pytest.mark.parametrize("cordoned", [2, 3])
def test_a_cordoned_target_is_refused_also_where_the_replica_is_there(cordoned: int) -> None:
    """Broker 3 is to receive a replica, broker 2 keeps one."""
    facts = replace(FACTS, cordoned=frozenset({cordoned}))
    (check,) = (
        c for c in preflight(facts, (MOVE,), throttle_bytes_per_s=10**6) if "cord" in c.name
    )
    assert (check.name, check.verdict) == ("cordons", Verdict.FAIL)
    assert not lacking(
        check.reason,
        *(f"broker {cordoned} is cordoned", "refuses t-0", "plan without"),
        f"`partiscope brokers uncordon {cordoned}`",
    )
    assert check.reason.endswith(
        "kafka-configs.sh --bootstrap-server h:1,h:1,h:1 --alter --entity-type brokers "
        f"--entity-name {cordoned} --delete-config cordoned.log.dirs"
    )
    assert verdicts(replace(FACTS, cordoned=frozenset({1}))) == {}, "it leaves the cordoned one"


def test_targets_that_may_be_cordoned_are_warned_of_once() -> None:
    facts = replace(FACTS, untold_cordons=frozenset({1, 2, 3}))
    (check,) = (
        c for c in preflight(facts, (MOVE,), throttle_bytes_per_s=10**6) if c.name == "cordons"
    )
    assert check.verdict is Verdict.WARN
    assert not lacking(check.reason, "unknown whether 2, 3", "cordoned", "DESCRIBE on the cluster")


def test_a_rollback_onto_a_cordoned_broker_is_refused_before_it_starts() -> None:
    """What is there already is not asked for again."""
    facts = replace(
        FACTS,
        cordoned=frozenset({3}),
        partitions={KEY: replace(PARTITION, replicas=(2, 1), isr=(2, 1))},
    )
    back = replace(MOVE, before=(2, 1))
    checks = preflight(facts, (back,), throttle_bytes_per_s=10**6, rolled_back="mv-1")
    assert "broker 3 is cordoned" in failures(checks)
    there = replace(facts, partitions={KEY: replace(PARTITION, replicas=(3, 2), isr=(3, 2))})
    checks = preflight(there, (back,), throttle_bytes_per_s=10**6, rolled_back="mv-1")
    assert not is_refused(checks)


def test_losing_a_rack_is_a_warning() -> None:
    brokers = tuple(
        BrokerNode(id=id_, host="h", port=1, rack=rack)
        for id_, rack in ((1, "a"), (2, "b"), (3, "b"))
    )
    facts = replace(FACTS, brokers=brokers)
    assert verdicts(facts) == {"racks": Verdict.WARN}
    assert reasons(facts, MOVE, MIB)["racks"] == "t-0 is on 1 rack afterwards, on 2 now"


@pytest.mark.parametrize(
    "partition",
    [
        replace(PARTITION, leader=-1, isr=(1,)),
        replace(PARTITION, leader=1, isr=(1,)),
        replace(PARTITION, leader=-1, isr=()),
    ],
)
def test_a_partition_without_a_living_leader_is_refused_and_named_first(
    partition: PartitionMetadata,
) -> None:
    """Broker 1, the only one in sync, is dead; metadata may name it as the leader still."""
    many = tuple(replace(MOVE, partition=n) for n in range(9))
    placed = {c.key: replace(PARTITION, partition=c.partition, isr=(1,)) for c in many}
    placed[KEY] = partition
    placed[many[8].key] = replace(PARTITION, partition=8, leader=2)
    facts = replace(FACTS, brokers=FACTS.brokers[1:], partitions=placed)
    checks = preflight(facts, many, throttle_bytes_per_s=10**6)
    assert (checks[0].name, checks[0].verdict) == ("leaders", Verdict.FAIL)
    assert all(f"t-{n}" in checks[0].reason for n in range(8))
    assert "t-8" not in checks[0].reason
    for words in ("has no leader", "broker 1", "--election-type unclean", "start the broker"):
        assert words in checks[0].reason
    assert "no leader" not in " ".join(check.reason for check in checks[1:])
    reorder = preflight(facts, (replace(MOVE, after=(2, 1)),), throttle_bytes_per_s=None)
    assert reorder[0].name == "partitions", "no data moves and no replica goes"


def test_a_way_back_leaves_out_what_cannot_move_unless_that_is_all() -> None:
    back = tuple(replace(MOVE, partition=n, before=(3, 2), after=(1, 2)) for n in range(2))
    there = replace(PARTITION, replicas=(3, 2), isr=(3, 2), leader=3)
    other = replace(MOVE, partition=1, before=(3, 2), after=(2, 3))
    placed = {c.key: replace(there, partition=c.partition) for c in back}
    facts = replace(FACTS, brokers=FACTS.brokers[1:], partitions=placed)
    first, *rest = preflight(facts, (back[0], other), throttle_bytes_per_s=None, rolled_back="mv-1")
    assert (first.name, first.verdict) == ("leaders", Verdict.WARN)
    assert not lacking(first.reason, "t-0", "broker 1", "does not run", "1 partition")
    assert not is_refused(rest)
    first, *rest = preflight(facts, back, throttle_bytes_per_s=None, rolled_back="mv-1")
    assert (first.name, first.verdict) == ("leaders", Verdict.FAIL)
    assert topology_of(facts).partitions[0].has_leader


def test_a_size_that_nobody_knows_is_told() -> None:
    facts = replace(FACTS, sizes={})
    assert "disk" not in verdicts(facts, MOVE), "the plan knew it"
    unknown = replace(MOVE, size_bytes=0)
    assert verdicts(facts, unknown) == {"disk": Verdict.WARN}
    assert not lacking(reasons(facts, unknown, MIB)["disk"], "size of t-0", "unknown", "0 bytes")


def test_one_unknown_rack_does_not_switch_the_check_off() -> None:
    racks = {1: "a", 2: "b", 3: "b", 4: None}
    nodes = tuple(BrokerNode(id=id_, host="h", port=1, rack=rack) for id_, rack in racks.items())
    facts = replace(FACTS, brokers=nodes, usable_bytes=dict.fromkeys(racks, 10**9))
    told = ("broker 4", "no rack", "broker.rack")
    assert not lacking(
        reasons(facts, MOVE, MIB)["racks"], "t-0", "1 rack afterwards", "2 now", *told
    )
    there = replace(MOVE, after=(4, 2))
    assert not lacking(
        reasons(facts, there, MIB)["racks"],
        *("t-0 leaves rack a", "rack of broker 4", "unknown", *told),
    )
    back = replace(MOVE, before=(4, 2), after=(1, 2))
    assert verdicts(facts, back)["racks"] is Verdict.WARN
    assert not lacking(reasons(facts, back, MIB)["racks"], "no partition", *told)
    leads = replace(MOVE, after=(2, 1))
    assert "racks" not in verdicts(facts, leads)
    assert not lacking(reasons(facts, leads, MIB)["racks"], *told)


def test_the_time_is_an_interval_that_the_producers_stretch() -> None:
    move = replace(MOVE, size_bytes=100 * MIB)
    low, high = seconds_of([(move,)], rate=10 * MIB, produced={})
    assert 9.0 < low < 10.0, "some of it may pass the throttle by"
    assert 11.0 < high < 13.0
    low, high = seconds_of([(move,)], rate=10 * MIB, produced={KEY: 2.5 * MIB})
    assert 18.0 < low < 20.0
    assert 21.0 < high < 25.0
    grown, high = seconds_of([(move,)], rate=MIB, produced={}, is_adaptive=True)
    assert grown < 60.0 < 100.0 < high


def test_what_works_is_told_however_much_does_not() -> None:
    move = replace(MOVE, after=(6, 7, 8, 9))
    check = next(
        check
        for check in preflight(FACTS, (move,), throttle_bytes_per_s=10**6)
        if check.name == "brokers"
    )
    assert not lacking(check.reason, "broker 8", "broker 9", "not running", "t-0")


def in_part_hidden() -> ClusterFacts:
    """Broker 3 is in sync, and not listed: it lacks the listener that was asked."""
    placed = replace(SLOW, replicas=(1, 3), isr=(1, 3), leader=-1, is_leader_hidden=True)
    listed = tuple(broker for broker in FACTS.brokers if broker.id != 3)
    return replace(
        FACTS,
        brokers=listed,
        partitions={KEY: placed},
        hidden=frozenset({3}),
        listener="EXTERNAL",
    )


def test_a_broker_without_our_listener_runs_and_is_no_target() -> None:
    facts = in_part_hidden()
    (partition,) = facts.partitions.values()
    assert facts.has_leader(partition)
    assert (facts.in_sync(partition), 3 in facts.targets) == ((1, 3), False)
    topology = topology_of(facts)
    assert topology.down == frozenset()
    (hidden,) = (broker for broker in topology.brokers if broker.id == 3)
    assert hidden.why_no_target == "has no listener EXTERNAL"


def test_what_would_come_to_a_broker_without_our_listener_is_refused() -> None:
    facts = in_part_hidden()
    there = replace(FEWER, before=(1, 3), after=(2, 3))
    kept = {it.name: it for it in preflight(facts, (there,), throttle_bytes_per_s=MIB)}
    assert kept["listeners"].verdict is Verdict.WARN
    assert not lacking(kept["listeners"].reason, "broker 3", "no listener EXTERNAL", "throttled")
    facts = replace(facts, partitions={KEY: replace(SLOW, replicas=(1, 2), isr=(1, 2), leader=1)})
    comes = replace(FEWER, before=(1, 2), after=(1, 3))
    told = {it.name: it for it in preflight(facts, (comes,), throttle_bytes_per_s=MIB)}
    assert told["listeners"].verdict is Verdict.FAIL
    assert told["brokers"].verdict is Verdict.OK, "it runs"
