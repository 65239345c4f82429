"""Moves with a window: nothing begins outside it, and nothing is left on the cluster meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control.kafka.connection.settings import KafkaSettings
from control.model.ids import TopicPartition
from control.move.commands import ReassignCommand, encode_command
from control.move.decoding import decode_command
from control.move.events import Event, EventKind, Outcome
from control.move.state import OperationState, Phase
from control.move.window import MoveWindow
from control.operations.executor import run as run_module
from control.operations.executor import window_watch
from control.operations.executor.executor import Executor, ExecutorSettings
from control.operations.executor.window_watch import WindowWatch, local_zone
from planner.waves import WaveRules
from tests.unit.control.operations.conftest import PassS
from tests.unit.control.operations.fake_cluster import (
    FROM,
    FakeCluster,
    FakeContext,
    change,
    command_of,
    idle,
    run,
)
from tests.unit.control.operations.test_executor_lanes import accepted

CHANGES = [change("a", number) for number in range(5)]
A, B, *_ = CHANGES
NIGHT = MoveWindow(start=time(1), until=time(5), zone=ZoneInfo("Europe/Berlin"))
Clock = Callable[[str], Callable[[], None]]


class Killed(Exception):
    """The executor ends here, in a test."""


class TimedCluster(FakeCluster):
    """Knows when it was asked for reassignments."""

    def __init__(self, placed: Mapping[TopicPartition, Sequence[int]]) -> None:
        super().__init__(placed)
        self.begun_ms: list[int] = []

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], **known: Any
    ) -> Mapping[TopicPartition, Exception]:
        if any(target is not None for target in targets.values()):
            self.begun_ms.append(window_watch.now_ms())
        return await super().alter_reassignments(targets, **known)


@pytest.fixture(autouse=True)
def _unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> dict[Any, float]:
        return {}

    monkeypatch.setattr(run_module, "measure_produced", nothing)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A step after which a clock in Berlin shows this, such as ``1 02:30`` in December."""
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(window_watch, "time", SimpleNamespace(time=lambda: now.s))

    def step(shown: str) -> Callable[[], None]:
        day, at = shown.split()
        hour, minute = map(int, at.split(":"))

        def turn() -> None:
            moment = datetime(2026, 12, int(day), hour, minute, tzinfo=NIGHT.zone)
            now.s = moment.timestamp()

        return turn

    return step


def holds(context: FakeContext) -> bool:
    return WindowWatch(context.command.window, context).holds


def killed(context: FakeContext) -> FakeContext:
    """What an executor knows that starts anew."""
    again = FakeContext(context.command)
    for event in context.events[1:]:
        again.told(event.kind, event.message, **event.data)
    return again


def night_move(*, at_a_time: int, **known: Any) -> tuple[TimedCluster, FakeContext]:
    """Of one topic: its partitions begin one after the other where producers write to them."""
    waves = WaveRules(partitions=at_a_time, spread_s=1000.0)
    command = command_of(*CHANGES, waves=waves, window=NIGHT, **known)
    return TimedCluster({it.key: FROM for it in CHANGES}), FakeContext(command)


async def test_a_wave_that_runs_at_the_end_arrives_and_the_rest_goes_on_the_next_night(
    clock: Clock,
) -> None:
    cluster, context = night_move(at_a_time=2, throttle=1 << 20)
    clock("1 04:50")()

    def end_of_night() -> None:
        clock("1 05:10")()
        cluster.arrive(A.key)

    def still_one() -> None:
        state = context.state()
        assert (state.is_outside_window, state.phase) == (False, Phase.RUNNING)
        assert len(cluster.asked) == 1
        cluster.arrive(B.key)

    waiting = await run(cluster, context, idle, end_of_night, still_one)
    assert (waiting.is_outside_window, waiting.phase) == (True, Phase.RUNNING)
    assert waiting.message == "waits for 01:00 (Europe/Berlin)"
    assert (cluster.shown(), waiting.throttle) == ({}, None), "nothing is left on the cluster"
    assert waiting.progress is not None
    assert (waiting.progress.partitions_done, waiting.progress.rate_bytes_per_s) == (2, None)
    clock("1 23:00")()
    assert holds(context)
    clock("2 01:00")()
    assert not holds(context)
    ended = await run(cluster, context, *[cluster.arrive] * 4)
    assert (ended.outcome, ended.opens_ms) == (Outcome.DONE, None)
    assert len(cluster.asked) == 3


