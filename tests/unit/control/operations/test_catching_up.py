"""Replicas that are about to catch up are told in time, and once."""

from control.model.ids import TopicPartition
from control.operations.catching_up import CatchUpWatch, Replica

MIB = 1 << 20


def key(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


def missing(*mib: float, topic: str = "t") -> dict[Replica, int]:
    """Of each partition's new replica on 103."""
    return {(key(n, topic), 103): int(size * MIB) for n, size in enumerate(mib)}


def test_what_one_or_two_fetches_bring_is_soon_there_at_any_pace() -> None:
    watch = CatchUpWatch(listed={"t": 3})
    watch.read(missing(0, 2, 2.1))
    assert watch.soon(()) == {key(0), key(1)}
    assert watch.soon({key(0), key(1)}) == frozenset()


def test_the_pace_says_how_far_ahead_it_looks() -> None:
    watch = CatchUpWatch(listed={"t": 2})
    watch.read(missing(100, 100))
    watch.read(missing(90, 99))
    assert watch.soon(()) == frozenset()
    watch.read(missing(32, 98))
    assert watch.soon(()) == {key(0)}


def test_a_pace_of_long_ago_is_forgotten() -> None:
    watch = CatchUpWatch(listed={"t": 1})
    watch.read(missing(500))
    watch.read(missing(400))
    left = 400
    while not watch.soon(()):
        left -= 10
        watch.read(missing(left))
    assert left == 30


def test_the_nearest_of_two_new_replicas_counts() -> None:
    watch = CatchUpWatch(listed={"t": 1})
    watch.read({(key(0), 102): 50 * MIB, (key(0), 103): MIB})
    assert watch.soon(()) == {key(0)}


def test_of_a_long_list_those_that_follow_go_together_once_one_must() -> None:
    long, short = CatchUpWatch(listed={"t": 1000}), CatchUpWatch(listed={"t": 3})
    for watch in (long, short):
        watch.read(missing(7, 20, 90))
        watch.read(missing(6, 19, 89))
        assert watch.soon(()) == frozenset()
        watch.read(missing(5, 18, 88))
    assert short.soon(()) == {key(0)}
    assert long.soon(()) == {key(0), key(1)}


def test_topics_do_not_wait_for_one_another() -> None:
    watch = CatchUpWatch(listed={"t": 1000, "u": 1000})
    watch.read({**missing(30), **missing(30, topic="u")})
    watch.read({**missing(1), **missing(29, topic="u")})
    assert watch.soon(()) == {key(0)}
