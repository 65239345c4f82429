"""Partitions left out of a fetch: each reason ends by itself, and holds until then."""

from broker.replication.follower.fetch_session_handler import HeldPartitions

KEY = (b"0" * 16, 0)


def held() -> HeldPartitions:
    return HeldPartitions(backoff_ms_first=100, backoff_ms_max=1000)


def test_what_waits_for_the_disk_waits_for_nothing_else_and_no_longer() -> None:
    waiting = held()
    waiting.hold_unforced(KEY)
    assert KEY in waiting
    assert len(waiting) == 1
    assert waiting.wait_s(0) is None, "no timer ends it"
    assert waiting.release(2**62) == []
    waiting.forced(KEY)
    assert KEY not in waiting


def test_a_flush_does_not_release_what_the_throttle_or_a_failure_holds() -> None:
    for is_throttled in (True, False):
        waiting = held()
        waiting.hold_unforced(KEY)
        if is_throttled:
            waiting.hold_throttled(KEY, 500)
        else:
            waiting.hold_failed(KEY, 400)
        waiting.forced(KEY)
        assert KEY in waiting
        assert waiting.release(499) == []
        assert waiting.release(500) == [KEY]


def test_time_and_throttle_do_not_release_what_waits_for_the_disk() -> None:
    waiting = held()
    waiting.hold_throttled(KEY, 500)
    waiting.hold_unforced(KEY)
    waiting.release_throttled()
    assert waiting.release(1000) == []
    assert KEY in waiting
    waiting.forced(KEY)
    assert KEY not in waiting


def test_failures_in_a_row_are_counted_over_a_flush() -> None:
    waiting = held()
    assert waiting.hold_failed(KEY, 0) == 1
    waiting.hold_unforced(KEY)
    waiting.forced(KEY)
    assert waiting.hold_failed(KEY, 0) == 2


def test_another_throttle_does_not_release_what_has_failed() -> None:
    waiting = held()
    waiting.hold_failed(KEY, 0)
    waiting.hold_throttled(KEY, 500)
    waiting.release_throttled()
    assert waiting.release(99) == []
    assert waiting.release(100) == [KEY]
