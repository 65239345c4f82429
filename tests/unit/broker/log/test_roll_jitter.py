"""Segments of many partitions do not roll together."""

from dataclasses import replace
from pathlib import Path

from broker.log.partition_log import PartitionLog
from tests.unit.broker.log.helpers import CONFIG, NOW_MS, append, batch, open_log

SEGMENT_MS = 10_000
JITTER_MS = 4_000


def _rolled_after_ms(log: PartitionLog) -> int:
    """How much younger than its first record the first record of the next segment is."""
    append(log, batch(timestamp=NOW_MS - SEGMENT_MS - 1))
    for age_ms in range(0, SEGMENT_MS + 30, 10):
        append(log, batch(timestamp=NOW_MS - SEGMENT_MS - 1 + age_ms))
        if len(log.segments()) > 1:
            return age_ms
    raise AssertionError("no second segment")


def test_segments_roll_up_to_the_jitter_sooner_each_at_its_own_time(tmp_path: Path) -> None:
    config = replace(CONFIG, segment_ms=SEGMENT_MS, segment_jitter_ms=JITTER_MS)
    ages = [_rolled_after_ms(open_log(tmp_path / f"orders-{n}", config)) for n in range(8)]
    assert all(SEGMENT_MS - JITTER_MS < age <= SEGMENT_MS + 10 for age in ages)
    assert len(set(ages)) > 4


def test_a_jitter_longer_than_the_segments_age_is_cut(tmp_path: Path) -> None:
    config = replace(CONFIG, segment_ms=SEGMENT_MS, segment_jitter_ms=100 * SEGMENT_MS)
    ages = [_rolled_after_ms(open_log(tmp_path / f"orders-{n}", config)) for n in range(8)]
    assert len(set(ages)) > 4


def test_without_jitter_age_alone_rolls(tmp_path: Path) -> None:
    config = replace(CONFIG, segment_ms=SEGMENT_MS)
    ages = {_rolled_after_ms(open_log(tmp_path / f"orders-{n}", config)) for n in range(3)}
    assert ages == {SEGMENT_MS + 10}
