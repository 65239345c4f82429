"""What findings about operations cost a cluster of many topics, and those who read them.

    python -m benchmarks.operation_findings [--topics 2000] [--window 12]

Three brokers of ours. Reads over and over for a window of seconds, beside windows without any
reading, and prints for each reading the CPU of all brokers beyond their idle, the CPU of the
reader, and how long it took. The figures of brokers need a machine that does nothing else.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import cpu_seconds
from control.kafka.admin.kafka_admin import KafkaAdmin
from control.kafka.connection import apis
from control.move.throttle import (
    REPLICA_LISTS,
    Lists,
    ThrottleRecord,
)
from control.operations.executor.throttles.left_throttles import LeftThrottles, RunningMoves
from control.operations.executor.throttles.throttle_guard import TOPICS_AT_A_TIME
from control.operations.executor.throttles.throttle_on_cluster import ClusterThrottle
from tests.contract.operations_rig import ours
from tests.support.cluster import NOBODY_DIES, LocalCluster
from tests.support.settle import eventually

TOGETHER: Final = 200
PARTITIONS: Final = 5
SETTLED_S: Final = 45.0

Reading = Callable[[], Awaitable[Any]]


async def create(admin: KafkaAdmin, names: list[str]) -> None:
    """Topics of PARTITIONS partitions, once they are there."""
    for start in range(0, len(names), TOGETHER):
        topics = [
            {"name": name, "num_partitions": PARTITIONS, "replication_factor": 1}
            | {"assignments": (), "configs": ()}
            for name in names[start : start + TOGETHER]
        ]
        fields = {"topics": tuple(topics), "timeout": 60_000, "validate_only": False}
        node = (await admin.describe_cluster()).controller_id
        await admin.wire.send(apis.CREATE_TOPICS, fields, node_id=node, is_idempotent=False)

    async def is_there() -> bool:
        return len(await admin.topics()) >= len(names)

    await eventually(is_there, True)
    await asyncio.sleep(SETTLED_S)


async def spent(processes: list[int], window_s: float, read: Reading) -> tuple[float, ...]:
    """CPU seconds of brokers and reader, seconds, and readings, of one window."""
    before = sum(map(cpu_seconds, processes)), time.process_time(), time.monotonic()
    readings = 0
    while time.monotonic() < before[2] + window_s:
        await read()
        readings += 1
    after = sum(map(cpu_seconds, processes)), time.process_time(), time.monotonic()
    return *(now - was for now, was in zip(after, before, strict=True)), readings


async def measured(what: str, processes: list[int], window_s: float, read: Reading) -> None:
    """Prints the costs of one reading."""
    await read()  # connections are there from now on
    idle_s, _, waited_s, _ = await spent(processes, window_s, lambda: asyncio.sleep(1))
    brokers_s, reader_s, took_s, count = await spent(processes, window_s, read)
    brokers_s -= idle_s * took_s / waited_s
    costs = (f"{1_000 * it / count:.0f} ms" for it in (brokers_s, reader_s, took_s))
    print(f"{what}: brokers {next(costs)} CPU, reader {next(costs)} CPU, in {next(costs)}")


async def run(cluster: LocalCluster, topics: int, window_s: float) -> None:
    """All measurements on one cluster."""
    processes = [process.pid for process in cluster.processes.values()]
    names = [f"topic-{number:05}" for number in range(topics)]
    async with KafkaAdmin.to(cluster.bootstrap) as admin:
        await create(admin, names)
        later = LeftThrottles(admin)
        await later.read(RunningMoves())
        record = ThrottleRecord(
            rate=1 << 20,
            brokers=cluster.ids,
            entries={name: dict.fromkeys(REPLICA_LISTS, ("0:101",)) for name in names},
        )
        throttle = ClusterThrottle(admin, ours)
        some = {name: record.entries[name] for name in names[:TOPICS_AT_A_TIME]}
        for what, read in (
            ("a round of all topics", lambda: LeftThrottles(admin).read(RunningMoves())),
            ("a round between", lambda: later.read(RunningMoves())),
            ("a run's comparison of all topics", lambda: compare(throttle, record, record.entries)),
            ("a run's comparison in turns", lambda: compare(throttle, record, some)),
        ):
            await measured(what, processes, window_s, read)


async def compare(throttle: ClusterThrottle, record: ThrottleRecord, lists: Lists) -> None:
    """As a run does at each tick."""
    await throttle.foreign_changes(record, lists, record.brokers)


def main() -> None:
    """Entry of ``python -m benchmarks.operation_findings``."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--window", type=float, default=12.0, help="seconds")
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder), overrides=NOBODY_DIES) as cluster,
    ):
        asyncio.run(run(cluster, chosen.topics, chosen.window))


if __name__ == "__main__":
    main()
