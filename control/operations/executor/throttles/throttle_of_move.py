"""The throttle of one running reassignment: set, adapted, changed by hand, removed.

Once the first wave has begun, what the cluster refuses is no reason to end the move: the rate of
before stays, and it is tried again.

What is about to be set is recorded first. A change records the new rate together with those it
replaces, so that whatever a crash left on a broker is known to be ours. A broker that was down each
time has nothing of ours, and nobody waits for it.
"""

import contextlib
import math
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from enum import Enum, auto
from functools import partial
from typing import Final

from control.kafka.errors import RefusedError
from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.model.units import byte_rate_text
from control.move.commands import ReassignCommand
from control.move.events import EventKind
from control.move.throttle import (
    THROTTLE_AUTO,
    THROTTLE_NONE,
    Throttle,
    ThrottleRecord,
    brokers_between,
)
from control.move.yields import YieldMode
from control.operations.executor.catching_up import CatchUpWatch
from control.operations.executor.run_context import RunContext, tell_once
from control.operations.executor.throttles.adaptive_throttle import (
    AdaptiveThrottle,
    FixedThrottle,
    Reading,
)
from control.operations.executor.throttles.foreign_changes import ForeignChange
from control.operations.executor.throttles.throttle_on_cluster import ClusterThrottle
from control.operations.reassignment.cluster_probes import read_standing_rates
from control.operations.reassignment.existing_throttles import StandingRates
from control.operations.reassignment.planning import resolve_throttle
from control.operations.reassignment.producer_traffic import AUTO_FLOOR_BYTES_PER_S, working_rate
from planner.proposal import PartitionChange

NOT_EVERYWHERE: Final = "not every broker has the throttle as asked"
REFUSED_AGAIN_S: Final = 30.0
"""After a refusal."""
FORMER_RATES_MAX: Final = 8
"""Remembered once every broker has the newest."""


class Step(Enum):
    """One of them does not hold up another."""

    WISH = auto()
    RAISE = auto()
    LOWER = auto()
    LIST = auto()
    CATCH_UP = auto()


class ThrottleRetries:
    """When each step may be tried again after a refusal."""

    def __init__(self) -> None:
        self.now_s = -math.inf
        """The clock of readings."""
        self._until_s: dict[Step, float] = {}

    def may(self, step: Step) -> bool:
        """Whether it was not refused within REFUSED_AGAIN_S."""
        return self.now_s >= self._until_s.get(step, -math.inf)

    def refused(self, step: Step) -> None:
        """Just now."""
        self._until_s[step] = self.now_s + REFUSED_AGAIN_S


