"""Replication throttles that no running move needs: left by another tool, or by a dead move."""

import asyncio
import contextlib
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.errors import KafkaPortError, UnreachableError
from control.kafka.ports import (
    AdminPort,
    ConfigEntry,
    ConfigResource,
    ConfigScope,
    OngoingReassignment,
)
from control.model.ids import TopicPartition
from control.model.units import byte_rate_text, counted
from control.model.watched_cluster import Site
from control.move.state import OperationState
from control.move.throttle import (
    ALL_REPLICAS,
    RATES,
    REPLICA_LISTS,
    ThrottleRecord,
    listed_entries,
)

ENTRIES_MAX: Final = 3
"""Of a list of replicas so many are named."""
LISTS_SHARE: Final = 0.01
"""Reading the lists of all topics takes this share of the time at most …"""
LISTS_AGAIN_S: Final = 600.0
"""… but they are read again after so long."""
RATES_WITHIN_S: Final = 10.0
"""A broker that does not tell its rates in time holds up no other."""
TOPICS_MAX: Final = 500
"""So many topics that have lists are read in each round; more by turns."""

EVERY_BROKER: Final = ConfigResource(scope=ConfigScope.BROKER, name="")
"""Has the rates of brokers that have none of their own (``--entity-default``)."""
_SOURCE_EVERY_BROKER: Final = 3

