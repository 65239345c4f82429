"""Reads the throttle of a run back, and sets it again when another tool has changed it.

A first change is set again and told. When a config is changed a second time, somebody means it: the
run pauses until an operator resumes it, which sets the throttle again. What is in flight then goes
on at the rate that somebody else has set; a rate that was removed is set again all the same, so
that nothing is copied unthrottled.
"""

from collections.abc import Sequence
from typing import Final

from control.kafka.errors import RefusedError
from control.model.units import byte_rate_text
from control.move.events import EventKind
from control.operations.executor.move_watch import MoveWatch
from control.operations.executor.run_context import RunContext, tell_once
from control.operations.executor.throttles.foreign_changes import ForeignChange, foreign_words
from control.operations.executor.throttles.throttle_of_move import MoveThrottle
from planner.waves import Wave

TOPICS_AT_A_TIME: Final = 100
"""A wave of more topics is compared in turns: a reading of so many costs a broker of Kafka some
20 ms."""


class ThrottleGuard:
    """Guards the throttle of one run. The operation's state keeps the changes that it has seen."""

    def __init__(self, throttle: MoveThrottle, watch: MoveWatch, context: RunContext) -> None:
        self._throttle = throttle
        self._watch = watch
        self._context = context
        self._was_stopped = bool(context.state().stopped_for)
        self._next_topic = 0

    async def check(self, wave: Wave) -> None:
        """Compare, and act. Rates measured until a change was found are of another throttle."""
        watch = self._watch
        state = self._context.state()
        was_stopped, self._was_stopped = self._was_stopped, bool(state.stopped_for)
        changes = await self._changes(wave, is_whole=was_stopped and not state.stopped_for)
        is_copying = any(map(watch.places.is_moving, wave))
        if not changes:
            return
        watch.forget_rates()
        if state.stopped_for:
            await self._keep_removed(changes, is_copying=is_copying)
        elif was_stopped:
            await self._set_again(changes, "set again")
        elif any(change.item in state.interfered for change in changes):
            await self._stop(changes, "it is the second time", is_copying=is_copying)
        else:
            items = [change.item for change in changes]
            words = f"another tool changed the throttle: {foreign_words(changes)}; set again"
            await self._context.emit(EventKind.INTERFERED, words, changed=items)
            await self._set_again(changes, "")

    async def _changes(self, wave: Wave, *, is_whole: bool) -> list[ForeignChange]:
        """Changes of all rates and of the lists of the next TOPICS_AT_A_TIME topics; of all topics
        as soon as there is one, since one tool mostly changes all."""
        alive, gone = self._watch.alive, {key.topic for key in self._watch.gone}
        topics = sorted({change.topic for change in wave} - gone)
        some = topics
        if len(topics) > TOPICS_AT_A_TIME and not is_whole:
            start = self._next_topic % len(topics)
            some = topics[start : start + TOPICS_AT_A_TIME]
            self._next_topic = start + len(some)
        changes = await self._throttle.foreign_changes(alive, some)
        if changes and some is not topics:
            changes = await self._throttle.foreign_changes(alive, topics)
        return changes

    async def _set_again(self, changes: Sequence[ForeignChange], words: str) -> None:
        try:
            await self._throttle.set_again(changes)
        except RefusedError as error:
            await self._stop(changes, f"it cannot be set again: {error}", is_copying=False)
            return
        if words:
            rate = byte_rate_text(self._throttle.rate)
            await self._context.emit(EventKind.NOTE, f"throttle {words}: {rate}")

    async def _stop(self, changes: Sequence[ForeignChange], why: str, *, is_copying: bool) -> None:
        operation_id = self._context.state().operation_id
        words = f"another tool changed the throttle, and {why}: {foreign_words(changes)}"
        then = f"`partiscope moves resume {operation_id}` sets it again and goes on"
        await self._context.emit(
            EventKind.INTERFERED,
            f"stopped: {words}. Partitions in flight arrive, no other begins; {then}",
            changed=[change.item for change in changes],
            stops=f"{words}; {then}",
        )
        self._was_stopped = True
        await self._context.pause(words)
        await self._keep_removed(changes, is_copying=is_copying)

    async def _keep_removed(self, changes: Sequence[ForeignChange], *, is_copying: bool) -> None:
        removed = [change for change in changes if change.now is None]
        if not (is_copying and removed):
            return
        try:
            await self._throttle.set_again(removed)
        except RefusedError as error:
            await tell_once(self._context, f"partitions in flight are not throttled: {error}")
