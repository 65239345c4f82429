"""The collector's turns.

    turn: metadata when due -> groups of every broker (awaited together, but not for long)
          -> end offsets of every broker -> each broker's round, as soon as its own are there

Committed offsets are read before end offsets, so that lag cannot come out negative. A broker
that has not finished its last turn is left out of this one; one that failed is tried again after
a back-off, and its rows grow old meanwhile. Log directories, log starts, configs and rights are
read beside the turns, less often the more there is to read.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from broker.metrics.round_times import RoundTimes
from broker.metrics_schema import JOB_ROWS_PER_S, Envelope, Row, cut_round, encode_part
from control.collector.ages import LogAges
from control.collector.background_reads import Beside, interval_ms
from control.collector.image import ClusterImage
from control.collector.load import interval_ms_for
from control.collector.member import Action, Due, Member, back_off_s, wait_together
from control.collector.overview import ClusterOverview
from control.collector.report_writer import (
    REPORT_INTERVAL_MS,
    MissingRight,
    WatchReport,
)
from control.collector.rights import Gap, Gaps
from control.collector.rows import orphan_rows, round_rows
from control.collector.source import BrokerSource, wall_ms
from control.collector.traffic import Traffic
from control.kafka.acl import Grants, Lacking, common_bits, missing_rights, words_of
from control.kafka.connection.settings import KafkaSettings
from control.kafka.connection.wire import KafkaWire
from control.kafka.errors import KafkaPortError

GROUPS_WAIT_S: Final = 0.5
"""How long a turn waits for the slowest coordinator before it reads end offsets."""
METADATA_WAIT_S: Final = 1.0
"""… and for metadata, where older one is known: whoever is asked for it may hang."""
METADATA_ROWS_PER_S: Final = 2_000
METADATA_INTERVAL_MS_MAX: Final = 10_000
BUSY_SHARE_MAX: Final = 0.5
"""Of one core that the collector itself may take: its turns grow further apart above it."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectorSettings:
    """Names the cluster to watch, where samples go, and how much may be asked."""

    watched: KafkaSettings
    bus: KafkaSettings
    interval_ms: int = 1_000
    broker_rows_per_s: int = 3_000
    broker_times_per_s: int = 50
    """Places in logs that one broker is asked the time of, for lag older than the collector."""
    needed_rights: Mapping[str, Lacking] = field(default_factory=dict)
    """By operation that screens offer: those that the principal lacks are told."""


class Sink(Protocol):
    """Where rounds and reports go: ``control.collector.delivery.Delivery``."""

    async def write(self, broker: int, values: Sequence[bytes], *, round_ms: int) -> None:
        """The records of one round, in order."""

    async def write_report(self, report: WatchReport) -> None:
        """The collector's own word."""


