"""Scans a topic for messages, beside kcat in the same run: records a second and memory.

``python -m benchmarks.message_search 10000000 text``; without names all of ``SEARCHES`` run, and
kcat is left out where it is not installed. Every search runs in a process of its own and finds one
record among all. A last one is stopped after ``STOP_AFTER_S``, and tells how long it took to end.
"""

import asyncio
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from control.kafka.records.scan_progress import Scan
from control.messages.message_search import MessageSearch
from tests.support.cluster import LocalCluster

TOPIC: Final = "orders"
PARTITIONS: Final = 6
RECORDS: Final = 1_000_000
SEARCH: Final = "--search"
"""Says that this process runs one search."""
STOPS: Final = "stops"
STOP_AFTER_S: Final = 1.0
SEARCHES: Final = {
    "text": {"q": "needle"},
    "pattern with ^ (every record is opened)": {"regex": "^needle"},
    "key": {"key": "needle"},
    "JSON path": {"path": "$[?@ == 'needle']"},
    "CEL": {"cel": "value.status == 'needle'"},
}


def fill(bootstrap: str, count: int) -> None:
    """So many orders of about 100 bytes, the middle one with the needle."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        created.result(20)
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 50, "compression.type": "lz4"}
    )
    for number in range(count):
        status = "needle" if number == count // 2 else "paid"
        value = f'{{"order": {number}, "status": "{status}", "customer": "c-{number % 997}"}}'
        while True:
            try:
                producer.produce(TOPIC, value, key=status if status != "paid" else str(number))
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(120) == 0


async def search(bootstrap: str, query: dict[str, str]) -> None:
    """One search in this process; prints its figures as JSON."""
    scan = Scan()
    if query.pop(STOPS, ""):
        asyncio.get_running_loop().call_later(STOP_AFTER_S, scan.stop)
    wanted = MessageSearch.of_query(TOPIC, {"since": "earliest", "limit": str(1 << 40), **query})
    began = time.monotonic()
    found = await wanted.read(bootstrap, now_ms=0, limit=100, scan=scan)
    print(
        json.dumps(
            {
                "s": time.monotonic() - began,
                "scanned": found.progress.record_count,
                "found": len(found.records),
                "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
            }
        )
    )


def run_search(bootstrap: str, query: dict[str, str]) -> dict[str, float]:
    """The figures of a search in a process of its own."""
    command = (sys.executable, "-m", __spec__.name, SEARCH, bootstrap, json.dumps(query))
    told: dict[str, float] = json.loads(subprocess.check_output(command, text=True))
    return told


def main(count: int, names: Sequence[str]) -> None:
    """A table of the searches of these names."""
    with tempfile.TemporaryDirectory() as folder, LocalCluster(Path(folder), brokers=1) as cluster:
        fill(cluster.bootstrap, count)
        for name in names:
            told = run_search(cluster.bootstrap, SEARCHES[name])
            rate = told["scanned"] / told["s"]
            print(
                f"{name:42} {told['s']:7.1f} s {rate:11,.0f} records/s "
                f"{told['peak_mib']:5} MiB, found {told['found']}",
                flush=True,
            )
        late_s = run_search(cluster.bootstrap, {"q": "no such", STOPS: "yes"})["s"] - STOP_AFTER_S
        print(f"{'stopped: ended after':42} {late_s:7.2f} s", flush=True)
        if shutil.which("kcat"):
            base = f"kcat -C -e -q -b {cluster.bootstrap} -t {TOPIC} -o beginning"
            began = time.monotonic()
            subprocess.check_output(f"{base} | grep needle", shell=True)
            took_s = time.monotonic() - began
            print(f"{'kcat | grep':42} {took_s:7.1f} s {count / took_s:11,.0f} records/s")


if __name__ == "__main__":
    if sys.argv[1:2] == [SEARCH]:
        asyncio.run(search(sys.argv[2], json.loads(sys.argv[3])))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS, sys.argv[2:] or list(SEARCHES))
