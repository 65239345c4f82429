"""Any file of a stopped node is damaged: the node serves what is whole, or names why it does not.

`make soak` goes on for as long as `tests.support.fuzzing` says.
"""

import asyncio
import random
import shutil
import time
from pathlib import Path
from typing import Any, Final

import pytest

from broker.background import InternalError
from broker.protocol import codec
from broker.protocol.records import iter_batch_headers, iter_records
from broker.server.node import OPERATOR_ERRORS, Node
from tests.support.cases import case
from tests.support.fuzzing import FUZZ_S, FUZZ_SEED, damage
from tests.support.patience import WAIT_S, patience_s
from tests.unit.broker.server.nodes import (
    create_topic,
    fetch,
    new_nodes,
    parts,
    produce,
    request,
    running,
    until,
)

TOPICS: Final = ("first", "second")
RECORDS: Final = 12
QUICK: Final = 6
"""Damaged starts in `make test`."""
GROUP: Final = "readers"
COMMITTED: Final = 7
METADATA: Final = "__cluster_metadata-0"
OFFSETS: Final = "__consumer_offsets-0"
CLEAN: Final = ".kafka_cleanshutdown"


def value_of(topic: str, number: int) -> bytes:
    return f"{topic} {number}".encode()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of a node with topics, a group and a snapshot of its metadata."""
    directory = tmp_path_factory.mktemp("sound")

    async def fill() -> None:
        async with running(directory, offsets_topic_num_partitions="1") as (node,):
            for name in TOPICS:
                await create_topic([node], name)
                for number in range(RECORDS):
                    await produce(node, name, value_of(name, number))
            await until_committed(node)
            at = directory / "101" / METADATA
            await until(lambda: bool(list(at.glob("*.checkpoint"))))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("broker.controller.snapshot_generator.RECORDS_BETWEEN_MIN", 8)
        asyncio.run(fill())
    return directory


async def until_committed(node: Node) -> None:
    """A group that nobody is a member of commits."""
    found = codec.build_request(10, 3, key=GROUP, key_type=0)
    partition = {
        "partition_index": 0,
        "committed_offset": COMMITTED,
        "committed_leader_epoch": -1,
        "committed_metadata": "",
    }
    topics = [{"name": TOPICS[0], "partitions": [partition]}]
    commit = codec.build_request(8, 7, group_id=GROUP, topics=topics)
    async with asyncio.timeout(WAIT_S):
        while True:
            await request(node, 10, 3, found)
            answer = await request(node, 8, 7, commit)
            if int(answer.topics[0].partitions[0].error_code) == 0:
                return
            await asyncio.sleep(0.02)


async def committed(node: Node) -> int:
    """What the group is told, once its coordinator has read the log."""
    topics = [{"name": TOPICS[0], "partition_indexes": [0]}]
    asked = codec.build_request(9, 5, group_id=GROUP, topics=topics)
    async with asyncio.timeout(WAIT_S):
        while True:
            answer = await request(node, 9, 5, asked)
            if int(answer.error_code) == 0:
                return int(answer.topics[0].partitions[0].committed_offset)
            await asyncio.sleep(0.02)


def values(partition: Any) -> dict[int, bytes | None]:
    """Values by offset of what a consumer gets."""
    content = memoryview(bytes(partition.records or b""))
    batches = (content[at : at + header.size_bytes] for header, at in iter_batch_headers(content))
    return {record.offset: record.value for batch in batches for record in iter_records(batch)}


async def start(directory: Path, changed: str) -> None:
    """Starts the node: it serves all that is not changed, or names what keeps it from that."""
    (node,) = new_nodes(directory, offsets_topic_num_partitions="1")
    try:
        async with asyncio.timeout(patience_s(20.0)):
            await node.start(asyncio.Event())
            if node.fault is None:
                await check(node, changed)
    except OPERATOR_ERRORS as error:
        node.fault = node.fault or error
    finally:
        await node.stop()
    assert not isinstance(node.fault, InternalError), node.fault
    assert node.fault is None or str(directory) in str(node.fault), node.fault


async def check(node: Node, changed: str) -> None:
    """All is there whose files were not changed, and the node takes more."""
    topics = parts(node).metadata.image.topics
    assert set(TOPICS) <= topics.keys()
    whole = [name for name in TOPICS if changed != f"{name}-0"]
    await until(lambda: all(replica_is_led(node, name) for name in whole))
    for name, partition in (await fetch(node, *whole)).items():
        found = values(partition)
        assert [found[n] for n in range(RECORDS)] == [value_of(name, n) for n in range(RECORDS)]
    if changed != OFFSETS:
        assert await committed(node) == COMMITTED
    await create_topic([node], f"new-{len(topics)}")
    assert (await produce(node, whole[0], b"more")).error is None
    assert node.fault is None, node.fault


def replica_is_led(node: Node, name: str) -> bool:
    found = parts(node).replicas.partition(name, 0)
    return found is not None and bool(found.is_leader)


async def try_one(sound: Path, directory: Path, dice: random.Random) -> None:
    """One copy is damaged, and started twice: the second start meets what the first one wrote."""
    shutil.copytree(sound, directory)
    data = directory / "101"
    if dice.random() < 0.5:
        (data / CLEAN).unlink()
    how, victim = damage(dice, data)
    name = victim.relative_to(data)
    for number in (1, 2):
        with case(how, str(name), f"start {number}"):
            await start(directory, name.parts[0])
    shutil.rmtree(directory)


def test_an_older_snapshot_under_the_name_of_the_newest_deletes_nothing(
    sound: Path, tmp_path: Path
) -> None:
    shutil.copytree(sound, tmp_path / "copy")
    older, newest = sorted((tmp_path / "copy" / "101" / METADATA).glob("*.checkpoint"))
    newest.write_bytes(older.read_bytes())
    asyncio.run(start(tmp_path / "copy", ""))


def try_many(
    sound: Path, directory: Path, dice: random.Random, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(try_one(sound, directory, dice))
    stories = [it.getMessage() for it in caplog.records if it.exc_info]
    assert not stories, stories
    caplog.clear()


def test_a_node_with_a_damaged_file_serves_the_rest_or_names_it(
    sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for seed in range(QUICK):
        with case(seed):
            try_many(sound, tmp_path / "copy", random.Random(seed), caplog)


@pytest.mark.soak
@pytest.mark.timeout(FUZZ_S + patience_s(300.0))
def test_nodes_with_damaged_files_for_as_long_as_is_asked(
    sound: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    until_s, seed = time.monotonic() + FUZZ_S, 1_000 * FUZZ_SEED
    while time.monotonic() < until_s:
        with case(seed):
            try_many(sound, tmp_path / "copy", random.Random(seed), caplog)
        seed += 1
