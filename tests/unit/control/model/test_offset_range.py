"""Which offsets lie outside their logs, and which of them were meant as times."""

import pytest

from control.model.ids import TopicPartition
from control.model.offset_range import LogRange, outside_words
from tests.support.phrases import lacking

NOW_MS = 1_764_320_400_000
LOGS = {TopicPartition("t", n): LogRange(10, 100 + n) for n in range(2)}


def told(offset: int, form: str = "@{}") -> str:
    return outside_words(offset, LOGS, now_ms=NOW_MS, time_form=form) or ""


@pytest.mark.parametrize("offset", [10, 50, 100])
def test_an_offset_that_each_log_has_is_none_outside(offset: int) -> None:
    assert told(offset) == ""


@pytest.mark.parametrize(
    ("offset", "phrases"),
    [
        (101, ("101", "beyond the end of t-0 (10 to 100)")),
        (102, ("beyond the end of t-0 (10 to 100), t-1 (10 to 101)", "write an offset")),
        (9, ("first record of t-0 (10 to 100), t-1 (10 to 101)",)),
        (NOW_MS, ("beyond", "2025-11-28T09:00:00Z", f"@{NOW_MS}")),
        (NOW_MS // 1_000, ("beyond", "2025-11-28T09:00:00Z", f"@{NOW_MS // 1_000}")),
        (2**63 - 1, (str(2**63 - 1), "beyond", "write an offset")),
    ],
)
def test_the_partitions_and_their_ends_are_named(offset: int, phrases: tuple[str, ...]) -> None:
    assert lacking(told(offset), *phrases) == []


def test_a_time_is_written_as_the_place_takes_it() -> None:
    assert "--since 1764320400" in told(1_764_320_400, "--since {}")
    for years in (-31, 31):
        assert "time" not in told((NOW_MS + years * 365 * 86_400_000) // 1_000)


def test_of_many_partitions_the_rest_is_counted() -> None:
    logs = {TopicPartition("t", n): LogRange(0, 1) for n in range(9)}
    words = outside_words(2, logs, now_ms=NOW_MS, time_form="@{}") or ""
    assert lacking(words, "t-4 (0 to 1) and 4 more") == []
    assert "t-5" not in words
