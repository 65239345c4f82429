"""How far apart partitions are asked for that producers write to."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from control.operations.executor.timing.eta import ENDING_S
from control.operations.executor.timing.forecast import ASKED_S, Finishing, Forecast
from control.operations.reassignment.preflight_load import check_time
from control.operations.reassignment.producer_traffic import seconds_of
from control.operations.reassignment.spreading import (
    LATE_S,
    Pace,
    SpreadEstimate,
    Turns,
    Writing,
    estimate_spread,
)
from planner.proposal import PartitionChange
from tests.support.phrases import lacking
from tests.unit.control.operations.fake_cluster import change

LEADERS = 4
PARTITIONS = 12
WITHIN_S = 300.0
MIB = 1 << 20


def followed(number: int, topic: str = "a") -> PartitionChange:
    """Its follower moves; one of four brokers leads it."""
    leader = number % LEADERS
    return replace(change(topic, number), before=(leader, 8), after=(leader, 9))


MOVES = tuple(map(followed, range(PARTITIONS)))


def writing(*moves: PartitionChange, backoff_ms: int = 1000) -> Writing:
    """Alike to all of them."""
    return Writing(
        produced={move.key: 100.0 for move in moves},
        leaders={move.key: move.before[0] for move in moves},
        backoff_ms=dict.fromkeys(range(10), backoff_ms),
    )


WRITING = writing(*MOVES)


def led_anew(move: PartitionChange) -> PartitionChange:
    return replace(move, after=(9, move.before[1]))


def elected(move: PartitionChange) -> PartitionChange:
    return replace(move, after=move.before[::-1])


def grown(move: PartitionChange) -> PartitionChange:
    return replace(move, after=(*move.before, 9))


def seconds(moves: Sequence[PartitionChange], told: Writing, within_s: float = WITHIN_S) -> float:
    return estimate_spread([tuple(moves)], told, within_s).seconds


def test_the_worked_example() -> None:
    assert Pace(WRITING).after_end(MOVES[0]) == pytest.approx(15.0)
    assert seconds(MOVES, WRITING) == pytest.approx(165.0)
    assert Pace(WRITING).after_end(led_anew(MOVES[0])) == pytest.approx(17.0)
    three = replace(MOVES[0], before=(0, 7, 8), after=(0, 7, 9))
    assert Pace(WRITING).after_end(three) == pytest.approx(30.0)


def test_a_short_wait_of_followers_needs_little() -> None:
    assert seconds(MOVES, writing(*MOVES, backoff_ms=100)) == pytest.approx(16.5)


def test_what_nobody_writes_to_waits_for_nobody() -> None:
    idle = replace(WRITING, produced=dict.fromkeys((move.key for move in MOVES), 0.0))
    assert seconds(MOVES, idle) == 0.0
    assert estimate_spread([MOVES], idle, WITHIN_S).words == ""


def test_what_is_not_known_is_said() -> None:
    unknown = replace(WRITING, produced={})
    assert seconds(MOVES, unknown) == 0.0
    words = estimate_spread([MOVES], unknown, WITHIN_S).words
    assert not lacking(words, "not spread", "produce rate", "unknown")
    assert estimate_spread([tuple(map(grown, MOVES))], unknown, WITHIN_S).words == "", (
        "nobody would wait"
    )


def test_a_replica_more_holds_nobody_up() -> None:
    assert seconds(list(map(grown, MOVES)), WRITING) == 0.0


def test_brokers_that_do_not_tell_wait_as_kafka_does() -> None:
    assert seconds(MOVES, replace(WRITING, backoff_ms={})) == seconds(MOVES, WRITING)


def test_what_most_write_to_waits_longest_and_none_is_taken_for_idle_by_one_second() -> None:
    """A producer without keys fills one partition before it turns to the next."""
    moves = MOVES[:2]
    told = replace(writing(*moves), produced={moves[0].key: 300.0, moves[1].key: 0.0})
    busy, idle = (Pace(told).after_end(move) for move in moves)
    assert busy == pytest.approx(3 * idle)
    assert idle == pytest.approx(0.3 / 4 / 0.005)


def test_elections_come_after_all_ends() -> None:
    moves = (elected(MOVES[0]), elected(MOVES[1]), MOVES[2])
    foreseen = estimate_spread([moves], writing(*moves), WITHIN_S)
    assert foreseen.waves_s == (0.0,)
    pace = Pace(writing(*moves))
    ends, elects = pace.after_end(MOVES[2]), pace.after_election(moves[0])
    assert foreseen.elected_s == pytest.approx(ends + elects)
    led = pace.led_by({move.key: move.after[0] for move in moves})
    assert [led.after_election(move) for move in moves] == [0.0] * 3


def test_topics_do_not_wait_for_each_other() -> None:
    alone = [replace(followed(0), topic=f"t{number}") for number in range(50)]
    assert seconds(alone, writing(*alone)) == 0.0
    two = [followed(number, topic) for number in range(PARTITIONS) for topic in ("a", "b")]
    assert seconds(two, writing(*two)) == pytest.approx(165.0)


def test_waves_wait_one_after_the_other() -> None:
    other = [followed(number, "b") for number in range(PARTITIONS)]
    told = writing(*MOVES, *other)
    foreseen = estimate_spread([MOVES[:6], MOVES[6:], tuple(other)], told, 1000.0)
    assert foreseen.waves_s == pytest.approx((75.0, 90.0, 165.0))


def test_nothing_takes_longer_than_it_may() -> None:
    other = [followed(number, "b") for number in range(PARTITIONS)]
    told = writing(*MOVES, *other)
    foreseen = estimate_spread([MOVES, tuple(other)], told, 33.0)
    assert foreseen.waves_s == pytest.approx((16.5, 16.5))
    assert foreseen.wished_s == pytest.approx(330.0)
    assert estimate_spread([MOVES], WRITING, 0.0) == SpreadEstimate()
    pace, _ = Pace.within(WRITING, [MOVES[:1]], 0.0)
    assert pace.after_electing(elected(MOVES[0])) == 0.0, "also where nothing was foreseen"


def test_it_is_told_over_which_time_and_over_which_it_should_be() -> None:
    whole = estimate_spread([MOVES], WRITING, WITHIN_S)
    assert not lacking(whole.words, "over 2 m 45 s", "producers wait less", "spread")
    assert "more" not in whole.words
    part = estimate_spread([MOVES], WRITING, 60.0)
    assert not lacking(part.words, "over 1 m", "2 m 45 s would spare them more")
    assert estimate_spread([MOVES[:1]], WRITING, WITHIN_S).words == ""


def test_one_after_the_other_may_be_asked_for() -> None:
    turns = Turns()
    assert turns.left_s([("a", 15.0)] * 3, 100.0) == pytest.approx(30.0)
    assert turns.take("a", 15.0, 100.0)
    assert not turns.take("a", 15.0, 114.0)
    assert turns.opens_s("a", 15.0) == pytest.approx(115.0)
    assert turns.left_s([("a", 15.0)] * 2, 114.0) == pytest.approx(16.0)
    assert turns.take("a", 15.0, 115.5)
    assert turns.opens_s("a", 15.0) == pytest.approx(130.0), "who was late holds up nobody"
    assert turns.take("b", 15.0, 115.5), "another topic"
    assert turns.take("a", 0.0, 115.5), "nobody waits because of it"
    assert turns.left_s([], 115.5) == 0.0


def test_what_was_not_asked_for_in_time_does_not_come_all_at_once() -> None:
    turns = Turns()
    assert turns.take("a", 15.0, 0.0)
    taken = [turns.take("a", 15.0, 600.0) for _ in range(3)]
    assert taken == [True, False, False]
    assert turns.opens_s("a", 15.0) == pytest.approx(600.0 - LATE_S + 15.0)


def test_what_is_expected_counts_with_it() -> None:
    waves = [tuple(replace(move, size_bytes=MIB) for move in MOVES)]
    spread = SpreadEstimate(waves_s=(165.0,))
    soon = seconds_of(waves, rate=4 * MIB, produced={})
    low, high = seconds_of(waves, rate=4 * MIB, produced={}, spread=spread)
    assert soon[1] < 20.0
    assert 165.0 < low < 167.0 < high < 190.0
    slow = seconds_of(waves, rate=MIB // 100, produced={})
    assert seconds_of(waves, rate=MIB // 100, produced={}, spread=spread) == slow


def test_waves_that_wait_and_waves_that_copy_add_up() -> None:
    small = tuple(replace(move, size_bytes=1) for move in MOVES)
    large = (replace(followed(20), size_bytes=1000 * MIB),)
    spread = SpreadEstimate(waves_s=(300.0, 0.0), elected_s=50.0)
    low, high = seconds_of([small, large], rate=MIB, produced={}, spread=spread)
    assert low > 900.0
    assert 1350.0 < high < 1550.0


def test_pre_flight_says_what_takes_the_time() -> None:
    whole = estimate_spread([MOVES], WRITING, WITHIN_S)
    assert check_time((165.0, 170.0), MIB, None, whole).reason.endswith(f"; {whole.words}")
    unthrottled = check_time(None, None, None, whole).reason
    assert not lacking(unthrottled, "at least 2 m 45 s", "time of copying", whole.words)
    assert "begun" not in check_time((1.0, 2.0), MIB).reason


def test_the_time_left_is_no_shorter_than_until_the_last_is_asked_for() -> None:
    forecast = Forecast()
    finishing = Finishing(done=2, total=12, copying_s=4.0, spread_s=100.0)
    told = [
        forecast.tell_left(2 * at_s, 1000, at_s=float(at_s), finishing=finishing)
        for at_s in range(5)
    ]
    soonest, latest = ENDING_S
    assert told[-1] == pytest.approx((100.0 + soonest, 106.0 + ASKED_S + latest))


def test_elections_that_are_left_take_their_time_without_a_throttle() -> None:
    forecast, soonest = Forecast(), ENDING_S[0]
    electing = Finishing(done=12, total=12, copying_s=None, spread_s=40.0)
    found = forecast.tell_left(1000, 1000, at_s=0.0, finishing=electing)
    assert found is not None
    assert found[0] == pytest.approx(40.0 + soonest)
    copying = replace(electing, done=3)
    assert forecast.tell_left(100, 1000, at_s=1.0, finishing=copying) is None


def test_large_partitions_after_small_ones_take_what_their_bytes_take() -> None:
    """Not what the pace of the small ones would make of it."""
    forecast = Forecast()
    finishing = Finishing(done=2, total=12, copying_s=1000.0, spread_s=100.0)
    found = [
        forecast.tell_left(at_s, 10_000_000, at_s=float(at_s), finishing=finishing)
        for at_s in range(5)
    ][-1]
    assert found is not None
    assert 800.0 < found[0] < found[1] < 1700.0
    copying = replace(finishing, spread_s=0.0)
    assert forecast.tell_left(6, 10_000_000, at_s=5.0, finishing=copying) is None, "measured anew"


def test_a_plan_that_cannot_be_is_left_to_pre_flight() -> None:
    nowhere = replace(MOVES[0], after=())
    assert estimate_spread([(nowhere,)], WRITING, WITHIN_S).seconds == 0.0
