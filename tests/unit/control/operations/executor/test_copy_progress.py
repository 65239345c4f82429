"""Time left of a move and of its partitions: one estimate, the whole never below a part."""

from collections.abc import Mapping

import pytest

from control.model.ids import TopicPartition
from control.move.events import MovingPartition
from control.operations.executor.timing.copy_progress import Copy, Link
from control.operations.executor.timing.forecast import Forecast
from control.operations.reassignment.calibration import Calibration

MIB = 1 << 20
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def copy(key: TopicPartition, done: int, total: int, *links: Link) -> Copy:
    return Copy(
        key=key, bytes_done=done, bytes_total=total, links=dict.fromkeys(links, (done, total))
    )


def told(
    rates: Mapping[TopicPartition, tuple[int, int, Link]], *, calibration: Calibration
) -> tuple[tuple[float, float], tuple[MovingPartition, ...]]:
    """After ten seconds of copies at these (bytes per second, bytes in all, receiving link)."""
    forecast = Forecast(calibration=calibration)
    for second in range(11):
        copies = [
            copy(key, second * rate, total, link) for key, (rate, total, link) in rates.items()
        ]
        moving = forecast.tell_copies(copies, at_s=float(second), shown_max=20)
        left = forecast.tell_left(
            sum(it.bytes_done for it in copies),
            sum(it.bytes_total for it in copies),
            at_s=float(second),
            moving=moving,
        )
    assert left is not None
    return left, moving


@pytest.mark.parametrize(
    "calibration",
    [Calibration(), Calibration(left=(-1.0, -0.8)), Calibration(left=(-2.0, 2.0))],
    ids=["as it is", "moves ended sooner", "moves went astray"],
)
def test_the_whole_never_ends_before_a_partition_that_crawls(calibration: Calibration) -> None:
    """Bytes of both are 90 s of the mean rate; the slow one takes 190 s."""
    slow = (MIB, 200 * MIB, ("receives", 4))
    fast = (9 * MIB, 800 * MIB, ("receives", 5))
    whole, moving = told({A: slow, B: fast}, calibration=calibration)
    for part in moving:
        assert part.eta_s_low is not None
        assert part.eta_s_high is not None
        assert whole[0] >= part.eta_s_low
        assert whole[1] >= part.eta_s_high
    if calibration == Calibration():
        assert 185 < whole[0] <= 190.2 < whole[1] < 200


def test_a_partition_gets_the_share_of_those_that_arrive_before_it() -> None:
    """At its own rate it takes 190 s; its broker has all in 100 s, as the other one ends sooner."""
    link: Link = ("receives", 4)
    whole, moving = told(
        {A: (MIB, 200 * MIB, link), B: (MIB, 20 * MIB, link)}, calibration=Calibration()
    )
    (long, short) = moving
    assert long.eta_s_low is not None
    assert long.eta_s_high is not None
    assert short.eta_s_high is not None
    assert 90 < long.eta_s_low < 101 < long.eta_s_high < 110
    assert short.eta_s_high < 15
    assert whole[1] >= long.eta_s_high


def test_after_a_change_of_course_partitions_are_measured_anew_as_the_whole_is() -> None:
    forecast = Forecast()
    for second in range(5):
        moving = forecast.tell_copies(
            [copy(A, second * MIB, 100 * MIB)], at_s=float(second), shown_max=20
        )
    assert moving[0].eta_s_low is not None
    forecast.begin_anew()
    moving = forecast.tell_copies([copy(A, 5 * MIB, 100 * MIB)], at_s=5.0, shown_max=20)
    assert moving[0].eta_s_low is None
