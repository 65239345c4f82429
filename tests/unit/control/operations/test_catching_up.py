"""Replicas that are about to catch up are told in time."""

from collections.abc import Mapping

from control.model.ids import TopicPartition
from control.operations.catching_up import CatchUpWatch, Replica

MIB = 1 << 20
FAST = 1000 * MIB


def key(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


def missing(*mib: float, topic: str = "t") -> dict[Replica, int]:
    """Of each partition's new replica on 103."""
    return {(key(n, topic), 103): int(size * MIB) for n, size in enumerate(mib)}


class Watched(CatchUpWatch):
    """All are led by 101, and read once a second."""

    def then(self, lacks: Mapping[Replica, int], seconds: float = 1.0) -> None:
        at_s = (self._read_s or 0.0) + seconds
        self.read(lacks, leaders={name: 101 for name, _ in lacks}, at_s=at_s)

    def led(self, rate: int = FAST) -> set[int]:
        return {name.partition for name in self.soon({key(n) for n in range(99)}, rate)}

    def followed(self, *listed: int, rate: int = FAST) -> set[int]:
        names = {key(n) for n in listed or range(99)}
        return {name.partition for name in self.next(names, rate)}


def test_what_one_or_two_fetches_bring_is_soon_there_at_any_pace() -> None:
    watch = Watched()
    watch.then(missing(0, 2, 2.1))
    assert watch.led() == {0, 1}


def test_the_pace_says_how_far_ahead_it_looks() -> None:
    watch = Watched()
    watch.then(missing(100, 100))
    watch.then(missing(90, 99))
    assert watch.led() == set()
    watch.then(missing(32, 98))
    assert watch.led() == {0}


def test_a_pace_of_long_ago_is_forgotten() -> None:
    watch = Watched()
    watch.then(missing(500))
    watch.then(missing(400))
    left = 400
    while not watch.led():
        left -= 10
        watch.then(missing(left))
    assert left == 30


def test_the_nearest_of_two_new_replicas_counts_and_at_followers_the_last() -> None:
    watch = Watched()
    watch.then({(key(0), 102): 50 * MIB, (key(0), 103): MIB})
    assert watch.led() == {0}
    assert watch.followed() == set()
    watch.then({(key(0), 102): MIB, (key(0), 103): MIB})
    assert watch.followed() == {0}


def test_followers_let_go_of_the_nearest_as_far_as_their_allowance_goes() -> None:
    watch = Watched()
    watch.then(missing(1.5, 1, 0.5, 30))
    assert watch.followed(rate=MIB // 2) == {2}
    watch = Watched()
    watch.then(missing(1.5, 1, 0.5, 30))
    assert watch.followed(rate=MIB) == {1, 2}
    assert watch.followed(0, 3, rate=MIB) == set(), "half a second is left"
    watch.then(missing(0, 0, 0, 20), seconds=9)
    assert watch.followed(0, 3, rate=MIB) == {0}, "what lacks nothing costs nothing"


def test_who_has_spent_all_regains_a_twentieth() -> None:
    watch = Watched()
    small = missing(*[1] * 99)
    watch.then(small)
    listed = set(range(99))
    listed -= watch.followed(*listed, rate=4 * MIB)
    assert len(listed) == 99 - 8, "two seconds' worth"
    for _ in range(20):
        watch.then(small)
        listed -= watch.followed(*listed, rate=4 * MIB)
    assert len(listed) == 99 - 8 - 4


def test_leaders_let_go_of_no_more_than_their_allowance() -> None:
    watch = Watched()
    watch.then(missing(*[1] * 99))
    assert len(watch.led(rate=4 * MIB)) == 12, "three seconds' worth"
    assert watch.led(rate=4 * MIB) == set()


def test_each_broker_that_receives_has_an_allowance_of_its_own() -> None:
    watch = Watched()
    watch.then({(key(0), 101): 2 * MIB, (key(1), 102): 2 * MIB, (key(2), 102): 2 * MIB})
    assert watch.followed(rate=MIB) == {0, 1}
