from dataclasses import replace
from uuid import UUID

import pytest

from broker.controller.brokers import (
    Heartbeat,
    RegisterBroker,
    decide_fence,
    decide_heartbeat,
    decide_register,
    decide_unregister,
)
from broker.controller.decision import Accepted, Rejected
from broker.controller.elections import (
    ElectLeaders,
    build_preferred_elections,
    decide_elect_leaders,
)
from broker.controller.errors import (
    BrokerNotRegisteredError,
    DuplicateBrokerError,
    ElectionNotNeededError,
    EligibleLeadersNotAvailableError,
    InconsistentClusterError,
    PreferredLeaderNotAvailableError,
    StaleBrokerEpochError,
    UnknownTopicError,
)
from broker.metadata.image import NO_LEADER, MetadataImage
from broker.metadata.records import BrokerEndpoint, RegisterBrokerRecord
from tests.unit.broker.controller.images import (
    CLUSTER_ID,
    always,
    apply,
    cluster,
    decided,
    fence,
    get,
    never,
    with_partition,
    with_topic,
)


def registration(broker_id: int, incarnation: int, cluster_id: str = CLUSTER_ID) -> RegisterBroker:
    return RegisterBroker(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=UUID(int=incarnation),
        endpoints=(BrokerEndpoint(name="PLAINTEXT", host="h", port=1),),
        rack=None,
    )


def beat(
    image: MetadataImage, broker_id: int, *, offset: int = 10_000, shutdown: bool = False
) -> Heartbeat:
    return Heartbeat(
        broker_id=broker_id,
        broker_epoch=image.brokers[broker_id].epoch,
        metadata_offset=offset,
        wants_fence=False,
        wants_shutdown=shutdown,
    )


def fenced_now(image: MetadataImage, broker_id: int, unclean: bool = False) -> MetadataImage:
    is_unclean = always if unclean else never
    return decided(image, decide_fence(broker_id, image, is_unclean_enabled=is_unclean))


def beaten(image: MetadataImage, heartbeat: Heartbeat) -> MetadataImage:
    return decided(image, decide_heartbeat(heartbeat, image, is_unclean_enabled=never))


def test_next_in_assignment_order_leads_when_the_leader_is_fenced() -> None:
    image = with_topic(cluster(), "t", (1, 3, 2))
    image = with_partition(image, get(image, "t"), isr=(2, 3, 1))
    partition = get(fenced_now(image, 1), "t")
    assert (partition.leader, partition.isr) == (3, (2, 3))
    assert partition.leader_epoch == 1


def test_fenced_follower_leaves_the_isr_and_the_leader_epoch_stays() -> None:
    image = fenced_now(with_topic(cluster(), "t", (1, 2, 3)), 2)
    partition = get(image, "t")
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1, 3), 0)


def test_last_of_the_isr_keeps_its_place_and_leads_again_when_it_returns() -> None:
    image = with_topic(cluster(), "t", (1, 2))
    image = fenced_now(image, 1)
    image = fenced_now(image, 2)
    partition = get(image, "t")
    assert (partition.leader, partition.isr) == (NO_LEADER, (2,))
    image = beaten(image, beat(image, 1))
    assert get(image, "t").leader == NO_LEADER, "out of sync, so it must not lead"
    image = beaten(image, beat(image, 2))
    assert get(image, "t").leader == 2


def test_unclean_election_only_where_the_topic_allows_it() -> None:
    image = with_topic(cluster(), "t", (1, 2))
    image = with_partition(image, get(image, "t"), isr=(1,))
    assert get(fenced_now(image, 1), "t").leader == NO_LEADER
    unclean = get(fenced_now(image, 1, unclean=True), "t")
    assert (unclean.leader, unclean.isr) == (2, (2,))


def test_fencing_twice_does_nothing() -> None:
    image = fenced_now(cluster(), 1)
    assert decide_fence(1, image, is_unclean_enabled=never).records == ()


