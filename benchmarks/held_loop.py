"""How long one request keeps a broker from serving others, API by API.

    python -m benchmarks.held_loop [--entries 20000]

One broker in this process, with topics of 1,000 partitions each, a group that has committed in all
of them, and as many groups that have committed once. Each request names so many partitions, topics
or groups. Printed for each: its time, and the longest time on the CPU between two turns of the
broker's loop. Then comes what no request asks for: fencing, coordinators that load, resign and
expire, replicas that come and go. A yardstick comes first: where memory is slow, all figures grow.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from broker.background import Rounds
from broker.coordinator.records import (
    CommittedOffset,
    OffsetKey,
    decode_offset_value,
    encode_offset_key,
    encode_offset_value,
)
from broker.metadata.image import ImageDelta, MetadataImage
from broker.metadata.topic_names import OFFSETS_TOPIC
from broker.protocol import codec
from broker.protocol.records import NewRecord, build_batch
from broker.server.node import Node
from tests.unit.broker.server.nodes import parts, request, running, until

PARTITIONS: Final = 1_000
LARGE: Final = 9_000
"""Partitions of one topic; with its other records it stays below what one request may make."""
GROUP: Final = "held"
HELD_MS_MAX: Final = 20.0
"""What no answer should exceed at 20,000 entries."""


BATCH: Final = 1_000
"""Commits that are written together."""
PATIENT_MS: Final = "600000"
"""No broker is fenced because the machine is slow."""


async def ask(node: Node, name: str, api: tuple[int, int], **fields: Any) -> Any:
    """One request."""
    message = await asyncio.to_thread(codec.build_request, *api, **fields)
    return await held(name, request(node, *api, message))


async def held(name: str, work: Awaitable[Any]) -> Any:
    """Notes how long it held the loop."""
    began_s, longest_s = time.monotonic(), 0.0
    task = asyncio.ensure_future(work)
    gc.disable()
    try:
        while not task.done():
            before_s = time.thread_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.thread_time() - before_s)
    finally:
        gc.enable()
    held_ms, took_ms = longest_s * 1000, (time.monotonic() - began_s) * 1000
    if held_ms >= _worst.get(name, (0.0, 0.0))[0]:
        _worst[name] = held_ms, took_ms
    return await task


_worst: Final[dict[str, tuple[float, float]]] = {}
"""By name: how long it held the loop, and how long it took."""


def table() -> str:
    """The worst case of each name, in the order of their first ones."""
    return "\n".join(
        f"{name:<34} {took_ms:>9.0f} ms, held {held_ms:>7.1f} ms"
        + ("  <-- more than 20 ms" if held_ms > HELD_MS_MAX else "")
        for name, (held_ms, took_ms) in _worst.items()
    )


def _of_topics(names: Sequence[str], key: str, row: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, key: [row(partition) for partition in range(PARTITIONS)]} for name in names
    ]


def _questions(names: Sequence[str]) -> Iterator[tuple[str, tuple[int, int], dict[str, Any]]]:
    numbers = list(range(PARTITIONS))
    many = [f"group-{number}" for number in range(len(names) * PARTITIONS)]
    plain = [{"topic": name, "partitions": numbers} for name in names]
    yield "Metadata", (3, 9), {"topics": None}
    page = {"topics": [], "response_partition_limit": 2_000, "cursor": None}
    yield "DescribeTopicPartitions", (75, 0), page
    offsets = _of_topics(names, "partitions", lambda p: {"partition_index": p, "timestamp": -1})
    fields = {"replica_id": -1, "isolation_level": 0, "topics": offsets}
    yield "ListOffsets", (2, 6), fields
    commits = _of_topics(
        names,
        "partitions",
        lambda p: {"partition_index": p, "committed_offset": 1, "committed_metadata": ""},
    )
    group = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": ""}
    yield "OffsetCommit", (8, 8), {**group, "topics": commits}
    yield "OffsetFetch, all", (9, 8), {"groups": [{"group_id": GROUP, "topics": None}]}
    named = [{"name": name, "partition_indexes": numbers} for name in names]
    yield "OffsetFetch, named", (9, 8), {"groups": [{"group_id": GROUP, "topics": named}]}
    yield "DescribeGroups", (15, 5), {"groups": many}
    yield "ListGroups", (16, 4), {"states_filter": []}
    epochs = [
        {
            "topic": name,
            "partitions": [{"partition": p, "leader_epoch": 0} for p in numbers],
        }
        for name in names
    ]
    yield "OffsetForLeaderEpoch", (23, 4), {"replica_id": -1, "topics": epochs}
    described = [{"resource_type": 2, "resource_name": name} for name in (*names,) * PARTITIONS]
    yield "DescribeConfigs", (32, 4), {"resources": described[:2_000]}
    yield "DescribeLogDirs, all", (35, 4), {"topics": None}
    yield "DescribeLogDirs, named", (35, 4), {"topics": plain}
    yield "ElectLeaders", (43, 2), {"election_type": 0, "topic_partitions": plain}
    yield "ListPartitionReassignments", (46, 0), {"topics": None}
    yield "DeleteGroups", (42, 2), {"groups_names": many}


async def _fence(node: Node) -> None:
    """The broker loses all it leads, and gets it back."""
    broker_id, was_fenced = node.config.node_id, asyncio.Event()

    def note(old: MetadataImage, new: MetadataImage, changed: ImageDelta) -> None:
        if new.brokers[broker_id].fenced:
            was_fenced.set()

    parts(node).metadata.subscribe(note)
    parts(node).controller.active.fence_gone(broker_id)
    await was_fenced.wait()
    await until(lambda: not parts(node).metadata.image.brokers[broker_id].fenced)
    await until(lambda: all(it.is_leader for it in parts(node).replicas.partitions()))


async def _coordinate(node: Node, count: int) -> None:
    """As many groups with a commit each are loaded, expire, lose their topic, and go elsewhere."""
    groups, clock = parts(node).groups, parts(node).services.clock
    value = encode_offset_value(CommittedOffset(offset=1, commit_ms=clock.wall_ms()))
    keys = [
        encode_offset_key(OffsetKey(group_id=f"once-{number}", topic="topic-0", partition=0))
        for number in range(count)
    ]
    for start in range(0, count, BATCH):
        records = [NewRecord(key=key, value=value) for key in keys[start : start + BATCH]]
        batch = await asyncio.to_thread(build_batch, records)
        await parts(node).replicas.append_and_wait(OFFSETS_TOPIC, 0, batch)

    async def resign() -> None:
        groups.runtime._resign(0)

    async def load() -> None:
        groups.runtime._follow(parts(node).metadata.image)
        await until(lambda: not groups.runtime.is_loading)

    await held("a coordinator resigns", resign())
    await held("its groups are loaded", load())
    await held("offsets are looked at for expiry", groups.offsets.expire(clock))
    await held("offsets of a topic are looked for", groups.offsets.forget_topics({"gone"}))
    await held("a coordinator resigns", resign())
    await held("its groups are loaded", load())


async def measure(entries: int, directory: Path) -> None:
    """All APIs, one after the other."""
    names = [f"topic-{number}" for number in range(max(1, entries // PARTITIONS))]
    properties = {"offsets_topic_num_partitions": "1", "broker_session_timeout_ms": PATIENT_MS}
    async with running(directory, 1, **properties) as (node,):
        for name in names:
            topic = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            api = "CreateTopics, 1,000 partitions"
            await ask(node, api, (19, 5), topics=[topic], timeout=60_000)
        count = len(names) * PARTITIONS
        await until(lambda: sum(1 for _ in parts(node).replicas.partitions()) >= count)
        await ask(node, "FindCoordinator", (10, 3), key=GROUP, key_type=0)
        await until(lambda: parts(node).replicas.partition(OFFSETS_TOPIC, 0) is not None)
        await ask(node, "FindCoordinator", (10, 3), key=GROUP, key_type=0)
        for api, version, fields in _questions(names):
            try:
                await ask(node, api, version, **fields)
            except (OSError, TypeError, ValueError) as error:
                print(f"{api:<28} not measured: {type(error).__name__}: {error}")
        for name, work in (
            ("upkeep of the logs, each second", node._maintain),
            ("checkpoints of the logs", lambda: parts(node).logs.checkpointing({})),
            ("scan of the in-sync replicas", parts(node).replicas._housekeeper.scan),
        ):
            await held(name, Rounds(name, 0, work).run())
        await held("a broker is fenced, and back", _fence(node))
        await _coordinate(node, count)
        deleted = [{"name": name} for name in names]
        await ask(node, "DeleteTopics", (20, 6), topics=deleted, timeout=60_000)
        await held("its replicas go", until(lambda: len(_of_clients(node)) == 0))
        large = {"name": "large", "num_partitions": LARGE, "replication_factor": 1}
        await ask(
            node, f"CreateTopics, {LARGE:,} partitions", (19, 5), topics=[large], timeout=60_000
        )
        await held("its replicas come", until(lambda: len(_of_clients(node)) == LARGE))
        await ask(node, f"DeleteTopics, {LARGE:,} partitions", (20, 6), topics=[{"name": "large"}])
        await held("its replicas go", until(lambda: len(_of_clients(node)) == 0))


def yardstick_us() -> float:
    """What decoding a commit costs on this machine now."""
    value = encode_offset_value(CommittedOffset(offset=1, commit_ms=1))
    began_s = time.thread_time()
    kept = [decode_offset_value(value) for _ in range(LARGE)]
    return (time.thread_time() - began_s) / len(kept) * 1e6


def _of_clients(node: Node) -> list[Any]:
    replicas = parts(node).replicas.partitions()
    return [it for it in replicas if it.topic != OFFSETS_TOPIC]


def main() -> None:
    """Measure with so many entries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    print(f"a commit is decoded in {yardstick_us():.1f} µs", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        try:
            asyncio.run(measure(parser.parse_args().entries, Path(directory)))
        finally:
            print(table())


if __name__ == "__main__":
    main()
