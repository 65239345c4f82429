"""Replication throttles that no running move needs: left by another tool, or by a dead move."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from control.kafka.ports import AdminPort, ConfigResource, ConfigScope, OngoingReassignment
from control.model.ids import TopicPartition
from control.model.units import byte_rate_text, counted
from control.model.watched_cluster import Site
from control.operations.bus.state import OperationState
from control.operations.executor.throttles.throttle_record import (
    ALL_REPLICAS,
    RATES,
    REPLICA_LISTS,
    ThrottleRecord,
    listed_entries,
)

ENTRIES_MAX: Final = 3
"""Of a list of replicas so many are named."""


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

    def needs_rate(self, broker: int, value: str) -> bool:
        """Whether a rate of this broker is theirs."""
        if broker in self.brokers:
            return True
        return any(broker in it.brokers and value in it.own_values for it in self.records)

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


async def read_left_throttles(admin: AdminPort, running: RunningMoves) -> tuple[SetThrottle, ...]:
    """The throttles of live brokers and of all topics that nothing which runs needs.

    :raises KafkaPortError: the cluster does not tell.
    """
    alive = [str(broker.id) for broker in (await admin.describe_cluster()).brokers]
    topics = [topic.name for topic in await admin.topics()]
    brokers = [ConfigResource(scope=ConfigScope.BROKER, name=name) for name in alive]
    named = [ConfigResource(scope=ConfigScope.TOPIC, name=name) for name in topics]
    found = {
        **await admin.describe_many_configs(brokers, RATES),
        **await admin.describe_many_configs(named, REPLICA_LISTS),
    }
    shown = {
        resource: {it.name: it.value for it in entries if it.value and not it.is_default}
        for resource, entries in found.items()
    }
    return tuple(_left(shown, running))


def _left(
    shown: Mapping[ConfigResource, Mapping[str, str]], running: RunningMoves
) -> Iterator[SetThrottle]:
    for resource, configs in shown.items():
        for config, value in configs.items():
            if resource.scope is ConfigScope.BROKER:
                if not running.needs_rate(int(resource.name), value):
                    yield SetThrottle(resource=resource, config=config, value=value)
                continue
            entries = listed_entries(configs, config)
            needed = running.needed(resource.name, config, entries)
            if len(needed) < len(entries):
                left = ",".join(needed) or None
                yield SetThrottle(resource=resource, config=config, value=value, left=left)
