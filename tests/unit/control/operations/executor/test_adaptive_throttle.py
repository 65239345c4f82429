"""An automatic throttle: up while there is headroom, down when others suffer."""

from dataclasses import replace

from control.operations.executor.throttles.adaptive_throttle import (
    AdaptiveThrottle,
    FixedThrottle,
    Reading,
)

MIB = 1 << 20


def reading(
    at_s: float, *, busiest: float | None = None, answered_s: float = 0.02, out_of_sync: int = 0
) -> Reading:
    return Reading(
        at_s=at_s,
        answered_in_s=answered_s,
        busiest_bytes_per_s=busiest,
        out_of_sync=out_of_sync,
    )


def begun(*, floor: int = MIB, out_of_sync: int = 0) -> AdaptiveThrottle:
    throttle = AdaptiveThrottle(rate=40 * MIB, floor=floor)
    assert throttle.observe(reading(0.0, busiest=40.0 * MIB, out_of_sync=out_of_sync)) is None
    return throttle


def test_it_goes_up_by_a_quarter_while_copies_use_it_and_not_before_it_settled() -> None:
    throttle = begun()
    assert throttle.observe(reading(9.0, busiest=40.0 * MIB)) is None
    assert throttle.observe(reading(10.0, busiest=39.0 * MIB)) == 50 * MIB
    assert throttle.observe(reading(15.0, busiest=50.0 * MIB)) is None
    assert throttle.observe(reading(20.0, busiest=50.0 * MIB)) == 62.5 * MIB


def test_it_stays_when_copies_do_not_use_it() -> None:
    throttle = begun()
    assert throttle.observe(reading(10.0, busiest=20.0 * MIB)) is None
    assert throttle.observe(reading(20.0, busiest=None)) is None


def test_it_is_halved_when_other_replicas_fall_out_of_sync_but_not_below_the_floor() -> None:
    throttle = begun(floor=15 * MIB)
    assert throttle.observe(reading(10.0, busiest=40.0 * MIB, out_of_sync=1)) == 20 * MIB
    assert throttle.observe(reading(20.0, busiest=20.0 * MIB, out_of_sync=2)) == 15 * MIB
    assert throttle.observe(reading(30.0, busiest=15.0 * MIB, out_of_sync=3)) is None


def test_what_stays_out_of_sync_halves_it_once_and_then_it_goes_up_again() -> None:
    throttle = begun()
    assert throttle.observe(reading(10.0, busiest=40.0 * MIB, out_of_sync=5)) == 20 * MIB
    assert throttle.observe(reading(20.0, busiest=10.0 * MIB, out_of_sync=5)) is None
    assert throttle.observe(reading(30.0, busiest=20.0 * MIB, out_of_sync=5)) == 25 * MIB
    assert throttle.observe(reading(40.0, busiest=20.0 * MIB, out_of_sync=6)) == 12.5 * MIB


def test_a_rate_below_the_floor_is_not_raised_by_trouble() -> None:
    throttle = AdaptiveThrottle(rate=MIB // 8, floor=MIB)
    throttle.observe(reading(0.0))
    assert throttle.observe(reading(10.0, out_of_sync=1)) is None


def test_replicas_that_were_out_of_sync_before_do_not_count() -> None:
    throttle = begun(out_of_sync=7)
    assert throttle.observe(reading(10.0, busiest=40.0 * MIB, out_of_sync=7)) == 50 * MIB


def test_it_is_halved_when_brokers_answer_late_for_most_of_the_time() -> None:
    throttle = begun()
    for second in range(1, 11):
        assert throttle.observe(reading(float(second), busiest=10.0 * MIB)) is None
    for second in range(11, 15):
        assert throttle.observe(reading(float(second), answered_s=0.9)) is None
    assert throttle.observe(reading(15.0, answered_s=0.9)) == 20 * MIB


def yielding(at_s: float) -> Reading:
    return replace(reading(at_s, busiest=40.0 * MIB), is_yielding=True)


def test_while_the_move_yields_it_is_halved_and_goes_up_again_afterwards() -> None:
    throttle = begun(floor=15 * MIB)
    assert throttle.observe(yielding(10.0)) == 20 * MIB
    assert throttle.observe(yielding(20.0)) == 15 * MIB
    assert throttle.observe(yielding(30.0)) is None
    assert throttle.observe(reading(40.0, busiest=15.0 * MIB)) == 18.75 * MIB


def test_an_operators_rate_is_lowered_while_the_move_yields_and_is_back_at_once() -> None:
    throttle = FixedThrottle(rate=40 * MIB, floor=8 * MIB)
    assert throttle.observe(reading(0.0, out_of_sync=9, answered_s=9.0)) is None
    assert throttle.observe(yielding(1.0)) == 20 * MIB
    assert throttle.observe(yielding(5.0)) is None
    assert throttle.observe(yielding(11.0)) == 10 * MIB
    assert throttle.observe(yielding(21.0)) == 8 * MIB
    assert throttle.observe(yielding(31.0)) is None
    assert throttle.observe(reading(32.0)) == 40 * MIB


def test_an_operators_rate_below_the_floor_is_not_raised_by_a_yield() -> None:
    throttle = FixedThrottle(rate=MIB // 8, floor=MIB)
    assert throttle.observe(yielding(0.0)) is None
