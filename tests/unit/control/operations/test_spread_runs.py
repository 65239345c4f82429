"""A run that asks for partitions one by one, since producers write to them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from control.model.ids import TopicPartition
from control.move.events import EventKind, Outcome
from control.operations.executor import run as reassign_run
from control.operations.reassignment.spreading import NOT_KNOWN
from planner.waves import WaveRules
from tests.support.phrases import lacking
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import (
    FROM,
    TO,
    FakeCluster,
    FakeContext,
    Script,
    begun,
    change,
    command_of,
    idle,
    run,
)

MOVES = tuple(change("a", number) for number in range(4))
KEYS = [move.key for move in MOVES]
GAP_S = (0.3 + 0.12 / 4) / 0.005
"""The leader goes: 0.3 of a follower's second at the only leader, 0.12 s of a quarter of it all."""
WIDE = WaveRules(partitions=4, spread_s=1000.0)


@pytest.fixture(autouse=True)
def _written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    async def written(*_: Any, **__: Any) -> Mapping[TopicPartition, float]:
        return dict.fromkeys(KEYS, 1000.0)

    monkeypatch.setattr(reassign_run, "measure_produced", written)


def cluster() -> FakeCluster:
    return FakeCluster({move.key: FROM for move in MOVES})


def asked_for(there: FakeCluster) -> list[int]:
    return [len(asked) for asked in there.asked]


async def test_the_next_is_asked_for_when_the_last_may_have_been_felt(pass_s: PassS) -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=WIDE))
    seen: list[int] = []

    def late() -> None:
        pass_s(GAP_S - 1.0)()
        seen.append(len(there.asked))

    def arrives() -> None:
        seen.append(len(there.asked))
        there.arrive()
        pass_s(1.0)()

    steps = [late, arrives] * 3
    ended = await run(there, context, *steps, there.arrive)
    assert ended.outcome is Outcome.DONE
    assert asked_for(there) == [1, 1, 1, 1]
    assert seen == [1, 1, 2, 2, 3, 3]
    (started,) = context.said(EventKind.STARTED)
    assert not lacking(started, "over 3 m 18 s", "spread")


async def test_waves_take_their_time_together(pass_s: PassS) -> None:
    rules = replace(WIDE, partitions=2)
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=rules))
    gap = pass_s(GAP_S)
    steps = [there.arrive, gap] * 3
    ended = await run(there, context, *steps, there.arrive)
    assert (ended.outcome, asked_for(there)) == (Outcome.DONE, [1, 1, 1, 1])


async def test_a_pause_holds_also_what_is_not_asked_for_yet(pass_s: PassS) -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=WIDE))
    long = pass_s(1000.0)

    def pause() -> None:
        context.script.is_paused = True

    def resume() -> None:
        assert asked_for(there) == [1]
        context.script.is_paused = False

    gap = pass_s(GAP_S)
    steps = [pause, there.arrive, long, long, resume, gap, gap]
    ended = await run(there, context, *steps, there.arrive)
    assert (ended.outcome, asked_for(there)) == (Outcome.DONE, [1, 1, 1, 1])
    (paused,) = context.said(EventKind.PAUSED)
    assert not lacking(paused, "paused", "in flight arrive")


async def test_after_the_wave_means_after_what_moves(pass_s: PassS) -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=WIDE))

    def last() -> None:
        context.script.is_last_wave = True

    ended = await run(there, context, last, pass_s(1000.0), there.arrive)
    assert ended.outcome is Outcome.CANCELLED
    assert asked_for(there) == [1]
    assert there.placed == {KEYS[0]: TO, **dict.fromkeys(KEYS[1:], FROM)}


async def test_after_the_wave_holds_over_a_crash(pass_s: PassS) -> None:
    there = cluster()
    there.begin(KEYS[0], TO)
    context = begun(command_of(*MOVES, waves=WIDE), wave=1)
    context.script.is_last_wave = True
    ended = await run(there, context, pass_s(1000.0), there.arrive)
    assert ended.outcome is Outcome.CANCELLED
    assert asked_for(there) == []
    assert there.placed == {KEYS[0]: TO, **dict.fromkeys(KEYS[1:], FROM)}


