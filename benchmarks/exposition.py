"""What a scrape costs: time, bytes and memory of ``/metrics`` over a large cluster.

    python -m benchmarks.exposition [--topics 400] [--partitions 50]

Writes a synthetic store, and the exposition with the usual limits and without any. Prints a table
as it goes, then one JSON line. prometheus-client writes the same series for comparison.
"""

import argparse
import gzip
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from prometheus_client import parser
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from benchmarks.processes import resident_mib
from control.exposition.exposition import Written, write
from control.exposition.limits import SERIES_MAX, USUAL, Limits
from control.exposition.series import Format
from control.exposition.source import ClusterSource
from control.views.snapshots.feed import SnapshotFeed
from control.views.snapshots.process_memory import be_small
from control.views.snapshots.snapshot import OperatorSnapshot
from control.views.snapshots.store import StoreReader
from tests.support.store_builder import StoreBuilder, SyntheticSizes

ALL: Final = Limits(
    topics_max=SERIES_MAX,
    partitions_max=SERIES_MAX,
    groups_max=SERIES_MAX,
    group_partitions_max=SERIES_MAX,
)
ROUNDS: Final = 5
"""The best of so many counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one exposition."""

    limits: str
    series: int
    size: int
    zipped: int
    cpu_ms: int
    zip_cpu_ms: int
    library_cpu_ms: int
    """The same series, written by prometheus-client."""
    resident_mib: int
    peak_mib: int


class _Parsed(Collector):
    """The same series as objects of the library."""

    def __init__(self, text: bytes) -> None:
        self._families = tuple(parser.text_string_to_metric_families(text.decode()))

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        yield from self._families


def measure(name: str, limits: Limits, snapshot: OperatorSnapshot) -> Figures:
    """One kind of limits, over a snapshot whose tables are there already."""
    spent_s: list[float] = []
    for _ in range(ROUNDS):
        source = ClusterSource(name="prod", snapshot=snapshot, limits=limits, is_current=True)
        began_s = time.process_time()
        written: Written = write([source])
        text = written.text(Format.PLAIN)
        spent_s.append(time.process_time() - began_s)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    resident = round(resident_mib(os.getpid()))
    began_s = time.process_time()
    zipped = gzip.compress(text, 1)
    zip_s = time.process_time() - began_s
    library = _Parsed(text)
    began_s = time.process_time()
    generate_latest(library)
    library_s = time.process_time() - began_s
    return Figures(
        limits=name,
        series=written.series,
        size=len(text),
        zipped=len(zipped),
        cpu_ms=round(min(spent_s) * 1000),
        zip_cpu_ms=round(zip_s * 1000),
        library_cpu_ms=round(library_s * 1000),
        resident_mib=resident,
        peak_mib=peak_mib,
    )


def main() -> None:
    """Print a table, then one JSON line."""
    given = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    given.add_argument("--topics", type=int, default=400)
    given.add_argument("--partitions", type=int, default=50)
    asked = given.parse_args()
    be_small()
    sizes = SyntheticSizes(topics=asked.topics, partitions=asked.partitions, groups=asked.topics)
    at_ms = time.time_ns() // 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        StoreBuilder(Path(folder)).write_synthetic(sizes, history_s=1, at_ms=at_ms)
        feed = SnapshotFeed(StoreReader(folder), now_ms=lambda: at_ms + 200)
        feed.refresh()
    shown = feed.current
    began_s = time.process_time()
    for table in (shown.partition_table, shown.topic_table, shown.group_table, shown.broker_table):
        assert table.num_rows
    print(f"tables that page and exposition share: {time.process_time() - began_s:.3f} s of CPU")
    found = []
    for name, limits in (("usual", USUAL), ("none", ALL)):
        found.append(asdict(measure(name, limits, shown)))
        print("".join(f"{it:>16}" for it in (found[-1] if len(found) == 1 else ())))
        print("".join(f"{it:>16}" for it in found[-1].values()), flush=True)
    print(json.dumps({"exposition": found}))


if __name__ == "__main__":
    main()
