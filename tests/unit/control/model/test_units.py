"""Rates as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.model.units import brokers_text, byte_rate_text, parse_byte_rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("1048576", 1 << 20),
        ("50MiB", 50 << 20),
        ("50 MiB/s", 50 << 20),
        ("1.5G", 3 << 29),
        ("12k", 12 << 10),
        ("30Ki", 30 << 10),
        ("100 B/s", 100),
        ("fast", None),
        ("1e9", None),
        ("-5M", None),
        ("", None),
    ],
)
def test_rates_are_read_as_written(text: str, rate: int | None) -> None:
    assert parse_byte_rate(text) == rate


@given(st.integers(0, 1 << 45))
def test_what_is_shown_is_read_back_as_shown(rate: int) -> None:
    shown = byte_rate_text(rate)
    read = parse_byte_rate(shown)
    assert read is not None
    assert byte_rate_text(read) == shown


@pytest.mark.parametrize(("ids", "words"), [({101}, "broker 101"), ((3, 1), "brokers 1, 3")])
def test_brokers_are_named_as_people_do(ids: set[int], words: str) -> None:
    assert brokers_text(ids) == words
