"""The terminal as it is over SSH: first data, key to redraw, bytes per refresh, memory.

    python -m benchmarks.terminal [--replicas 10000 100000] [--refreshes 10] [--size 120x36]

Runs `partiscope tui` on a pseudo-terminal over a synthetic store. The store gets a new version
every two seconds, as from the metrics job; what the terminal writes between two versions is one
refresh. Keys are sent between refreshes; a redraw is the first byte that comes back.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from tests.support.store_builder import StoreBuilder, SyntheticSizes
from tests.support.terminal import Terminal

PARTITIONS: Final = 50
FACTOR: Final = 3
REFRESH_S: Final = 2.0
KEYS: Final = (b"\t", b"\x1b[B", b"\x1b[B", b"\x1b[A", b"\x1b[B")
"""From block to block, then up and down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one store. Times in milliseconds, medians and the worst."""

    replicas: int
    first_data_s: float
    bytes_per_refresh: int
    bytes_per_refresh_max: int
    key_ms: float
    key_ms_max: float
    resident_mib: int


def measure(replicas: int, refreshes: int, size: tuple[int, int]) -> Figures:
    """One store, one terminal."""
    topics = max(1, replicas // FACTOR // PARTITIONS)
    sizes = SyntheticSizes(topics=topics, partitions=PARTITIONS, brokers=12, groups=20)
    with tempfile.TemporaryDirectory() as folder:
        builder = StoreBuilder(folder)
        builder.write_synthetic(sizes, history_s=2, at_ms=_now_ms())
        with Terminal(Path(folder), size) as terminal:
            terminal.read_until(b"BROKERS")
            first_data_s = time.monotonic() - terminal.started_s
            terminal.read(REFRESH_S)
            written, keys = [], []
            for turn in range(refreshes):
                builder.write_synthetic(sizes, history_s=1, at_ms=_now_ms())
                written.append(len(terminal.read(REFRESH_S)))
                keys.append(terminal.press(KEYS[turn % len(KEYS)]))
            resident_mib = terminal.resident_mib()
    return Figures(
        replicas=topics * PARTITIONS * FACTOR,
        first_data_s=round(first_data_s, 2),
        bytes_per_refresh=int(statistics.median(written)),
        bytes_per_refresh_max=max(written),
        key_ms=round(statistics.median(keys), 1),
        key_ms_max=round(max(keys), 1),
        resident_mib=resident_mib,
    )


def main() -> None:
    """Print a table, then one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--refreshes", type=int, default=10)
    parser.add_argument("--size", default="120x36")
    given = parser.parse_args()
    columns, _, rows = given.size.partition("x")
    print(
        f"{'replicas':>10}{'first data s':>14}{'B/refresh':>11}{'key ms':>8}{'worst':>8}{'MiB':>6}"
    )
    found = []
    for replicas in given.replicas:
        f = measure(replicas, given.refreshes, (int(columns), int(rows)))
        found.append(f)
        print(
            f"{f.replicas:>10,}{f.first_data_s:>14.2f}{f.bytes_per_refresh:>11,}"
            f"{f.key_ms:>8.1f}{f.key_ms_max:>8.1f}{f.resident_mib:>6}",
            flush=True,
        )
    print(json.dumps({"terminal": [asdict(item) for item in found]}))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    main()
