"""Replicas that are about to catch up are told in time."""

from control.model.ids import TopicPartition
from control.operations.catching_up import CatchUpWatch, Replica

MIB = 1 << 20


def key(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


def missing(*mib: float, topic: str = "t") -> dict[Replica, int]:
    """Of each partition's new replica on 103."""
    return {(key(n, topic), 103): int(size * MIB) for n, size in enumerate(mib)}


def test_what_one_or_two_fetches_bring_is_soon_there_at_any_pace() -> None:
    watch = CatchUpWatch()
    watch.read(missing(0, 2, 2.1))
    assert watch.soon() == {key(0), key(1)}


def test_the_pace_says_how_far_ahead_it_looks() -> None:
    watch = CatchUpWatch()
    watch.read(missing(100, 100))
    watch.read(missing(90, 99))
    assert watch.soon() == frozenset()
    watch.read(missing(32, 98))
    assert watch.soon() == {key(0)}


def test_a_pace_of_long_ago_is_forgotten() -> None:
    watch = CatchUpWatch()
    watch.read(missing(500))
    watch.read(missing(400))
    left = 400
    while not watch.soon():
        left -= 10
        watch.read(missing(left))
    assert left == 30


def test_the_nearest_of_two_new_replicas_counts_and_at_followers_the_last() -> None:
    watch = CatchUpWatch()
    watch.read({(key(0), 102): 50 * MIB, (key(0), 103): MIB})
    assert watch.soon() == {key(0)}
    assert watch.next((), 100 * MIB) == frozenset()
    watch.read({(key(0), 102): MIB, (key(0), 103): MIB})
    assert watch.next((), 100 * MIB) == {key(0)}


def test_followers_let_go_of_the_next_as_far_as_a_second_of_the_throttle_goes() -> None:
    watch = CatchUpWatch()
    watch.read(missing(1.5, 1, 0.5, 30))
    assert watch.next((), 2 * MIB) == {key(1), key(2)}
    assert watch.next((), 3 * MIB) == {key(0), key(1), key(2)}
    assert watch.next({key(0)}, 2 * MIB) == {key(0), key(2)}
    assert watch.next((), MIB // 4) == frozenset()
    watch.read(missing(0, 0, 0, 20))
    assert watch.next((), 2 * MIB) == {key(0), key(1), key(2)}


def test_each_broker_that_receives_has_a_second_of_its_own() -> None:
    watch = CatchUpWatch()
    watch.read({(key(0), 101): MIB, (key(1), 102): MIB, (key(2), 102): MIB})
    assert watch.next((), MIB) == {key(0), key(1)}
