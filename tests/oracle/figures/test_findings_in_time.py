"""Findings against what is wrong in truth: they come and go within some readings, none flaps."""

from typing import Final

import pytest

from tests.oracle.figures.alarms_told import JUDGED, judged

READINGS_S: Final = 6
"""Six readings of a broker are missed one after the other less than once in 80,000 times."""


@pytest.mark.thorough
def test_findings_follow_the_truth_within_some_readings() -> None:
    scores = judged(range(3), 300)
    for kind in JUDGED:
        score = scores[kind]
        assert score.right_on, f"{kind} never came about"
        assert score.appears, kind
        assert max(score.appears) <= READINGS_S, kind
        assert max(score.clears, default=0) <= READINGS_S, kind
        assert score.flaps == 0, kind
