"""Running one reassignment: pre-flight, throttle, waves, progress, election, clean-up.

Every step looks at the cluster before it acts, so the run can be started again at any point: after
a crash the executor starts it anew and it goes on where the cluster is. `hold` is called before
each change; it raises FencedError when the operations belong to another executor.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import AdminPort, ElectionType
from control.model.ids import TopicPartition
from control.operations.calibration import Calibration
from control.operations.commands import THROTTLE_AUTO, ReassignCommand
from control.operations.emptied import came_meanwhile, emptied_by
from control.operations.events import EventKind, MoveProgress, Outcome
from control.operations.facts import read_facts, to_go
from control.operations.forecast import Forecast
from control.operations.gentle_start import BATCH_S, gentle_start
from control.operations.meters import measure_produced, read_standing_rates
from control.operations.move_watch import MoveWatch
from control.operations.placements import left_as_they_are
from control.operations.planning import resolve_throttle
from control.operations.preflight import failures, is_refused, preflight
from control.operations.preflight_load import expected_seconds
from control.operations.run_context import RunContext
from control.operations.standing_rates import StandingRates
from control.operations.state import Phase
from control.operations.taking_back import take_back
from control.operations.throttle import ThrottleRecord
from control.operations.throttle_keeper import ThrottleKeeper
from control.operations.way_back import settle
from control.planner.waves import Wave, plan_waves

TICK_S: Final = 1.0
FIRST_TICK_S: Final = 0.1
LAST_TICK_S: Final = 0.25
REFUSED_NAMES_MAX: Final = 5


class ReassignRun:
    """One reassignment on one cluster."""

    def __init__(
        self,
        admin: AdminPort,
        command: ReassignCommand,
        context: RunContext,
        calibration: Calibration,
    ) -> None:
        self._admin = admin
        self._command = command
        self._context = context
        self._waves = plan_waves(command.changes, command.waves)
        is_adaptive = command.throttle == THROTTLE_AUTO
        self._forecast = Forecast(calibration=calibration, is_adaptive=is_adaptive)
        self._watch = MoveWatch(
            admin, command.changes, waves=len(self._waves), forecast=self._forecast
        )
        self._throttle = ThrottleKeeper(admin, command, context)
        self._produced: Mapping[TopicPartition, float] | None = None
        self._sized = command.changes
        """What was to be copied at the start, where this process saw it."""
        begun = self._waves[: context.state().waves_begun]
        self._has_copied = any(change.adding for wave in begun for change in wave)
        """Whether a wave that copies data has begun, also before a crash."""
        self._told_gone = set(context.state().notes)
        told = context.state().refused
        self._refused = {c.key: told[str(c.key)] for c in command.changes if str(c.key) in told}

    async def run(self) -> None:
        """To the end, whichever.

        :raises FencedError: another executor owns the operations.
        :raises UnreachableError: the cluster does not answer; run again later.
        """
        context = self._context
        if context.state().is_started:
            self._watch.take_standing(await _rates_of_others(self._admin, self._command, context))
        elif not await self._start():
            return
        if self._produced is None:
            self._produced = await measure_produced(self._admin, self._command.changes)
        await self._throttle.begin(self._produced, self._sized)
        outcome = await self._run_waves()
        if self._command.elects_preferred:
            await self._elect()
        await _remove(self._throttle, context)
        reached = context.state().progress
        told = {} if reached is None else {"progress": reached.document()}
        if outcome is Outcome.DONE:
            told["misses"] = self._forecast.misses(time.monotonic()).document()
        empties = context.state().empties if outcome is Outcome.DONE else ()
        came = await came_meanwhile(self._admin, empties, self._command.changes)
        words = "; ".join((self._last_words(outcome), *came))
        await context.emit(EventKind.FINISHED, words, outcome=outcome.value, **told)

    async def _start(self) -> bool:
        """Pre-flight; False when refused or cancelled before the start."""
        command, context = self._command, self._context
        if context.flags().is_ending:
            outcome = Outcome.CANCELLED
            await context.emit(EventKind.FINISHED, "cancelled before it began", outcome=outcome)
            return False
        facts, produced, standing = await asyncio.gather(
            read_facts(self._admin, changes=command.changes),
            measure_produced(self._admin, command.changes),
            read_standing_rates(self._admin, command.changes),
        )
        self._produced = produced
        facts = replace(facts, produced=produced, standing_rates=standing)
        left = tuple(change for change in command.changes if not facts.places.is_there(change))
        others = left_as_they_are(facts.places, left, undone=command.undone)
        copied = facts.sized(to_go(facts, left, undone=command.undone))
        moving = {change.key for change in copied}
        rate = resolve_throttle(command.throttle, copied, produced) if left else None
        is_adaptive = command.throttle == THROTTLE_AUTO
        checks = preflight(
            facts,
            left or command.changes,
            throttle_bytes_per_s=rate,
            undone=command.undone,
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
        waves = [facts.sized(c for c in wave if c.key in moving) for wave in self._waves]
        made = expected_seconds(facts, list(filter(None, waves)), rate, is_adaptive=is_adaptive)
        if made is not None:
            expected = self._forecast.foresee(made, at_s=time.monotonic())
        partitions = len(command.changes)
        words = _first_words(
            waves=len(self._waves), partitions=partitions, there=partitions - len(left)
        )
        empties = emptied_by(command.changes, facts.partitions)
        await context.emit(
            EventKind.STARTED,
            words,
            progress=progress.document(),
            expected_s=expected,
            empties=list(empties),
        )
        await self._refuse(others)
        return True

    async def _run_waves(self) -> Outcome:
        """A wave that was under way before a crash goes on, whatever holds up those after it."""
        context = self._context
        begun_before = context.state().waves_begun
        if self._command.undone is not None:
            await settle(self._watch, self._command.changes, context)
        for number, wave in enumerate(self._waves, 1):
            await self._watch.refresh()
            await self._tell_gone()
            left = [c for c in self._watch.left(wave) if c.key not in self._refused]
            moves = any(map(self._watch.places.is_moving, left))
            is_under_way = moves and number <= begun_before
            is_over = not left or (number < begun_before and not is_under_way)
            if not (is_over or is_under_way):
                await self._wait_while_paused()
            may_begin = is_over or is_under_way or not context.flags().is_last_wave
            if context.flags().is_cancelled or not may_begin:
                return await self._cancel()
            if is_over:
                continue
            await self._watch.refresh()
            await self._run_wave(number, wave)
            if context.flags().is_cancelled:
                return await self._cancel()
        await self._watch.refresh()
        await self._emit_progress(len(self._waves))
        return Outcome.FAILED if self._missing else Outcome.DONE

    async def _run_wave(self, number: int, wave: Wave) -> None:
        context = self._context
        is_asked = number <= context.state().waves_begun
        message = f"wave {number} of {len(self._waves)}: {len(wave)} partitions"
        await context.emit(EventKind.WAVE_STARTED, message, wave=number)
        await context.hold()
        await self._throttle.begin_wave(change.key for change in wave)
        if context.flags().is_cancelled:
            return
        batches = deque(self._batches(wave))
        await self._submit(batches.popleft(), is_asked=is_asked)
        tick_s = FIRST_TICK_S
        while not context.flags().is_cancelled:
            await self._note_last_wave(number)
            await self._tell_pause(number)
            await context.flags().wait(BATCH_S if batches else tick_s)
            await self._watch.refresh()
            if batches and not context.flags().is_cancelled:
                await context.hold()
                await self._submit(batches.popleft(), is_asked=is_asked)
            reading = self._watch.reading(time.monotonic())
            if await self._throttle.tick(reading, self._watch.alive):
                self._forecast.begin_anew()
            there = [change.key for change in wave if self._watch.places.is_there(change)]
            await self._throttle.let_go(there, self._watch.catching_up)
            await context.tidy()
            progress = await self._emit_progress(number)
            if self._watch.wants_standing:
                rates = await _rates_of_others(self._admin, self._command, context)
                self._watch.take_standing(rates)
            tick_s = _next_tick_s(tick_s, progress)
            astray = self._watch.gone_astray()
            await self._refuse(dict.fromkeys(astray, "was taken back by somebody else"))
            await self._tell_gone()
            if all(change.key in self._refused for change in self._watch.left(wave)):
                await context.emit(EventKind.WAVE_DONE, f"wave {number} done", wave=number)
                return

    def _batches(self, wave: Wave) -> list[Wave]:
        """What is asked for together. Only the first wave that copies begins gently: one that
        follows finds the throttle used up by those before it."""
        copies, rate = any(change.adding for change in wave), self._throttle.rate
        begins = copies and not self._has_copied
        self._has_copied |= copies
        return gentle_start(wave, rate) if begins and rate else [wave]

    async def _submit(self, batch: Wave, *, is_asked: bool) -> None:
        """Ask for what of these is neither there nor on its way there, nor somebody else's by now;
        all is watched, also what was asked for before a crash (`is_asked`)."""
        places, left, undone = self._watch.places, self._watch.left(batch), self._command.undone
        others = {
            c.key: places.why_others(c, is_asked=is_asked)
            if undone is None
            else places.why_left(c, undone=undone)
            for c in left
        }
        await self._refuse({key: why for key, why in others.items() if why is not None})
        ours = [c for c in left if c.key not in self._refused]
        refused = await self._admin.alter_reassignments(
            {c.key: c.after for c in ours if not places.is_moving(c)},
            allow_replication_factor_change=self._command.allows_replication_factor_change,
        )
        self._watch.note_submitted(c.key for c in ours if c.key not in refused)
        unknown = {key for key, error in refused.items() if _is_unknown(error)}
        self._watch.note_gone(unknown)
        await self._refuse({k: str(error) for k, error in refused.items() if k not in unknown})

    async def _refuse(self, found: Mapping[TopicPartition, str]) -> None:
        """These will not arrive: said, and known also after a crash."""
        new = {key: why for key, why in found.items() if key not in self._refused}
        if not new:
            return
        self._refused |= new
        refused = {str(key): why for key, why in new.items()}
        await self._context.emit(EventKind.NOTE, _reasons(new), refused=refused)

    async def _tell_gone(self) -> None:
        """Say once which topics do not exist any more."""
        known = {key.topic for key in self._watch.places.placed}
        for topic, count in sorted(Counter(key.topic for key in self._watch.gone).items()):
            was = "made anew with fewer partitions" if topic in known else "deleted"
            words = f"topic {topic} was {was} meanwhile: {count:,} partitions of it are left out"
            if words not in self._told_gone:
                self._told_gone.add(words)
                await self._context.emit(EventKind.NOTE, words)

    async def _note_last_wave(self, number: int) -> None:
        """Say once that nothing begins after this wave."""
        words = f"wave {number} of {len(self._waves)} is the last: cancelled when it is done"
        if self._context.flags().is_last_wave and words not in self._context.state().notes:
            await self._context.emit(EventKind.NOTE, words)

    async def _tell_pause(self, number: int) -> None:
        """While a wave is under way a pause holds only what comes after it: say so at once."""
        flags, is_told = self._context.flags(), self._context.state().phase is Phase.PAUSED
        if flags.is_ending or flags.is_paused == is_told:
            return
        if flags.is_paused:
            after = "no new one starts" if number < len(self._waves) else "it is the last"
            words = f"paused: wave {number} of {len(self._waves)} arrives, {after}"
            await self._context.emit(EventKind.PAUSED, words)
        else:
            await self._context.emit(EventKind.RESUMED, "resumed")

    async def _wait_while_paused(self) -> None:
        context = self._context
        if not context.flags().is_paused or context.flags().is_ending:
            return
        await context.emit(EventKind.PAUSED, "paused: no new wave starts")
        while context.flags().is_paused and not context.flags().is_ending:
            await context.flags().wait(TICK_S)
            await context.tidy()
        await context.emit(EventKind.RESUMED, "resumed")
        self._forecast.begin_anew()

    async def _cancel(self) -> Outcome:
        """Take back what is moving. What has arrived stays."""
        context = self._context
        await context.emit(EventKind.CANCELLING, "cancelling")
        taken = await take_back(self._admin, self._command, context)
        await self._refuse(taken.refused)
        await self._watch.refresh()
        reached = context.state().progress
        await self._emit_progress(reached.wave if reached else 0)
        return Outcome.CANCELLED

    async def _elect(self) -> None:
        """Of what was done, also before a cancel."""
        led_by = self._watch.places.leaders()
        done = [change for change in self._command.changes if self._watch.places.is_there(change)]
        wrong = [change.key for change in done if led_by.get(change.key) != change.after[0]]
        if not wrong:
            return
        await self._context.hold()
        try:
            refused = await self._admin.elect_leaders(wrong, ElectionType.PREFERRED)
        except KafkaPortError as error:
            await self._context.emit(EventKind.NOTE, str(error))
            return
        for error_of_one in refused.values():
            await self._context.emit(EventKind.NOTE, str(error_of_one))
        count = len(wrong) - len(refused)
        leaders = "leader" if count == 1 else "leaders"
        await self._context.emit(EventKind.ELECTED, f"{count} preferred {leaders} elected")

    async def _emit_progress(self, wave: int) -> MoveProgress:
        rate = self._throttle.rate
        progress = self._watch.progress(wave=wave, now_s=time.monotonic(), throttle=rate)
        if _differs(self._context.state().progress, progress):
            await self._context.emit(EventKind.PROGRESS, **progress.document())
        return progress

    def _last_words(self, outcome: Outcome) -> str:
        done = self._watch.partitions_done
        gone = len(self._watch.gone)
        words = f"{outcome.value}: {done} of {len(self._command.changes) - gone} partitions moved"
        words = f"{words}; {gone} of deleted topics left out" if gone else words
        refused = self._missing
        return f"{words}; {_reasons(refused)}" if refused else words

    @property
    def _missing(self) -> dict[TopicPartition, str]:
        """What was refused and is not there after all."""
        there = {c.key for c in self._command.changes if self._watch.places.is_there(c)}
        return {key: why for key, why in self._refused.items() if key not in there}


async def _remove(throttle: ThrottleKeeper, context: RunContext) -> None:
    """All has arrived: a throttle that may not be removed now is no reason to call that failed."""
    try:
        await throttle.remove()
    except RefusedError as error:
        words = f"the throttle is still there, and its removal tried again and again: {error}"
        await context.emit(EventKind.NOTE, words)


async def _rates_of_others(
    admin: AdminPort, command: ReassignCommand, context: RunContext
) -> StandingRates:
    """Throttles on brokers that have none of ours."""
    ours = context.state().throttle
    except_on = () if ours is None else ThrottleRecord.parse(ours).brokers
    return await read_standing_rates(admin, command.changes, except_on=except_on)


def _is_unknown(error: Exception) -> bool:
    unknown = ErrorCode.unknown_topic_or_partition
    return isinstance(error, RefusedError) and error.code is unknown


def _first_words(*, waves: int, partitions: int, there: int) -> str:
    words = f"{partitions} partitions in {waves} {'wave' if waves == 1 else 'waves'}"
    return f"{words}; {there} already there" if there else words


def _reasons(refused: Mapping[TopicPartition, str]) -> str:
    """The first of them, and how many more there are."""
    named = [f"{key}: {why}" for key, why in list(refused.items())[:REFUSED_NAMES_MAX]]
    more = len(refused) - len(named)
    return "; ".join([*named, f"and {more:,} more"] if more else named)


def _next_tick_s(last_s: float, progress: MoveProgress) -> float:
    """More often at first and towards the end, so that nobody waits for what is done."""
    soon_s = TICK_S if progress.eta_s_low is None else max(progress.eta_s_low / 2, LAST_TICK_S)
    return min(last_s * 2, TICK_S, soon_s)


def _differs(before: MoveProgress | None, now: MoveProgress) -> bool:
    return before is None or before.document() != now.document()
