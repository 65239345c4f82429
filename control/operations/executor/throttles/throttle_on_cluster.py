"""Setting and removing throttles on a cluster, waiting each time until the brokers show it."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from kio.schema.errors import ErrorCode

from control.kafka.connection.retry import PASSING_CODES
from control.kafka.errors import KafkaPortError, RefusedError
from control.kafka.ports import AdminPort, ConfigResource, ConfigScope
from control.move.throttle import (
    LIST_BYTES_MAX,
    RATES,
    REPLICA_LISTS,
    Configs,
    Lists,
    ThrottleRecord,
    broker_changes_to_remove,
    broker_changes_to_set,
    plan_throttle,
    topic_changes,
)
from control.operations.executor.throttles.foreign_changes import (
    ForeignChange,
    foreign_changes,
)
from planner.proposal import PartitionChange

_SHOWN_WITHIN_S: Final = 20.0
_SHOWN_POLL_S: Final = 0.1
_SHOWN_SOON_S: Final = 1.0
UNKNOWN_MAX: Final = 3
"""So many brokers are waited for that do not answer; the others are asked later."""


class ClusterThrottle:
    """Applies throttle records to one cluster. Every step may be repeated after a crash."""

    def __init__(self, admin: AdminPort, hold: Callable[[], Awaitable[None]]) -> None:
        """``hold`` is called before each change; it raises where the operations are another's."""
        self._admin = admin
        self._hold = hold

    async def plan(self, changes: tuple[PartitionChange, ...], rate: int) -> ThrottleRecord:
        """The throttle to set, given the throttles of others."""
        brokers = {broker for change in changes for broker in (*change.before, *change.after)}
        alive = await self._alive()
        record = plan_throttle(
            changes,
            rate=rate,
            broker_configs=await self._broker_configs(brokers & alive),
            topic_configs=await self._topic_configs({change.topic for change in changes}),
        )
        return replace(record, unreached=tuple(b for b in record.brokers if b not in alive))

    async def reaching(self, record: ThrottleRecord) -> ThrottleRecord:
        """The record as it must be before it is applied: who is up by now may get a rate."""
        if not record.unreached:
            return record
        alive = await self._alive()
        return replace(record, unreached=tuple(b for b in record.unreached if b not in alive))

    async def apply(
        self, record: ThrottleRecord, wanted: Lists, *, anew_on: Collection[int] = ()
    ) -> tuple[set[int], set[int]]:
        """Set its rates on every live broker concerned but those that it has as unreached, list
        what is wanted of its entries, and wait until all shows; answers on which brokers, and on
        which it was not set since somebody else has set rates there. Those give way on
        `anew_on`."""
        record = await self._among_living(record)
        free: Mapping[int, Mapping[str, str | None]] = {}
        until_s = time.monotonic() + _SHOWN_WITHIN_S
        while time.monotonic() < until_s:
            now = await self._broker_configs(record.brokers)
            free = broker_changes_to_set(record, now, anew_on=anew_on)
            brokers = {
                broker: rates
                for broker, rates in free.items()
                if any(now[broker].get(name) != value for name, value in rates.items())
            }
            if not brokers:
                break
            await self._hold()
            await self._admin.alter_many_configs(_resources(brokers, {}))
            await asyncio.sleep(_SHOWN_POLL_S)
        await self.enlist(record, wanted)
        return set(free), set(record.brokers) - free.keys()

    async def enlist(self, record: ThrottleRecord, wanted: Lists) -> None:
        """Lists the wanted entries of a record, removes its others, and waits until that shows.

        :raises RefusedError: beside what others have there, a list is longer than Kafka takes.
        """
        until_s = time.monotonic() + _SHOWN_WITHIN_S
        while time.monotonic() < until_s:
            now = await self._topic_configs(record.entries)
            topics = topic_changes(record.of_topics(now).entries, wanted, now)
            if not topics:
                return
            _check_lengths(topics)
            await self._hold()
            with _unless_unknown():
                await self._admin.alter_many_configs(_resources({}, topics))
            await asyncio.sleep(_SHOWN_POLL_S)

    async def foreign_changes(
        self, record: ThrottleRecord, wanted: Lists, brokers: Collection[int]
    ) -> list[ForeignChange]:
        """Configs of a record, which was applied on these brokers, that another tool has changed;
        brokers that do not tell are left out."""

        async def rates_of(broker: int) -> dict[int, Configs]:
            with contextlib.suppress(KafkaPortError):
                return await self._broker_configs((broker,))
            return {}

        told = await asyncio.gather(*map(rates_of, sorted(brokers)))
        lists: dict[str, Configs] = {}
        with contextlib.suppress(KafkaPortError):
            lists = await self._topic_configs(wanted)
        rates = {id_: configs for some in told for id_, configs in some.items()}
        return foreign_changes(record, wanted, rates, lists)

    async def remove(
        self, record: ThrottleRecord, *, except_on: Collection[int] = ()
    ) -> ThrottleRecord | None:
        """Removes our throttle, and waits until that shows. Answers the part that must wait: of
        brokers that are down and may have our rate (only the broker itself changes its configs), of
        `except_on`, or all of it where brokers still show it."""
        whole, record = record, await self._among_living(record)
        record = replace(record, brokers=tuple(b for b in record.brokers if b not in except_on))
        if not await self._is_removed(record):
            return whole
        left = tuple(b for b in whole.brokers if b not in {*record.brokers, *whole.unreached})
        left = await self._of_the_cluster(left) if left else ()
        return replace(whole, brokers=left, entries={}, unreached=()) if left else None

    async def take_off(self, record: ThrottleRecord) -> ThrottleRecord | None:
        """Remove what some brokers took of a record that others refused, as far as they let us;
        answers what may be left, which is removed later."""
        try:
            await self.enlist(await self._among_living(record), {})
        except RefusedError:
            return record
        unknown: list[int] = []
        refusing: list[int] = []
        for broker in record.brokers:
            if len(unknown) >= UNKNOWN_MAX:
                unknown.append(broker)
                continue
            try:
                if await self.remove(replace(record, brokers=(broker,), entries={})) is not None:
                    unknown.append(broker)
            except RefusedError as error:
                (unknown if error.code in PASSING_CODES else refusing).append(broker)
        may_have = [*unknown, *await self._showing(record, refusing)]
        left = replace(record, brokers=tuple(sorted(may_have)), entries={}, unreached=())
        return left if may_have else None

    async def _showing(self, record: ThrottleRecord, brokers: Collection[int]) -> list[int]:
        """Brokers that still show a rate of ours, though a change would show by now."""
        if not brokers:
            return []
        await asyncio.sleep(_SHOWN_SOON_S)
        shown = await self._broker_configs(brokers)
        return [b for b, configs in shown.items() if record.own_values & set(configs.values())]

    async def _of_the_cluster(self, brokers: tuple[int, ...]) -> tuple[int, ...]:
        """Without those that the cluster has forgotten, where it tells."""
        alive, registered = await self._alive(), await self._admin.registered_brokers()
        if registered is None or not registered.issuperset(alive):
            return brokers
        return tuple(broker for broker in brokers if broker in registered)

    async def _is_removed(self, record: ThrottleRecord) -> bool:
        """Remove it until it no longer shows; False if it does to the last. However long the first
        pass takes, another one looks."""
        brokers = broker_changes_to_remove(record, await self._broker_configs(record.brokers))
        until_s: float | None = None
        while True:
            shown = await self._topic_configs(record.entries)
            topics = topic_changes(record.of_topics(shown).entries, {}, shown)
            if not topics and not brokers:
                return True
            if until_s is not None and time.monotonic() >= until_s:
                return False
            await self._hold()
            with _unless_unknown():
                await self._admin.alter_many_configs(_resources(brokers, topics))
            until_s = time.monotonic() + _SHOWN_WITHIN_S if until_s is None else until_s
            await asyncio.sleep(_SHOWN_POLL_S)
            now = await self._broker_configs(record.brokers)
            brokers = {
                broker: dict.fromkeys(RATES, None)
                for broker, configs in now.items()
                if any(configs.get(name) in record.own_values for name in RATES)
            }

    async def _among_living(self, record: ThrottleRecord) -> ThrottleRecord:
        """Without topics that were deleted and brokers that are down or were never reached."""
        able = await self._alive() - set(record.unreached)
        known = await self._admin.topics(record.entries, leaves_out_unknown=True)
        topics = {topic.name for topic in known}
        return replace(
            record,
            brokers=tuple(broker for broker in record.brokers if broker in able),
            entries={t: lists for t, lists in record.entries.items() if t in topics},
        )

    async def _alive(self) -> set[int]:
        return {broker.id for broker in (await self._admin.describe_cluster()).brokers}

    async def _broker_configs(self, brokers: Iterable[int]) -> dict[int, Configs]:
        found = await self._configs(ConfigScope.BROKER, map(str, sorted(brokers)), RATES)
        return {int(name): configs for name, configs in found.items()}

    async def _topic_configs(self, topics: Iterable[str]) -> dict[str, Configs]:
        """Replica lists of the topics that exist."""
        return await self._configs(ConfigScope.TOPIC, sorted(topics), REPLICA_LISTS)

    async def _configs(
        self, scope: ConfigScope, names: Iterable[str], wanted: tuple[str, ...]
    ) -> dict[str, Configs]:
        resources = [ConfigResource(scope=scope, name=name) for name in names]
        found = await self._admin.describe_many_configs(resources, wanted)
        return {
            resource.name: {e.name: e.value for e in entries if not e.is_default}
            for resource, entries in found.items()
        }


