"""The runtime of coordinators, with a shard that has nothing to do with groups."""

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest

from broker.coordinator.coordinator_runtime import CoordinatorRuntime
from broker.coordinator.errors import CoordinatorError
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol.records import NewRecord, Record, build_batch
from broker.replication.replica_manager import ReplicaManager
from tests.unit.broker.coordinator.memory import (
    NODE_ID,
    MemoryMetadata,
    MemoryPartition,
    MemoryReplicas,
    until,
)

KEY = "alpha"


class Ledger:
    """Sums the values of its partition's records."""

    def __init__(self, index: int, gate: asyncio.Event) -> None:
        self.index = index
        self.total = 0
        self.told: list[str] = []
        self._gate = gate

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """No transactions here."""

    def replay(self, record: Record, producer_id: int | None) -> None:
        if record.value == b"bad":
            raise ValueError("a shard that fails")
        self.total += int(record.value or b"0")

    async def on_loaded(self) -> None:
        await self._gate.wait()
        self.told.append("loaded")

    def on_unloaded(self) -> None:
        self.told.append("unloaded")


class Rig:
    """Two partitions of an internal topic on one node."""

    def __init__(self) -> None:
        self.made: list[Ledger] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.replicas = MemoryReplicas({number: MemoryPartition() for number in range(2)})
        self.metadata = MemoryMetadata(partitions=2)
        self.runtime = CoordinatorRuntime(
            OFFSETS_TOPIC,
            self.build,
            cast("ReplicaManager", self.replicas),
            self.metadata,
            node_id=NODE_ID,
            load_buffer_bytes=1,
        )

    def build(self, index: int) -> Ledger:
        self.made.append(Ledger(index, self.gate))
        return self.made[-1]

    def write(self, *values: bytes) -> None:
        """To every partition."""
        for partition in self.replicas.partitions.values():
            for value in values:
                partition.log.append(build_batch([NewRecord(key=b"k", value=value)]))

    async def loaded(self) -> Ledger:
        """The shard that keeps KEY."""
        await until(lambda: not self.runtime.is_loading)
        found = self.runtime.locate(KEY)
        assert isinstance(found, Ledger)
        return found


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    made = Rig()
    yield made
    await made.runtime.stop()


async def test_a_shard_replays_its_log_before_it_answers(rig: Rig) -> None:
    rig.write(b"1", b"2", b"4")
    rig.runtime.start()
    assert rig.runtime.is_loading
    assert rig.runtime.locate(KEY) is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
    found = await rig.loaded()
    assert (found.total, found.told) == (7, ["loaded"])
    assert {it.index for it in rig.runtime.loaded()} == {0, 1}


async def test_a_new_term_begins_with_a_new_shard(rig: Rig) -> None:
    rig.write(b"1")
    rig.runtime.start()
    first = await rig.loaded()
    rig.metadata.lead(NODE_ID)
    assert rig.runtime.locate(KEY) is first, "elected again without anybody in between"
    rig.metadata.lead(NODE_ID + 1)
    assert rig.runtime.locate(KEY) is CoordinatorError.NOT_COORDINATOR
    assert first.told == ["loaded", "unloaded"]
    rig.write(b"8")
    rig.metadata.lead(NODE_ID)
    second = await rig.loaded()
    assert (second.total, second.told) == (9, ["loaded"])


async def test_a_shard_that_is_made_after_resigning_ends_at_once(rig: Rig) -> None:
    rig.gate.clear()
    rig.runtime.start()
    await until(lambda: len(rig.made) == 4)
    rig.metadata.lead(NODE_ID + 1)
    rig.gate.set()
    await until(lambda: [it.told for it in rig.made[2:]] == [["loaded", "unloaded"]] * 2)
    assert rig.runtime.locate(KEY) is CoordinatorError.NOT_COORDINATOR
    assert list(rig.runtime.loaded()) == []


async def test_a_shard_that_fails_is_made_anew(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("broker.coordinator.coordinator_runtime._LOAD_RETRY_S", 0.01)
    rig.write(b"1", b"bad")
    rig.runtime.start()
    await until(lambda: "trying again" in caplog.text)
    assert rig.runtime.locate(KEY) is CoordinatorError.COORDINATOR_LOAD_IN_PROGRESS
    for partition in rig.replicas.partitions.values():
        del partition.log.batches[1]
    found = await rig.loaded()
    assert (found.total, found.told) == (1, ["loaded"])


async def test_a_deleted_topic_unloads_its_shards(rig: Rig) -> None:
    rig.runtime.start()
    found = await rig.loaded()
    rig.metadata.delete(OFFSETS_TOPIC)
    assert found.told == ["loaded", "unloaded"]
    assert rig.runtime.locate(KEY) is CoordinatorError.NOT_COORDINATOR
