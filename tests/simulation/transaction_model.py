"""Partitions of one node on real files, behind coordinators that come, go and lose answers."""

import asyncio
import random
from collections import deque
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, cast
from uuid import UUID

from broker.config.broker_config import BrokerConfig
from broker.coordinator.errors import CoordinatorError
from broker.coordinator.producer_ids import ProducerIdAllocator
from broker.coordinator.transactions.transaction_metadata import (
    Producer,
    SupportedOperation,
    TopicPartition,
)
from broker.coordinator.transactions.transactions import Transactions
from broker.coordinator.transactions.verified_appends import Begin, Verdict
from broker.log.errors import LogError, RecordsRejectedError
from broker.log.log_validator import AppendInfo
from broker.log.partition_log import PartitionLog
from broker.metadata.delta import ReplayedBatch
from broker.metadata.image import ImageDelta
from broker.metadata.topic_names import TRANSACTION_TOPIC
from broker.protocol.records import NewRecord, build_batch
from broker.replication.errors import AppendTimedOutError, NotLeaderError
from tests.unit.broker.config.test_broker_config import LEAST
from tests.unit.broker.coordinator.memory import (
    NODE_ID,
    ManualClock,
    MemoryMetadata,
    _topic,
    until,
)
from tests.unit.broker.log.helpers import NOW_MS, FakeClock, small_segments

PARTITIONS: Final = (("t", 0), ("t", 1))
TURNS_MAX: Final = 12
OTHER_NODE: Final = 102


@dataclass
class Replica:
    """A partition as coordinators see it."""

    log: PartitionLog
    is_leader: bool = True
    leader_epoch: int = 1


class Replicas:
    """Appends are answered late, in any order; some fail, and some fail although they are there."""

    def __init__(self, directory: Path, dice: random.Random) -> None:
        self._directory = directory
        self._dice = dice
        self.is_calm = False
        names = [*PARTITIONS, (TRANSACTION_TOPIC, 0), (TRANSACTION_TOPIC, 1)]
        self.partitions = {key: Replica(self._open(*key)) for key in names}

    def _open(self, topic: str, partition: int) -> PartitionLog:
        directory = self._directory / f"{topic}-{partition}"
        directory.mkdir(parents=True, exist_ok=True)
        return PartitionLog.open(
            str(directory),
            topic=topic,
            partition=partition,
            config=small_segments(600),
            clock=FakeClock(),
        )

    def crash(self) -> None:
        """The node is killed and started: logs are recovered from their files."""
        for key, replica in self.partitions.items():
            replica.log.abandon()
            replica.log = self._open(*key)

    def close(self) -> None:
        """The files go back to the system."""
        for replica in self.partitions.values():
            replica.log.abandon()

    def partition(self, topic: str, partition: int) -> Replica | None:
        return self.partitions.get((topic, partition))

    async def append_and_wait(
        self, topic: str, partition: int, records: bytes, *, verification: object = None, **_: Any
    ) -> AppendInfo:
        replica = self.partitions[topic, partition]
        if not replica.is_leader:
            return AppendInfo(error=NotLeaderError())
        try:
            info = replica.log.append_as_leader(
                memoryview(records),
                leader_epoch=replica.leader_epoch,
                now_ms=NOW_MS,
                verification=verification,
            )
        except LogError as error:
            return AppendInfo(error=error)
        for _turn in range(self._dice.randrange(TURNS_MAX)):
            await asyncio.sleep(0)
        if not self.is_calm and self._dice.random() < 0.1:
            return AppendInfo(error=AppendTimedOutError())
        return info


class Blocks:
    """Producer ids in any number."""

    def __init__(self) -> None:
        self._next = 0

    async def submit(self, *_: Any) -> Any:
        await asyncio.sleep(0)
        self._next += 1000
        return SimpleNamespace(error_code=0, producer_id_start=self._next, producer_id_len=1000)


class TransactionalMetadata(MemoryMetadata):
    """The image has __transaction_state as well."""

    def _led_by(self, leader: int) -> Any:
        image = super()._led_by(leader)
        state = _topic(TRANSACTION_TOPIC, UUID(int=9), 2, leader)
        data = _topic("t", UUID(int=7), 2, NODE_ID)
        return replace(image, topics={**image.topics, TRANSACTION_TOPIC: state, "t": data})

    def lead(self, leader: int) -> None:
        """__transaction_state moves to one leader."""
        changed = ImageDelta(topics_changed=frozenset({TRANSACTION_TOPIC}))
        self.publish(ReplayedBatch(image=self._led_by(leader), changed=changed))