@contextlib.contextmanager
def _unless_unknown() -> Iterator[None]:
    """A topic may be deleted at any time: who looks again knows."""
    try:
        yield
    except RefusedError as error:
        if error.code is not ErrorCode.unknown_topic_or_partition:
            raise


def _check_lengths(topics: Mapping[str, Mapping[str, str | None]]) -> None:
    """Kafka closes the connection where a list is too long, and says nothing.

    :raises RefusedError: it is.
    """
    for topic, lists in topics.items():
        for name, value in lists.items():
            length = len(value or "")
            if length > LIST_BYTES_MAX:
                what = f"{name} of {topic}"
                why = f"{length:,} bytes, Kafka takes {LIST_BYTES_MAX:,}: make waves smaller"
                raise RefusedError(ErrorCode.invalid_config, what=what, message=why)


def _resources(
    brokers: Mapping[int, Mapping[str, str | None]], topics: Mapping[str, Mapping[str, str | None]]
) -> dict[ConfigResource, Mapping[str, str | None]]:
    resources: dict[ConfigResource, Mapping[str, str | None]] = {
        ConfigResource(scope=ConfigScope.BROKER, name=str(broker)): configs
        for broker, configs in brokers.items()
    }
    for topic, configs in topics.items():
        resources[ConfigResource(scope=ConfigScope.TOPIC, name=topic)] = configs
    return resources
