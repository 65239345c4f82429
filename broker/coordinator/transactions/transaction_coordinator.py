"""The transaction coordinator of one node.

Whatever must outlive it is a record in __transaction_state, replicated before it is answered. The
outcome of a transaction stands with its Prepare record: from there on markers are sent until every
partition has one, by whichever node leads the partition of __transaction_state by then.
Source: KIP-98, KIP-360, KIP-890 (verification), kafka.coordinator.transaction (Kafka 4.1).
"""

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from broker.background import Repeater, Slices, Tasks, log_failure
from broker.clock import Clock
from broker.config.broker_config import BrokerConfig
from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.partition_writer import KeyValue, PartitionWriter
from broker.coordinator.producer_ids import ProducerIdAllocator, ProducerIdsUnavailableError
from broker.coordinator.transactions.transaction_markers import EndedTransaction, MarkerChannel
from broker.coordinator.transactions.transaction_metadata import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Producer,
    Step,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
    add_partitions,
    begin_instance,
    check_producer,
    complete,
    end_epoch,
    fence,
    prepare_end,
)
from broker.coordinator.transactions.transaction_records import encode_key, encode_value
from broker.coordinator.transactions.transaction_shard import TransactionEntry, TransactionShard
from broker.metadata.metadata_service import MetadataService
from broker.metadata.topic_names import TRANSACTION_TOPIC
from broker.protocol.control_records import Marker
from broker.replication.replica_manager import ReplicaManager

_LOG = logging.getLogger(__name__)
_STORE_TIMEOUT_MS: Final = 5_000
_LOAD_BUFFER_BYTES: Final = 5_242_880
_STORE_RETRY_S: Final = 0.1
_NONE: Final = CoordinatorError.NONE
_Located = tuple[TransactionShard, TransactionEntry, TransactionMetadata]


class NewProducer(NamedTuple):
    """Answer to InitProducerId, and to EndTxn in version 2."""

    error: CoordinatorError
    producer: Producer = Producer(NO_PRODUCER_ID, NO_EPOCH)