def test_heartbeat_unfences_only_who_has_seen_its_registration() -> None:
    image = cluster(fenced=(1,))
    behind = decide_heartbeat(beat(image, 1, offset=99), image, is_unclean_enabled=never)
    assert behind.records == ()
    assert (behind.response.is_fenced, behind.response.is_caught_up) == (True, False)
    there = decide_heartbeat(beat(image, 1, offset=100), image, is_unclean_enabled=never)
    assert not there.response.is_fenced
    assert decided(image, there).brokers[1].is_active


def test_controlled_shutdown_moves_leaders_then_lets_go() -> None:
    image = with_topic(cluster(), "t", (1, 2), (2, 1))
    first = decide_heartbeat(beat(image, 1, shutdown=True), image, is_unclean_enabled=never)
    assert not first.response.should_shut_down
    image = decided(image, first)
    assert [get(image, "t", n).leader for n in (0, 1)] == [2, 2]
    assert [get(image, "t", n).isr for n in (0, 1)] == [(2,), (2,)]
    second = decide_heartbeat(beat(image, 1, shutdown=True), image, is_unclean_enabled=never)
    assert second.response.should_shut_down
    image = decided(image, second)
    assert image.brokers[1].fenced


def test_heartbeats_of_unknown_and_old_registrations_are_refused() -> None:
    image = cluster()
    stale = Heartbeat(
        broker_id=1, broker_epoch=1, metadata_offset=0, wants_fence=False, wants_shutdown=False
    )
    with pytest.raises(StaleBrokerEpochError):
        decide_heartbeat(stale, image, is_unclean_enabled=never)
    with pytest.raises(BrokerNotRegisteredError):
        decide_heartbeat(stale, cluster(0), is_unclean_enabled=never)


def test_broker_epoch_is_the_offset_of_its_registration() -> None:
    image = cluster(2)
    decision = decide_register(
        registration(3, 33), image, has_valid_session=False, is_unclean_enabled=never
    )
    assert decision.response == image.offset + 1
    (record,) = decision.records
    assert isinstance(record, RegisterBrokerRecord)
    assert record.broker_epoch == decision.response
    assert record.fenced


def test_second_process_with_a_live_id_is_refused_until_the_session_ends() -> None:
    image = with_topic(cluster(), "t", (1, 2))
    with pytest.raises(DuplicateBrokerError, match="broker id 1"):
        decide_register(
            registration(1, 99), image, has_valid_session=True, is_unclean_enabled=never
        )
    decision = decide_register(
        registration(1, 99), image, has_valid_session=False, is_unclean_enabled=never
    )
    image = decided(image, decision)
    assert image.brokers[1].incarnation_id == UUID(int=99)
    assert image.brokers[1].fenced
    assert get(image, "t").leader == 2, "what the old process led is led by others"


def test_process_that_took_over_the_port_of_the_old_one_comes_in_at_once() -> None:
    image = cluster()
    old = image.brokers[1]
    endpoint = replace(old.endpoints[0], name="OTHER")
    decision = decide_register(
        replace(registration(1, 99), endpoints=(endpoint,)),
        image,
        has_valid_session=True,
        is_unclean_enabled=never,
    )
    assert decided(image, decision).brokers[1].incarnation_id == UUID(int=99)


def test_broker_of_another_cluster_is_refused() -> None:
    with pytest.raises(InconsistentClusterError, match="other"):
        decide_register(
            registration(1, 1, "other"),
            cluster(),
            has_valid_session=False,
            is_unclean_enabled=never,
        )


DIRECTORY = UUID(int=77)


def test_broker_tells_with_its_heartbeat_that_it_is_cordoned() -> None:
    command = replace(registration(1, 11), log_dirs=(DIRECTORY,))
    image = decided(
        cluster(),
        decide_register(command, cluster(), has_valid_session=False, is_unclean_enabled=never),
    )
    assert not image.brokers[1].is_cordoned, "it has not told yet"
    for told, is_cordoned in (
        ((DIRECTORY,), True),
        (None, True),
        ((), False),
        ((UUID(int=5),), False),
    ):
        image = beaten(image, replace(beat(image, 1), cordoned_log_dirs=told))
        assert image.brokers[1].is_cordoned == is_cordoned
    same = decide_heartbeat(
        replace(beat(image, 1), cordoned_log_dirs=(UUID(int=5),)), image, is_unclean_enabled=never
    )
    assert same.records == (), "nothing new is written"


