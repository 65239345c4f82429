"""Tasks and timers of the event loop, each with an owner that hears of its failure.

Nothing else in broker/ starts a task or sets a timer. An owner names itself for the log, and
decides what follows an error that nobody expected:

- `log_failure`: the story is logged, and whatever comes next is done as if nothing had been;
- `end_process`: this node can no longer be relied on: it stops, and other brokers take over;
- `leave_to_caller`: somebody awaits the task and gets the error.

`Tasks.keep` and `Repeater` try again by themselves.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextvars import ContextVar
from typing import Any, Final, TypeVar

RETRY_MS: Final = 200
SLICE_S: Final = 0.005
"""So long work is done at a stretch."""
LARGE_BYTES: Final = 1024
"""A request of this size names a hundred things, and its answer may have thousands of fields."""
RETRY_MS_MAX: Final = 30_000

T = TypeVar("T")
OnFailure = Callable[[str, Exception], None]
"""Called with the owner's name and the error."""

_log = logging.getLogger(__name__)
_end: ContextVar[Callable[[Exception], None] | None] = ContextVar("end_of_process", default=None)


class InternalError(Exception):
    """A part of the broker met an error that it was not written for."""

    def __init__(self, owner: str, error: Exception) -> None:
        super().__init__(
            f"Internal error in the {owner}: {type(error).__name__}: {error}. The broker cannot be "
            "relied on any more and stops; the others take over. Start it again, and report the "
            "error with the lines of the log before it"
        )


def set_process_end(end: Callable[[Exception], None]) -> None:
    """How this node ends: for all tasks and timers that start from here on."""
    _end.set(end)


def log_failure(owner: str, error: Exception) -> None:
    """Nothing follows but a story in the log."""
    _log.error("internal error in the %s, which goes on", owner, exc_info=error)


def end_process(owner: str, error: Exception) -> None:
    """The node stops."""
    _log.critical("internal error in the %s", owner, exc_info=error)
    end = _end.get()
    if end is not None:
        end(InternalError(owner, error))


def leave_to_caller(owner: str, error: Exception) -> None:
    """Nothing follows here."""


def attempt(owner: str, callback: Callable[..., object], *args: object) -> None:
    """One call of several: the others are made whatever it meets."""
    try:
        callback(*args)
    except Exception as error:  # noqa: BLE001  # whatever it is, its owner goes on
        log_failure(owner, error)


async def in_thread_if_large(size_bytes: int, call: Callable[..., T], *args: Any) -> T:
    """The call's result; a thread makes it when a message of this size would hold the loop."""
    if size_bytes < LARGE_BYTES:
        return call(*args)
    return await asyncio.to_thread(call, *args)


class Slices:
    """Work of the event loop, slice by slice: others are served in between."""

    def __init__(self) -> None:
        self._since_s = time.perf_counter()

    async def pause(self) -> None:
        """Let others go on if it is their turn."""
        if time.perf_counter() - self._since_s > SLICE_S:
            await asyncio.sleep(0)
            self._since_s = time.perf_counter()

    async def all(self, items: Iterable[T]) -> list[T]:
        """The items; others are served while they are made."""
        made = list[T]()
        for item in items:
            made.append(item)
            await self.pause()
        return made


class Tasks:
    """Background work that ends with its owner."""

    def __init__(self, owner: str, on_failure: OnFailure) -> None:
        self._owner = owner
        self._on_failure = on_failure
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return sum(not task.done() for task in self._running)

    def start(
        self, work: Coroutine[Any, Any, T], on_failure: OnFailure | None = None
    ) -> "asyncio.Task[T]":
        """Run in the background; `on_failure` is for this one in place of the owner's."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        decide = on_failure or self._on_failure

        def done(task: "asyncio.Task[T]") -> None:
            self._running.discard(task)
            error = None if task.cancelled() else task.exception()
            if isinstance(error, Exception):
                decide(self._owner, error)

        task.add_done_callback(done)
        return task

    def keep(self, run: Callable[[], Coroutine[Any, Any, None]]) -> "asyncio.Task[None]":
        """Run until it returns; one that fails is logged and begun anew, each time after a longer
        pause of RETRY_MS_MAX at most."""
        return self.start(self._keep(run))

    async def _keep(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        retry_ms = RETRY_MS
        while True:
            try:
                await run()
            except Exception as error:  # noqa: BLE001  # whatever it is, the work is to go on
                log_failure(self._owner, error)
                await asyncio.sleep(retry_ms / 1000)
                retry_ms = min(2 * retry_ms, RETRY_MS_MAX)
            else:
                return

    async def wait(self, timeout_s: float | None) -> None:
        """Until all have ended, or for so long."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=timeout_s)

    async def stop(self) -> None:
        """Cancel what still runs, and wait for its end."""
        for task in set(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


class Timer:
    """One call to come; setting it again replaces it."""

    __slots__ = ("_callback", "_handle", "_on_failure", "_owner")

    def __init__(
        self, owner: str, callback: Callable[[], object], on_failure: OnFailure = log_failure
    ) -> None:
        self._owner = owner
        self._callback = callback
        self._on_failure = on_failure
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether a call is to come."""
        return self._handle is not None

    def set(self, delay_ms: float) -> None:
        """Call back in `delay_ms`."""
        self.cancel()
        loop = asyncio.get_running_loop()
        self._handle = loop.call_later(max(0, delay_ms) / 1000, self._fire)

    def cancel(self) -> None:
        """Do not call back."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self) -> None:
        self._handle = None
        try:
            self._callback()
        except Exception as error:  # noqa: BLE001  # the owner decides
            self._on_failure(self._owner, error)


class Repeater:
    """A call every so often, whatever the last one met."""

    def __init__(self, owner: str, interval_ms: float, callback: Callable[[], object]) -> None:
        self._owner = owner
        self._interval_ms = interval_ms
        self._callback = callback
        self._timer = Timer(owner, self._fire)

    def start(self) -> None:
        """Call for the first time after one interval."""
        self._timer.set(self._interval_ms)

    def stop(self) -> None:
        """Do not call any more."""
        self._timer.cancel()

    def _fire(self) -> None:
        self._timer.set(self._interval_ms)
        self._callback()


class Rounds:
    """Steps over all things of a kind every so often, slice by slice; one round at a time."""

    def __init__(
        self, owner: str, interval_ms: float, steps: Callable[[], Iterator[object]]
    ) -> None:
        self._steps = steps
        self._repeater = Repeater(owner, interval_ms, self._maybe_begin)
        self._running = Tasks(owner, log_failure)

    def start(self) -> None:
        """The first round comes after one interval."""
        self._repeater.start()

    async def run(self) -> None:
        """One round."""
        slices = Slices()
        for _ in self._steps():
            await slices.pause()

    async def stop(self) -> None:
        """End; a round that runs stays unfinished."""
        self._repeater.stop()
        await self._running.stop()

    def _maybe_begin(self) -> None:
        if not self._running:
            self._running.start(self.run())
