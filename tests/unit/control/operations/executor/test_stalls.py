"""Moves that stand still are told from moves that are slow, with the cause."""

from control.model.ids import TopicPartition
from control.operations.executor.stalls import StallWatch
from tests.support.phrases import lacking

KEY = TopicPartition("t", 0)
MIB = 1 << 20


def test_a_move_that_gets_on_is_no_standstill_however_slow() -> None:
    watch = StallWatch()
    for second in range(100):
        assert watch.look(KEY, size=1000, copied=second, now_s=float(second)) is None


def test_nothing_arrived() -> None:
    watch = StallWatch()
    assert watch.look(KEY, size=1000, copied=10, now_s=0.0) is None
    assert watch.look(KEY, size=1000, copied=10, now_s=29.0) is None
    still = watch.look(KEY, size=1000, copied=10, now_s=31.0)
    assert still is not None
    assert still.explain(MIB).startswith("no byte arrived for 31 s at 1.0 MiB/s")


def test_a_complete_copy_that_is_not_in_sync_needs_no_throttle() -> None:
    watch = StallWatch()
    assert watch.look(KEY, size=0, copied=0, now_s=0.0) is None
    still = watch.look(KEY, size=0, copied=0, now_s=40.0)
    assert still is not None
    assert not lacking(still.explain(MIB), "40 s", "nothing is left", "log")


def test_a_copy_that_only_keeps_pace_with_producers_never_ends() -> None:
    watch = StallWatch()
    assert watch.look(KEY, size=100 * MIB, copied=0, now_s=0.0) is None
    still = watch.look(KEY, size=132 * MIB, copied=31 * MIB, now_s=31.0)
    assert still is not None
    words = still.explain(MIB)
    assert not lacking(words, "producers wrote 32.0 MiB", "copy got 31.0 MiB", "at 1.0 MiB/s")
    assert words.endswith("raise the throttle")


def test_a_move_that_ended_is_forgotten() -> None:
    watch = StallWatch()
    watch.look(KEY, size=100, copied=0, now_s=0.0)
    watch.forget(KEY)
    assert watch.look(KEY, size=100, copied=0, now_s=100.0) is None


def test_a_throttle_of_somebody_else_is_named_and_raising_ours_is_not_advised() -> None:
    watch = StallWatch()
    assert watch.look(KEY, size=100 * MIB, copied=0, now_s=0.0) is None
    still = watch.look(KEY, size=132 * MIB, copied=31 * MIB, now_s=31.0)
    assert still is not None
    words = still.explain(50 * MIB, theirs={103: 2 * MIB, 102: MIB})
    assert not lacking(words, "copy got 31.0 MiB at 1.0 MiB/s", "somebody else", "broker 102")
    assert not lacking(words, "wait for that move", "remove its throttle")
