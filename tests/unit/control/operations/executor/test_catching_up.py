"""Replicas that are about to catch up are told in time."""

from collections.abc import Mapping

import pytest

from control.model.ids import TopicPartition
from control.operations.executor.catching_up import CatchUpWatch, Replica

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
        names = {name for name, _ in lacks}
        at_s = self._read_s + seconds
        self.read(lacks, moving=names, leaders=dict.fromkeys(names, 101), at_s=at_s)

    def led(self, rate: int = FAST) -> set[int]:
        names = {key(n) for n in range(99)}
        return {name.partition for name in self.let_go(names, (), rate)[0]}

    def followed(self, *listed: int, rate: int = FAST) -> set[int]:
        names = {key(n) for n in listed or range(99)}
        return {name.partition for name in self.let_go((), names, rate)[1]}


def rested(*mib: float) -> Watched:
    """Nothing has come for so long that all is earned."""
    watch = Watched()
    for _ in range(40):
        watch.then(missing(*mib))
        watch.let_go((), (), FAST)
    return watch


def test_what_one_or_two_fetches_bring_is_soon_there_at_any_pace() -> None:
    watch = rested(0, 2, 2.1)
    assert watch.led() == {0, 1}


def test_the_pace_says_how_far_ahead_it_looks() -> None:
    watch = rested(100, 100)
    watch.then(missing(90, 99))
    assert watch.led() == set()
    watch.then(missing(32, 98))
    assert watch.led() == {0}


def test_a_pace_of_long_ago_is_forgotten() -> None:
    watch = rested(1000)
    watch.then(missing(900))
    left = 900
    while not watch.led():
        left -= 10
        watch.then(missing(left))
    assert left == 40


def test_the_nearest_of_two_new_replicas_counts_and_at_followers_the_last() -> None:
    watch = rested()
    watch.then({(key(0), 102): 50 * MIB, (key(0), 103): MIB})
    assert watch.led() == {0}
    assert watch.followed() == set()
    watch.then({(key(0), 102): MIB, (key(0), 103): MIB})
    assert watch.followed() == {0}


def test_followers_let_go_of_two_seconds_of_the_throttle_at_a_time() -> None:
    watch = rested(1.5, 1, 0.5, 30)
    assert watch.followed(rate=MIB // 4) == {2}
    assert watch.followed(rate=MIB) == {1, 2}
    assert watch.followed(0, 3, rate=MIB) == set(), "half a second is left"
    watch.then(missing(0, 0, 0, 20))
    assert watch.followed(0, 3, rate=MIB) == {0}, "what lacks nothing costs nothing"


def test_followers_look_two_readings_ahead_and_leaders_four() -> None:
    watch = rested(32, 33.1, 52, 53.1)
    watch.then(missing(22, 23.1, 42, 43.1))
    assert (watch.led(), watch.followed()) == ({0, 1, 2}, {0})


def test_nobody_lets_go_of_more_than_a_tenth() -> None:
    """4 MiB/s of the throttle come each second, and what was let go."""
    watch, rate = Watched(), 4 * MIB
    left, listed = [1.0] * 400, set(range(400))
    freed_of_each = []
    for _ in range(60):
        watch.then(missing(*left))
        freed = watch.followed(*listed, rate=rate)
        freed_of_each.append(len(freed))
        arriving = {*freed, *sorted(n for n in listed - freed if left[n])[:4]}
        left = [0.0 if n in arriving else lacks for n, lacks in enumerate(left)]
        listed -= arriving
    assert sum(freed_of_each[:10]) == 0, "in the first seconds nothing is earned"
    assert sum(freed_of_each) == pytest.approx((60 - 10) * 4 / 10, abs=2)


def test_leaders_let_go_from_the_first_seconds_on() -> None:
    watch = Watched()
    for left in (3, 2.5, 2):
        watch.then(missing(left))
        watch.followed()
    assert watch.led() == {0}
    assert watch.followed(rate=MIB) == set(), "what is throttled at the follower is no faster"


def busy(left: float, *, soon: float, rate: int) -> Watched:
    """For long the throttle has been used up by a partition that it holds; so much of it is left,
    and one that needs no more than `soon`."""
    watch = Watched()
    for second in range(40, -1, -1):
        watch.then(missing(left + second * rate / MIB, soon))
        watch.let_go({key(0)}, {key(0), key(1)}, rate)
    return watch


def test_a_leader_that_has_sent_too_much_of_what_it_let_go_holds_what_it_throttles() -> None:
    rate = 4 * MIB
    watch = busy(1000, soon=18, rate=rate)
    watch.then(missing(996, 2))
    assert watch.led(rate=rate) == set(), "four seconds' worth passed its throttle by"
    for second in range(30):
        assert watch.led(rate=rate) == set()
        watch.then(missing(992 - 4 * second, 2))
    assert watch.led(rate=rate) == {1}


def test_a_leader_owes_nothing_for_what_its_throttle_let_through_at_once() -> None:
    rate = 4 * MIB
    watch = busy(1000, soon=1, rate=rate)
    watch.then(missing(900, 1))
    assert watch.led(rate=rate) == {1}, "25 seconds' worth in one"


def test_time_without_a_throttle_is_not_counted() -> None:
    rate = 4 * MIB
    watch = busy(10000, soon=1, rate=rate)
    watch.let_go((), (), rate)
    watch.then(missing(10000, 1))
    for second in range(60):
        watch.then(missing(9900 - 100 * second, 1))
    assert watch.led(rate=rate) == {1}, "so nothing is owed for it"
    fresh = Watched()
    for _ in range(60):
        fresh.then(missing(1000, 0.3))
    assert fresh.followed(rate=rate) == set(), "and nothing earned"


def test_followers_hold_what_leaders_still_throttle() -> None:
    watch = rested(1, 1)
    names = {key(0), key(1)}
    soon, next_ = watch.let_go({key(1)}, names, FAST)
    assert soon == {key(1)}
    assert next_ == {key(0)}


def test_each_broker_that_receives_earns_for_itself() -> None:
    watch = Watched()
    lacks = {(key(n), broker): 2 * MIB for n, broker in enumerate((101, 102, 102))}
    for _ in range(35):
        watch.then(lacks)
        watch.let_go((), (), MIB)
    assert watch.followed(rate=MIB) == {0, 1}
    assert watch.followed(rate=2 * MIB) == {0, 1, 2}
