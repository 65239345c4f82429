"""Reads from the cluster how far a reassignment is: where partitions are, bytes copied."""

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from control.kafka.errors import KafkaPortError
from control.kafka.ports import AdminPort
from control.model.ids import TopicPartition
from control.move.commands import TopicIds
from control.move.events import MoveProgress, StalledMove
from control.operations.executor.catching_up import CatchUpWatch
from control.operations.executor.debounce import Debounce
from control.operations.executor.interference import CordonWatch, PartitionWatch
from control.operations.executor.stalls import StallWatch
from control.operations.executor.throttles.adaptive_throttle import Reading
from control.operations.executor.timing.copy_progress import copy_of, copying_s, missing_bytes
from control.operations.executor.timing.eta import ArrivalWindow
from control.operations.executor.timing.forecast import Finishing, Forecast
from control.operations.reassignment.existing_throttles import StandingRates, lower_rates
from control.operations.reassignment.placements import Placements, read_placements
from control.operations.reassignment.topic_ids import created_anew, places_of
from planner.proposal import PartitionChange

STANDING_AGAIN_S: Final = 30.0
IN_FLIGHT_NAMES_MAX: Final = 50
STALLED_NAMES_MAX: Final = 20
COPIES_MAX: Final = 20
"""Of so many at a time figures are told one by one: each event carries them."""


