"""Running one reassignment: pre-flight, throttle, waves, progress, election, clean-up.

Every step looks at the cluster before it acts, so the run can be started again at any point: after
a crash the executor starts it anew and it goes on where the cluster is. `hold` is called before
each change; it raises FencedError when the operations belong to another executor.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from control.kafka.connection.together import together
from control.kafka.errors import RefusedError
from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.model.units import counted
from control.move.commands import ReassignCommand
from control.move.events import EventKind, MoveProgress, Outcome
from control.move.results import (
    Fate,
    fate_counts,
    fates_of,
    pack_fates,
)
from control.move.rollback_plan import SETTLED_WITHIN_S
from control.move.state import HELD
from control.move.throttle import THROTTLE_AUTO
from control.operations.executor.cancellation import cancel_begun, went_back_before
from control.operations.executor.election import elect_preferred
from control.operations.executor.interference_response import restored_orders, unsafe_by_now
from control.operations.executor.move_watch import MoveWatch
from control.operations.executor.room import wait_for_room
from control.operations.executor.run_context import (
    FIRST_TICK_S,
    LAST_TICK_S,
    RunContext,
    next_tick_s,
    tell_once,
)
from control.operations.executor.submission_pacing import SubmissionPacer, pace_of_run, still_to_ask
from control.operations.executor.throttles.throttle_guard import ThrottleGuard
from control.operations.executor.throttles.throttle_of_move import MoveThrottle, rates_of_others
from control.operations.executor.timing.forecast import Forecast
from control.operations.executor.window_watch import WindowWatch
from control.operations.executor.yielding.yield_watch import GroupReader, YieldWatch, wait_for_turn
from control.operations.reassignment.calibration import Calibration
from control.operations.reassignment.cluster_probes import (
    measure_produced,
    read_fetch_backoffs,
    read_standing_rates,
)
from control.operations.reassignment.drained_brokers import came_meanwhile, drained_by
from control.operations.reassignment.facts import ClusterFacts, cannot_move, read_facts, to_go
from control.operations.reassignment.placements import left_as_they_are
from control.operations.reassignment.planning import resolve_throttle
from control.operations.reassignment.preflight import failures, is_refused, preflight
from control.operations.reassignment.preflight_load import expected_seconds, spread_of
from control.operations.reassignment.spreading import NOT_KNOWN
from control.operations.reassignment.topic_ids import ANEW, facts_of, ids_of_command
from planner.proposal import PartitionChange
from planner.waves import Wave, plan_waves

SETTLED_POLL_S: Final = 0.5
REFUSED_NAMES_MAX: Final = 5
PAUSED_WORDS: Final = "paused: partitions in flight arrive, no other begins"


class ReassignRun:
    """One reassignment on one cluster."""

    def __init__(
        self,
        admin: AdminPort,
        command: ReassignCommand,
        context: RunContext,
        calibration: Calibration,
        consumers: GroupReader | None = None,
    ) -> None:
        """``consumers``: groups that read what moves, to which it may yield."""
        self._admin = admin
        self._command = command
        self._context = context
        self._waves = plan_waves(command.changes, command.waves)
        is_adaptive = command.throttle == THROTTLE_AUTO
        self._forecast = Forecast(calibration=calibration, is_adaptive=is_adaptive)
        self._watch = MoveWatch(
            admin, command.changes, waves=len(self._waves), forecast=self._forecast
        )
        self._throttle = MoveThrottle(admin, command, context)
        self._guard = ThrottleGuard(self._throttle, self._watch, context)
        self._yield = YieldWatch(consumers, command.yields, context)
        self._window = WindowWatch(command.window, context)
        self._went_back: frozenset[TopicPartition] = frozenset()
        self._produced: Mapping[TopicPartition, float] | None = None
        self._sized = command.changes
        """What was to be copied at the start, where this process saw it."""
        begun = self._waves[: context.state().waves_begun]
        self._asking = SubmissionPacer(has_copied=any(c.adding for wave in begun for c in wave))
        self._told_gone = set(context.state().notes)
        told = context.state().refused
        self._refused = {c.key: told[str(c.key)] for c in command.changes if str(c.key) in told}

    async def run(self) -> None:
        """To the end, whichever, or until its window closes: run it again once that is open.

        :raises FencedError: another executor owns the operations.
        :raises UnreachableError: the cluster does not answer; run again later.
        """
        context = self._context
        goes_on = context.state().is_started
        self._watch.topic_ids = self._command.topic_ids or context.state().topic_ids
        if goes_on:
            self._watch.take_standing(await rates_of_others(self._admin, self._command, context))
        elif not await self._start():
            return
        if self._produced is None:
            self._produced = await measure_produced(self._admin, self._command.changes)
        await self._throttle.begin(self._produced, self._sized)
        await self._spread(self._produced, goes_on=goes_on)
        async with self._yield:
            outcome = await self._run_waves()
        if outcome is None:
            await self._leave()
            return
        await self._yield.end()
        arrived_s = time.monotonic()
        if self._command.elects_preferred:
            await self._elect()
        await self._throttle.remove_at_end()
        reached = context.state().progress
        told: dict[str, Any] = {} if reached is None else {"progress": reached.document()}
        fates = fates_of(
            self._command.changes,
            self._watch.places.is_there,
            gone=self._watch.gone,
            refused=self._refused,
            went_back=self._went_back | went_back_before(self._command, context),
        )
        told["fates"] = pack_fates(fates)
        if outcome is Outcome.DONE:
            misses = self._forecast.misses(time.monotonic(), arrived_s=arrived_s)
            told["misses"] = misses.document()
        empties = context.state().empties if outcome is Outcome.DONE else ()
        came = await came_meanwhile(self._admin, empties, self._command.changes)
        words = "; ".join((self._last_words(outcome, fates), *came))
        await context.emit(EventKind.FINISHED, words, outcome=outcome.value, **told)

    async def _start(self) -> bool:
        """Pre-flight; False when refused or cancelled before the start."""
        command, context = self._command, self._context
        if context.flags().is_ending:
            outcome = Outcome.CANCELLED
            await context.emit(EventKind.FINISHED, "cancelled before it began", outcome=outcome)
            return False
        facts = await _read(self._admin, command)
        self._produced, standing = facts.produced, facts.standing_rates
        self._watch.topic_ids = ids_of_command(command, facts)
        left = tuple(change for change in command.changes if not facts.places.is_there(change))
        others = left_as_they_are(facts.places, left, rolled_back=command.rolled_back)
        if command.rolled_back is not None:
            stuck = cannot_move(facts, left)
            others = {key: f"{why}: left as it is" for key, why in stuck.items()} | others
        copied = facts.as_now(to_go(facts, left, rolled_back=command.rolled_back))
        moving = {change.key for change in copied}
        rate = resolve_throttle(command.throttle, copied, facts.produced) if left else None
        is_adaptive = command.throttle == THROTTLE_AUTO
        checks = preflight(
            facts,
            left or command.changes,
            throttle_bytes_per_s=rate,
            rolled_back=command.rolled_back,
            is_adaptive=is_adaptive,
            rules=command.waves,
        )
        if is_refused(checks):
            await context.emit(EventKind.REFUSED, failures(checks))
            return False
        self._watch.take_standing(standing)
        self._watch.take_sizes(facts.sizes)
        self._sized = copied
        self._watch.note_gone(c.key for c in left if c.key not in facts.partitions)
        progress = self._watch.progress(wave=0, now_s=time.monotonic())
        expected = None
        waves = [facts.as_now(c for c in wave if c.key in moving) for wave in self._waves]
        waves = list(filter(None, waves))
        spread = spread_of(facts, waves, command.waves)
        made = expected_seconds(facts, waves, rate, is_adaptive=is_adaptive, spread=spread)
        if made is not None:
            expected = self._forecast.expect(made, at_s=time.monotonic())
        count = len(command.changes)
        words = _first_words(len(self._waves), count, there=count - len(left), begun=spread.words)
        empties = drained_by(command.changes, facts.partitions)
        await context.emit(
            EventKind.STARTED,
            words,
            progress=progress.document(),
            expected_s=expected,
            empties=list(empties),
            topic_ids=self._watch.topic_ids,
            before=facts.places.orders_found(command.changes),
        )
        await self._refuse(others)
        return True

    async def _leave(self) -> None:
        """Leave nothing on the cluster while the window is closed: others may run meanwhile."""
        await self._yield.end("its window is closed")
        await self._throttle.remove_at_end()
        await self._window.tell_left(self._context.state().progress)

    async def _run_waves(self) -> Outcome | None:
        """A wave that was under way before a crash goes on, whatever holds up those after it.
        Null: the rest waits for its window."""
        context = self._context
        await self._window.tell()
        begun_before = context.state().waves_begun
        if self._command.rolled_back is not None:
            await self._settle()
        self._watch.emptied = context.state().empties
        for wave in self._waves[: max(begun_before - 1, 0)]:
            self._watch.note_submitted(c.key for c in wave if c.key not in self._refused)
        if begun_before:  # What arrived meanwhile is told also where the next wave has to wait.
            await self._watch.refresh()
            await self._emit_progress(begun_before)
        for number, wave in enumerate(self._waves, 1):
            await self._watch.refresh()
            await self._tell_gone()
            left = [c for c in self._watch.left(wave) if c.key not in self._refused]
            moves = any(map(self._watch.places.is_moving, left))
            is_under_way = moves and number <= begun_before
            is_over = not left or (number < begun_before and not is_under_way)
            is_new = not (is_over or is_under_way)
            if is_new and not await self._may_begin(left):
                return None
            may_begin = not (is_new and context.flags().is_last_wave)
            if context.flags().is_cancelled or not may_begin:
                return await self._cancel()
            if is_over:
                continue
            await self._watch.refresh()
            unsafe = is_new and not await self._is_anything_safe(left)
            is_begun = unsafe or await self._run_wave(number, wave)
            if context.flags().is_cancelled or self._asking.dropped:
                return await self._cancel()
            if not is_begun:
                return None
        await self._watch.refresh()
        await self._emit_progress(len(self._waves))
        return Outcome.FAILED if self._missing else Outcome.DONE

    async def _settle(self) -> None:
        """Waits until brokers know how the operation to roll back ended. A broker that lags tells
        old and new replicas together, as if somebody had added some."""
        watch, flags = self._watch, self._context.flags()
        until_s = time.monotonic() + SETTLED_WITHIN_S
        await watch.refresh()
        while any(map(watch.places.is_between, self._command.changes)):
            if flags.is_cancelled or time.monotonic() >= until_s:
                return
            await flags.wait(SETTLED_POLL_S)
            await watch.refresh()

    async def _may_begin(self, wave: Sequence[PartitionChange]) -> bool:
        """Waits until no consumer, no operator and no disk holds up a new wave; False where its
        window is closed by then."""
        if self._window.holds:
            return False
        has_yielded = await wait_for_turn(self._yield, self._context)
        wave = self._watch.as_now(wave)
        if await wait_for_room(self._admin, wave, self._context) or has_yielded:
            self._watch.forget_rates()
        return not self._window.holds

    async def _is_anything_safe(self, wave: Sequence[PartitionChange]) -> bool:
        """Leaves out, and tells, what has become unsafe since pre-flight."""
        await self._watch.look_for_cordons()
        unsafe = await unsafe_by_now(self._admin, wave, self._watch.places)
        await self._refuse(unsafe, EventKind.INTERFERED)
        return any(change.key not in self._refused for change in wave)

    async def _run_wave(self, number: int, wave: Wave) -> bool:
        """Until it has arrived; False where its window closed before all of it had begun."""
        context = self._context
        is_asked = number <= context.state().waves_begun
        message = f"wave {number} of {len(self._waves)}: {counted(len(wave), 'partition')}"
        orders = self._watch.places.orders_found(context.state().changes)
        await context.emit(EventKind.WAVE_STARTED, message, wave=number, before=orders)
        await context.hold()
        gone = self._watch.gone
        await self._throttle.begin_wave(c.key for c in wave if c.key not in gone)
        if context.flags().is_cancelled:
            return True
        await self._guard.check(wave)
        asking = self._asking
        asking.begin(number, wave, throttle=self._throttle.rate, now_s=time.monotonic())
        await self._ask_next(wave, is_asked=is_asked)
        tick_s = FIRST_TICK_S
        while not context.flags().is_cancelled:
            await self._note_last_wave(number)
            await self._tell_pause(number)
            goes_on = await self._tell_window(number, wave)
            if await self._yield.tell() or goes_on:
                self._watch.forget_rates()
            next_s = None if self._is_held else asking.wait_s(time.monotonic())
            soon_s = tick_s if next_s is None else max(next_s, LAST_TICK_S)
            await context.flags().wait(min(soon_s, tick_s))
            await self._watch.refresh()
            await self._guard.check(wave)
            await self._ask_next(wave, is_asked=is_asked)
            reading = replace(
                self._watch.reading(time.monotonic()), is_yielding=self._yield.is_slowing
            )
            is_stopped = bool(context.state().stopped_for)
            if await self._throttle.tick(reading, self._watch.alive, adapts=not is_stopped):
                self._watch.forget_rates()
            there = [change.key for change in wave if self._watch.places.is_there(change)]
            await self._throttle.let_go(there, self._watch.catching_up)
            await context.remove_left_throttles()
            progress = await self._emit_progress(number, *self._spread_s)
            if self._watch.wants_standing:
                rates = await rates_of_others(self._admin, self._command, context)
                self._watch.take_standing(rates)
            tick_s = next_tick_s(tick_s, progress)
            taken = await restored_orders(self._admin, self._watch, context)
            await self._refuse(taken | self._watch.others.taken(), EventKind.INTERFERED)
            for words in self._watch.cordons.take_news():
                await context.emit(EventKind.INTERFERED, words)
            await self._tell_gone()
            asked = self._watch.left(c for c in wave if c.key not in asking.dropped)
            if all(change.key in self._refused for change in asked):
                await context.emit(EventKind.WAVE_DONE, f"wave {number} done", wave=number)
                return True
            if self._window.holds and not any(map(self._watch.places.is_moving, asked)):
                return False
        return True

    async def _tell_window(self, number: int, wave: Wave) -> bool:
        """Says while a wave is under way that something else waits; whether the window opened."""
        is_asked = all(map(self._watch.places.is_moving, self._watch.left(wave)))
        if is_asked and number == len(self._waves):
            return False
        return await self._window.tell(is_copying=True)

    async def _spread(self, produced: Mapping[TopicPartition, float], *, goes_on: bool) -> None:
        """Sets the pace; a run that goes on says here that producers' traffic is not known."""
        await self._watch.refresh()
        places, never = self._watch.places, self._refused.keys() | self._watch.gone
        waves = still_to_ask(self._waves, places, never)
        paced = await pace_of_run(self._admin, self._command, places, produced, waves)
        if goes_on and self._command.waves.spread_s and not produced and any(waves):
            await tell_once(self._context, NOT_KNOWN)
        self._asking.spread(*paced)

    @property
    def _is_held(self) -> bool:
        """Whether what has not begun waits: an operator paused it, it yields to consumers, or its
        window is closed."""
        is_paused = self._context.flags().is_paused
        return is_paused or self._yield.is_holding or self._window.is_closed

    @property
    def _spread_s(self) -> tuple[float, float]:
        """Until the last is asked for; elections after it. Nothing while held, or at an end."""
        asking = self._asking
        if self._is_held or self._context.flags().is_ending:
            return 0.0, 0.0
        return asking.left_s(time.monotonic()), asking.elected_s

    async def _ask_next(self, wave: Wave, *, is_asked: bool) -> None:
        """Submits the partitions that are due; none while paused, and none of a last wave."""
        flags, places = self._context.flags(), self._watch.places
        left = {c.key for c in self._watch.left(wave) if not places.is_moving(c)}
        left -= self._refused.keys()
        if flags.is_ending:
            self._asking.drop(left)
        free = {change.key for change in wave}.difference(left)
        due = self._asking.due(time.monotonic(), free=free, is_held=self._is_held)
        if due:
            await self._submit(due, is_asked=is_asked)

    async def _submit(self, batch: Wave, *, is_asked: bool) -> None:
        """Ask for what of these is neither there nor on its way there, nor somebody else's by now;
        all is watched, also what was asked for before a crash (`is_asked`)."""
        places, left, rolled_back = (
            self._watch.places,
            self._watch.left(batch),
            self._command.rolled_back,
        )
        others = {
            c.key: places.why_others(c, is_asked=is_asked)
            if rolled_back is None
            else places.why_left(c, rolled_back=rolled_back)
            for c in left
        }
        await self._refuse({key: why for key, why in others.items() if why is not None})
        ours = [c for c in left if c.key not in self._refused]
        await self._context.hold()
        refused = await self._admin.alter_reassignments(
            {c.key: c.after for c in ours if not places.is_moving(c)},
            allow_replication_factor_change=self._command.allows_replication_factor_change,
        )
        self._watch.note_submitted(c.key for c in ours if c.key not in refused)
        unknown = {key for key, error in refused.items() if _is_unknown(error)}
        self._watch.note_gone(unknown)
        await self._refuse({k: str(error) for k, error in refused.items() if k not in unknown})

    async def _refuse(
        self, found: Mapping[TopicPartition, str], kind: EventKind = EventKind.NOTE
    ) -> None:
        """These will not arrive: said, and known also after a crash."""
        new = {key: why for key, why in found.items() if key not in self._refused}
        if not new:
            return
        self._refused |= new
        refused = {str(key): why for key, why in new.items()}
        await self._context.emit(kind, _reasons(new), refused=refused)

    async def _tell_gone(self) -> None:
        """Say once which topics do not exist any more."""
        known = {key.topic for key in self._watch.places.placed}
        for topic, count in sorted(Counter(key.topic for key in self._watch.gone).items()):
            was = "was created anew with fewer partitions" if topic in known else "was deleted"
            was = ANEW if topic in self._watch.created_anew else f"{was} meanwhile"
            rest = f"{counted(count, 'partition')} of it {'is' if count == 1 else 'are'} left out"
            words = f"topic {topic} {was}: {rest}"
            if words not in self._told_gone:
                self._told_gone.add(words)
                await self._context.emit(EventKind.NOTE, words)

    async def _note_last_wave(self, number: int) -> None:
        """Say once that nothing begins any more."""
        words = f"wave {number} of {len(self._waves)} is the last: cancelled when it is done"
        if self._asking.dropped:
            words = "partitions in flight arrive, no other begins: cancelled then"
        if self._context.flags().is_last_wave and words not in self._context.state().notes:
            await self._context.emit(EventKind.NOTE, words)

    async def _tell_pause(self, number: int) -> None:
        """While a wave is under way a pause holds what has not begun: say so at once, with what is
        still copied (control.move.state counts it)."""
        flags, is_told = self._context.flags(), self._context.state().phase in HELD
        if flags.is_ending or flags.is_paused == is_told:
            return
        if flags.is_paused:
            await self._watch.refresh()
            await self._emit_progress(number, *self._spread_s)
            await self._context.emit(EventKind.PAUSED, PAUSED_WORDS)
        else:
            await self._context.emit(EventKind.RESUMED, "resumed")
            self._watch.forget_rates()

    async def _cancel(self) -> Outcome:
        """Cancels the moves in flight. Partitions that have arrived stay."""
        context, places = self._context, self._watch.places
        moving = [n for n, c in enumerate(self._command.changes) if places.is_moving(c)]
        await context.emit(EventKind.CANCELLING, "cancelling", going_back=moving)
        taken = await cancel_begun(self._admin, self._command, context)
        self._went_back = taken.keys
        await self._refuse(taken.refused)
        await self._watch.refresh()
        reached = context.state().progress
        await self._emit_progress(reached.wave if reached else 0)
        return Outcome.CANCELLED

    async def _elect(self) -> None:
        """Elects preferred leaders of the partitions that have arrived, also before a cancel."""
        watch, asking, led_by = self._watch, self._asking, self._watch.places.leaders()
        done = [change for change in self._command.changes if watch.places.is_there(change)]
        wrong = [change for change in done if led_by.get(change.key) != change.after[0]]
        reached = self._context.state().progress
        tell = partial(self._emit_progress, reached.wave if reached else 0)
        pace, turns = asking.pace.led_by(led_by), asking.turns
        within_s = self._command.waves.spread_s
        await elect_preferred(
            self._admin, wrong, pace, turns, self._context, within_s=within_s, tell=tell
        )

    async def _emit_progress(
        self, wave: int, spread_s: float = 0.0, after_s: float = 0.0
    ) -> MoveProgress:
        """`spread_s`: until the last is asked for, or elected, for producers' sake; `after_s`: what
        elections take after that."""
        rate, now_s = self._throttle.rate, time.monotonic()
        progress = self._watch.progress(
            wave=wave, now_s=now_s, throttle=rate, spread_s=spread_s, after_s=after_s
        )
        progress = self._window.lengthened(progress)
        if _differs(self._context.state().progress, progress):
            await self._context.emit(EventKind.PROGRESS, **progress.document())
        return progress

    def _last_words(self, outcome: Outcome, fates: Sequence[Fate]) -> str:
        done, gone = self._watch.partitions_done, len(self._watch.gone)
        asked = counted(len(self._command.changes) - gone, "partition")
        words = f"{outcome.value}: {done:,} of {asked} moved"
        words = f"{words}; {gone} of deleted topics left out" if gone else words
        counts = fate_counts(fates)
        for fate in (Fate.WENT_BACK, Fate.NEVER_BEGAN):
            words = f"{words}; {counts[fate]:,} {fate}" if fate in counts else words
        refused = self._missing
        return f"{words}; {_reasons(refused)}" if refused else words

    @property
    def _missing(self) -> dict[TopicPartition, str]:
        """Refused partitions that have not arrived after all."""
        there = {c.key for c in self._command.changes if self._watch.places.is_there(c)}
        return {key: why for key, why in self._refused.items() if key not in there}


