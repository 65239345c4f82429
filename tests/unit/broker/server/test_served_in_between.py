"""One request over many things does one after the other: others have their turns in between."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from broker.controller import elections
from broker.coordinator.offsets import offset_manager
from broker.coordinator.replay import Replay
from broker.handlers import controller_apis, k08_offset_commit
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol import codec
from broker.server.node import Node
from tests.unit.broker.server.nodes import (
    create_topic,
    parts,
    produce,
    request,
    running,
    until,
)

PARTITIONS: Final = 40
TOPICS: Final = ("a", "b")
GROUP: Final = "g"


class Turns:
    """Counts what is done within one turn of the event loop."""

    def __init__(self) -> None:
        self._turn = 0
        self._done: list[int] = []

    async def count(self) -> None:
        """Turns, until it is cancelled."""
        while True:
            self._turn += 1
            await asyncio.sleep(0)

    def counted(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """The same, and each call is noted."""

        def call(*given: Any) -> Any:
            self._done.append(self._turn)
            return work(*given)

        return call

    def stepped(self, work: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """The same, and each step is noted."""

        def steps(*given: Any) -> Iterator[Any]:
            for step in work(*given):
                self._done.append(self._turn)
                yield step

        return steps

    def at_once(self) -> int:
        """The most that was done in one turn; all that was noted is forgotten."""
        counts = Counter(self._done)
        assert len(counts) > PARTITIONS / 2, "the work is noted"
        self._done.clear()
        return max(counts.values())


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """It is always somebody else's turn."""
    monkeypatch.setattr("broker.background.SLICE_S", -1.0)
    return Turns()


@asynccontextmanager
async def committed(directory: Path, turns: Turns) -> AsyncIterator[Node]:
    """A node with two topics, and a group that has committed everywhere."""
    async with running(directory, 1, offsets_topic_num_partitions="1") as (node,):
        counting = asyncio.create_task(turns.count())
        counts = {**dict.fromkeys(TOPICS, PARTITIONS), OFFSETS_TOPIC: 1}
        created = [
            {"name": name, "num_partitions": count, "replication_factor": 1}
            for name, count in counts.items()
        ]
        await told(node, 19, 5, topics=created, timeout=30_000)
        await until(lambda: parts(node).replicas.partition(OFFSETS_TOPIC, 0) is not None)
        await until(lambda: any(True for _ in parts(node).groups.runtime.loaded()))
        rows = [{"partition_index": it, "committed_offset": 1} for it in range(PARTITIONS)]
        answer = await told(
            node,
            *(8, 8),
            group_id=GROUP,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[{"name": name, "partitions": rows} for name in TOPICS],
        )
        errors = [int(row.error_code) for topic in answer.topics for row in topic.partitions]
        assert errors == [0] * PARTITIONS * len(TOPICS)
        yield node
        counting.cancel()


async def told(node: Node, api_key: int, version: int, **fields: Any) -> Any:
    message = codec.build_request(api_key, version, **fields)
    return await request(node, api_key, version, message)


async def test_of_a_commit(tmp_path: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_known_offsets", "_partition_answers"):
        steps = turns.stepped(getattr(k08_offset_commit, name))
        monkeypatch.setattr(k08_offset_commit, name, steps)
    async with committed(tmp_path, turns):
        assert turns.at_once() == 1


async def test_of_the_offsets_that_are_forgotten_and_loaded(
    tmp_path: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with committed(tmp_path, turns) as node:
        monkeypatch.setattr(Replay, "apply", turns.counted(Replay.apply))
        runtime = parts(node).groups.runtime
        runtime._resign(0)
        runtime._follow(parts(node).metadata.image)
        await until(lambda: not runtime.is_loading)
        assert turns.at_once() == 1
        monkeypatch.setattr(offset_manager, "TOMBSTONE_KEYS_BYTES_MAX", 1)
        monkeypatch.setattr(
            offset_manager, "_offset_key", turns.counted(offset_manager._offset_key)
        )
        await parts(node).groups.offsets.forget_topics(frozenset(TOPICS))
        assert turns.at_once() == 1


async def test_of_an_election_that_changes_nothing(
    tmp_path: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller_apis, "STEP_ITEMS", 1)
    async with committed(tmp_path, turns) as node:
        monkeypatch.setattr(elections, "_elect_one", turns.counted(elections._elect_one))
        wanted = [{"topic": name, "partitions": list(range(PARTITIONS))} for name in TOPICS]
        answer = await told(node, 43, 2, election_type=0, topic_partitions=wanted)
        needless = [
            int(row.error_code)
            for topic in answer.replica_election_results
            for row in topic.partition_result
        ]
        assert needless == [84] * PARTITIONS * len(TOPICS)
        assert turns.at_once() == 1


async def test_a_topic_that_goes_within_a_checkpoint_is_not_in_it(tmp_path: Path) -> None:
    """Made anew, it would get the high watermark of the one before."""
    async with running(tmp_path, 1) as (node,):
        for name in TOPICS:
            await create_topic([node], name)
            await produce(node, name, b"x")
        steps = parts(node).replicas._housekeeper.checkpointing()
        next(steps)
        await told(node, 20, 6, topics=[{"name": name} for name in TOPICS], timeout=30_000)
        await until(lambda: not any(True for _ in parts(node).replicas.partitions()))
        deque(steps, 0)
        assert not {(name, 0) for name in TOPICS} & {*parts(node).logs._checkpoints.high_watermarks}
