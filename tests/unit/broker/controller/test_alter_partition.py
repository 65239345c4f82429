import pytest

from broker.controller.alter_partition import (
    AlterPartition,
    IsrChange,
    IsrMember,
    decide_alter_partition,
)
from broker.controller.decision import Accepted, Rejected
from broker.controller.errors import (
    FencedLeaderEpochError,
    IneligibleReplicaError,
    InvalidIsrError,
    InvalidUpdateVersionError,
    NewLeaderElectedError,
    NotControllerError,
    StaleBrokerEpochError,
    UnknownTopicError,
    UnknownTopicIdError,
)
from broker.controller.reassignment import (
    AlterReassignments,
    Reassignment,
    decide_alter_reassignments,
)
from broker.metadata.image import MetadataImage
from tests.unit.broker.controller.images import (
    cluster,
    decided,
    fence,
    get,
    never,
    topic_id,
    with_partition,
    with_topic,
)


def change(
    *isr: int,
    name: str = "t",
    partition: int = 0,
    leader_epoch: int = 0,
    partition_epoch: int = 0,
    epochs: dict[int, int] | None = None,
) -> IsrChange:
    known = epochs or {}
    return IsrChange(
        topic_id=topic_id(name),
        partition=partition,
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        new_isr=tuple(IsrMember(broker_id=b, broker_epoch=known.get(b, -1)) for b in isr),
    )


def ask(image: MetadataImage, broker_id: int, wanted: IsrChange) -> tuple[MetadataImage, object]:
    command = AlterPartition(broker_id=broker_id, broker_epoch=100 * broker_id, changes=(wanted,))
    decision = decide_alter_partition(command, image)
    (verdict,) = decision.response.values()
    outcome = verdict.value if isinstance(verdict, Accepted) else type(verdict.error)
    return decided(image, decision), outcome


def reassign(image: MetadataImage, *replicas: int) -> MetadataImage:
    target = Reassignment(topic="t", partition=0, replicas=replicas)
    command = AlterReassignments(reassignments=(target,))
    decision = decide_alter_reassignments(command, image, is_unclean_enabled=never)
    return decided(image, decision)


def test_leader_shrinks_and_expands_the_isr() -> None:
    image = with_topic(cluster(), "t", (1, 2, 3))
    image, outcome = ask(image, 1, change(1, 3))
    assert outcome == get(image, "t")
    assert (get(image, "t").isr, get(image, "t").partition_epoch) == ((1, 3), 1)
    assert get(image, "t").leader_epoch == 0
    image, _ = ask(image, 1, change(1, 2, 3, partition_epoch=1, epochs={2: 200}))
    assert get(image, "t").isr == (1, 2, 3)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (change(1, name="other"), UnknownTopicIdError),
        (change(1, partition=9), UnknownTopicError),
        (change(1, leader_epoch=4), FencedLeaderEpochError),
        (change(1, leader_epoch=6), NotControllerError),
        (change(1, leader_epoch=5, partition_epoch=6), InvalidUpdateVersionError),
        (change(1, leader_epoch=5, partition_epoch=8), NotControllerError),
        (change(leader_epoch=5, partition_epoch=7), InvalidIsrError),
        (change(2, leader_epoch=5, partition_epoch=7), InvalidIsrError),
        (change(1, 1, leader_epoch=5, partition_epoch=7), InvalidIsrError),
        (change(1, 9, leader_epoch=5, partition_epoch=7), InvalidIsrError),
        (
            change(1, 2, leader_epoch=5, partition_epoch=7, epochs={2: 199}),
            IneligibleReplicaError,
        ),
        (change(1, 3, leader_epoch=5, partition_epoch=7), IneligibleReplicaError),
    ],
)
def test_fences(wanted: IsrChange, error: type[Exception]) -> None:
    image = fence(with_topic(cluster(), "t", (1, 2, 3)), 3)
    image = with_partition(image, get(image, "t"), isr=(1,), leader_epoch=5, partition_epoch=7)
    after, outcome = ask(image, 1, wanted)
    assert outcome is error
    assert after is image


def test_only_the_leader_may_ask() -> None:
    image = with_topic(cluster(), "t", (1, 2, 3))
    assert ask(image, 2, change(1, 2))[1] is InvalidIsrError


def test_old_registration_is_refused_as_a_whole() -> None:
    image = with_topic(cluster(), "t", (1, 2, 3))
    command = AlterPartition(broker_id=1, broker_epoch=99, changes=(change(1),))
    with pytest.raises(StaleBrokerEpochError):
        decide_alter_partition(command, image)


def test_one_refused_partition_does_not_harm_the_others() -> None:
    image = with_topic(cluster(), "t", (1, 2), (1, 2))
    command = AlterPartition(
        broker_id=1,
        broker_epoch=100,
        changes=(change(1), change(1, partition=1, partition_epoch=3)),
    )
    decision = decide_alter_partition(command, image)
    verdicts = list(decision.response.values())
    assert isinstance(verdicts[0], Accepted)
    assert isinstance(verdicts[1], Rejected)
    assert get(decided(image, decision), "t", 0).isr == (1,)


def test_reassignment_ends_when_all_adding_replicas_are_in_sync() -> None:
    image = reassign(with_topic(cluster(5), "t", (1, 2, 3)), 1, 4, 5)
    moving = get(image, "t")
    assert moving.replicas == (1, 4, 5, 2, 3)
    image, _ = ask(image, 1, change(1, 2, 3, 4, partition_epoch=1))
    assert get(image, "t").is_reassigning
    image, outcome = ask(image, 1, change(1, 2, 3, 4, 5, partition_epoch=2))
    done = get(image, "t")
    assert outcome == done
    assert (done.replicas, done.isr) == ((1, 4, 5), (1, 4, 5))
    assert not done.is_reassigning
    assert done.leader_epoch == 1, "a replica was dropped, so fetches of it must be fenced"


def test_reassignment_waits_for_kept_replicas_that_are_out_of_sync() -> None:
    image = with_topic(cluster(4), "t", (1, 2, 3))
    image = with_partition(image, get(image, "t"), isr=(1,))
    image = reassign(image, 2, 3, 4)
    image, _ = ask(image, 1, change(1, 4, partition_epoch=1))
    moving = get(image, "t")
    assert (moving.isr, moving.removing_replicas) == ((1, 4), (1,)), "1 has the only old copy"
    image, outcome = ask(image, 1, change(1, 4, 2, 3, partition_epoch=2))
    assert outcome is NewLeaderElectedError
    assert (get(image, "t").replicas, get(image, "t").isr) == ((2, 3, 4), (4, 2, 3))


def test_reassignment_away_from_the_leader_elects_and_tells_it() -> None:
    image = reassign(with_topic(cluster(), "t", (1,)), 2)
    image, outcome = ask(image, 1, change(1, 2, partition_epoch=1))
    assert outcome is NewLeaderElectedError
    done = get(image, "t")
    assert (done.replicas, done.isr, done.leader, done.leader_epoch) == ((2,), (2,), 2, 1)
