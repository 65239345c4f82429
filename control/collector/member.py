"""One broker's part in the collector's turns, and things that are done again and again."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from control.collector.report_writer import BrokerReport
from control.collector.source import BrokerSource, wall_ms
from control.kafka.errors import KafkaPortError

BACK_OFF_S_MAX: Final = 10.0

Action = Callable[[], Coroutine[Any, Any, Any]]


class Due:
    """Something that is done again and again, never twice at once."""

    def __init__(self) -> None:
        self.at_ms = 0
        self.task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """It was begun and is not done."""
        return self.task is not None and not self.task.done()

    def maybe_start(self, interval_ms: int, action: Action) -> bool:
        """Start it when it is due and not under way. A defect of ours ends the collector."""
        if self.task is not None:
            if not self.task.done():
                return False
            if not self.task.cancelled():
                self.task.result()
        now_ms = wall_ms()
        if now_ms < self.at_ms:
            return False
        self.at_ms = now_ms + interval_ms
        self.task = asyncio.create_task(action())
        return True


class Member:
    """One broker: what it is asked, and whether it answers."""

    def __init__(self, source: BrokerSource) -> None:
        self.source = source
        self.groups, self.ends, self.starts, self.logs = Due(), Due(), Due(), Due()
        self.rights = Due()
        self.round_ms = 0
        self._failures = 0
        self._failing_since_ms: int | None = None
        self._failure: str | None = None
        self._retry_at_s = 0.0

    @property
    def is_ready(self) -> bool:
        """It works, or its back-off is over."""
        return self._retry_at_s <= time.monotonic()

    @property
    def is_failing(self) -> bool:
        """Its last answer was none."""
        return self._failures > 0

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """Reads of this broker that have begun."""
        dues = (self.groups, self.ends, self.starts, self.logs, self.rights)
        return [due.task for due in dues if due.task is not None]

    def failed(self, error: Exception) -> None:
        """Back off, longer each time."""
        self._failures += 1
        self._failure = str(error)
        self._failing_since_ms = self._failing_since_ms or wall_ms()
        self._retry_at_s = time.monotonic() + back_off_s(self._failures)

    def worked(self) -> None:
        """It answers."""
        self._failures, self._failure, self._failing_since_ms = 0, None, None

    def report(self) -> BrokerReport:
        """How sampling it goes."""
        load = self.source.meter.load()
        return BrokerReport(
            broker=self.source.broker,
            requests_per_s=round(load.requests_per_s, 2),
            rows_per_s=round(load.rows_per_s, 1),
            sent_bytes_per_s=round(load.sent_bytes_per_s),
            received_bytes_per_s=round(load.received_bytes_per_s),
            failing_since_ms=self._failing_since_ms,
            failure=self._failure,
        )


def back_off_s(failures: int) -> float:
    """How long to wait after so many failures in a row."""
    return min(0.25 * 2.0 ** min(failures, 10), BACK_OFF_S_MAX)


def quiet(action: Action) -> Action:
    """Ignores errors of a read beside the turns: it is repeated soon, and turns notice a dead
    broker.
    """

    async def quietly() -> None:
        try:
            await action()
        except KafkaPortError:
            return

    return quietly


async def wait_together(dues: list[Due], timeout_s: float | None) -> None:
    """Until what was begun is done, but not longer."""
    waiting = [due.task for due in dues if due.task is not None]
    if waiting:
        await asyncio.wait(waiting, timeout=timeout_s)