class Cluster:
    """One node, whose coordinator may be elsewhere for a while."""

    def __init__(self, directory: Path, dice: random.Random) -> None:
        self.dice = dice
        self.replicas = Replicas(directory, dice)
        self.metadata = TransactionalMetadata()
        self.clock = ManualClock()
        self._config = BrokerConfig.from_properties({**LEAST, "node.id": str(NODE_ID)})
        self._blocks = Blocks()
        self.transactions = self._new()
        self.is_away = False

    def _new(self) -> Transactions:
        nobody: Any = SimpleNamespace(offsets=SimpleNamespace(end_transaction=lambda *_: None))
        ids = ProducerIdAllocator(node_id=NODE_ID, broker_epoch=lambda: 1, controller=self._blocks)
        return Transactions(
            cast("Any", self.replicas),
            self.metadata,
            self.clock,
            self._config,
            producer_ids=ids,
            groups=nobody,
            connect=lambda _: cast("Any", None),
        )

    async def start(self) -> None:
        """Returns when the coordinator answers."""
        self.transactions.start()
        await self.loaded()

    async def loaded(self) -> None:
        await until(lambda: not self.transactions.coordinator.runtime.is_loading)

    async def restart(self, *, is_killed: bool) -> None:
        """A new process over the same logs."""
        await self.transactions.stop()
        self.metadata._callbacks.clear()
        if is_killed:
            self.replicas.crash()
        self.transactions = self._new()
        await self.start()

    def move(self, *, is_away: bool) -> None:
        """Another node coordinates, or this one again."""
        self.is_away = is_away
        for (topic, _), replica in self.replicas.partitions.items():
            if topic == TRANSACTION_TOPIC:
                replica.is_leader = not is_away
                replica.leader_epoch += 1
        self.metadata.lead(OTHER_NODE if is_away else NODE_ID)


class Client:
    """A producer as clients are: it asks before it writes, and gives up where it is fenced. In
    version 2 of transactions it leaves the asking to the leader."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster = cluster
        self.name = name
        self._is_second = cluster.dice.random() < 0.5
        self.producer: Producer | None = None
        self._sequences = dict.fromkeys(PARTITIONS, 0)
        self._added: set[TopicPartition] = set()

    @property
    def _coordinator(self) -> Any:
        return self._cluster.transactions.coordinator

    async def begin(self) -> bool:
        """InitProducerId."""
        found = await self._coordinator.init_producer(self.name, None, timeout_ms=1000)
        if found.error is not CoordinatorError.NONE:
            return False
        self.producer, self._added = found.producer, set()
        self._sequences = dict.fromkeys(PARTITIONS, 0)
        return True

    async def write(self, key: TopicPartition, value: bytes, *, is_asking: bool = True) -> bool:
        """Whether the record is in the log; a zombie writes without asking."""
        assert self.producer is not None
        if is_asking and key not in self._added and not self._is_second:
            keys = frozenset({key})
            error = await self._coordinator.add_partitions(self.name, self.producer, keys)
            if error is not CoordinatorError.NONE:
                return False
            self._added.add(key)
        state = self._cluster.replicas.partitions[key].log.producers.state
        token = None
        if is_asking:
            begin = partial(state.begin_verification, self.producer.id)
            error, token = await self._verified(key, begin)
            if error is not CoordinatorError.NONE:
                return False
        for _ in range(self._cluster.dice.randrange(TURNS_MAX)):
            await asyncio.sleep(0)
        batch = build_batch(
            [NewRecord(value=value, timestamp=NOW_MS)],
            producer_id=self.producer.id,
            producer_epoch=self.producer.epoch,
            base_sequence=self._sequences[key],
            is_transactional=True,
        )
        replica = self._cluster.replicas.partitions[key]
        try:
            replica.log.append_as_leader(
                memoryview(batch),
                leader_epoch=1,
                now_ms=NOW_MS,
                is_from_client=True,
                verification=token,
            )
        except RecordsRejectedError:
            return False
        self._sequences[key] += 1
        return True

    async def _verified(self, key: TopicPartition, begin: Begin) -> Verdict:
        assert self.producer is not None
        answers: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        operation = SupportedOperation.DEFAULT_ERROR
        if self._is_second:
            operation = SupportedOperation.ADD_PARTITION
        self._cluster.transactions.verified.ask(
            self.name,
            self.producer,
            key,
            begin,
            lambda *it: answers.set_result(it),
            operation=operation,
        )
        return await answers

    async def end(self, *, is_commit: bool) -> CoordinatorError:
        """EndTxn."""
        assert self.producer is not None
        self._added.clear()
        if self._is_second:
            ended = await self._coordinator.end_epoch(self.name, self.producer, is_commit=is_commit)
            if ended.error is CoordinatorError.NONE:
                self.producer = Producer(*ended.producer)
                self._sequences = dict.fromkeys(PARTITIONS, 0)
            return CoordinatorError(ended.error)
        error: CoordinatorError = await self._coordinator.end(
            self.name, self.producer, is_commit=is_commit
        )
        return error


Told = deque[str]
"""The last steps, for the story of a failure."""