_Shown = dict[ConfigResource, dict[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetThrottle:
    """One config that throttles replication."""

    resource: ConfigResource
    config: str
    value: str
    left: str | None = None
    """What stays of a list once what nobody needs is gone; null: nothing."""

    @property
    def name(self) -> str:
        """``broker 101 leader.replication.throttled.rate``."""
        if self.resource == EVERY_BROKER:
            return f"every broker {self.config}"
        return f"{self.resource.scope.name.lower()} {self.resource.name} {self.config}"

    @property
    def words(self) -> str:
        """The value as people read it."""
        if self.resource.scope is ConfigScope.BROKER:
            return byte_rate_text(float(self.value)) if self.value.isdigit() else self.value
        entries = self.value.split(",")
        more = f" and {len(entries) - ENTRIES_MAX:,} more" if len(entries) > ENTRIES_MAX else ""
        return f"{', '.join(entries[:ENTRIES_MAX])}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningMoves:
    """Throttles of a cluster that running moves need, whoever began them."""

    records: tuple[ThrottleRecord, ...] = ()
    """Of the operations that are known here, and that have not removed theirs yet."""
    brokers: frozenset[int] = frozenset()
    """Between which others copy."""
    partitions: frozenset[TopicPartition] = frozenset()
    """That others move."""

    @classmethod
    def of(
        cls,
        states: Iterable[OperationState],
        ongoing: Collection[OngoingReassignment],
        *,
        site: Site,
    ) -> "RunningMoves":
        """Moves of the operations known here, and of everything that is being reassigned."""
        return cls(
            records=tuple(
                ThrottleRecord.parse(state.throttle)
                for state in states
                if state.throttle is not None and state.site.is_same(site)
            ),
            brokers=frozenset(broker for move in ongoing for broker in move.replicas),
            partitions=frozenset(move.key for move in ongoing),
        )

    @property
    def words(self) -> str:
        """Why some throttles are left alone; empty: none is."""
        told = (
            [f"{counted(len(self.partitions), 'partition')} in flight"] if self.partitions else []
        )
        told += [counted(len(self.records), "reassignment") + " of the bus"] if self.records else []
        return f"throttles of what runs are left alone: {', '.join(told)}" if told else ""

    def needs_rate(self, resource: ConfigResource, value: str) -> bool:
        """Whether a rate of this broker, or of every broker, is theirs."""
        if resource == EVERY_BROKER:
            return bool(self.brokers)
        broker = int(resource.name)
        return broker in self.brokers or any(
            broker in it.brokers and value in it.own_values for it in self.records
        )

    def needed(self, topic: str, config: str, entries: Iterable[str]) -> list[str]:
        """Entries of a topic's list that are theirs."""
        ours = {e for it in self.records for e in it.entries.get(topic, {}).get(config, ())}
        theirs = {str(key.partition) for key in self.partitions if key.topic == topic}
        return [
            entry
            for entry in entries
            if entry in ours
            or entry.partition(":")[0] in theirs
            or (entry == ALL_REPLICAS and theirs)
        ]


class _SilentError(UnreachableError):
    def __init__(self, broker: str, within_s: float) -> None:
        super().__init__(
            f"broker {broker} does not tell its throttles",
            reason=f"it did not answer within {within_s:.0f} s",
            next_step="try again; `partiscope status` tells which brokers are alive",
        )


class LeftThrottles:
    """Finds the throttles that nothing which runs needs, round by round.

    Each round asks live brokers for their rates, and the topics for their lists that had some when
    last read. All topics are read as often as their number allows, by LISTS_SHARE.
    """

    def __init__(
        self,
        admin: AdminPort,
        *,
        rates_within_s: float = RATES_WITHIN_S,
        lists_within_s: float | None = None,
    ) -> None:
        """``lists_within_s``: what topics have is left out where they do not tell it in time."""
        self._admin = admin
        self._rates_within_s = rates_within_s
        self._lists_within_s = lists_within_s
        self._listed: _Shown = {}
        """Of topics that have some, as last read."""
        self._all_due_s = -math.inf
        self.silent: tuple[str, ...] = ()
        """Brokers that did not tell their rates."""

    async def read(self, running: RunningMoves) -> tuple[SetThrottle, ...]:
        """One round.

        :raises KafkaPortError: the cluster does not tell.
        """
        shown = await self._rates()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._lists_within_s):
                lists = await self._lists()
                shown |= sorted(lists.items(), key=lambda found: found[0].name)
        return tuple(_left(shown, running))

    async def _rates(self) -> _Shown:
        alive = (await self._admin.describe_cluster()).brokers
        brokers = [ConfigResource(scope=ConfigScope.BROKER, name=str(it.id)) for it in alive]
        silent: dict[str, KafkaPortError] = {}

        async def of_broker(broker: ConfigResource) -> _Shown:
            try:
                async with asyncio.timeout(self._rates_within_s):
                    return _set(await self._admin.describe_many_configs([broker], RATES))
            except TimeoutError:
                silent[broker.name] = _SilentError(broker.name, self._rates_within_s)
            except KafkaPortError as error:
                silent[broker.name] = error
            return {}

        told = await asyncio.gather(*map(of_broker, brokers))
        if silent and len(silent) == len(brokers):
            raise next(iter(silent.values()))
        self.silent = tuple(sorted(silent, key=int))
        rates: _Shown = {}
        for resource, configs in (found for some in told for found in some.items()):
            rates.setdefault(resource, {}).update(configs)
        return rates

    async def _lists(self) -> _Shown:
        begun_s = time.monotonic()
        if begun_s < self._all_due_s:
            asked = [*self._listed][:TOPICS_MAX]
            told = await self._admin.describe_many_configs(asked, REPLICA_LISTS)
            others = self._listed.keys() - set(asked)
            self._listed = {topic: self._listed[topic] for topic in others} | _set(told)
            return self._listed
        try:
            names = [topic.name for topic in await self._admin.topics()]
            topics = [ConfigResource(scope=ConfigScope.TOPIC, name=name) for name in names]
            self._listed = _set(await self._admin.describe_many_configs(topics, REPLICA_LISTS))
        finally:
            now_s = time.monotonic()
            self._all_due_s = now_s + min((now_s - begun_s) / LISTS_SHARE, LISTS_AGAIN_S)
        return self._listed


def _set(found: Mapping[ConfigResource, Iterable[ConfigEntry]]) -> _Shown:
    """The configs that somebody has set, by where they are set."""
    shown: _Shown = {}
    for resource, entries in found.items():
        for it in entries:
            if it.value and not it.is_default:
                is_broker = resource.scope is ConfigScope.BROKER
                is_every = is_broker and it.source == _SOURCE_EVERY_BROKER
                shown.setdefault(EVERY_BROKER if is_every else resource, {})[it.name] = it.value
    return shown


def _left(shown: _Shown, running: RunningMoves) -> Iterator[SetThrottle]:
    for resource, configs in shown.items():
        for config, value in configs.items():
            if resource.scope is ConfigScope.BROKER:
                if not running.needs_rate(resource, value):
                    yield SetThrottle(resource=resource, config=config, value=value)
                continue
            entries = listed_entries(configs, config)
            needed = running.needed(resource.name, config, entries)
            if len(needed) < len(entries):
                left = ",".join(needed) or None
                yield SetThrottle(resource=resource, config=config, value=value, left=left)
