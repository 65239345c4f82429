"""Transactions that are open for long, as ``kafka-transactions.sh find-hanging`` finds them.

    round: every broker lists the transactions that it coordinates (ListTransactions)
           -> DescribeTransactions of the old ones -> ListOffsets of their partitions
    scan:  ListOffsets of every partition, high watermark and then last stable offset
           -> DescribeProducers where the latter is behind
           -> ListTransactions by producer id: of those that no coordinator lists …
           -> … DescribeProducers once more: whose transaction still begins there hangs

Kafka 3.0 serves these APIs, and filters by duration from 3.8 on. The high watermark is read first:
the last stable offset is behind it only where a transaction holds it up.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.kafka.errors import KafkaPortError, only, raise_if_refused
from control.kafka.ports import OffsetSpec
from control.model.ids import TopicPartition

OPEN_MS: Final = 300_000
"""A transaction open for longer is told: clients commit within seconds, Flink within minutes."""
STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")
ASKED_MAX: Final = 1_000
"""Transactions, or partitions, in one request."""
PRODUCERS_MAX: Final = 200
"""Partitions whose producers a scan reads: those with the most records that wait."""
ANSWERS_WITHIN_S: Final = 10.0
"""A broker that does not tell its transactions in time holds up no other."""
SCAN_SHARE: Final = 0.01
"""Scans of all partitions take this share of the time at most."""
SCAN_EVERY_S: Final = 60.0
PROBED_ID: Final = "partiscope-describes-transactions"
"""Of no transaction: brokers tell whether it may be described."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPartition:
    """A partition in which consumers with ``read_committed`` stand at the last stable offset."""

    key: TopicPartition
    offset: int
    """The last stable offset."""
    records: int
    """From there to the high watermark."""
    first_offset: int | None = None
    """Where the transaction begins, as far as the leader was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that has not ended, as coordinator and leaders tell it."""

    producer_id: int
    producer_epoch: int
    transactional_id: str | None
    """None: no coordinator lists it, so that none will end it."""
    since_ms: int | None
    """The start, or the newest record where nobody knows the start."""
    state: str = ""
    timeout_ms: int = 0
    partitions: int = 0
    held: Sequence[HeldPartition] = ()

    @property
    def label(self) -> str:
        """The transactional id, else the producer's."""
        return self.transactional_id or f"producer {self.producer_id}"

    @property
    def held_records(self) -> int:
        """Records that wait, in all partitions together."""
        return sum(it.records for it in self.held)


_Held = dict[TopicPartition, HeldPartition]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Writer:
    """A producer with an open transaction, as the leader of a partition knows it."""

    key: TopicPartition
    producer_id: int
    producer_epoch: int
    first_offset: int
    newest_ms: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Listed:
    """A transaction of a coordinator, and its partitions."""

    transaction: OpenTransaction
    keys: frozenset[TopicPartition]


