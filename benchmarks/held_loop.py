"""How long one request keeps a broker from serving others, API by API.

    python -m benchmarks.held_loop [--entries 20000]

One broker in this process, with topics of 1,000 partitions each and a group that has committed in
all of them. Each request names so many partitions, topics or groups. Printed for each: its time,
and the longest time on the CPU between two turns of the broker's loop.
"""

import argparse
import asyncio
import gc
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from broker.protocol import codec
from broker.server.node import Node
from tests.unit.broker.server.nodes import parts, request, running, until

PARTITIONS: Final = 1_000
GROUP: Final = "held"
HELD_MS_MAX: Final = 20.0
"""What no answer should exceed at 20,000 entries."""


async def ask(node: Node, name: str, api: tuple[int, int], **fields: Any) -> Any:
    """One request; prints what it held."""
    message = await asyncio.to_thread(codec.build_request, *api, **fields)
    began_s, longest_s = time.monotonic(), 0.0
    task = asyncio.ensure_future(request(node, *api, message))
    gc.disable()
    try:
        while not task.done():
            before_s = time.thread_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.thread_time() - before_s)
    finally:
        gc.enable()
    held_ms, took_ms = longest_s * 1000, (time.monotonic() - began_s) * 1000
    mark = "  <-- more than 20 ms" if held_ms > HELD_MS_MAX else ""
    print(f"{name:<28} {took_ms:>9.0f} ms, held {held_ms:>7.1f} ms{mark}", flush=True)
    return await task


def _of_topics(names: Sequence[str], key: str, row: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, key: [row(partition) for partition in range(PARTITIONS)]} for name in names
    ]


def _questions(names: Sequence[str]) -> Iterator[tuple[str, tuple[int, int], dict[str, Any]]]:
    numbers = list(range(PARTITIONS))
    many = [f"group-{number}" for number in range(len(names) * PARTITIONS)]
    plain = [{"topic": name, "partitions": numbers} for name in names]
    yield "Metadata", (3, 9), {"topics": None}
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


async def measure(entries: int, directory: Path) -> None:
    """All APIs, one after the other."""
    names = [f"topic-{number}" for number in range(max(1, entries // PARTITIONS))]
    async with running(directory, offsets_topic_num_partitions="1") as (node,):
        for name in names:
            topic = {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            api = "CreateTopics, 1,000 partitions"
            await ask(node, api, (19, 5), topics=[topic], timeout=60_000)
        count = len(names) * PARTITIONS
        await until(lambda: sum(1 for _ in parts(node).replicas.partitions()) >= count)
        await ask(node, "FindCoordinator", (10, 3), key=GROUP, key_type=0)
        await until(lambda: parts(node).replicas.partition("__consumer_offsets", 0) is not None)
        await ask(node, "FindCoordinator", (10, 3), key=GROUP, key_type=0)
        for api, version, fields in _questions(names):
            try:
                await ask(node, api, version, **fields)
            except (OSError, TypeError, ValueError) as error:
                print(f"{api:<28} not measured: {type(error).__name__}: {error}")
        deleted = [{"name": name} for name in names]
        await ask(node, "DeleteTopics", (20, 6), topics=deleted, timeout=60_000)


def main() -> None:
    """Measure with so many entries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=20_000)
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(parser.parse_args().entries, Path(directory)))


if __name__ == "__main__":
    main()
