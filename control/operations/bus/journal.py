"""The journal: every change that a screen or script made, with who, when, why, from what to what.

A direct operation writes two lines under one id: ``begun`` before the cluster is asked, and its
outcome afterwards, so that no change lacks a trace. Where the first line cannot be written the
operation waits, and is refused after ``WatchedCluster.journal_hold_s``. A second line that cannot
be written is delivered later, in order. Reassignments are in the journal by their own commands and
events. A cluster without a bus (a script against a foreign cluster) has no journal.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Final

from control.access.login import acting_who
from control.kafka.connection.settings import KafkaSettings
from control.kafka.errors import KafkaPortError, WrongClusterError
from control.model.watched_cluster import WatchedCluster
from control.move.events import Event, EventKind, encode_event
from control.move.journal_lines import (
    ASKED,
    BEGUN,
    DONE,
    FAILED,
    INTERRUPTED,
    PARTLY,
    JournalLine,
    Values,
    lines_of_events,
    lines_of_state,
)
from control.move.state import OperationState, take_event
from control.operations.bus.chain import (
    LINK,
    Head,
    Verified,
    WrittenLine,
    chain_file,
    hash_of,
    verify,
)
from control.operations.bus.topics import EVENTS, Bus
from control.operations.errors import ChainFileError, NotJournaledError, PartlyDoneError

VALUES_MAX: Final = 200
"""Values before and after that one line keeps; the rest is counted."""
CLOSE_S: Final = 5.0
UNDELIVERED_MAX: Final = 1_000
"""Lines of at most some kB each."""
_RETRY_S: Final = 0.5
_LOCK_POLL_S: Final = 0.02
logger = logging.getLogger(__name__)


class Journal:
    """Writes what is done to one cluster to a bus, and reads what was done to it."""

    def __init__(self, bus: KafkaSettings | str | None, *, of: WatchedCluster, who: str) -> None:
        self._bus = None if bus is None else Bus(bus)
        self._of = of
        self._who = who
        self._hold_s = of.journal_hold_s
        self._has_topics = False
        self._undelivered: deque[Event] = deque(maxlen=UNDELIVERED_MAX)
        self._delivery: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Deliver what is left within ``CLOSE_S``, then close the connections."""
        if self._delivery is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._delivery, CLOSE_S)
            for event in self._undelivered:
                logger.error("the journal lacks the outcome of: %s", event.message)
        if self._bus is not None:
            await self._bus.close()

    @contextlib.asynccontextmanager
    async def entry(
        self,
        what: str,
        *,
        reason: str = "",
        before: Values,
        after: Values,
        outcome: Callable[[], Values] = dict,
        shortfall: Callable[[], str] = str,
    ) -> AsyncIterator[None]:
        """The lines around one change. ``outcome`` answers what came of it, beside ``after``, and
        ``shortfall`` what was not done of it.

        :raises NotJournaledError: the first line could not be written; nothing may be changed.
        """
        if self._bus is None:
            yield
            return
        data = {
            "who": acting_who(self._who),
            "reason": reason,
            "before": _first(before),
            "after": _first(after),
            **self._of.site._asdict(),
        }
        begun = Event(
            operation_id=f"do-{secrets.token_hex(4)}",
            kind=EventKind.JOURNAL,
            at_ms=_now_ms(),
            message=what,
            data={**data, "outcome": BEGUN},
        )
        await self._write_first(begun)
        try:
            yield
        except asyncio.CancelledError:
            await self._write_outcome(begun, INTERRUPTED, outcome())
            raise
        except Exception as error:
            words = str(error) or type(error).__name__
            how = PARTLY if isinstance(error, PartlyDoneError) else FAILED
            await self._write_outcome(begun, how, outcome(), error=words)
            raise
        lacks = shortfall()
        await self._write_outcome(begun, PARTLY if lacks else DONE, outcome(), error=lacks)

    @property
    def unreadable(self) -> str:
        """Count and places of records that could not be read so far; empty: all could."""
        return "" if self._bus is None else self._bus.unreadable.words

    async def lines(self) -> tuple[JournalLine, ...]:
        """All lines of the cluster, the newest first."""
        if self._bus is None:
            return ()
        events: list[Event] = []
        states: dict[str, OperationState] = {}
        async for event in self._bus.each_event():
            take_event(states, event)
            if event.kind is EventKind.JOURNAL:
                events.append(event)
        direct = [line for line in lines_of_events(events) if line.move not in states]
        lines = [*direct, *chain(*map(lines_of_state, states.values()))]
        lines = [line for line in lines if self._of.owns(line.site)]
        return tuple(sorted(lines, key=lambda line: line.at_ms, reverse=True))

    async def seal(self, what: str, move: str, *, reason: str = "") -> None:
        """A line that a reassignment was asked for. Its own records are its line of the journal:
        this one is shown where they have gone."""
        if self._bus is None or chain_file() is None:
            return
        data = {
            "who": acting_who(self._who),
            "reason": reason,
            "move": move,
            "outcome": ASKED,
            **self._of.site._asdict(),
        }
        await self._write_later(
            Event(
                operation_id=f"do-{secrets.token_hex(4)}",
                kind=EventKind.JOURNAL,
                at_ms=_now_ms(),
                message=what,
                data=data,
            )
        )

    async def verify(self, own: Head | None, *, noted: Sequence[str] = ()) -> Verified:
        """Judge the chains of all lines on the bus, of any cluster; see ``chain.verify``."""
        lines: list[WrittenLine] = []
        if self._bus is not None:
            async for record in self._bus.read_from(EVENTS):
                event = self._bus.unreadable.event(record)
                if event is not None and event.kind is EventKind.JOURNAL:
                    lines.append(
                        WrittenLine(
                            offset=record.offset,
                            what=event.message,
                            who=str(event.data.get("who", "")),
                            hash=hash_of(record.value or b""),
                            is_proven=not event.is_foreign,
                            link=event.data.get(LINK),
                        )
                    )
        return verify(lines, own, noted=noted)

    async def _write_first(self, event: Event) -> None:
        until_s = time.monotonic() + self._hold_s
        while True:
            try:
                # Lines keep their order: outcomes of earlier operations go first.
                await asyncio.wait_for(
                    self._publish_in_order(event), None if math.isinf(until_s) else self._hold_s
                )
                return
            except WrongClusterError:
                raise  # waiting does not bring back the cluster that is meant
            except (KafkaPortError, TimeoutError) as error:
                if time.monotonic() + _RETRY_S >= until_s:
                    raise NotJournaledError(event.message, _why(error), self._hold_s) from error
            await asyncio.sleep(_RETRY_S)

    async def _write_outcome(
        self, begun: Event, outcome: str, found: Values, *, error: str = ""
    ) -> None:
        after = {**begun.data["after"], **found}
        data: dict[str, Any] = {**begun.data, "outcome": outcome, "error": error, "after": after}
        # The first line's time stays: it is when the operation was done.
        await self._write_later(replace(begun, data=data))

    async def _write_later(self, event: Event) -> None:
        """It is delivered now if the bus answers, else later."""
        self._undelivered.append(event)
        if self._delivery is None or self._delivery.done():
            self._delivery = asyncio.create_task(self._deliver())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._delivery), _RETRY_S)

    async def _deliver(self) -> None:
        while self._undelivered:
            try:
                await self._publish_in_order()
            except (KafkaPortError, ChainFileError) as error:
                logger.warning("the journal is written later: %s", error)
                await asyncio.sleep(_RETRY_S)

    async def _publish_in_order(self, last: Event | None = None) -> None:
        assert self._bus is not None
        if not self._has_topics:
            await self._bus.ensure_topics()
            self._has_topics = True
        while self._undelivered:
            event = self._undelivered[0]
            await self._publish(event)
            if self._undelivered and self._undelivered[0] is event:
                self._undelivered.popleft()
        if last is not None:
            await self._publish(last)

    async def _publish(self, event: Event) -> None:
        """Linked to the line before it. The head is a small file: it is written here and now, so
        that nothing is written once its lock is released."""
        assert self._bus is not None
        file = chain_file()
        if file is None:
            await self._bus.publish_event(event)
            return
        while (held := file.try_hold()) is None:  # noqa: ASYNC110 (another process holds it)
            await asyncio.sleep(_LOCK_POLL_S)
        with held:
            name, head = f"{event.operation_id}/{event.data['outcome']}", file.read()
            link = head.link(name)
            linked = replace(event, data={**event.data, LINK: link})
            line_hash, number = hash_of(encode_event(linked)), link["number"]
            head = head.intended(name, number, line_hash)
            file.write(head)
            await self._bus.publish_event(linked)
            file.write(head.written(number, line_hash))


def _first(values: Values) -> Values:
    shown = dict(list(values.items())[:VALUES_MAX])
    left = len(values) - len(shown)
    return shown | ({"…": f"{left:,} more values"} if left else {})


def _why(error: Exception) -> str:
    return str(error) or "the bus does not answer"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