class Collector:
    """Samples one cluster until cancelled; ``run`` raises only for what cannot pass."""

    def __init__(self, settings: CollectorSettings, delivery: Sink, say: Say) -> None:
        self.settings = settings
        self.image = ClusterImage()
        self.gaps = Gaps()
        self.rounds = 0
        self.is_complete = asyncio.Event()
        """Every live broker was sampled once."""
        self.interval_ms = settings.interval_ms
        self._delivery = delivery
        self._say = say
        self._grants = Grants.to(settings.watched)
        watched = replace(settings.watched, attempts_max=1)
        self._wire = KafkaWire(watched)
        self._overview = ClusterOverview(self._wire, self.image, self.gaps)
        self._traffic = Traffic()
        self._ages = LogAges(self.image, broker_times_per_s=settings.broker_times_per_s)
        self._members: dict[int, Member] = {}
        self._metadata = Due()
        self._metadata_at_ms = 0
        self._listed_ms = 0
        """When the list of brokers was read that a round has told last."""
        self._beside = Beside(self._overview, self.image, self._traffic, self._ages)
        self._reports = Due()
        self._failure: str | None = None
        self._failures = 0
        self._retry_at_s = 0.0
        self._busy = 0.0
        self._turn_ms = 0

    async def run(self) -> None:
        """Turn after turn."""
        times = RoundTimes()
        try:
            while True:
                begun_s, cpu_s = time.monotonic(), time.process_time()
                await self.turn()
                took_ms = round((time.monotonic() - begun_s) * 1_000)
                self._adapt(time.process_time() - cpu_s)
                wait_ms = times.wait_ms(
                    now_ms=wall_ms(), took_ms=took_ms, interval_ms=self.interval_ms
                )
                await asyncio.sleep(wait_ms / 1_000)
        finally:
            await self.close()

    async def close(self) -> None:
        """End what is under way, and the connections."""
        tasks = self._beside.tasks
        tasks += [it.task for it in (self._reports, self._metadata) if it.task is not None]
        tasks += [task for member in self._members.values() for task in member.tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._wire.close()

    async def turn(self) -> None:
        """One pass over the cluster. Brokers that are slow finish after it has returned."""
        now_ms = wall_ms()
        is_late = self.image.read_ms > max(self._listed_ms, self._turn_ms)
        # A list that came after the last turn belongs to rounds that began no later than it.
        self._turn_ms = self.image.read_ms if is_late else now_ms
        is_stale = any(member.source.is_stale for member in self._members.values())
        is_due = is_stale or not self.image.brokers or now_ms >= self._metadata_at_ms
        if is_due and time.monotonic() >= self._retry_at_s:
            self._metadata.maybe_start(0, partial(self._refresh, now_ms))
            wait_s = METADATA_WAIT_S if self.image.brokers else None
            await wait_together([self._metadata], wait_s)
        self._reports.maybe_start(REPORT_INTERVAL_MS, self._report)
        if not self.image.brokers:
            return
        self._match_members()
        ready = [member for member in self._members.values() if member.is_ready]
        # Who is still busy with an earlier turn is not waited for again.
        asked = [
            member.groups
            for member in ready
            if member.groups.maybe_start(0, self._guarded(member, member.source.read_groups))
        ]
        await wait_together(asked, GROUPS_WAIT_S)
        asked = [
            member.ends
            for member in ready
            if member.ends.maybe_start(0, self._guarded(member, partial(self._round, member)))
        ]
        await wait_together(asked, self.interval_ms / 1000)
        self._beside.start(ready)

    def report(self) -> WatchReport:
        """How it goes."""
        denied = self._denied_operations()
        commands = self._grants.commands
        return WatchReport(
            cluster=self.image.cluster_id,
            bootstrap=self.settings.watched.bootstrap,
            at_ms=wall_ms(),
            interval_ms=self.interval_ms,
            is_partial=self.gaps.is_partial,
            brokers=tuple(member.report() for member in self._members.values()),
            missing_rights=tuple(
                MissingRight(
                    api=gap.gap.value.api,
                    operation=gap.gap.value.operation.name,
                    resource=gap.gap.value.resource,
                    text=gap.text,
                    acl=" && ".join(commands(gap.gap.value.rights)),
                    since_ms=gap.since_ms,
                )
                for gap in self.gaps.all()
            ),
            denied_operations={name: words_of(rights) for name, rights in denied.items()},
            grants={name: " && ".join(commands(rights)) for name, rights in denied.items()},
            grant_all=commands(*denied.values()),
            failure=self._failure,
        )

    def _denied_operations(self) -> dict[str, Lacking]:
        groups = common_bits(member.source.groups.bits for member in self._members.values())
        overview = self._overview
        return missing_rights(
            {"cluster": overview.cluster_bits, "topic": overview.topic_bits, "group": groups},
            self.settings.needed_rights,
        )

    async def _refresh(self, now_ms: int) -> None:
        try:
            await self._overview.read_metadata()
        except KafkaPortError as error:
            if self._failure is None:
                self._say(f"{error}; trying again")
            self._failure = str(error)
            self._failures += 1
            self._retry_at_s = time.monotonic() + back_off_s(self._failures)
            return
        if self._failure is not None:
            self._say(f"{self.settings.watched.bootstrap} answers again")
        self._failure, self._failures = None, 0
        self._metadata_at_ms = now_ms + interval_ms(
            len(self.image.partitions), METADATA_ROWS_PER_S, most=METADATA_INTERVAL_MS_MAX
        )
        for member in self._members.values():
            member.source.is_stale = False

    def _match_members(self) -> None:
        """One member per live broker that has an address for us; those that left, or are fenced,
        are not asked."""
        known = self.image.brokers.values()
        live = {broker.id for broker in known if broker.has_address and not broker.is_fenced}
        for broker in self._members.keys() - live:
            for task in self._members.pop(broker).tasks:
                task.cancel()
        for broker in live - self._members.keys():
            source = BrokerSource(broker, self._wire, self.image, self.gaps)
            self._members[broker] = Member(source)
        self._traffic.forget(self.image.partitions)
        self._ages.times.forget(self.image.partitions)

    async def _round(self, member: Member) -> None:
        """End offsets of one broker, then its rows into the bus."""
        source = member.source
        if any(state.log_start_offset is None for state in self.image.led_by(source.broker)):
            await source.read_starts()
        await source.read_ends()
        for state in self.image.led_by(source.broker):
            self._traffic.advance(state)
            self._ages.times.see(state)
        self.gaps.judge(
            Gap.GROUPS,
            [g for m in self._members.values() for g in m.source.groups.denied()],
            "groups",
        )
        await self._emit(member)
        member.worked()

    async def _emit(self, member: Member) -> None:
        """Rows in slices, so that the other brokers' answers are not held up."""
        broker = member.source.broker
        round_ms = max(self._turn_ms, member.round_ms + 1)
        if self.image.read_ms >= round_ms:
            self._listed_ms = self.image.read_ms
        rows = list(round_rows(self.image, broker, member.source.groups, round_ms=round_ms))
        envelope = Envelope(
            cluster=self.image.cluster_id,
            broker=broker,
            broker_epoch=-1,
            round_ms=round_ms,
            interval_ms=self.interval_ms,
        )
        values = []
        for part, some in cut_round(envelope, rows, self._orphans(broker)):
            values.append(encode_part(part, some))
            await asyncio.sleep(0)
        try:
            await self._delivery.write(broker, values, round_ms=round_ms)
        except KafkaPortError as error:
            self._say(f"a round of broker {broker} did not reach the bus: {error}")
            return
        member.round_ms = round_ms
        self.rounds += 1
        if all(other.round_ms for other in self._members.values()):
            self.is_complete.set()

    def _orphans(self, broker: int) -> Sequence[Row] | None:
        """Rows of partitions that no answering broker holds, told in the round of one broker."""
        answering = frozenset(
            it.source.broker for it in self._members.values() if not it.is_failing
        )
        if broker != min(answering, default=broker):
            return None
        return orphan_rows(self.image, answering | {broker})

    async def _report(self) -> None:
        if self.image.cluster_id:
            try:
                await self._delivery.write_report(self.report())
            except KafkaPortError as error:
                self._say(f"the bus did not take a report: {error}")

    def _guarded(self, member: Member, action: Action) -> Action:
        async def guarded() -> None:
            try:
                await action()
            except KafkaPortError as error:
                if not member.is_failing:
                    self._say(f"broker {member.source.broker}: {error}; trying again")
                member.failed(error)
                # Who leads instead is not in the image yet.
                member.source.is_stale = True

        return guarded

    def _adapt(self, busy_s: float) -> None:
        """The distance of turns: what brokers may be asked, our own CPU, what the job can take."""
        self._busy = busy_s if self._busy == 0 else 0.7 * self._busy + 0.3 * busy_s
        members = self._members.values()
        asked = [member.source.commits_asked + self._led(member) for member in members]
        told = [member.source.groups.commits + self._held(member) for member in members]
        base_ms, most = self.settings.interval_ms, self.settings.broker_rows_per_s
        self.interval_ms = max(
            interval_ms_for(base_ms, rows=max(asked, default=0), rows_per_s_max=most),
            interval_ms_for(base_ms, rows=sum(told), rows_per_s_max=JOB_ROWS_PER_S),
            round(self._busy / BUSY_SHARE_MAX * 1000),
        )

    def _led(self, member: Member) -> int:
        return len(self.image.led_by(member.source.broker))

    def _held(self, member: Member) -> int:
        return len(self.image.replicas_of(member.source.broker))
