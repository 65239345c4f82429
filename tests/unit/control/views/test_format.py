"""Text of numbers."""

import math
from datetime import UTC

import pytest

from control.views import format as text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 B"),
        (812, "812 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1_048_575, "1.0 MiB"),
        (3.1 * 2**30, "3.1 GiB"),
        (150 * 2**20, "150 MiB"),
        (-2048, "−2.0 KiB"),
        (None, "n/a"),
        (math.nan, "n/a"),
    ],
)
def test_bytes(value: float | None, shown: str) -> None:
    assert text.bytes_text(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 s"),
        (3.1, "3.1 ms"),
        (300, "0.3 s"),
        (12_000, "12 s"),
        (59_600, "1 m"),
        (250_000, "4 m 10 s"),
        (7_500_000, "2 h 5 m"),
        (529_200_000, "6 d 3 h"),
        (None, "n/a"),
    ],
)
def test_durations(value: float | None, shown: str) -> None:
    assert text.duration_text(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0 /s"), (0.4, "0.4 /s"), (32, "32 /s"), (1204, "1,204 /s"), (41_000, "41 k/s"),
     (2_500_000, "2 M/s"), (None, "n/a")],
)  # fmt: skip
def test_record_rates(value: float | None, shown: str) -> None:
    assert text.record_rate_text(value) == shown


def test_signed_figures_have_their_sign() -> None:
    assert text.signed_percent_text(57.6) == "+58 %"
    assert text.signed_percent_text(-8.2) == "−8 %"
    assert text.signed_percent_text(0.2) == "0 %"
    assert text.signed_record_rate_text(32) == "+32 /s"
    assert text.signed_record_rate_text(-4) == "−4.0 /s"


def test_estimates_are_marked() -> None:
    assert text.bytes_text(2048, estimated=True) == "≈ 2.0 KiB"
    assert text.duration_text(9_000, estimated=True) == "≈ 9.0 s"


def test_percents() -> None:
    assert [text.percent_text(value) for value in (58, 0.5, 3, 99.97)] == [
        "58 %", "0.5 %", "3 %", "100 %"
    ]  # fmt: skip


def test_clock_tells_the_day_when_it_is_another() -> None:
    noon = 1_790_000_040_000
    assert text.clock_text(noon, now_ms=noon + 60_000, zone=UTC) == "14:14"
    assert text.clock_text(noon, now_ms=noon + 86_400_000, zone=UTC) == "2026-09-21 14:14"
    assert text.clock_text(noon + 1e12 * 1000, zone=UTC) == text.NA, (
        "a terabyte at a byte per second"
    )


def test_ages_and_lists() -> None:
    assert text.age_text(1_200) == "1.2 s ago"
    assert text.age_text(None) == "never"
    assert text.ids_text([103, 101]) == "103, 101"
    assert text.ids_text([]) == "–"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 records"), (1, "1 record"), (1_204, "1,204 records"), (None, "n/a"), (math.nan, "n/a")],
)
def test_counted_things_are_singular_for_one_and_n_a_where_unknown(
    count: float | None, shown: str
) -> None:
    assert text.plural_text(count, "record") == shown


def test_a_phrase_is_filled_with_facts() -> None:
    shown = text.phrase(
        "{count:plural:partition} on {name}: {size:bytes}, {age:duration}, {gone:count}",
        {"count": 1, "name": "orders", "size": 2048, "age": 250_000, "gone": None},
    )

    assert shown == "1 partition on orders: 2.0 KiB, 4 m 10 s, n/a"


def test_an_offset_of_64_bits_keeps_all_its_digits() -> None:
    assert text.count_text(2**62 - 10) == "4,611,686,018,427,387,894"
    assert text.count_text(-(2**62) + 1) == "−4,611,686,018,427,387,903"