async def _read(admin: AdminPort, command: ReassignCommand) -> ClusterFacts:
    """Facts for pre-flight, without topics that were created anew since the operation to roll
    back."""
    async with together() as group:
        facts = group.create_task(read_facts(admin, changes=command.changes))
        produced = group.create_task(measure_produced(admin, command.changes))
        backoffs = group.create_task(read_fetch_backoffs(admin, command.changes))
        standing = group.create_task(read_standing_rates(admin, command.changes))
    return replace(
        facts_of(command.topic_ids, facts.result()),
        produced=produced.result(),
        fetch_backoff_ms=backoffs.result(),
        standing_rates=standing.result(),
    )


def _is_unknown(error: Exception) -> bool:
    unknown = ErrorCode.unknown_topic_or_partition
    return isinstance(error, RefusedError) and error.code is unknown


def _differs(before: MoveProgress | None, now: MoveProgress) -> bool:
    return before is None or before.document() != now.document()


def _first_words(waves: int, partitions: int, *, there: int, begun: str) -> str:
    """As it begins; `begun`: over which time, where that is worth a word."""
    words = f"{counted(partitions, 'partition')} in {counted(waves, 'wave')}"
    words = f"{words}; {there} already there" if there else words
    return f"{words}; {begun}" if begun else words


def _reasons(refused: Mapping[TopicPartition, str]) -> str:
    """The first of them, and how many more there are."""
    named = [f"{key}: {why}" for key, why in list(refused.items())[:REFUSED_NAMES_MAX]]
    more = len(refused) - len(named)
    return "; ".join([*named, f"and {more:,} more"] if more else named)