def test_unregistered_broker_is_forgotten_and_leads_nothing() -> None:
    image = with_topic(cluster(), "t", (1, 2))
    image = decided(image, decide_unregister(1, image, is_unclean_enabled=never))
    assert 1 not in image.brokers
    assert get(image, "t").leader == 2
    with pytest.raises(BrokerNotRegisteredError):
        decide_unregister(1, image, is_unclean_enabled=never)


def test_rebalance_moves_leaders_home_where_home_is_in_sync() -> None:
    image = with_topic(cluster(), "t", (1, 2), (1, 2), (2, 1))
    image = with_partition(image, get(image, "t", 0), leader=2)
    image = with_partition(image, get(image, "t", 1), leader=2, isr=(2,))
    records = build_preferred_elections(image)
    image = apply(image, records)
    assert [get(image, "t", n).leader for n in (0, 1, 2)] == [1, 2, 2]


def test_rebalance_leaves_alone_what_is_within_the_percentage() -> None:
    image = with_topic(cluster(), "t", *[(1, 2)] * 10, *[(2, 1)] * 2)
    image = with_partition(image, get(image, "t", 0), leader=2)
    assert build_preferred_elections(image, imbalance_percentage_max=10) == []
    assert len(build_preferred_elections(image, imbalance_percentage_max=9)) == 1
    image = with_partition(image, get(image, "t", 11), leader=1)
    (record,) = build_preferred_elections(image, imbalance_percentage_max=10)
    assert get(apply(image, [record]), "t", 11).leader == 2


def elect(
    image: MetadataImage,
    *,
    unclean: bool,
    partitions: list[tuple[str, int]],
    is_named: bool = True,
) -> dict[tuple[str, int], object]:
    command = ElectLeaders(is_unclean=unclean, partitions=partitions, is_named=is_named)
    verdicts = decide_elect_leaders(command, image).response
    return {
        key: verdict.value if isinstance(verdict, Accepted) else type(verdict.error)
        for key, verdict in verdicts.items()
    }


def test_preferred_election_on_request() -> None:
    image = with_topic(cluster(), "t", (1, 2), (1, 2), (1, 2))
    image = with_partition(image, get(image, "t", 0), leader=2)
    image = with_partition(image, get(image, "t", 1), leader=2, isr=(2,))
    wanted = [("t", 0), ("t", 1), ("t", 2), ("t", 3)]
    assert elect(image, unclean=False, partitions=wanted) == {
        ("t", 0): 1,
        ("t", 1): PreferredLeaderNotAvailableError,
        ("t", 2): ElectionNotNeededError,
        ("t", 3): UnknownTopicError,
    }
    assert elect(image, unclean=False, partitions=wanted[:3], is_named=False) == {
        ("t", 0): 1,
        ("t", 1): PreferredLeaderNotAvailableError,
    }


def test_unclean_election_on_request() -> None:
    image = fence(with_topic(cluster(), "t", (1, 2), (1,), (2, 1)), 1)
    image = with_partition(image, get(image, "t", 0), leader=NO_LEADER, isr=(1,))
    image = with_partition(image, get(image, "t", 1), leader=NO_LEADER, isr=(1,))
    wanted = [("t", 0), ("t", 1), ("t", 2)]
    assert elect(image, unclean=True, partitions=wanted) == {
        ("t", 0): 2,
        ("t", 1): EligibleLeadersNotAvailableError,
        ("t", 2): ElectionNotNeededError,
    }
    decision = decide_elect_leaders(ElectLeaders(is_unclean=True, partitions=wanted), image)
    partition = get(decided(image, decision), "t", 0)
    assert (partition.isr, partition.leader_epoch) == ((2,), 1)
    assert isinstance(decision.response["t", 1], Rejected)
