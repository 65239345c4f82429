"""Tasks and timers: their owner hears of every failure, and what has to go on goes on."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from broker import background
from broker.background import (
    InternalError,
    Repeater,
    Rounds,
    Tasks,
    Timer,
    attempt,
    end_process,
    log_failure,
    set_process_end,
)
from tests.support.patience import WAIT_S

BROKER: Final = Path(background.__file__).parent
STARTS_WORK: Final = frozenset({"create_task", "ensure_future", "call_later", "call_at"})


def test_nothing_else_in_the_broker_starts_a_task_or_sets_a_timer() -> None:
    found = [
        f"{path.relative_to(BROKER)}:{node.lineno} {node.attr}"
        for path in BROKER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in STARTS_WORK
    ]
    assert [each for each in found if not each.startswith("background.py")] == []
    assert len(found) == 2


async def _fail() -> None:
    raise ZeroDivisionError


async def test_the_owner_hears_of_a_task_that_fails_and_not_of_one_that_is_cancelled() -> None:
    told = list[tuple[str, Exception]]()
    tasks = Tasks("work", lambda owner, error: told.append((owner, error)))
    tasks.start(asyncio.sleep(60))
    tasks.start(_fail())
    await tasks.wait(0.01)
    assert [(owner, type(error)) for owner, error in told] == [("work", ZeroDivisionError)]
    assert len(tasks) == 1
    await tasks.stop()
    assert (len(tasks), len(told)) == (0, 1)


async def test_kept_work_is_begun_anew_until_it_returns(caplog: pytest.LogCaptureFixture) -> None:
    runs = 0

    async def run() -> None:
        nonlocal runs
        runs += 1
        if runs < 3:
            raise ZeroDivisionError

    tasks = Tasks("work", log_failure)
    await tasks.keep(run)
    assert runs == 3
    assert caplog.text.count("internal error in the work") == 2
    assert not tasks, "one that has returned counts no more, at once"


async def test_a_repeater_goes_on_after_each_failure(caplog: pytest.LogCaptureFixture) -> None:
    calls = asyncio.Semaphore(0)

    def call() -> None:
        calls.release()
        raise OSError(24, "Too many open files")

    repeater = Repeater("maintenance", 1, call)
    repeater.start()
    for _ in range(3):
        await asyncio.wait_for(calls.acquire(), WAIT_S)
    repeater.stop()
    assert "internal error in the maintenance" in caplog.text


async def test_others_are_served_within_a_round_and_no_round_begins_beside_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.background.SLICE_S", -1.0)
    begun, steps, done = 0, 0, asyncio.Event()

    def work() -> Iterator[None]:
        nonlocal begun, steps
        begun += 1
        for _ in range(100):
            steps += 1
            yield
        if begun == 2:
            done.set()

    rounds = Rounds("maintenance", 0, work)
    rounds.start()
    while not steps:  # noqa: ASYNC110  # each turn of the loop is counted
        await asyncio.sleep(0)
    assert (begun, steps) == (1, 1)
    for _ in range(20):
        await asyncio.sleep(0)
    assert begun == 1
    assert 1 < steps < 50
    await asyncio.wait_for(done.wait(), WAIT_S)
    await rounds.stop()
    told = steps
    await asyncio.sleep(0)
    assert steps == told


async def test_a_failure_that_ends_the_process_is_told_to_the_node_it_was_started_for() -> None:
    ended = asyncio.Queue[Exception]()
    set_process_end(ended.put_nowait)
    timer = Timer("controller", lambda: 1 // 0, end_process)
    timer.set(0)
    # Another node of the same process: what runs already belongs to the first one.
    set_process_end(lambda error: None)
    error = await asyncio.wait_for(ended.get(), WAIT_S)
    assert isinstance(error, InternalError)
    for words in ("controller", "ZeroDivisionError", "others take over", "Start it again"):
        assert words in str(error)


def test_one_call_of_several_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    made = list[int]()
    for number in (0, 1):
        attempt("deadlines", lambda n: made.append(1 // n), number)
    assert made == [1]
    assert "ZeroDivisionError" in caplog.text
