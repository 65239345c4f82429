"""Starts the parts of an installation as child processes, watches, restarts and stops them.

A part says that it is ready by a line on its standard output that begins with ``ready``; its
standard error goes to a log file, whose last lines are quoted when it fails. A part that was ready
and ends is started again after a back-off that doubles while it keeps failing; one that hangs is
killed before. A part that never was ready is not started again, and its failure is the
installation's. When the supervisor itself is killed, the kernel ends the parts (Linux), so that
none is left behind.
"""

import asyncio
import ctypes
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from io import RawIOBase
from pathlib import Path
from typing import Final

from partiscope.health import Health

RESTART_BACKOFF_S_MIN: Final = 0.3
RESTART_BACKOFF_S_MAX: Final = 15.0
STABLE_AFTER_S: Final = 30.0
STOP_GRACE_S: Final = 3.5
LOG_BYTES_MAX: Final = 20 * 1024 * 1024
LOG_CHECK_S: Final = 30.0
TOLD_FIRST_S: Final = 10.0
"""After so long a start that goes on is told, then each time that it has taken twice as long."""
LAST_WORDS_BYTES_MAX: Final = 64 * 1024
LINE_BYTES_MAX: Final = 64 * 1024
_PR_SET_PDEATHSIG: Final = 1

Say = Callable[[str], None]


class PartFailedError(Exception):
    """A part that could not start; the text quotes what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One child process to keep running."""

    name: str
    command: Sequence[str]
    log_file: Path
    env: Mapping[str, str] = field(default_factory=dict)
    ready_timeout_s: float = 300.0
    """As long as the slowest machine needs: a part that fails ends before."""
    health: Health | None = None
    """Who does not answer there any more is killed, and started again."""


class Child:
    """The process of one part, through its restarts."""

    def __init__(self, part: Part, say: Say) -> None:
        self.part = part
        self.ready_line = ""
        self.restarts = 0
        self._refusal = ""
        self._say = say
        self._process: asyncio.subprocess.Process | None = None
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        self._may_run = asyncio.Event()
        self._may_run.set()
        self._was_ready = self._is_stopping = False
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        alive = self._process is not None and self._process.returncode is None
        return self._process.pid if alive and self._process is not None else None

    def start(self) -> None:
        """Start it and keep it running until ``stop``."""
        self._task = asyncio.create_task(self._keep_running(), name=f"keep {self.part.name}")

    async def wait_ready(self) -> str:
        """The part's ready line.

        Raises:
            PartFailedError: it ended, or said nothing, before it was ready.
        """
        ready = asyncio.create_task(self._ready.wait())
        ended = asyncio.create_task(self._ended.wait())
        telling = asyncio.create_task(self._tell_that_it_starts())
        try:
            await asyncio.wait(
                {ready, ended},
                timeout=self.part.ready_timeout_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            for task in (ready, ended, telling):
                task.cancel()
        if self._ready.is_set():
            return self.ready_line
        what = "ended" if self._ended.is_set() else "was silent for too long"
        raise PartFailedError(
            f"{self.part.name} {what} before it was ready: {self.last_words()}\n"
            f"  its log: {self.part.log_file}; `partiscope doctor` looks for causes"
        )

    async def _tell_that_it_starts(self) -> None:
        """A line now and then on a slow machine, where it takes minutes."""
        so_far_s = TOLD_FIRST_S
        await asyncio.sleep(so_far_s)
        while True:
            self._say(f"{self.part.name:<12} is starting, for {so_far_s:.0f} s so far")
            await asyncio.sleep(so_far_s)
            so_far_s *= 2

    def last_words(self) -> str:
        """The last line of its log, or why it could not even be started."""
        if self._refusal:
            return self._refusal
        with suppress(OSError):
            lines = _end_of(self.part.log_file).strip().splitlines()
            return lines[-1] if lines else "(it said nothing)"
        return "(no log)"

    def terminate(self) -> None:
        """Ask it to end; it will not be restarted."""
        self._is_stopping = True
        self._may_run.set()
        self._signal(signal.SIGTERM)

    async def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """End it: SIGTERM, then SIGKILL after the grace period."""
        self.terminate()
        if self._task is None:
            return
        _, pending = await asyncio.wait({self._task}, timeout=grace_s)
        if pending:
            self._signal(signal.SIGKILL)
            await asyncio.wait({self._task}, timeout=1.0)

    async def retire(self, grace_s: float) -> None:
        """End it on request, and not start it again."""
        await self.stop(grace_s)
        self._say(f"{self.part.name} is stopped for good on request")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        """Kill it, and start it again only after this context."""
        self._may_run.clear()
        self._ready.clear()
        self._ended.clear()
        try:
            self._signal(signal.SIGKILL)
            if self._process is not None:
                await self._process.wait()
            self._say(f"{self.part.name} is stopped on request, and is started again soon")
            yield
        finally:
            self._may_run.set()

    def _signal(self, signum: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signum)

    async def _keep_running(self) -> None:
        backoff_s = RESTART_BACKOFF_S_MIN
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            await self._may_run.wait()
            started_s = loop.time()
            how = await self._run_once()
            if not self._may_run.is_set():
                self.restarts += 1
                continue
            self._ended.set()
            if self._is_over():
                return
            if loop.time() - started_s > STABLE_AFTER_S:
                backoff_s = RESTART_BACKOFF_S_MIN
            self._say(f"{how}. Starting it again in {backoff_s:.1f} s.")
            await asyncio.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, RESTART_BACKOFF_S_MAX)
            self.restarts += 1

    def _is_over(self) -> bool:
        return self._is_stopping or not self._was_ready

    async def _run_once(self) -> str:
        """Run it to its end; how that came, for the operator."""
        try:
            code = await self._run_process()
        except OSError as error:
            self._refusal = str(error)
            return f"{self.part.name} cannot be started: {error}"
        words = self.last_words().rstrip(".")
        said = "" if words == self.ready_line else f": {words}"
        return f"{self.part.name} ended ({_describe(code)}){said}"

    async def _run_process(self) -> int:
        log_file = self.part.log_file
        log_file.parent.mkdir(parents=True, exist_ok=True)
        _rotate(log_file)
        with log_file.open("ab", buffering=0) as log:
            self._process = await asyncio.create_subprocess_exec(
                *self.part.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.part.env},
                preexec_fn=_die_with_parent,
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
            self._refusal = ""
            if self._is_stopping:
                self._signal(signal.SIGTERM)
            beside = [asyncio.create_task(_keep_small(log_file))]
            try:
                await self._follow_output(log, beside)
            finally:
                for task in beside:
                    task.cancel()
        return await self._process.wait()

    async def _follow_output(self, log: RawIOBase, beside: list[asyncio.Task[None]]) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        while line := await _read_line(self._process.stdout):
            with suppress(OSError):  # a full disk must not end the watching
                log.write(line)
            text = line.decode(errors="replace").strip()
            if text.startswith("ready"):
                if self.restarts:
                    self._say(f"{self.part.name} is back")
                self.ready_line = text
                self._was_ready = True
                self._ready.set()
                if self.part.health is not None:
                    beside.append(asyncio.create_task(self._kill_when_lost(self.part.health)))

    async def _kill_when_lost(self, health: Health) -> None:
        await health.lost()
        how = f"{health.misses_max} times in a row"
        self._say(f"{self.part.name} does not answer {health.url}, {how}: it hangs, and is killed")
        self._signal(signal.SIGKILL)


