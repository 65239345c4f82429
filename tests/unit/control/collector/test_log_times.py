"""When a log ended where: asked step by step, right within a second or a hundredth of the age."""

from hypothesis import given
from hypothesis import strategies as st

from control.collector.image import PartitionState
from control.collector.log_times import CLOSE_MS, CLOSE_SHARE, POINTS_TOLD_MAX, LogTimes
from control.model.ids import TopicPartition

KEY = TopicPartition("orders", 0)
NOW_MS = 1_700_000_000_000
ASKED_MAX = 40


def _state(end: int, start: int = 0) -> PartitionState:
    return PartitionState(
        key=KEY,
        leader=1,
        leader_epoch=1,
        replicas=(1,),
        isr=(1,),
        high_watermark=end,
        log_start_offset=start,
        ends_read_ms=NOW_MS,
    )


def _first_since(written_ms: list[int], moment: int) -> tuple[int, int]:
    """What a broker answers: the first record at or after a moment."""
    for offset, at_ms in enumerate(written_ms):
        if at_ms >= moment:
            return offset, at_ms
    return -1, -1


def _ask_until_close(times: LogTimes, written_ms: list[int], offset: int) -> int:
    for asked in range(ASKED_MAX):
        moments = times.wanted({KEY: [offset]}, now_ms=NOW_MS, most=1)
        if not moments:
            return asked
        times.take(KEY, moments[KEY], _first_since(written_ms, moments[KEY]), len(written_ms))
    raise AssertionError("asked for ever")


ages_ms = st.lists(st.integers(1, 3 * 86_400_000), min_size=2, max_size=60)


@given(ages=ages_ms, data=st.data())
def test_a_committed_place_comes_to_lie_between_close_points(
    ages: list[int], data: st.DataObject
) -> None:
    written_ms = sorted(NOW_MS - age for age in ages)
    offset = data.draw(st.integers(0, len(written_ms) - 1))
    times = LogTimes()
    times.see(_state(len(written_ms)))
    _ask_until_close(times, written_ms, offset)
    told = times.told(KEY, [offset])
    assert len(told) == 4
    low, low_ms, high, high_ms = told
    assert low <= offset < high
    # The log reached this offset with the record before it, and left it with the one there.
    earliest = written_ms[offset - 1] if offset else 0
    assert low_ms <= written_ms[offset]
    assert high_ms >= earliest
    close_ms = max(CLOSE_MS, (NOW_MS - low_ms) * CLOSE_SHARE)
    assert low == offset or high_ms - low_ms <= close_ms


@given(ages=ages_ms, offset=st.integers(0, 1))
def test_disorder_of_timestamps_ends_as_well(ages: list[int], offset: int) -> None:
    written_ms = [NOW_MS - age for age in ages]
    times = LogTimes()
    times.see(_state(len(written_ms)))
    _ask_until_close(times, written_ms, offset)
    told = times.told(KEY, [offset])
    assert list(told[::2]) == sorted(told[::2])
    assert list(told[1::2]) == sorted(told[1::2])


def test_what_was_deleted_is_forgotten_and_what_is_new_is_not_asked_for() -> None:
    written_ms = [NOW_MS - 1_000_000 + 1_000 * n for n in range(1_000)]
    times = LogTimes()
    times.see(_state(1_000))
    _ask_until_close(times, written_ms, 300)
    assert times.is_old(KEY, 300)
    assert not times.is_old(KEY, 1_000), "written since: seen coming"
    times.see(_state(1_200, start=400))
    assert not times.is_old(KEY, 300), "lost"
    assert times.told(KEY, [300]) == ()
    assert times.wanted({KEY: [500]}, now_ms=NOW_MS, most=1) == {KEY: 0}, "a new beginning"
    times.see(_state(5))
    assert times.is_old(KEY, 3), "deleted and created again"
    times.forget(set())
    assert not times.is_old(KEY, 3)


def test_many_groups_share_a_row_and_the_budget_bounds_what_is_asked() -> None:
    written_ms = [NOW_MS - 10_000_000 + 10_000 * n for n in range(1_000)]
    times = LogTimes()
    times.see(_state(1_000))
    offsets = list(range(0, 1_000, 100))
    for offset in offsets:
        _ask_until_close(times, written_ms, offset)
    told = times.told(KEY, offsets)
    assert len(told) <= 2 * POINTS_TOLD_MAX
    other = TopicPartition("orders", 1)
    assert len(times.wanted({KEY: [555], other: [5]}, now_ms=NOW_MS, most=1)) == 1
