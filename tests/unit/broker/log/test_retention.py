"""Which segments retention takes."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.log.config import LogConfig
from broker.log.retention import DeletedSegments, SegmentAge, plan_deletion

NEVER = LogConfig(retention_ms=-1, retention_bytes=-1)
SEGMENTS = [
    SegmentAge(next_offset=10, size_bytes=60, largest_timestamp_ms=1000),
    SegmentAge(next_offset=20, size_bytes=60, largest_timestamp_ms=3000),
    SegmentAge(next_offset=30, size_bytes=50, largest_timestamp_ms=2000),
]


def _plan(config: LogConfig, *, start: int = 0, high_watermark: int = 30) -> DeletedSegments:
    return plan_deletion(
        SEGMENTS,
        config,
        total_bytes=170,
        log_start_offset=start,
        high_watermark=high_watermark,
        now_ms=3500,
    )


@pytest.mark.parametrize(
    ("retention_bytes", "count"), [(-1, 0), (171, 0), (110, 1), (100, 1), (50, 2), (0, 3)]
)
def test_by_size_what_is_left_stays_at_or_above_the_limit(retention_bytes: int, count: int) -> None:
    assert _plan(replace(NEVER, retention_bytes=retention_bytes)).segments == count


@pytest.mark.parametrize(
    ("retention_ms", "count"), [(-1, 0), (2500, 0), (2499, 1), (500, 1), (499, 3)]
)
def test_by_time_the_largest_record_timestamp_counts_oldest_first(
    retention_ms: int, count: int
) -> None:
    plan = _plan(replace(NEVER, retention_ms=retention_ms))
    assert plan == DeletedSegments(count, "retention.ms" if count else "")


@pytest.mark.parametrize(("start", "count"), [(9, 0), (10, 1), (25, 2)])
def test_segments_wholly_below_the_log_start_go_even_when_compacted(start: int, count: int) -> None:
    compacted = replace(NEVER, cleanup_policy=frozenset({"compact"}), retention_bytes=0)
    assert _plan(compacted, start=start).segments == count


def test_nothing_goes_at_or_above_the_high_watermark() -> None:
    assert _plan(replace(NEVER, retention_bytes=0), high_watermark=19).segments == 1


def test_future_timestamps_and_an_empty_active_segment_stay() -> None:
    config = replace(NEVER, retention_ms=0)
    future = SegmentAge(next_offset=5, size_bytes=10, largest_timestamp_ms=9000)
    empty = SegmentAge(next_offset=0, size_bytes=0, largest_timestamp_ms=0, is_active=True)
    for segment in (future, empty):
        plan = plan_deletion(
            [segment], config, total_bytes=10, log_start_offset=0, high_watermark=5, now_ms=3500
        )
        assert plan.segments == 0


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (replace(NEVER, retention_ms=2499), 2),
        (replace(NEVER, retention_bytes=110), 2),
        (replace(NEVER, retention_bytes=171), 0),
    ],
)
def test_a_segment_that_compaction_emptied_holds_nothing_back(
    config: LogConfig, count: int
) -> None:
    emptied = SegmentAge(next_offset=5, size_bytes=0, largest_timestamp_ms=500)
    plan = plan_deletion(
        [emptied, *SEGMENTS],
        config,
        total_bytes=170,
        log_start_offset=0,
        high_watermark=30,
        now_ms=3500,
    )
    assert plan.segments == count


def test_no_look_at_segments_behind_the_first_that_stays() -> None:
    looked_at = []

    def watched() -> Iterator[SegmentAge]:
        for segment in SEGMENTS:
            looked_at.append(segment)
            yield segment

    plan_deletion(
        watched(),
        NEVER,
        total_bytes=170,
        log_start_offset=0,
        high_watermark=30,
        now_ms=3500,
    )
    assert looked_at == SEGMENTS[:1]