async def test_what_has_not_begun_of_a_wave_waits_for_the_next_night(
    clock: Clock, pass_s: PassS, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Producers write, so that the partitions of a wave begin one after the other."""

    async def written(*_: Any) -> dict[TopicPartition, float]:
        return {it.key: 1000.0 for it in CHANGES}

    monkeypatch.setattr(run_module, "measure_produced", written)
    cluster, context = night_move(at_a_time=5)
    clock("1 04:50")()
    long = pass_s(1000.0)

    def is_held() -> None:
        assert len(cluster.asked) == 1
        cluster.arrive()

    waiting = await run(cluster, context, clock("1 05:00"), long, long, is_held)
    assert (waiting.is_outside_window, waiting.waves_begun) == (True, 1)
    assert [len(asked) for asked in cluster.asked] == [1]
    clock("2 01:30")()
    again = killed(context)
    ended = await run(cluster, again, *[long, cluster.arrive] * 5)
    assert ended.outcome is Outcome.DONE
    assert len(cluster.asked) == 5


async def test_the_last_wave_waits_for_nothing_where_all_of_it_has_begun(clock: Clock) -> None:
    cluster, context = night_move(at_a_time=5)
    clock("1 04:50")()
    ended = await run(cluster, context, clock("1 05:10"), idle, cluster.arrive)
    assert (ended.outcome, context.said(EventKind.WINDOW)) == (Outcome.DONE, [])


async def test_no_room_keeps_no_move_busy_outside_its_window(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others run meanwhile, and may make the room."""

    async def never(*_: Any) -> bool:
        raise AssertionError("waits for room")

    cluster, context = night_move(at_a_time=2)
    monkeypatch.setattr(run_module, "wait_for_room", never)
    clock("1 12:00")()
    waiting = await run(cluster, context)
    assert (waiting.is_outside_window, cluster.asked) == (True, [])


async def test_another_move_runs_while_one_waits(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Executor(ExecutorSettings(bus=KafkaSettings(bootstrap="bus:1")), say=lambda _: None)
    memory = executor.memory

    async def emit(event: Event) -> None:
        memory.apply(event)

    monkeypatch.setattr(executor, "emit", emit)
    waits = command_of(A, window=NIGHT)
    other = replace(command_of(B), operation_id="mv-2")
    for command in (waits, other):
        memory.take(command)
        memory.apply(accepted(command))
    clock("1 12:00")()
    nobody: Any = SimpleNamespace()
    queue = memory.unfinished(waits.site)
    assert await executor._next_due(nobody, queue) == other
    assert memory.state_of("mv-1").is_outside_window
    clock("2 01:00")()
    assert await executor._next_due(nobody, queue) == waits


async def test_a_move_that_waits_can_be_cancelled_and_paused_outside_its_window(
    clock: Clock,
) -> None:
    cluster, context = night_move(at_a_time=2)
    clock("1 04:59")()
    await run(cluster, context, clock("1 06:00"), cluster.arrive)
    assert holds(context)
    context.script.is_paused = True
    assert not holds(context)

    def resume() -> None:
        assert context.state().phase is Phase.PAUSED
        context.script.is_paused = False

    waiting = await run(cluster, context, resume)
    assert waiting.is_outside_window
    context.script.is_cancelled = True
    assert not holds(context)
    ended = await run(cluster, context)
    assert ended.outcome is Outcome.CANCELLED
    assert sum(at == FROM for at in cluster.placed.values()) == 3


async def test_what_waits_says_so_once_and_anew_where_its_executor_slept_through_a_window(
    clock: Clock,
) -> None:
    _, context = night_move(at_a_time=2)
    watch = WindowWatch(NIGHT, context)
    for shown in ("1 12:00", "1 20:00", "2 00:59"):
        clock(shown)()
        await watch.tell()
    assert context.said(EventKind.WINDOW) == ["waits for 01:00 (Europe/Berlin)"]
    clock("2 06:00")()
    await watch.tell()
    assert len(context.said(EventKind.WINDOW)) == 2
    opens = datetime(2026, 12, 3, 0, tzinfo=UTC).timestamp() * 1000
    assert context.state().opens_ms == opens
    assert context.state().document()["window"] == "01:00 to 05:00 (Europe/Berlin)"


async def until_done(
    cluster: TimedCluster, context: FakeContext, story: list[tuple[int, int]], turn: Any
) -> OperationState:
    """Each part of the story: minutes that pass at a step, and what happens then."""

    def step() -> None:
        minutes, what = story.pop() if story else (7, 0)
        turn(minutes)
        if what == 0 and cluster.targets:
            cluster.arrive(min(cluster.targets))
        elif what == 1:
            raise Killed

    for _ in range(3000):
        if context.state().is_finished:
            break
        if holds(context):
            turn(story.pop()[0] if story else 7)
            continue
        context.script.steps = []
        try:
            await run(cluster, context, *[step] * 300)
        except Killed:
            context = killed(context)
    return context.state()


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(1, 400), st.integers(0, 3)), max_size=40), st.integers(1, 5))
async def test_killed_at_any_moment_it_ends_and_begins_nothing_outside_its_window(
    monkeypatch: pytest.MonkeyPatch, story: list[tuple[int, int]], at_a_time: int
) -> None:
    """Over the night in which clocks are set back."""
    now = SimpleNamespace(s=datetime(2026, 10, 24, 0, tzinfo=UTC).timestamp())
    monkeypatch.setattr(window_watch, "time", SimpleNamespace(time=lambda: now.s))

    def turn(minutes: int) -> None:
        now.s += minutes * 60

    cluster, context = night_move(at_a_time=at_a_time)
    ended = await until_done(cluster, context, list(story), turn)
    assert ended.outcome is Outcome.DONE
    assert cluster.begun_ms
    for at_ms in cluster.begun_ms:
        wall = datetime.fromtimestamp(at_ms / 1000, NIGHT.zone)
        assert 1 <= wall.hour < 5


def test_a_command_carries_its_window_and_one_of_an_older_release_has_none() -> None:
    command = command_of(A, window=NIGHT)
    read = decode_command(encode_command(command))
    assert isinstance(read, ReassignCommand)
    assert read.window == NIGHT
    older = decode_command(encode_command(command_of(A)))
    assert isinstance(older, ReassignCommand)
    assert older.window is None


def test_the_zone_of_this_machine_has_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("TZ", ":Asia/Kolkata")
    assert local_zone() == "Asia/Kolkata"
    monkeypatch.delenv("TZ")
    link = tmp_path / "localtime"
    assert local_zone(link) == "UTC"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    if link.exists():
        assert local_zone(link) == "Europe/Berlin"
    link.unlink()
    link.write_bytes(b"TZif")
    assert local_zone(link) == ""
