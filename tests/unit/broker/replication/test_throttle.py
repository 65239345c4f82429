"""Replication throttles: which replicas, and how many bytes."""

import pytest

from broker.replication.throttle import UNLIMITED, ByteBucket, is_throttled, throttled_rate


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", False),
        ("none", False),
        ("*", True),
        ("0:1", True),
        ("0:2,0:1", True),
        (" 0:1 , 3:4 ", True),
        ("0:11", False),
        ("10:1", False),
        ("1:1,0:2", False),
    ],
)
def test_which_replicas(config: str, expected: bool) -> None:
    assert is_throttled(config, 0, 1) is expected


def test_without_a_rate_everything_flows() -> None:
    bucket = ByteBucket()
    bucket.record(10**12, 0)
    assert bucket.wait_ms(0) == 0


def test_a_debt_is_paid_back_at_the_rate() -> None:
    bucket = ByteBucket()
    bucket.set_rate(1000, 0)
    bucket.record(3500, 0)
    wait_ms = bucket.wait_ms(0)
    assert wait_ms == 3501
    assert bucket.wait_ms(3500 - 10) > 0
    assert bucket.wait_ms(wait_ms) == 0


def test_the_average_holds_whatever_the_size_of_the_steps() -> None:
    bucket = ByteBucket()
    bucket.set_rate(1000, 0)
    now_ms = sent = 0
    while now_ms < 60_000:
        wait_ms = bucket.wait_ms(now_ms)
        if wait_ms:
            now_ms += wait_ms
        else:
            size = 300 + 700 * (sent % 3)
            bucket.record(size, now_ms)
            sent += size
    assert sent == pytest.approx(60_000, rel=0.05)


@pytest.mark.parametrize("late_ms", [0, 20, 100])
def test_the_average_holds_over_five_seconds_though_timers_come_late(late_ms: int) -> None:
    bucket = ByteBucket()
    bucket.set_rate(1_000_000, 0)
    now_ms, sent = 60_000, 0
    start_ms = now_ms
    while now_ms < start_ms + 5_000:
        wait_ms = bucket.wait_ms(now_ms)
        if wait_ms:
            now_ms += wait_ms + late_ms
        else:
            bucket.record(bucket.step_bytes, now_ms)
            sent += bucket.step_bytes
    assert sent == pytest.approx(5_000_000, rel=0.05)


def test_quiet_times_save_up_a_fifth_of_a_second_at_most() -> None:
    bucket = ByteBucket()
    bucket.set_rate(1000, 0)
    assert bucket.wait_ms(100_000) == 0
    bucket.record(201, 100_000)
    assert bucket.wait_ms(100_000) > 0


def test_a_new_rate_forgives_the_debt_and_the_same_rate_does_not() -> None:
    bucket = ByteBucket()
    bucket.set_rate(10, 0)
    bucket.record(10_000, 0)
    bucket.set_rate(10, 5)
    assert bucket.wait_ms(5) > 0
    bucket.set_rate(UNLIMITED, 6)
    assert bucket.wait_ms(6) == 0


@pytest.mark.parametrize(
    ("configs", "expected"),
    [({}, UNLIMITED), ({"rate": ""}, UNLIMITED), ({"rate": "12"}, 12), ({"rate": "x"}, UNLIMITED)],
)
def test_rates_from_configs(configs: dict[str, str], expected: int) -> None:
    assert throttled_rate(configs, "rate") == expected
