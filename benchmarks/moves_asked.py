"""Asking which reassignments there are, on a bus that knows many.

    python -m benchmarks.moves_asked [--moves 200] [--partitions 2000]

Starts three brokers of ours in a temporary directory and fills the operations topics with moves
that have ended. Prints for the first question and for later ones how long it took, and for how long
the event loop was held at a time; then how long the plan of one takes, and the process's memory.
"""

import argparse
import asyncio
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from control.move.commands import ReassignCommand
from control.move.events import Event, EventKind, MoveProgress
from control.move.state import accepted_data
from control.operations.bus.client import OperationsClient
from control.operations.bus.topics import Bus
from planner.proposal import PartitionChange
from tests.support.cluster import LocalCluster


def ended_move(number: int, partitions: int) -> tuple[ReassignCommand, list[Event]]:
    """A command and the events of its life."""
    changes = tuple(
        PartitionChange(
            topic=f"topic-{number}-{n % 50}",
            partition=n // 50,
            before=(101 + n % 3, 102 + n % 2, 104),
            after=(105, 102 + n % 2, 104),
            size_bytes=1_000_000 + n * 7919 % 1_000_003,
        )
        for n in range(partitions)
    )
    name = f"mv-{number:08x}"
    command = ReassignCommand(
        operation_id=name, bootstrap="c:1", changes=changes, submitted_ms=number + 1
    )
    done = MoveProgress(
        bytes_done=1, bytes_total=1, partitions_done=partitions, partitions_total=partitions,
        wave=1, waves=1,
    ).document()  # fmt: skip
    told: list[tuple[EventKind, dict[str, Any]]] = [
        (EventKind.ACCEPTED, accepted_data(command)),
        (EventKind.STARTED, {"progress": done}),
        (EventKind.PROGRESS, done),
        (EventKind.FINISHED, {"outcome": "done", "progress": done}),
    ]
    events = [Event(operation_id=name, kind=kind, at_ms=number, data=data) for kind, data in told]
    return command, events


async def held_s(task: asyncio.Task[Any]) -> float:
    """The longest time for which the event loop was held while the task ran."""
    longest, last = 0.0, time.perf_counter()
    while not task.done():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    return longest


async def measure(bootstrap: str, moves: int, partitions: int) -> None:
    """Fill the bus, then ask."""
    async with Bus(bootstrap) as bus:
        await bus.ensure_topics()
        for number in range(moves):
            command, events = ended_move(number, partitions)
            await bus.publish_command(command)
            for event in events:
                await bus.publish_event(event)
    async with OperationsClient(bootstrap) as client:
        for question in range(6):
            began_s = time.perf_counter()
            task = asyncio.create_task(client.list())
            longest_s = await held_s(task)
            took_ms = (time.perf_counter() - began_s) * 1000
            print(
                f"question {question + 1}: {len(task.result())} moves in {took_ms:.1f} ms, "
                f"the loop held for {longest_s * 1000:.1f} ms at most"
            )
        began_s = time.perf_counter()
        state = await client.get("mv-00000007")
        took_ms = (time.perf_counter() - began_s) * 1000
        print(f"one with its {len(state.changes):,} partitions: {took_ms:.1f} ms")
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"at most {resident} MiB of memory, what filled the bus included")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=200)
    parser.add_argument("--partitions", type=int, default=2000)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(Path(folder) / "cluster", brokers=3) as cluster,
    ):
        cluster.wait_ready()
        asyncio.run(measure(cluster.bootstrap, given.moves, given.partitions))


if __name__ == "__main__":
    main()