class Supervisor:
    """All parts of one installation."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self.children: dict[str, Child] = {}

    def start(self, *parts: Part) -> list[Child]:
        """Start parts without waiting for them."""
        started = [Child(part, self._say) for part in parts]
        for child in started:
            self.children[child.part.name] = child
            child.start()
        return started

    async def start_and_wait(self, *parts: Part) -> None:
        """Start parts together and wait until every one is ready.

        Raises:
            PartFailedError: the first one that failed.
        """
        loop = asyncio.get_running_loop()
        started_s = loop.time()

        async def report(child: Child) -> None:
            line = await child.wait_ready()
            detail = line.removeprefix("ready").strip()
            self._say(f"{child.part.name:<12} ready in {loop.time() - started_s:4.1f} s  {detail}")

        async with asyncio.TaskGroup() as group:
            for child in self.start(*parts):
                group.create_task(report(child))

    async def stop(self) -> None:
        """Stop every part, the last started first in order, all within the grace period."""
        for child in reversed(self.children.values()):
            child.terminate()
        await asyncio.gather(*(child.stop() for child in self.children.values()))


async def _read_line(stream: asyncio.StreamReader) -> bytes:
    """One line; of a line longer than the limit, what fits, so that nothing stalls the child."""
    try:
        return await stream.readline()
    except ValueError:
        return b"(a line too long to keep)\n"


def _end_of(log_file: Path) -> str:
    with log_file.open("rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - LAST_WORDS_BYTES_MAX))
        return log.read(LAST_WORDS_BYTES_MAX).decode(errors="replace")


async def _keep_small(log_file: Path) -> None:
    """Bound the log of a part that runs for months."""
    while True:
        await asyncio.sleep(LOG_CHECK_S)
        _rotate(log_file)


def _rotate(log_file: Path) -> None:
    """Begin anew, keeping one older log, once it has grown too large.

    The part goes on writing to the same file, at its end. Where there is no room for the older
    log, it goes.
    """
    older = log_file.with_suffix(".log.1")
    with suppress(OSError):
        if log_file.stat().st_size <= LOG_BYTES_MAX:
            return
        try:
            shutil.copyfile(log_file, older)
        except OSError:
            older.unlink(missing_ok=True)
        os.truncate(log_file, 0)


def _describe(code: int) -> str:
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"


def _die_with_parent() -> None:
    """In the child, before exec: ask the kernel for SIGTERM when the supervisor dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