class MoveThrottle:
    """Every step may be repeated after a crash."""

    def __init__(self, admin: AdminPort, command: ReassignCommand, context: RunContext) -> None:
        self._command = command
        self._context = context
        self._throttling = ClusterThrottle(admin, context.hold)
        self._planned = partial(_planned, self._throttling, context, command.changes)
        self._sized = command.changes
        """With what their partitions hold, where it is known: an automatic rate is for that."""
        self._moves_data = any(change.adding for change in command.changes)
        self._wanted: Throttle = command.throttle
        self._refused: Throttle | None = None
        """What an operator asked for and the cluster refused."""
        self._pauses = ThrottleRetries()
        self._late: frozenset[str] = frozenset()
        """Topics whose lists are not as they should be, since the cluster refused that."""
        self._adaptive: AdaptiveThrottle | FixedThrottle | None = None
        self._floor = AUTO_FLOOR_BYTES_PER_S
        self._reached: frozenset[int] = frozenset()
        """Brokers that were given what is recorded. A broker keeps it while it is down, or away for
        one reading: where it lacks then, another tool removed it."""
        self._wave: frozenset[TopicPartition] | None = None
        """What moves now; None: whatever it was before a crash."""
        self._at_leaders: frozenset[TopicPartition] = frozenset()
        self._at_followers: frozenset[TopicPartition] = frozenset()
        """Of these those that are throttled still."""

    @property
    def rate(self) -> int | None:
        """Bytes per second now; None without a throttle."""
        record = self._recorded
        return None if record is None or record.is_left_behind else record.rate

    async def begin(
        self,
        produced: Mapping[TopicPartition, float],
        sized: tuple[PartitionChange, ...] | None = None,
    ) -> None:
        """Set it, or set again what was recorded before a crash; `sized`: what is to be copied, as
        it is now."""
        changes = self._command.changes
        self._sized = changes if sized is None else sized
        self._floor = max(AUTO_FLOOR_BYTES_PER_S, working_rate(changes, produced))
        self._wanted = self._asked
        record = self._recorded
        if record is not None:
            await self._resume(record, produced)
        else:
            rate = resolve_throttle(self._wanted, self._sized, produced)
            if rate is None or not self._moves_data or self._context.flags().is_cancelled:
                return
            await self._record(await self._planned(rate), "throttle")
        self._adaptive = _adaptive(self._command, self._wanted, self.rate, self._floor)

    async def _resume(
        self, record: ThrottleRecord, produced: Mapping[TopicPartition, float]
    ) -> None:
        """Sets the recorded throttle again after a crash, or a newer one that an operator asked
        for. A throttle that a down broker kept is replaced too."""
        if self._wanted != THROTTLE_AUTO or record.is_left_behind:
            wanted = resolve_throttle(self._wanted, self._sized, produced)
            if wanted != record.rate or record.is_left_behind:
                if not await self._try_change_to(wanted, "asked for", Step.WISH):
                    self._wanted = self.rate or THROTTLE_NONE  # Asked for still.
                return
        given = frozenset(record.brokers).difference(record.unreached)
        if self._context.state().waves_begun and await self._is_removed(record, given):
            self._reached = given  # The guard tells it and sets it again, or stops.
            return
        try:
            await self._apply(record)
        except RefusedError as error:
            if not self._context.state().waves_begun:
                raise
            await tell_once(self._context, f"{NOT_EVERYWHERE}: {error}")

    async def _is_removed(self, record: ThrottleRecord, given: Collection[int]) -> bool:
        """Whether rates lack that were set before a crash, and none is another than it was."""
        changes = await self._throttling.foreign_changes(record, {}, given)
        return bool(changes) and all(change.now is None for change in changes)

    async def tick(self, reading: Reading, alive: frozenset[int], *, adapts: bool = True) -> bool:
        """Applies a throttle that an operator asked for (and answers True), else the one that the
        reading suggests, unless not `adapts`. A broker that has come back gets the rate that it may
        have missed."""
        self._pauses.now_s = reading.at_s
        await self._catch_up(alive)
        asked = self._asked
        if asked != self._wanted and (self._pauses.may(Step.WISH) or asked != self._refused):
            rate = resolve_throttle(asked, self._sized)
            if await self._try_change_to(rate, "asked for", Step.WISH):
                self._wanted = asked
                self._adaptive = _adaptive(self._command, self._wanted, self.rate, self._floor)
                return True
            self._refused = asked
        if self._adaptive is not None and adapts:
            seen = deepcopy(self._adaptive)
            adapted = seen.observe(reading)
            step = Step.RAISE if adapted is None or adapted > self._adaptive.rate else Step.LOWER
            why = "lowered for consumers to" if reading.is_yielding else "adapted to"
            if adapted is None or (
                self._pauses.may(step) and await self._try_change_to(adapted, why, step)
            ):
                self._adaptive = seen
        return False

    async def begin_wave(self, wave: Iterable[TopicPartition]) -> None:
        """Lists the replicas of this wave instead of those of the last. Where the cluster refuses,
        a wave after the first waits: it would move unthrottled.

        :raises RefusedError: of the first.
        """
        before, self._wave = self._wave, frozenset(wave)
        self._at_leaders = self._at_followers = self._wave
        # Before the first wave of this process: those of whom a crash left behind.
        topics = None if before is None else {key.topic for key in before | self._wave} | self._late
        is_first = before is None and self._context.state().waves_begun <= 1
        while not (self._context.flags().is_cancelled or self._asked == THROTTLE_NONE):
            try:
                await self._list(topics)
            except RefusedError as error:
                if is_first:
                    raise
                await tell_once(self._context, f"the next wave waits for its throttle: {error}")
                await self._context.flags().wait(REFUSED_AGAIN_S)
            else:
                self._late = frozenset()
                return

    async def let_go(self, there: Collection[TopicPartition], watch: CatchUpWatch) -> None:
        """Stop throttling what has arrived, or is about to: producers wait for it."""
        rate = self.rate
        if rate is None:
            return
        at_leaders = self._at_leaders.difference(there)
        at_followers = self._at_followers.difference(there)
        soon, next_ = watch.let_go(at_leaders, at_followers, rate)
        at_leaders, at_followers = at_leaders - soon, at_followers - next_
        changed = (self._at_leaders - at_leaders) | (self._at_followers - at_followers)
        self._at_leaders, self._at_followers = at_leaders, at_followers
        self._late |= {key.topic for key in changed}
        if not self._late or not self._pauses.may(Step.LIST):
            return
        try:
            await self._list(self._late)
            self._late = frozenset()
        except RefusedError as error:
            self._pauses.refused(Step.LIST)
            await tell_once(
                self._context, f"partitions that have arrived are still throttled: {error}"
            )

    async def foreign_changes(
        self, alive: frozenset[int], topics: Collection[str]
    ) -> list[ForeignChange]:
        """Rates of these brokers and lists of these topics that another tool has changed."""
        record = self._recorded
        if record is None or record.is_left_behind:
            return []
        brokers = self._reached.intersection(alive, record.brokers)
        wanted = record.of_topics(topics).to_list(self._at_leaders, self._at_followers)
        return await self._throttling.foreign_changes(record, wanted, brokers)

    async def set_again(self, changes: Iterable[ForeignChange]) -> None:
        """Set what another tool has changed, whatever it is now.

        :raises RefusedError: the cluster does not take it.
        """
        record = self._recorded
        if record is not None:
            await self._context.hold()
            anew_on = [change.whose for change in changes if isinstance(change.whose, int)]
            moving = record.of_topics({key.topic for key in self._wave or ()})
            wanted = moving.to_list(self._at_leaders, self._at_followers)
            of_these = tuple(broker for broker in record.brokers if broker in anew_on)
            await self._throttling.apply(replace(moving, brokers=of_these), wanted, anew_on=anew_on)

    async def _list(self, topics: Collection[str] | None) -> None:
        """In these topics, or all, just what moves and is not let go."""
        record = self._recorded
        if record is None or record.is_left_behind:
            return
        record = record if topics is None else record.of_topics(topics)
        await self._throttling.enlist(record, record.to_list(self._at_leaders, self._at_followers))

    async def _catch_up(self, alive: frozenset[int]) -> None:
        record = self._recorded
        back = frozenset() if record is None else alive.intersection(record.brokers) - self._reached
        if record is None or not back or not self._pauses.may(Step.CATCH_UP):
            return
        try:
            if record.is_left_behind:
                await self.remove()
            else:
                # What ended operations left there would pass for somebody else's.
                await self._context.remove_left_throttles(also_on=back)
                await self._apply(record)
        except RefusedError as error:
            self._pauses.refused(Step.CATCH_UP)
            await tell_once(self._context, f"{NOT_EVERYWHERE}: {error}")

    async def remove_at_end(self) -> None:
        """All has arrived: a throttle that may not be removed now is no reason to call that
        failed."""
        try:
            await self.remove()
        except RefusedError as error:
            words = f"the throttle is still set, and its removal is tried again: {error}"
            await self._context.emit(EventKind.NOTE, words)

    async def remove(self, *, except_on: Collection[int] = ()) -> None:
        """Remove what this operation set, if anything, but on these brokers; may be repeated, and
        must be as long as a broker that may have it is down: that one stays recorded."""
        record = self._recorded
        if record is None:
            return
        await self._context.hold()
        left = await self._throttling.remove(record, except_on=except_on)
        if left is None:
            await self._context.emit(EventKind.THROTTLE_REMOVED, "throttle removed")
        elif left != record:
            down = ", ".join(map(str, left.brokers))
            message = f"throttle removed; on brokers that are down it goes when they return: {down}"
            await self._context.emit(EventKind.THROTTLE_RECORDED, message, **left.document())
        elif not (record.is_left_behind or self._context.state().is_finished):
            message = (
                "brokers still show the throttle; the executor removes it again until it is gone"
            )
            await self._context.emit(EventKind.NOTE, message)

    @property
    def _asked(self) -> Throttle:
        """The last wish of an operator, else the command's."""
        return self._context.flags().throttle or self._command.throttle

    async def _try_change_to(self, rate: int | None, why: str, step: Step) -> bool:
        """False where the cluster refuses it: said, and the rate of before stays."""
        before = self._recorded
        try:
            await self._change_to(rate, why)
        except RefusedError as error:
            self._pauses.refused(step)
            await self._stay_at(before, error)
            return False
        return True

    async def _stay_at(self, before: ThrottleRecord | None, error: RefusedError) -> None:
        """Some brokers may have taken what another refused; catching up looks again at each."""
        record, recorded = self._recorded or before, EventKind.THROTTLE_RECORDED
        is_set = before is not None and not before.is_left_behind
        kept = f"the throttle stays at {byte_rate_text(before.rate)}" if before and is_set else ""
        words = f"{kept or 'there is no throttle still'}: {error}"
        await tell_once(self._context, words)
        self._reached = frozenset()
        if record is None:
            return
        if before is None or not is_set:
            left = await self._throttling.take_off(record)
            if left is None and before is not None:
                left = before
            kind = EventKind.THROTTLE_REMOVED if left is None else recorded
            await self._context.emit(kind, words, **({} if left is None else left.document()))
            return
        former = record.former_rates
        if record.rate != before.rate:
            former = record.rates_before_next(None)
        record = replace(record, rate=before.rate, former_rates=former)
        await self._context.emit(recorded, words, **record.document())
        with contextlib.suppress(RefusedError):
            await self._apply(record)

    async def _change_to(self, rate: int | None, why: str) -> None:
        record = self._recorded
        if rate is None:
            await self.remove()
        elif record is None:
            if self._moves_data:
                await self._record(await self._planned(rate), why)
        else:
            # Who was away may come back with any of them.
            known = self._reached.union(record.unreached)
            most = FORMER_RATES_MAX if known.issuperset(record.brokers) else None
            former = record.rates_before_next(most)
            if record.is_left_behind:
                left, record = record.brokers, await self._planned(rate, ours=record.brokers)
                unreached = tuple(b for b in record.unreached if b not in left)
                record = replace(record, unreached=unreached)
            await self._record(replace(record, rate=rate, former_rates=former), why)

    @property
    def _recorded(self) -> ThrottleRecord | None:
        """The recorded throttle that has not been removed."""
        recorded = self._context.state().throttle
        return None if recorded is None else ThrottleRecord.parse(recorded)

    async def _record(self, record: ThrottleRecord, why: str) -> None:
        brokers = ", ".join(map(str, record.brokers))
        where = f"brokers {brokers}" if brokers else "no broker: others have throttled them all"
        message = f"{why} {byte_rate_text(record.rate)} on {where}"
        await self._context.emit(EventKind.THROTTLE_RECORDED, message, **record.document())
        await self._apply(record)

    async def _apply(self, record: ThrottleRecord) -> None:
        await self._context.hold()
        reaching = await self._throttling.reaching(record)
        if reaching != record:
            await self._context.emit(EventKind.THROTTLE_RECORDED, **reaching.document())
        record = reaching.of_topics({key.topic for key in self._wave or ()})
        wanted = record.to_list(self._at_leaders, self._at_followers)
        reached, others = await self._throttling.apply(record, wanted)
        self._reached = frozenset(reached)
        recorded = self._recorded
        if others and recorded is not None:
            await _leave(self._context, recorded, others)


