"""CPU of a task of the metrics job's executors, by how many share the records of many sources.

    python -m benchmarks.metrics_tasks [--sources 20] [--rows 3000] [--batches 20]

Each source tells so many rows a round, one half replicas and the other commits. The tasks run in
this process, without Spark, for 1, 2 and 4 of them by turns; the lower quartile counts.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any, Final

from broker.metrics_schema import (
    BrokerSample,
    CommitSample,
    Envelope,
    GroupSample,
    ReplicaSample,
    Row,
    encode_round,
)
from spark_metrics.decode.record_head import Head, KafkaRecord, read_head
from tests.unit.spark_metrics.buckets.tasks import T0_MS, Tasks

TASKS: Final = (1, 2, 4)
WARM: Final = 3
"""So many batches do not count."""
PER_TOPIC: Final = 50
GROUPS: Final = 10
"""Of each coordinator."""


def round_of(source: int, sources: int, rows: int, number: int) -> list[bytes]:
    """The records of a source's round: replicas that it holds, and commits of its groups."""
    at_ms = T0_MS + 1_000 * number
    told: list[Row] = [
        BrokerSample(id=it, host="h", port=9_000 + it, fenced=False, read_ms=at_ms)
        for it in range(sources)
    ]
    told += [
        GroupSample(group_id=f"g{source}-{it}", state="Stable", members=3, read_ms=at_ms)
        for it in range(GROUPS)
    ]
    for partition in range(sources * rows // 6):
        replicas = [(partition + step) % sources for step in range(3)]
        if source not in replicas:
            continue
        place: dict[str, Any] = {
            "topic": f"topic-{partition // PER_TOPIC}",
            "partition": partition % PER_TOPIC,
        }
        end = 1_000_000 + partition + 50 * number
        figures: dict[str, Any] = {
            **{"leader": replicas[0], "leader_epoch": 3, "replicas": replicas, "isr": replicas},
            **{"log_start_offset": 0, "high_watermark": end, "log_end_offset": end},
            **{"size_bytes": 1_000 * end, "segments": 2, "min_isr": 2, "read_ms": at_ms},
            **{"segment_bytes": (800 * end, 200 * end), "segment_offsets": (0, end // 2)},
            **{"bytes_in": 100 * end, "bytes_out": 200 * end},
        }
        commit: dict[str, Any] = {
            **{"group_id": f"g{source}-{partition % GROUPS}", "committed_offset": end - 100},
            **{"member_id": f"c-{source}-{partition % 3}", "read_ms": at_ms - 5},
            "commit_ms": at_ms - 1_000,
        }
        told += [ReplicaSample(**place, **figures), CommitSample(**place, **commit)]
    envelope = Envelope(
        cluster="c", broker=source, broker_epoch=1, round_ms=at_ms, interval_ms=1_000
    )
    return encode_round(envelope, told)


def batch_of(sources: int, rows: int, number: int) -> list[Head]:
    """A round of every source."""
    values = [it for source in range(sources) for it in round_of(source, sources, rows, number)]
    return [
        read_head(
            KafkaRecord(
                partition=0,
                offset=number * len(values) + place,
                timestamp_ms=T0_MS + 1_000 * number,
                value=value,
            )
        )
        for place, value in enumerate(values)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=20)
    parser.add_argument("--rows", type=int, default=3_000, help="of a source's round")
    parser.add_argument("--batches", type=int, default=20)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-tasks-") as folder:
        runs = {count: Tasks(Path(folder, str(count)), count) for count in TASKS}
        for number in range(chosen.batches):
            heads = batch_of(chosen.sources, chosen.rows, number)
            for tasks in runs.values():
                tasks.batch(heads)
    cpu_ms = {}
    for count, tasks in runs.items():
        counted = sorted(tasks.cpu_s[WARM * count :])
        cpu_ms[count] = 1_000 * counted[len(counted) // 4]
        share = cpu_ms[count] / cpu_ms[1]
        print(f"{count} tasks: {cpu_ms[count]:.0f} ms of CPU a task, {share:.2f} of one")


if __name__ == "__main__":
    main()