class TransactionCoordinator:
    """Transactions of every transactional id that this node coordinates."""

    def __init__(
        self,
        replicas: ReplicaManager,
        metadata: MetadataService,
        clock: Clock,
        config: BrokerConfig,
        *,
        producer_ids: ProducerIdAllocator,
        markers: MarkerChannel,
    ) -> None:
        self._replicas = replicas
        self._clock = clock
        self._config = config
        self._producer_ids = producer_ids
        self._markers = markers
        self._writer = PartitionWriter(
            TRANSACTION_TOPIC, replicas, clock, codec=0, timeout_ms=_STORE_TIMEOUT_MS
        )
        self.runtime = CoordinatorRuntime(
            TRANSACTION_TOPIC,
            lambda index: TransactionShard(index, loaded=self._resume),
            replicas,
            metadata,
            node_id=config.node_id,
            load_buffer_bytes=_LOAD_BUFFER_BYTES,
        )
        self._ends = Tasks("end of transactions", log_failure)
        self._timers = (
            Repeater(
                "timeouts of transactions",
                config.transaction_abort_interval_ms,
                lambda: self._ends.start(self.abort_timed_out()),
            ),
            Repeater(
                "expiry of transactional ids",
                config.transaction_expiry_interval_ms,
                lambda: self._ends.start(self.expire()),
            ),
        )

    def start(self) -> None:
        """Follow the metadata and load what this node leads; needs a running loop."""
        self.runtime.start()
        for timer in self._timers:
            timer.start()

    async def stop(self) -> None:
        """End all background work; another node goes on with it."""
        for timer in self._timers:
            timer.stop()
        await self.runtime.stop()
        await self._ends.stop()

    # Requests ----------------------------------------------------------------------------

    async def init_producer(
        self, transactional_id: str, expected: Producer | None, *, timeout_ms: int
    ) -> NewProducer:
        """InitProducerId: fences former instances, whose open transaction is aborted."""
        if not transactional_id:
            return NewProducer(CoordinatorError.INVALID_REQUEST)
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            return NewProducer(CoordinatorError.INVALID_TRANSACTION_TIMEOUT)
        shard = self.runtime.locate(transactional_id)
        if isinstance(shard, CoordinatorError):
            return NewProducer(shard)
        new_id = None
        known = _current(shard, transactional_id)
        if known is None or known.is_epoch_exhausted:
            try:
                new_id = await self._producer_ids.next_id()
            except ProducerIdsUnavailableError:
                return NewProducer(CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS)
        return await self._init(shard, transactional_id, expected, timeout_ms, new_id)

    async def _init(
        self,
        shard: TransactionShard,
        transactional_id: str,
        expected: Producer | None,
        timeout_ms: int,
        new_id: int | None,
    ) -> NewProducer:
        if not shard.is_loaded:
            return NewProducer(CoordinatorError.NOT_COORDINATOR)
        entry = shard.entries.setdefault(transactional_id, TransactionEntry())
        known, now_ms = entry.current, self._clock.wall_ms()
        if entry.is_changing:
            return NewProducer(CoordinatorError.CONCURRENT_TRANSACTIONS)
        if known is None:
            known = TransactionMetadata(
                transactional_id=transactional_id,
                producer_id=NO_PRODUCER_ID if new_id is None else new_id,
                timeout_ms=timeout_ms,
            )
            expected = None
        if known.state is TransactionState.ONGOING:
            if expected is not None and expected != known.producer:
                return NewProducer(CoordinatorError.PRODUCER_FENCED)
            await self._end(shard, entry, fence(known, now_ms=now_ms))
            return NewProducer(CoordinatorError.CONCURRENT_TRANSACTIONS)
        if known.state.is_prepared:
            return NewProducer(CoordinatorError.CONCURRENT_TRANSACTIONS)
        step = begin_instance(
            known, expected, timeout_ms=timeout_ms, now_ms=now_ms, new_producer_id=new_id
        )
        error = await self._store(shard, entry, step)
        if error is not CoordinatorError.NONE or isinstance(step, CoordinatorError):
            if entry.current is None and shard.entries.get(transactional_id) is entry:
                del shard.entries[transactional_id]
            return NewProducer(error)
        return NewProducer(error, step.producer)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[TopicPartition],
        *,
        version: int = 0,
    ) -> CoordinatorError:
        """AddPartitionsToTxn and AddOffsetsToTxn: before the first record goes into a partition.
        Clients ask in `version` 0 of transactions, leaders of partitions in version 2."""
        found = self._find(transactional_id, producer)
        if isinstance(found, CoordinatorError):
            return found
        shard, entry, known = found
        step = add_partitions(known, partitions, now_ms=self._clock.wall_ms(), version=version)
        return await self._store(shard, entry, step)

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, CoordinatorError]:
        """For leaders of partitions, which ask before they take a transaction's first record."""
        found = self._find(transactional_id, producer)
        if isinstance(found, CoordinatorError):
            return dict.fromkeys(partitions, found)
        known = found[2]
        if known.state.is_prepared:
            return dict.fromkeys(partitions, CoordinatorError.CONCURRENT_TRANSACTIONS)
        is_open = known.state is TransactionState.ONGOING
        return {
            key: CoordinatorError.NONE
            if is_open and key in known.partitions
            else CoordinatorError.TRANSACTION_ABORTABLE
            for key in partitions
        }

    async def end(
        self, transactional_id: str, producer: Producer, *, is_commit: bool
    ) -> CoordinatorError:
        """EndTxn up to version 4: answered when the outcome stands; markers are written later."""
        found = self._find(transactional_id, producer)
        if isinstance(found, CoordinatorError):
            return found
        shard, entry, known = found
        step = prepare_end(known, is_commit=is_commit, now_ms=self._clock.wall_ms())
        if isinstance(step, CoordinatorError) or step is known:
            return CoordinatorError.NONE if step is known else _error(step)
        return await self._end(shard, entry, step)

    async def end_epoch(
        self, transactional_id: str, producer: Producer, *, is_commit: bool
    ) -> NewProducer:
        """EndTxn of version 5: the next transaction has the epoch of the answer."""
        new_id = None
        known = self.describe(transactional_id)
        if isinstance(known, TransactionMetadata) and known.is_epoch_exhausted:
            try:
                new_id = await self._producer_ids.next_id()
            except ProducerIdsUnavailableError:
                return NewProducer(CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS)
        located = self._locate(transactional_id)
        if isinstance(located, CoordinatorError):
            return NewProducer(located)
        shard, entry, known = located
        if entry.is_changing:
            return NewProducer(CoordinatorError.CONCURRENT_TRANSACTIONS)
        now_ms = self._clock.wall_ms()
        step = end_epoch(
            known, producer, is_commit=is_commit, now_ms=now_ms, new_producer_id=new_id
        )
        if isinstance(step, CoordinatorError):
            return NewProducer(step)
        error = CoordinatorError.NONE if step is known else await self._end(shard, entry, step)
        return NewProducer(error, step.next_producer) if error is _NONE else NewProducer(error)

    def transactions(self) -> Iterator[TransactionMetadata]:
        """All that this node coordinates."""
        for shard in list(self.runtime.loaded()):
            for entry in list(shard.entries.values()):
                if entry.current is not None:
                    yield entry.current

    def describe(self, transactional_id: str) -> Step:
        """One transaction, or why it is not told."""
        shard = self.runtime.locate(transactional_id)
        if isinstance(shard, CoordinatorError):
            return shard
        known = _current(shard, transactional_id)
        return CoordinatorError.TRANSACTIONAL_ID_NOT_FOUND if known is None else known

    def _find(self, transactional_id: str, producer: Producer) -> _Located | CoordinatorError:
        located = self._locate(transactional_id)
        if isinstance(located, CoordinatorError):
            return located
        error = check_producer(located[2], producer)
        if error is not _NONE:
            return error
        return CoordinatorError.CONCURRENT_TRANSACTIONS if located[1].is_changing else located

    def _locate(self, transactional_id: str) -> _Located | CoordinatorError:
        if not transactional_id:
            return CoordinatorError.INVALID_REQUEST
        shard = self.runtime.locate(transactional_id)
        if isinstance(shard, CoordinatorError):
            return shard
        entry = shard.entries.get(transactional_id)
        if entry is None or entry.current is None:
            return CoordinatorError.INVALID_PRODUCER_ID_MAPPING
        return shard, entry, entry.current

    # Changes -----------------------------------------------------------------------------

    async def _store(
        self, shard: TransactionShard, entry: TransactionEntry, step: Step
    ) -> CoordinatorError:
        """Make a change once its record is replicated."""
        if isinstance(step, CoordinatorError):
            return step
        if step is entry.current:
            return CoordinatorError.NONE
        record = (encode_key(step.transactional_id), encode_value(step))
        error = await self._append(shard, entry, record)
        if error is CoordinatorError.NONE:
            entry.current = step
        return error

    async def _append(
        self, shard: TransactionShard, entry: TransactionEntry, record: KeyValue
    ) -> CoordinatorError:
        if not _is_loaded(shard):
            return CoordinatorError.NOT_COORDINATOR
        entry.is_changing = True
        try:
            batch = self._writer.build_batch([record])
            appended = await self._writer.append(shard.index, batch)
        finally:
            entry.is_changing = False
        return appended.error if _is_loaded(shard) else CoordinatorError.NOT_COORDINATOR

    async def _end(
        self, shard: TransactionShard, entry: TransactionEntry, prepared: TransactionMetadata
    ) -> CoordinatorError:
        error = await self._store(shard, entry, prepared)
        if error is CoordinatorError.NONE:
            self._ends.keep(partial(self._complete, shard, entry, prepared))
        return error

    def _resume(self, shard: TransactionShard) -> None:
        """Go on with what a former coordinator has decided."""
        for entry in shard.entries.values():
            known = entry.current
            if known is not None and known.state.is_prepared:
                self._ends.keep(partial(self._complete, shard, entry, known))

    async def _complete(
        self, shard: TransactionShard, entry: TransactionEntry, prepared: TransactionMetadata
    ) -> None:
        local = self._replicas.partition(TRANSACTION_TOPIC, shard.index)
        is_wanted = partial(_is_loaded, shard)
        if local is None or not is_wanted():
            return
        is_commit = prepared.state is TransactionState.PREPARE_COMMIT
        ended = EndedTransaction(
            producer=prepared.producer,
            marker=Marker(is_commit, local.leader_epoch),
        )
        if not await self._markers.deliver(ended, prepared.partitions, is_wanted):
            if is_wanted():
                _LOG.warning("%s: its markers were fenced", prepared.transactional_id)
            return
        while is_wanted():
            step = complete(prepared, now_ms=self._clock.wall_ms())
            if await self._store(shard, entry, step) is CoordinatorError.NONE:
                return
            await asyncio.sleep(_STORE_RETRY_S)

    # Time --------------------------------------------------------------------------------

    async def abort_timed_out(self) -> None:
        """Abort transactions that have been open for longer than their producers asked for."""
        slices = Slices()
        for shard in list(self.runtime.loaded()):
            for entry in list(shard.entries.values()):
                await slices.pause()
                known, now_ms = entry.current, self._clock.wall_ms()
                if known is not None and known.is_timed_out(now_ms) and not entry.is_changing:
                    await self._end(shard, entry, fence(known, now_ms=now_ms))

    async def expire(self) -> None:
        """Forget transactional ids that nobody has used for transactional.id.expiration.ms."""
        slices = Slices()
        for shard in list(self.runtime.loaded()):
            for transactional_id, entry in list(shard.entries.items()):
                await slices.pause()
                if not self._is_expired(entry):
                    continue
                tombstone = (encode_key(transactional_id), None)
                error = await self._append(shard, entry, tombstone)
                if error is CoordinatorError.NONE and shard.entries.get(transactional_id) is entry:
                    del shard.entries[transactional_id]

    def _is_expired(self, entry: TransactionEntry) -> bool:
        known = entry.current
        if known is None or entry.is_changing or not known.state.is_ended:
            return False
        age_ms = self._clock.wall_ms() - known.update_ms
        return age_ms >= self._config.transactional_id_expiration_ms


def _is_loaded(shard: TransactionShard) -> bool:
    """Whether this node still coordinates what is in a shard: asked anew after each wait."""
    return shard.is_loaded


def _current(shard: TransactionShard, transactional_id: str) -> TransactionMetadata | None:
    entry = shard.entries.get(transactional_id)
    return None if entry is None else entry.current


def _error(step: Step) -> CoordinatorError:
    return step if isinstance(step, CoordinatorError) else CoordinatorError.NONE
