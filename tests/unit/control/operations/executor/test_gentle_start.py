"""A throttled move begins with few partitions and soon asks for all."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from control.move.events import EventKind, Outcome
from control.operations.executor.submission_pacing import (
    BATCH_S,
    BATCHES_MAX,
    SubmissionPacer,
    gentle_start,
)
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    begun,
    change,
    command_of,
    idle,
    run,
)

KIB, MIB = 1 << 10, 1 << 20
RATE = 2 * MIB
MOVES = tuple(change("a", number, size_bytes=30 * MIB) for number in range(4))
TOGETHER = WaveRules(partitions=len(MOVES))
Step = Callable[[], None]


@pytest.fixture
def batch(pass_s: PassS) -> Step:
    """Until the next one is due."""
    return pass_s(BATCH_S)


def cluster() -> FakeCluster:
    return FakeCluster({move.key: FROM for move in MOVES})


def asked_for(there: FakeCluster) -> list[int]:
    return [len(asked) for asked in there.asked]


@pytest.mark.parametrize(
    ("number", "size_bytes", "rate", "batches"),
    [
        (3, 24 * MIB, RATE, [1, 1, 1]),
        (3, 24 * MIB, 1024, [1, 1, 1]),
        (20, 100 * KIB, RATE, [11, 9]),
        (20, 0, RATE, [20]),
        (20, 24 * MIB, 5 * MIB, [3, 2, 3, 2, 3, 2, 3, 2]),
        (20, 24 * MIB, 50 * MIB, [20]),
        (500, 24 * MIB, RATE, [25] * BATCHES_MAX),
    ],
)
def test_no_batch_begins_more_than_the_throttle_lets_pass_until_the_next(
    number: int, size_bytes: int, rate: int, batches: list[int]
) -> None:
    wave = tuple(change("a", n, size_bytes=size_bytes) for n in range(number))
    found = gentle_start(wave, rate)
    assert [len(batch) for batch in found] == batches
    assert sum(found, ()) == wave


def test_two_new_replicas_ask_for_twice_as_much() -> None:
    wave = tuple(replace(move, after=(3, 4)) for move in MOVES)
    assert gentle_start(wave, 4 * MIB) == [(move,) for move in wave]


async def test_the_first_wave_is_asked_for_bit_by_bit(batch: Step) -> None:
    there = cluster()
    context = FakeContext(command_of(*MOVES, waves=TOGETHER, throttle=RATE))
    ended = await run(there, context, batch, batch, batch, there.arrive)
    assert ended.outcome is Outcome.DONE
    assert asked_for(there) == [1, 1, 1, 1]
    assert context.said(EventKind.WAVE_DONE) == ["wave 1 done"]


async def test_the_waves_after_it_are_asked_for_at_once(batch: Step) -> None:
    there = cluster()
    context = FakeContext(command_of(*MOVES, waves=WaveRules(partitions=2), throttle=RATE))
    await run(there, context, batch, there.arrive, there.arrive)
    assert asked_for(there) == [1, 1, 2]


async def test_new_leaders_come_at_once_and_the_copies_after_them_bit_by_bit(batch: Step) -> None:
    leads = tuple(replace(change("a", n), after=FROM[::-1]) for n in (8, 9))
    there = FakeCluster({move.key: FROM for move in (*MOVES, *leads)})
    context = FakeContext(command_of(*MOVES, *leads, waves=TOGETHER, throttle=RATE))
    await run(there, context, batch, batch, batch, batch, there.arrive)
    assert asked_for(there) == [2, 1, 1, 1, 1]


async def test_without_a_throttle_all_is_asked_for_at_once() -> None:
    there = cluster()
    await run(there, FakeContext(command_of(*MOVES, waves=TOGETHER)), there.arrive)
    assert asked_for(there) == [4]


async def test_after_a_crash_what_is_left_is_asked_for_at_once() -> None:
    there = cluster()
    there.begin(MOVES[0].key, MOVES[0].after)
    context = begun(command_of(*MOVES, waves=TOGETHER, throttle=RATE), wave=1)
    ended = await run(there, context, there.arrive)
    assert (ended.outcome, asked_for(there)) == (Outcome.DONE, [3])


async def test_after_a_crash_before_the_first_copies_these_still_come_bit_by_bit(
    batch: Step,
) -> None:
    lead = replace(change("a", 8), after=FROM[::-1])
    there = FakeCluster({move.key: FROM for move in (*MOVES, lead)})
    context = begun(command_of(*MOVES, lead, waves=TOGETHER, throttle=RATE), wave=1)
    await run(there, context, batch, batch, batch, batch, there.arrive)
    assert asked_for(there) == [1, 1, 1, 1, 1]


async def test_a_cancel_meanwhile_asks_for_nothing_more(batch: Step) -> None:
    there = cluster()
    context = FakeContext(command_of(*MOVES, waves=TOGETHER, throttle=RATE))

    def cancel() -> None:
        context.script.is_cancelled = True

    ended = await run(there, context, batch, cancel)
    assert ended.outcome is Outcome.CANCELLED
    moved = {key for asked in there.asked for key, target in asked.items() if target is not None}
    assert moved == {move.key for move in MOVES[:2]}
    assert there.placed == {move.key: FROM for move in MOVES}


async def test_what_somebody_else_takes_before_its_turn_is_left_to_them(batch: Step) -> None:
    there = cluster()
    context = FakeContext(command_of(*MOVES[:2], waves=TOGETHER, throttle=RATE))

    def theirs() -> None:
        batch()
        there.begin(MOVES[1].key, (4, 2))

    ended = await run(there, context, theirs, there.arrive, idle)
    assert ended.outcome is Outcome.FAILED
    assert not lacking(ended.message, "a-1", "moved elsewhere")


def test_a_pause_puts_off_all_that_was_to_come() -> None:
    asking = SubmissionPacer(has_copied=False)
    asking.begin(1, MOVES, throttle=RATE, now_s=0.0)
    assert len(asking.due(0.0, free=())) == 1
    for at_s in range(1, 61):
        assert asking.due(float(at_s), free=(), is_held=True) == ()
    counts = [len(asking.due(60.0 + step * BATCH_S, free=())) for step in range(4)]
    assert max(counts) == 1
    assert sum(counts) == 3
