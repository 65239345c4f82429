"""Thousands of replicas change, and nobody else waits for all of them."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from broker.background import SLICE_S
from broker.protocol import codec
from broker.replication.replica_changes import AT_ONCE_MAX, Key, ReplicaChanges
from tests.support.settle import until
from tests.unit.broker.server.nodes import parts, produce, request, running

MANY = 3 * AT_ONCE_MAX
KEYS = [("t", number) for number in range(MANY)]


async def test_a_few_are_changed_within_the_call() -> None:
    changed: list[Key] = []
    changes = ReplicaChanges("test", changed.append)
    changes.add(KEYS[:AT_ONCE_MAX])
    assert changed == KEYS[:AT_ONCE_MAX]


async def test_others_have_their_turn_between_many() -> None:
    changed: list[Key] = []

    def change(key: Key) -> None:
        time.sleep(SLICE_S / 4)
        changed.append(key)

    changes = ReplicaChanges("test", change)
    changes.add(KEYS)
    assert changed == []
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < len(changed) < MANY
    changes.add([KEYS[-1]])
    assert changed[-1] == KEYS[-1], "what comes alone does not wait"
    await until(lambda: len(changed) == MANY)
    assert sorted(changed) == KEYS, "each once"


async def test_one_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    changed: list[Key] = []

    def change(key: Key) -> None:
        if key[1] == 5:
            raise ValueError("cannot be changed")
        changed.append(key)

    changes = ReplicaChanges("test", change)
    changes.add(KEYS)
    await until(lambda: len(changed) == MANY - 1)
    assert "cannot be changed" in caplog.text


async def test_after_the_end_nothing_changes() -> None:
    changed: list[Key] = []
    changes = ReplicaChanges("test", changed.append)
    changes.add(KEYS)
    await changes.close()
    changes.add(KEYS)
    await asyncio.sleep(0)
    assert changed == []


async def test_a_large_topic_that_comes_again_at_once_is_the_new_one(tmp_path: Path) -> None:
    async with running(tmp_path) as (node,):

        async def ask(api: tuple[int, int], **fields: Any) -> Any:
            return await request(node, *api, codec.build_request(*api, **fields))

        async def create() -> None:
            topic = {"name": "t", "num_partitions": MANY, "replication_factor": 1}
            await ask((19, 7), topics=[topic], timeout=30_000)
            await until(lambda: len(list(parts(node).replicas.partitions())) == MANY)

        await create()
        assert (await produce(node, "t", b"old")).error is None
        await ask((20, 6), topics=[{"name": "t"}], timeout=30_000)
        await create()
        new_id = parts(node).metadata.image.topics["t"].topic_id
        replicas = parts(node).replicas
        await until(lambda: all(it.topic_id == new_id for it in replicas.partitions()))
        await until(lambda: all(it.is_leader for it in replicas.partitions()))
        assert (await produce(node, "t", b"new")).base_offset == 0
        await ask((20, 6), topics=[{"name": "t"}], timeout=30_000)
        await until(lambda: not list(replicas.partitions()))
        assert not [it for it in parts(node).logs.all_logs if it.topic == "t"]