class OpenTransactions:
    """Reads the transactions of a cluster that are open for longer than ``open_ms``."""

    def __init__(
        self,
        admin: KafkaAdmin,
        *,
        open_ms: int = OPEN_MS,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._admin = admin
        self._open_ms = open_ms
        self._now_ms = now_ms
        self._scan_due_s = -math.inf
        self._hanging: tuple[OpenTransaction, ...] = ()

    async def read(self) -> tuple[OpenTransaction, ...]:
        """One round, with a scan where one is due.

        :raises KafkaPortError: the cluster does not tell its partitions.
        """
        brokers = [it.id for it in (await self._admin.describe_cluster()).brokers]
        before_ms = self._now_ms() - self._open_ms
        told = await self._of_all(brokers, duration_filter=self._open_ms)
        found = [it for some in told for it in some or () if _is_old(it.transaction, before_ms)]
        keys = frozenset(key for it in found for key in it.keys)
        held = await self._held({key.topic for key in keys}, keys)
        begun_s = time.monotonic()
        if begun_s >= self._scan_due_s:
            try:
                self._hanging = tuple(await self._scan(brokers, before_ms))
            finally:
                now_s = time.monotonic()
                self._scan_due_s = now_s + max((now_s - begun_s) / SCAN_SHARE, SCAN_EVERY_S)
        return (*(_with_held(it, held) for it in found), *self._hanging)

    async def _scan(self, brokers: Sequence[int], before_ms: int) -> list[OpenTransaction]:
        """Old transactions that no coordinator lists; none while one of them does not answer."""
        held = await self._held()
        worst = sorted(held, key=lambda key: -held[key].records)[:PRODUCERS_MAX]
        old = [it for it in await self._writers(worst) if it.newest_ms <= before_ms]
        if not old:
            return []
        ids = tuple({it.producer_id for it in old})
        told = await self._of_all(brokers, producer_id_filters=ids)
        if None in told or not await self._sees_all():
            return []
        listed = {
            (it.transaction.producer_id, key)
            for some in told
            for it in some or ()
            for key in it.keys
        }
        unlisted = {it for it in old if (it.producer_id, it.key) not in listed}
        # One that has ended since is in its partition no more.
        return _hanging(
            unlisted.intersection(await self._writers({it.key for it in unlisted})), held
        )

    async def _sees_all(self) -> bool:
        """Whether transactional ids may be described, whatever their names: Kafka silently leaves
        out the others, and a transaction at work would pass for one that hangs."""
        asked = {"transactional_ids": (PROBED_ID,)}
        answer = await self._admin.wire.send(apis.DESCRIBE_TRANSACTIONS, asked)
        told = only(answer.message.transaction_states, what=f"transactional id {PROBED_ID}")
        return told.error_code is not ErrorCode.transactional_id_authorization_failed

    async def _of_all(self, brokers: Sequence[int], **filters: Any) -> list[list[_Listed] | None]:
        """Open transactions of each coordinator; None: it does not tell."""
        return await asyncio.gather(*(self._within(self._listed_by(it, filters)) for it in brokers))

    async def _within(self, asking: Awaitable[_T]) -> _T | None:
        """The answer of one broker; None: it does not answer, or has no such API."""
        try:
            async with asyncio.timeout(ANSWERS_WITHIN_S):
                return await asking
        except (TimeoutError, KafkaPortError):
            return None

    async def _listed_by(self, broker: int, filters: dict[str, Any]) -> list[_Listed]:
        wire = self._admin.wire
        fields = {"state_filters": STATES, "producer_id_filters": (), **filters}
        listed = (await wire.send(apis.LIST_TRANSACTIONS, fields, node_id=broker)).message
        raise_if_refused(listed.error_code, what=f"transactions of broker {broker}")
        found = list[_Listed]()
        for some in _chunks([it.transactional_id for it in listed.transaction_states]):
            asked = {"transactional_ids": some}
            answer = await wire.send(apis.DESCRIBE_TRANSACTIONS, asked, node_id=broker)
            found += (
                _Listed(_transaction_of(it), frozenset(_keys(it.topics)))
                for it in answer.message.transaction_states
                if it.error_code is ErrorCode.none and it.transaction_state in STATES
            )
        return found

    async def _held(
        self, topics: Collection[str] | None = None, keys: Collection[TopicPartition] | None = None
    ) -> _Held:
        """Partitions whose last stable offset is behind, of these or of all."""
        leaders = await self._leaders(topics, keys)
        told = await asyncio.gather(
            *(self._within(self._held_at(leader, led)) for leader, led in leaders.items())
        )
        return {key: it for some in told for key, it in (some or {}).items()}

    async def _leaders(
        self, names: Collection[str] | None, keys: Collection[TopicPartition] | None
    ) -> dict[int, list[TopicPartition]]:
        leaders: dict[int, list[TopicPartition]] = {}
        for topic in await self._admin.topics(names, leaves_out_unknown=True):
            for it in topic.partitions:
                if it.leader >= 0 and (keys is None or it.key in keys):
                    leaders.setdefault(it.leader, []).append(it.key)
        return leaders

    async def _held_at(self, leader: int, keys: Sequence[TopicPartition]) -> _Held:
        held: _Held = {}
        for some in _chunks(keys):
            ends = await self._ends(leader, some, is_committed=False)
            stable = await self._ends(leader, some, is_committed=True)
            for key in ends.keys() & stable.keys():
                if stable[key] < ends[key]:
                    waiting = ends[key] - stable[key]
                    held[key] = HeldPartition(key=key, offset=stable[key], records=waiting)
        return held

    async def _ends(
        self, leader: int, keys: Sequence[TopicPartition], *, is_committed: bool
    ) -> dict[TopicPartition, int]:
        """High watermarks, or last stable offsets, as far as the leader tells them."""
        at = {"current_leader_epoch": -1, "timestamp": int(OffsetSpec.LATEST)}
        topics = [
            {"name": topic, "partitions": tuple({"partition_index": it, **at} for it in indexes)}
            for topic, indexes in _by_topic(keys)
        ]
        fields = {"replica_id": -1, "isolation_level": int(is_committed), "topics": tuple(topics)}
        answer = await self._admin.wire.send(apis.LIST_OFFSETS, fields, node_id=leader)
        return {
            TopicPartition(topic.name, it.partition_index): it.offset
            for topic in answer.message.topics
            for it in topic.partitions
            if it.error_code is ErrorCode.none
        }

    async def _writers(self, keys: Collection[TopicPartition]) -> list[_Writer]:
        """Producers with an open transaction in these partitions, as far as leaders tell them."""
        leaders = await self._leaders({key.topic for key in keys}, keys)
        told = await asyncio.gather(
            *(self._within(self._writers_at(leader, led)) for leader, led in leaders.items())
        )
        return [it for some in told for it in some or ()]

    async def _writers_at(self, leader: int, keys: Sequence[TopicPartition]) -> list[_Writer]:
        topics = [{"name": name, "partition_indexes": ids} for name, ids in _by_topic(keys)]
        fields = {"topics": tuple(topics)}
        answer = await self._admin.wire.send(apis.DESCRIBE_PRODUCERS, fields, node_id=leader)
        return [
            _Writer(
                TopicPartition(topic.name, partition.partition_index),
                int(it.producer_id),
                int(it.producer_epoch),
                int(it.current_txn_start_offset),
                int(it.last_timestamp),
            )
            for topic in answer.message.topics
            for partition in topic.partitions
            for it in partition.active_producers
            if it.current_txn_start_offset >= 0
        ]


def _is_old(transaction: OpenTransaction, before_ms: int) -> bool:
    return transaction.since_ms is not None and transaction.since_ms <= before_ms


def _with_held(listed: _Listed, held: _Held) -> OpenTransaction:
    some = tuple(held[key] for key in sorted(listed.keys & held.keys()))
    return replace(listed.transaction, held=some)


def _hanging(writers: Collection[_Writer], held: _Held) -> list[OpenTransaction]:
    """One for each producer, with all partitions that it holds up."""
    by_producer: dict[tuple[int, int], list[_Writer]] = {}
    for writer in sorted(writers, key=lambda it: it.key):
        by_producer.setdefault((writer.producer_id, writer.producer_epoch), []).append(writer)
    return [
        OpenTransaction(
            producer_id=producer_id,
            producer_epoch=epoch,
            transactional_id=None,
            since_ms=max(it.newest_ms for it in some) if some[0].newest_ms >= 0 else None,
            partitions=len(some),
            held=tuple(replace(held[it.key], first_offset=it.first_offset) for it in some),
        )
        for (producer_id, epoch), some in by_producer.items()
    ]


def _transaction_of(told: Any) -> OpenTransaction:
    return OpenTransaction(
        producer_id=int(told.producer_id),
        producer_epoch=int(told.producer_epoch),
        transactional_id=str(told.transactional_id),
        since_ms=round(told.transaction_start_time.timestamp() * 1000),
        state=str(told.transaction_state),
        timeout_ms=round(told.transaction_timeout.total_seconds() * 1000),
        partitions=sum(len(it.partitions) for it in told.topics),
    )


def _keys(topics: Sequence[Any]) -> Iterator[TopicPartition]:
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.topic, int(partition))


def _by_topic(keys: Sequence[TopicPartition]) -> Iterator[tuple[str, tuple[int, ...]]]:
    topics: dict[str, list[int]] = {}
    for key in keys:
        topics.setdefault(key.topic, []).append(key.partition)
    return ((topic, tuple(indexes)) for topic, indexes in topics.items())


def _chunks(items: Sequence[_T]) -> Iterator[tuple[_T, ...]]:
    return (tuple(items[at : at + ASKED_MAX]) for at in range(0, len(items), ASKED_MAX))
