"""What the button of charts' times says."""

import pytest

from dashboard.page_frame.times import time_words

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("time", "words"),
    [
        ({}, "last 10 minutes"),
        ({"range": "1d"}, "last 1 day"),
        ({"range": "2h"}, "last 2h"),
        ({"at": "soon"}, "✖ 'soon' is no time; write "),
        ({"range": "much"}, "✖ range 'much' is not like"),
    ],
)
def test_times_and_mistakes(time: dict[str, str], words: str) -> None:
    assert time_words(time, now_ms=NOW_MS).startswith(words)


def test_a_past_time_is_told_by_the_clock() -> None:
    assert time_words({"at": "2h", "range": "1h"}, now_ms=NOW_MS).startswith("1 hour up to ")