class MoveWatch:
    """Follows the partitions of one operation."""

    def __init__(
        self,
        admin: AdminPort,
        changes: tuple[PartitionChange, ...],
        *,
        waves: int,
        forecast: Forecast,
    ) -> None:
        self._admin = admin
        self._changes = changes
        self.change_of = {change.key: change for change in changes}
        self._waves = waves
        self._sizes = {change.key: change.size_bytes for change in changes}
        self._standing: StandingRates = {}
        self._standing_s = time.monotonic()
        self._has_stalled = False
        self._copied: dict[tuple[TopicPartition, int], int] = {}
        self.places = Placements()
        self._alive: frozenset[int] = frozenset()
        self._asked: set[TopicPartition] = set()
        self.others = PartitionWatch()
        self.cordons = CordonWatch()
        self.emptied: tuple[int, ...] = ()
        """Brokers that hold nothing once the operation is done."""
        self._absent = Debounce()
        """Without a trace: deleted."""
        self._gone: set[TopicPartition] = set()
        self.topic_ids: TopicIds = {}
        """Of the topics that are to be moved."""
        self.created_anew: frozenset[str] = frozenset()
        """Those that are other topics by now."""
        self._stalls = StallWatch()
        self.catching_up = CatchUpWatch()
        self._arrivals = ArrivalWindow()
        self._answered_in_s = 0.0
        self._forecast = forecast

    def take_sizes(self, sizes: Mapping[TopicPartition, int]) -> None:
        """Bytes per partition as they are now, newer than the plan's."""
        self._sizes |= {key: sizes[key] for key in self._sizes if key in sizes}

    def take_standing(self, standing: StandingRates) -> None:
        """Throttles that somebody else has set on brokers of the move, just read."""
        self._standing, self._standing_s = standing, time.monotonic()

    @property
    def wants_standing(self) -> bool:
        """Whether something stands still, and who throttles it may have changed since."""
        return self._has_stalled and time.monotonic() - self._standing_s >= STANDING_AGAIN_S

    async def refresh(self) -> None:
        """Read placements, running reassignments and copied bytes.

        :raises KafkaPortError: the cluster does not answer.
        """
        cluster = await self._admin.describe_cluster()
        self._alive = frozenset(broker.id for broker in cluster.brokers)
        places = await read_placements(self._admin, {c.topic for c in self._changes})
        self.created_anew |= created_anew(self.topic_ids, places.placed.values())
        self.places = places_of(self.topic_ids, places)
        await self._read_copied()
        away = [change for change in self._changes if not self.places.is_there(change)]
        self.catching_up.read(
            missing_bytes(away, self._sizes, self._copied),
            moving={change.key for change in away if self.places.is_moving(change)},
            leaders=self.places.leaders(),
            at_s=time.monotonic(),
        )
        self._note_missing(time.monotonic())

    async def look_for_cordons(self) -> None:
        """On brokers that replicas are still to come to: nothing moves there yet that would tell.
        What does not answer changes nothing."""
        left = (change for change in self._changes if not self.places.is_there(change))
        receiving = {broker for change in left for broker in change.adding}
        with suppress(KafkaPortError):
            log_dirs = await self._admin.log_dirs(partitions=())
            self.cordons.read([it for it in log_dirs if it.broker in receiving], self.emptied)

    def _note_missing(self, now_s: float) -> None:
        known = self.places.placed.keys() | self.places.moving.keys()
        self._absent.read(self.change_of.keys() - known, now_s)
        self._gone.update(self._absent.found())
        self._gone.update(c.key for c in self._changes if c.topic in self.created_anew)
        asked = [self.change_of[key] for key in (self._asked & known) - self._gone]
        self.others.read(asked, self.places, now_s)

    def note_gone(self, keys: Iterable[TopicPartition]) -> None:
        """Notes partitions that the controller does not know; unseen ones of their topics are gone
        too."""
        gone = set(keys)
        topics = {key.topic for key in gone}
        self._gone |= gone | {key for key in self._absent.seen if key.topic in topics}

    @property
    def gone(self) -> frozenset[TopicPartition]:
        """Partitions that do not exist any more: nothing will come of them."""
        return frozenset(self._gone)

    def note_submitted(self, keys: Iterable[TopicPartition]) -> None:
        """These were just asked to move."""
        self._asked.update(keys)

    def forget_rates(self) -> None:
        """Begins to measure rates anew: something has changed the course."""
        self._arrivals = ArrivalWindow()
        self._forecast.begin_anew()

    def left(self, wave: Iterable[PartitionChange]) -> list[PartitionChange]:
        """Changes of a wave that are not there yet, and can be."""
        return [c for c in wave if c.key not in self._gone and not self.places.is_there(c)]

    def as_now(self, changes: Iterable[PartitionChange]) -> list[PartitionChange]:
        """The same changes from where their partitions are now, with the newest known bytes."""
        now = []
        for change in changes:
            placed = self.places.placed.get(change.key)
            before = change.before if placed is None else placed.replicas
            now.append(replace(change, before=before, size_bytes=self._sizes[change.key]))
        return now

    @property
    def alive(self) -> frozenset[int]:
        """Brokers that are up."""
        return self._alive

    @property
    def partitions_done(self) -> int:
        """Partitions that are there."""
        return sum(self.places.is_there(c) for c in self._changes if c.key not in self._gone)

    def reading(self, now_s: float) -> Reading:
        """Reading for the adaptive throttle; `now_s` is a monotonic clock in seconds."""
        received: dict[int, int] = {}
        for (_, broker), size in self._copied.items():
            received[broker] = received.get(broker, 0) + size
        self._arrivals.add(now_s, received)
        out_of_sync = sum(
            not self._alive.intersection(placed.replicas).issubset(placed.isr)
            for key, placed in self.places.placed.items()
            if key not in self.places.moving
        )
        return Reading(
            at_s=now_s,
            answered_in_s=self._answered_in_s,
            busiest_bytes_per_s=self._arrivals.busiest_bytes_per_s(),
            out_of_sync=out_of_sync,
        )

    def progress(
        self,
        *,
        wave: int,
        now_s: float,
        throttle: int | None = None,
        spread_s: float = 0.0,
        after_s: float = 0.0,
    ) -> MoveProgress:
        """Bytes, rate and time left; `now_s` is a monotonic clock in seconds. `spread_s`: time
        until the last partition is submitted, if nothing else takes longer. `after_s`: time for
        what follows the last copy."""
        changes = [change for change in self._changes if change.key not in self._gone]
        total = sum(self._sizes[c.key] * len(c.adding) for c in changes)
        done = sum(map(self._bytes_done, changes))
        away = [change for change in changes if not self.places.is_there(change)]
        lower = lower_rates(self._standing, away, throttle)
        missing = missing_bytes(away, self._sizes, self._copied)
        finishing = Finishing(
            done=self.partitions_done,
            total=len(changes),
            copying_s=copying_s(missing, throttle, lower) if throttle else None,
            spread_s=spread_s,
        )
        moving = [change for change in self._changes if self.places.is_moving(change)]
        placed = self.places.placed
        copied = [
            copy_of(
                change,
                size=self._sizes[change.key],
                copied=self._copied,
                leader=placed[change.key].leader if change.key in placed else None,
            )
            for change in moving
        ]
        copies = self._forecast.tell_copies(copied, at_s=now_s, shown_max=COPIES_MAX)
        eta = self._forecast.tell_left(done, total, at_s=now_s, finishing=finishing, moving=copies)
        rate = self._forecast.rate.rate_bytes_per_s()
        stalled = self._stalled(now_s, throttle)
        return MoveProgress(
            bytes_done=done,
            bytes_total=total,
            partitions_done=finishing.done,
            partitions_total=finishing.total,
            wave=wave,
            waves=self._waves,
            rate_bytes_per_s=None if rate is None else round(rate, 1),
            eta_s_low=None if eta is None else round(eta[0] + after_s, 2),
            eta_s_high=None if eta is None else round(eta[1] + after_s, 2),
            in_flight=tuple(str(change.key) for change in moving[:IN_FLIGHT_NAMES_MAX]),
            in_flight_more=max(len(moving) - IN_FLIGHT_NAMES_MAX, 0),
            stalled=stalled[:STALLED_NAMES_MAX],
            stalled_more=max(len(stalled) - STALLED_NAMES_MAX, 0),
            moving=copies,
            spread_s=float(round(spread_s)),
        )

    def _bytes_done(self, change: PartitionChange) -> int:
        size = self._sizes[change.key]
        if self.places.is_there(change):
            return size * len(change.adding)
        return sum(min(size, self._copied.get((change.key, b), 0)) for b in change.adding)

    def _stalled(self, now_s: float, throttle: int | None) -> tuple[StalledMove, ...]:
        stalled = []
        for change in self._changes:
            if not self.places.is_moving(change):
                self._stalls.forget(change.key)
                continue
            copied = sum(self._copied.get((change.key, b), 0) for b in change.adding)
            size = self._sizes[change.key] * len(change.adding)
            still = self._stalls.look(change.key, size=size, copied=copied, now_s=now_s)
            reason = self._obstacle(change)
            if reason is None and still is not None:
                led = _as_led(change, self.places)
                theirs = lower_rates(self._standing, [led], throttle)
                reason = still.explain(throttle, theirs=theirs, lagging=self._lagging(change))
            if reason is not None:
                stalled.append(
                    StalledMove(topic=change.topic, partition=change.partition, reason=reason)
                )
        self._has_stalled = bool(stalled)
        return tuple(stalled)

    def _obstacle(self, change: PartitionChange) -> str | None:
        """An obvious obstacle: a move ends once its whole target is in sync, replicas that stay as
        well (PartitionReassignmentReplicas)."""
        placed = self.places.placed.get(change.key)
        in_sync = () if placed is None or len(placed.isr) < 2 else placed.isr
        down = [b for b in change.after if b not in self._alive and b not in in_sync]
        if down:
            stays = down[0] in change.before
            waits = "; the move ends once its replica there is in sync again" if stays else ""
            return f"broker {down[0]} is down{waits}"
        if placed is not None and placed.leader < 0 and not placed.is_leader_hidden:
            return "the partition has no leader"
        return None

    def _lagging(self, change: PartitionChange) -> list[int]:
        """Brokers that keep a replica which is not in sync."""
        placed = self.places.placed.get(change.key)
        stay = [broker for broker in change.after if broker in change.before]
        return [] if placed is None else [b for b in stay if b not in placed.isr]

    async def _read_copied(self) -> None:
        """Bytes on the brokers that receive and on the leaders that send; what cannot be read
        stays as it was."""
        moving = [change for change in self._changes if self.places.is_moving(change)]
        receiving = {broker for change in moving for broker in change.adding}
        sending = {self.places.placed[c.key].leader for c in moving if c.key in self.places.placed}
        brokers = (receiving | sending | set(self.emptied)) & self._alive
        if not brokers:
            return
        started_s = time.monotonic()
        try:
            keys = [change.key for change in moving]
            log_dirs = await self._admin.log_dirs(brokers, partitions=keys)
        except KafkaPortError:
            return
        self._answered_in_s = time.monotonic() - started_s
        self.cordons.read(log_dirs, self.emptied)
        adding = {(change.key, broker) for change in moving for broker in change.adding}
        for log_dir in log_dirs:
            for replica in log_dir.replicas:
                key = TopicPartition(replica.topic, replica.partition)
                if (key, replica.broker) in adding:
                    self._copied[(key, replica.broker)] = replica.size_bytes
                elif key in self.places.placed and replica.broker == self.places.placed[key].leader:
                    self._sizes[key] = replica.size_bytes


def _as_led(change: PartitionChange, places: Placements) -> PartitionChange:
    """With the present leader, which sends, first of those before."""
    leader = places.leaders().get(change.key)
    if leader not in change.before:
        return change
    return replace(change, before=(leader, *(b for b in change.before if b != leader)))