async def test_a_cancel_takes_back_what_moves_and_asks_for_no_more(pass_s: PassS) -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=WIDE))

    def cancel() -> None:
        context.script.is_cancelled = True

    def late() -> None:
        cancel()
        pass_s(1000.0)()

    ended = await run(there, context, pass_s(GAP_S), late)
    assert ended.outcome is Outcome.CANCELLED
    assert there.placed == dict.fromkeys(KEYS, FROM)
    moved = [key for asked in there.asked for key, target in asked.items() if target == TO]
    assert moved == KEYS[:2]


async def test_after_a_crash_what_is_left_is_spread_anew(pass_s: PassS) -> None:
    there = cluster()
    there.begin(KEYS[0], TO)
    context = begun(command_of(*MOVES, waves=WIDE), wave=1)
    gap = pass_s(GAP_S)
    ended = await run(there, context, gap, gap, there.arrive)
    assert (ended.outcome, asked_for(there)) == (Outcome.DONE, [1, 1, 1])


async def test_no_spread_asks_for_all_at_once() -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=replace(WIDE, spread_s=0.0)))
    await run(there, context, there.arrive)
    assert asked_for(there) == [4]


async def test_the_time_left_counts_with_what_is_not_asked_for_yet(pass_s: PassS) -> None:
    there, context = cluster(), FakeContext(command_of(*MOVES, waves=WIDE))
    gap = pass_s(GAP_S)
    left: list[float] = []

    def look() -> None:
        progress = context.state().progress
        assert progress is not None
        left.append(progress.spread_s)
        there.arrive()
        gap()

    ended = await run(there, context, look, look, look, there.arrive)
    assert left[1:] == pytest.approx([2 * GAP_S, GAP_S])
    assert ended.progress is not None
    assert ended.progress.spread_s == 0.0


class Led(FakeCluster):
    """Who leads stays until it is elected."""

    def __init__(self) -> None:
        super().__init__({move.key: FROM for move in MOVES})
        self.led = dict.fromkeys(KEYS, FROM[0])
        self.elections: list[int] = []

    def _metadata(self, key: TopicPartition) -> Any:
        return replace(super()._metadata(key), leader=self.led[key])

    async def elect_leaders(self, keys: Any, *_: Any) -> Mapping[TopicPartition, Exception]:
        self.elections.append(len(keys))
        self.led |= {key: self.placed[key][0] for key in keys}
        return {}


LEADS = tuple(replace(move, after=FROM[::-1]) for move in MOVES)


async def test_a_crash_between_elections_leaves_the_rest_to_be_elected_one_by_one(
    pass_s: PassS,
) -> None:
    there = Led()
    for move in LEADS:
        there.begin(move.key, move.after)
    there.led[KEYS[0]] = LEADS[0].after[0]
    context = begun(command_of(*LEADS, waves=WIDE), wave=1)
    gap = pass_s(GAP_S)
    ended = await run(there, context, gap, gap)
    assert (ended.outcome, there.elections) == (Outcome.DONE, [1, 1, 1])


async def test_elections_of_what_is_there_already_take_no_longer_than_they_may(
    pass_s: PassS,
) -> None:
    there = Led()
    for move in LEADS:
        there.begin(move.key, move.after)
    context = begun(command_of(*LEADS, waves=replace(WIDE, spread_s=30.0)), wave=1)
    soon = pass_s(10.1)
    ended = await run(there, context, soon, soon, soon)
    assert (ended.outcome, there.elections) == (Outcome.DONE, [1, 1, 1, 1])