def _adaptive(
    command: ReassignCommand, wanted: Throttle, rate: int | None, floor: int
) -> AdaptiveThrottle | FixedThrottle | None:
    """Rule that changes the rate while it runs; null: there is none."""
    if rate is not None and wanted == THROTTLE_AUTO:
        return AdaptiveThrottle(rate=rate, floor=floor)
    if rate is not None and command.yields.mode is YieldMode.SLOW:
        return FixedThrottle(rate=rate, floor=floor)
    return None


async def _leave(context: RunContext, record: ThrottleRecord, brokers: Collection[int]) -> None:
    """Rates of somebody else there stay, also when ours go."""
    await _tell_others(context, brokers)
    record = replace(record, brokers=tuple(b for b in record.brokers if b not in brokers))
    await context.emit(EventKind.THROTTLE_RECORDED, **record.document())


async def _planned(
    throttling: ClusterThrottle,
    context: RunContext,
    changes: tuple[PartitionChange, ...],
    rate: int,
    ours: Collection[int] = (),
) -> ThrottleRecord:
    """The throttle to set, here and on brokers that may still have a rate of ours; tells which
    brokers are left out."""
    record = await throttling.plan(changes, rate)
    brokers = {*record.brokers, *ours}
    left_out = brokers_between(changes) - brokers
    if left_out:
        await _tell_others(context, left_out)
    return replace(record, brokers=tuple(sorted(brokers)))


async def _tell_others(context: RunContext, brokers: Collection[int]) -> None:
    names = ", ".join(map(str, sorted(brokers)))
    words = f"brokers {names} have a throttle of somebody else, which stays as it is"
    await tell_once(context, words)


async def rates_of_others(
    admin: AdminPort, command: ReassignCommand, context: RunContext
) -> StandingRates:
    """Throttles on brokers that have none of ours."""
    ours = context.state().throttle
    except_on = () if ours is None else ThrottleRecord.parse(ours).brokers
    return await read_standing_rates(admin, command.changes, except_on=except_on)
