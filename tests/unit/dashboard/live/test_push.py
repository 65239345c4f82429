"""The age that is pushed: quiet, amber, red."""

import pytest

from control.views.snapshots.snapshot import build_snapshot
from control.views.tables.rows import Tone
from dashboard.live.push import age_of
from tests.unit.control import clusters
from tests.unit.control.clusters import NOW_MS

SNAPSHOT = build_snapshot(clusters.tables(brokers=[clusters.broker(1)]), version=1, now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("age_ms", "words", "tone"),
    [
        (1_200, "1.2 s ago", Tone.FINE),
        (6_000, "▲ 6.0 s ago", Tone.WARNING),
        (42_000, "✖ 42 s ago", Tone.CRITICAL),
    ],
)
def test_age(age_ms: int, words: str, tone: Tone) -> None:
    assert age_of(SNAPSHOT, NOW_MS + age_ms) == (words, tone)


def test_no_data_has_no_age() -> None:
    empty = build_snapshot({}, version=0, now_ms=NOW_MS)

    assert age_of(empty, NOW_MS) == ("no data yet", Tone.MUTED)