async def test_after_a_crash_it_is_said_that_what_is_written_is_not_known(
    pass_s: PassS, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(*_: Any, **__: Any) -> Mapping[TopicPartition, float]:
        return {}

    monkeypatch.setattr(reassign_run, "measure_produced", unknown)
    there, context = cluster(), begun(command_of(*MOVES, waves=WIDE), wave=1)
    await run(there, context, there.arrive)
    assert context.said(EventKind.NOTE) == [NOT_KNOWN]


async def test_a_pause_holds_elections(pass_s: PassS) -> None:
    there, context = Led(), FakeContext(command_of(*LEADS, waves=WIDE))
    long = pass_s(1000.0)

    def pause() -> None:
        context.script.is_paused = True

    def resume() -> None:
        assert there.elections == [1]
        context.script.is_paused = False

    gap = pass_s(GAP_S)
    ended = await run(there, context, idle, pause, long, resume, gap, gap)
    assert (ended.outcome, there.elections) == (Outcome.DONE, [1, 1, 1, 1])
    assert context.said(EventKind.PAUSED) == ["paused: no leader is elected"]


async def test_what_others_have_moved_holds_nobody_up(pass_s: PassS) -> None:
    there = cluster()
    for key in KEYS[:3]:
        there.placed[key] = (4, 2)
    there.placed[KEYS[3]] = TO
    back = [move.inverse() for move in MOVES]
    command = command_of(*back, waves=WIDE, is_strict=False, rollback_of="mv-0")
    context = FakeContext(command)
    await run(there, context, there.arrive)
    assert there.placed[KEYS[3]] == FROM
    assert asked_for(there) == [1]


async def test_topics_in_later_waves_are_spread_as_well(pass_s: PassS) -> None:
    others = tuple(change("b", number, size_bytes=1) for number in range(4))
    there = FakeCluster({move.key: FROM for move in (*MOVES, *others)})
    context = FakeContext(command_of(*MOVES, *others, waves=WIDE))
    written = dict.fromkeys([move.key for move in (*MOVES, *others)], 1000.0)
    with pytest.MonkeyPatch.context() as patch:

        async def measured(*_: Any, **__: Any) -> Mapping[TopicPartition, float]:
            return written

        patch.setattr(reassign_run, "measure_produced", measured)
        gap = pass_s(GAP_S)
        steps = [gap, gap, gap, there.arrive] * 2
        ended = await run(there, context, *steps)
    assert (ended.outcome, asked_for(there)) == (Outcome.DONE, [1] * 8)


async def test_many_are_asked_for_together_rather_than_one_in_a_moment(pass_s: PassS) -> None:
    """However short the gaps: each look at the cluster costs it something."""
    many = tuple(change("a", number) for number in range(1000))
    there = FakeCluster({move.key: FROM for move in many})
    context = FakeContext(command_of(*many, waves=WaveRules(partitions=1000, spread_s=10.0)))
    waited: list[float | None] = []

    class Timed(Script):
        async def wait(self, timeout_s: float | None = None) -> None:
            waited.append(timeout_s)
            pass_s(timeout_s or 0.0)()
            there.arrive()

    context.script = Timed()
    ended = await run(there, context)
    assert ended.outcome is Outcome.DONE
    assert min(filter(None, waited[4:])) >= 0.25
    assert sum(asked_for(there)) == 1000


async def test_leaders_are_elected_one_by_one(pass_s: PassS) -> None:
    there, context = Led(), FakeContext(command_of(*LEADS, waves=WIDE))
    gap = pass_s(GAP_S)
    ended = await run(there, context, idle, gap, gap, gap)
    assert (ended.outcome, there.elections) == (Outcome.DONE, [1, 1, 1, 1])
    assert context.said(EventKind.ELECTED) == ["4 preferred leaders elected"]
    notes = context.said(EventKind.NOTE)
    assert any(not lacking(it, "4 leaders elected", "3 m 18 s") for it in notes), notes
    assert ended.progress is not None
    assert ended.progress.spread_s == 0.0


async def test_who_ends_the_move_has_the_rest_elected_at_once(pass_s: PassS) -> None:
    there, context = Led(), FakeContext(command_of(*LEADS, waves=WIDE))

    def cancel() -> None:
        context.script.is_cancelled = True

    ended = await run(there, context, idle, pass_s(GAP_S), cancel)
    assert (ended.outcome, there.elections) == (Outcome.DONE, [1, 1, 2])
